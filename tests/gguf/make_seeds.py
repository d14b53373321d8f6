#!/usr/bin/env python3
"""Writes the seeds of fuzz/corpus/gguf: small files that reach every branch of the reader. Usage: make_seeds.py FOLDER"""
import pathlib
import sys

from gguf_bytes import (ARCH, ARR, ARRAY, BOOL, F32, F32T, F64T, G, I16, I32T, I64T, I8, KV, S, STR, TI, U8, U16, U32, U32T,
                        U64, U64T)

NUMBERS = ((U8, 7), (I8, -7), (U16, 700), (I16, -700), (U32T, 70000), (I32T, -70000), (F32T, 0.5), (BOOL, True),
           (U64T, 7 << 40), (I64T, -(7 << 40)), (F64T, 1e-6))
TYPES = {"F32": (0, 8, 32), "F16": (1, 8, 16), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
         "BF16": (30, 8, 16)}


def tensor(type_, values, size, rows=1):
    data = bytes((37 * i + 11) % 251 for i in range(size * rows))
    return G([ARCH], [TI("t", [values, rows] if rows > 1 else [values], type_, 0)], data)


def seeds():
    yield "empty", G()
    yield "version_2", G([ARCH], version=2)
    yield "version_1", G([ARCH], version=1)
    yield "big_endian", b"GGUF\0\0\0\3" + bytes(16)
    yield "numbers", G([KV(f"n{t}", t, v) for t, v in NUMBERS])
    yield "arrays", G([KV(f"a{t}", ARRAY, ARR(t, [v, v])) for t, v in NUMBERS])
    yield "strings", G([KV("s", STR, "text"), KV("e", STR, ""), KV("a", ARRAY, ARR(STR, ["", "a", "bc", "\u0120d"]))])
    yield "string_bytes", G([KV("s", STR, b"\xff\0\xc0")])
    yield "nested", G([KV("a", ARRAY, U32(ARRAY) + U64(1) + ARR(U8, [1]))])
    yield "count_lies", G([KV("a", ARRAY, ARR(U64T, [1], 2**61))])
    yield "length_lies", G([S("abc", 2**63) + U32(U8) + b"\1"])
    yield "bool_2", G([KV("b", BOOL, b"\2")])
    yield "key_twice", G([KV("a", U8, 1), KV("a", U8, 2)])
    yield "alignment_64", G([KV("general.alignment", U32T, 64)], [TI("t", [2], F32, 64)], bytes(72), alignment=64)
    yield "alignment_0", G([KV("general.alignment", U32T, 0)])
    yield "split", G([ARCH, KV("split.no", U16, 0), KV("split.count", U16, 3), KV("split.tensors.count", I32T, 4)])
    yield "tensors", G([ARCH], [TI("a", [4], F32, 0), TI("b", [2, 2], F32, 32), TI("c", [1, 1, 2, 2], F32, 64)], bytes(80))
    yield "overlap", G([], [TI("a", [16], F32, 0), TI("b", [8], F32, 32)], bytes(96))
    yield "tensor_twice", G([], [TI("a", [4], F32, 0), TI("a", [4], F32, 32)], bytes(48))
    yield "wraps", G([], [TI("a", [8, 2**59 + 1], F32, 0)], bytes(32))
    yield "cut", G([], [TI("a", [64], F32, 0)], bytes(100))
    yield "html", b"<!DOCTYPE html><html>"
    yield "lfs", b"version https://git-lfs.github.com/spec/v1\n"
    yield "safetensors", U64(9) + b'{"a":{}} '
    for name, (type_, values, size) in TYPES.items():
        yield f"type_{name}", tensor(type_, values, size, 2)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
