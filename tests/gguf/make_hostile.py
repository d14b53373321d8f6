#!/usr/bin/env python3
"""Writes malformed GGUF files, some odd but good ones, and manifest.tsv: file, status, words its message must contain.

Usage: make_hostile.py FOLDER. Sources of the cases: CVE-2026-33298, CVE-2026-27940 and the issues about shapes that wrap, zero
dimensions, duplicate names; the rest is what a reader of the format can get wrong.
"""
import pathlib
import sys

import tiny_model
from gguf_bytes import (ARCH, ARR, ARRAY, BF16, BOOL, F16, F32, F32T, F64T, G, I32T, IQ4_XS, KV, Q2_K, Q4_0, Q4_K, Q6_K, Q8_0, S,
                        STR, TI, U8, U16, U32, U32T, U64, U64T, pad)

BAD, UNSUPPORTED, LIMIT, IO, GOOD = "bad format", "not supported", "limit reached", "input/output", "ok"
CASES = []  # (name, files: {file name: bytes}, which to open, status, words)


def case(name, data, status, *words):
    assert name not in {c[0] for c in CASES}, name
    CASES.append((name, {name + ".gguf": data}, name + ".gguf", status, words))


def split(name, files, open_, status, *words):
    CASES.append((name, {f"{name}/{f}": d for f, d in files.items()}, f"{name}/{open_}", status, words))


def tensors(name, infos, status, *words, data=bytes(4096), kvs=(ARCH,), **head):
    case(name, G(list(kvs), infos, data, **head), status, *words)


def one(name, dims, type_, status, *words, offset=0, data=bytes(4096), **head):
    """A file with the single tensor t."""
    tensors(name, [TI("t", dims, type_, offset)], status, "'t'", *words, data=data, **head)


def no_gguf():
    case("empty", b"", BAD, "not a GGUF", "empty file")
    case("html", b"\n<!DOCTYPE html><html><body>404</body></html>", BAD, "not a GGUF", "HTML page")
    case("html_bom", b"\xef\xbb\xbf<HTML><head>", BAD, "HTML page")
    case("xml", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", BAD, "XML")
    case("json", b'{"error":"Repository not found"}', BAD, "JSON text")
    case("text", "Entry not found: modèle".encode(), BAD, "text file")
    case("text_cut", "Entry not found: modèle".encode()[:-3], BAD, "text file")
    case("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n", BAD, "Git LFS pointer")
    case("zip", b"PK\x03\x04" + bytes(range(60)), BAD, "zip archive", "PyTorch")
    case("pickle", b"\x80\x02}q\x00X\x07\x00\x00\x00", BAD, "pickle")
    case("safetensors", U64(60) + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}     ', BAD, "safetensors")
    case("gzip", b"\x1f\x8b\x08\x00" + bytes(20), BAD, "gzip")
    case("ggml", b"lmgg" + bytes(28), BAD, "before GGUF")
    case("ggjt", b"tjgg\x03\x00\x00\x00" + bytes(24), BAD, "before GGUF")
    case("zeros", bytes(4096), BAD, "zero bytes", "download")
    case("noise", bytes((i * 151 + 77) % 256 for i in range(512)), BAD, "unknown format")
    case("one_byte", b"G", BAD, "not a GGUF")


def headers():
    case("magic_only", b"GGUF", BAD, "ends at byte 4", "header of 24 bytes")
    case("header_cut", G()[:23], BAD, "ends at byte 23", "header")
    case("version_0", G(version=0), UNSUPPORTED, "version 0", "2 and 3")
    case("version_1", G(version=1), UNSUPPORTED, "version 1", "convert")
    case("version_4", G([ARCH], version=4), UNSUPPORTED, "version 4,")
    case("version_max", G(version=0xFFFFFFFF), UNSUPPORTED, "version 4294967295")
    case("big_endian", b"GGUF" + (3).to_bytes(4, "big") + bytes(16), UNSUPPORTED, "version 3", "big-endian")
    case("big_endian_magic", b"FUGG" + (3).to_bytes(4, "big") + bytes(16), BAD, "big-endian")
    for n in (1, 2**32, 2**63, 2**64 - 1):
        case(f"keys_{n}", G(n_kv=n), BAD, f"{n} keys", "room for 0")
        case(f"tensors_{n}", G(n_tensors=n), BAD, f"{n} tensors", "room for 0")
    case("keys_one_more", G([ARCH], n_kv=2, data=bytes(64)), BAD, "key 2 of 2", "byte ")
    case("keys_in_room", G([ARCH], n_kv=9, data=bytes(4)), BAD, "9 keys", "room for 5")
    case("tensors_one_more", G([ARCH], [TI("t", [8], F32, 0)], bytes(64), n_tensors=2), BAD, "tensor 2 of 2", "name")
    case("keys_too_many", G([KV(f"k{i:06}", U8, i & 255) for i in range(131073)]), LIMIT, "131073 keys", "131072")


def keys():
    value = U32(U8) + b"\1" + bytes(64)
    for n in (10**6, 2**31, 2**63, 2**64 - 1):
        case(f"key_length_{n}", G([S("abc", n) + value]), BAD, "key 1 of 1", "byte 32", f"takes {n} bytes", "are left")
    case("key_cut", G([S("abcdefghijkl", 13)]), BAD, "key 1 of 1", "takes 13 bytes", "only 12")
    case("key_empty", G([S("") + value]), BAD, "key 1 of 1", "is empty")
    case("key_nul", G([S("a\0b") + value]), BAD, r"'a\x00b'", "NUL")
    case("key_utf8", G([S(b"a\xffb") + value]), BAD, r"'a\xFFb'", "UTF-8")
    case("key_utf8_cut", G([S(b"general.\xe4\xb8") + value]), BAD, "UTF-8")
    case("key_all_bad", G([S(b"\xff" * 300) + value]), BAD, r"'\xFF\xFF", "(300 bytes)", "UTF-8")
    case("key_surrogate", G([S(b"\xed\xa0\x80") + value]), BAD, "UTF-8")
    case("key_control", G([S("a\nb\x9b") + U32(13) + bytes(8)]), BAD, r"'a\x0Ab\xC2\x9B'", "type 13")
    case("key_65536", G([S("k" * 65536) + value]), LIMIT, "(65536 bytes)", "at most 65535")
    case("key_twice", G([ARCH, KV("a.b", U8, 1), KV("a.b", U8, 1)]), BAD, "'a.b'", "byte 93", "same key", "byte 77")
    case("key_twice_other_type", G([KV("a.b", U8, 1), KV("a.b", STR, "x")]), BAD, "'a.b'", "same key")


def values():
    case("type_13", G([KV("a.b", 13, b"\0" * 8)]), BAD, "'a.b'", "byte 35", "value type 13")
    case("type_max", G([KV("a.b", 0xFFFFFFFF, b"\0" * 8)]), BAD, "'a.b'", "4294967295")
    case("type_cut", G([S("a.b") + b"\0\0\0"]), BAD, "'a.b'", "value type takes 4")
    case("value_cut", G([KV("a.b", F64T, 1.0)[:-1]]), BAD, "'a.b'", "do not fit", "7 bytes")
    for n in (100, 2**32, 2**63, 2**64 - 1):
        case(f"string_length_{n}", G([S("a.b") + U32(STR) + S("xyz", n)]), BAD, "'a.b'", "byte 39", "string 1 of 1", f"has {n} bytes", "only 3 are left")
    case("string_cut", G([KV("a.b", STR, "hello")[:-1]]), BAD, "'a.b'", "has 5 bytes", "only 4 are left")
    case("string_length_cut", G([S("a.b") + U32(STR) + b"\5\0\0"]), BAD, "'a.b'", "length of string 1", "only 3 are left")
    case("bool_2", G([KV("a.b", BOOL, b"\2")]), BAD, "'a.b'", "byte 39", "bool is 2")
    case("bool_255", G([KV("a.b", BOOL, b"\xff")]), BAD, "'a.b'", "bool is 255")
    case("bool_in_array", G([KV("a.b", ARRAY, ARR(BOOL, [b"\1", b"\0", b"\3"]))]), BAD, "'a.b'", "byte 53", "bool is 3")


def arrays():
    case("array_nested", G([KV("a.b", ARRAY, U32(ARRAY) + U64(1) + ARR(U8, [1]))]), UNSUPPORTED, "'a.b'", "array of arrays")
    case("array_deep", G([KV("a.b", ARRAY, (U32(ARRAY) + U64(1)) * 10000 + ARR(U8, [1]))]), UNSUPPORTED, "array of arrays")
    case("array_elem_13", G([KV("a.b", ARRAY, ARR(13, [], 1) + bytes(8))]), BAD, "'a.b'", "element type 13")
    case("array_head_cut", G([KV("a.b", ARRAY, U32(U8) + b"\1\0")]), BAD, "'a.b'", "array length takes 8")
    wraps = ((U8, 2**64 - 1), (U16, 2**63), (U32T, 2**62), (U64T, 2**61), (F64T, 2**61 + 1), (U32T, 2**32), (BOOL, 2**40))
    for elem, n in wraps:
        case(f"array_{elem}_of_{n}", G([KV("a.b", ARRAY, ARR(elem, [], n) + bytes(16))]), BAD, "'a.b'", f"{n} values", "16 bytes")
    for n in (2**64 - 1, 2**61, 2**60, 2**40, 3):
        case(f"array_of_{n}_strings", G([KV("a.b", ARRAY, ARR(STR, ["", ""], n))]), BAD, "'a.b'", f"{n} strings", "16 bytes")
    case("array_short_by_one", G([KV("a.b", ARRAY, ARR(U16, [1, 2, 3])[:-1])]), BAD, "'a.b'", "3 values of type u16")
    long_second = ARR(STR, ["ab"], 3) + S("cd", 2**63) + S("ef")
    case("array_string_length", G([KV("a.b", ARRAY, long_second)]), BAD, "'a.b'", "byte 61", "string 2 of 3")
    strings = ARR(STR, ["a" * i for i in range(100)])
    case("array_strings_cut", G([KV("tokenizer.ggml.tokens", ARRAY, strings[:-1])]), BAD, "'tokenizer.ggml.tokens'", "string 100 of 100")


def alignments():
    for a in (0, 1, 2, 3, 4, 33, 48, 2**21, 2**31):
        kvs = [ARCH, KV("general.alignment", U32T, a)]
        tensors(f"alignment_{a}", [TI("t", [8], F32, 0)], BAD, "general.alignment", f"is {a},", "power of two", kvs=kvs)
    for name, kv, shown in (("u64", (U64T, 32), "u64"), ("string", (STR, "32"), "string"), ("i32", (I32T, 32), "i32"),
                            ("f32", (F32T, 32.0), "f32"), ("array", (ARRAY, ARR(U32T, [32])), "array")):
        case(f"alignment_{name}", G([KV("general.alignment", *kv)]), BAD, "general.alignment", f"type {shown}", "u32")


def names():
    shape = U32(1) + U64(8) + U32(F32) + U64(0)
    for n in (2**31, 2**64 - 1):
        case(f"name_length_{n}", G([ARCH], [S("t", n)], bytes(64)), BAD, "tensor 1 of 1", f"takes {n} bytes")
    tensors("name_empty", [S("") + shape], BAD, "tensor 1 of 1", "is empty")
    tensors("name_nul", [S("blk.0\0.weight") + shape], BAD, r"'blk.0\x00.weight'", "NUL")
    tensors("name_utf8", [S(b"blk\xc0\xaf") + shape], BAD, r"'blk\xC0\xAF'", "UTF-8")
    tensors("name_256", [S("n" * 256) + shape], LIMIT, "'nnnn", "(256 bytes)", "at most 255")
    tensors("name_twice", [TI("t", [8], F32, 0), TI("t", [8], F32, 32)], BAD, "'t'", "byte 102", "already")
    tensors("name_twice_apart", [TI("t", [8], F32, 0), TI("u", [8], F32, 32), TI("t", [16], F32, 64)], BAD, "'t'", "byte 135", "already")


def shapes():
    one("dims_none", [], F32, BAD, "0 dimensions", "1 to 4")
    one("dims_5", [1] * 5, F32, BAD, "5 dimensions", "1 to 4")
    tensors("dims_max", [TI("t", [8], F32, 0, n_dims=0xFFFFFFFF)], BAD, "'t'", "4294967295 dimensions")
    one("dim_zero_last", [32, 0], F32, BAD, "dimension 1 of [32, 0] is 0")
    one("dim_zero_first", [0, 32], F32, BAD, "dimension 0 of [0, 32] is 0")
    one("dim_zero_only", [0], Q8_0, BAD, "[0] is 0")
    one("dim_zero_middle", [8, 1, 0, 4], F32, BAD, "dimension 2 of [8, 1, 0, 4]")
    one("product_wraps_to_0", [2**32, 2**32], F32, BAD, "[4294967296, 4294967296]", "too big")
    one("product_wraps_4", [2**16] * 4, F32, BAD, "too big")
    one("bytes_wrap_to_32", [8, 2**59 + 1], F32, BAD, "[8, 576460752303423489]", "too big", data=bytes(32))
    one("bytes_wrap_to_0", [2**62], F32, BAD, "too big")
    one("bytes_wrap_blocks", [32, 2**59 + 1, 16], Q4_0, BAD, "too big")
    one("values_2_63", [2**63], F16, BAD, "too big")
    one("values_2_63_bytes_fit", [256, 2**56], Q2_K, BAD, "too big")
    one("dim_max", [2**64 - 1], F32, BAD, "too big")
    one("type_max_tensor", [8], 0xFFFFFFFF, UNSUPPORTED, "type 4294967295", "unknown")
    one("type_43", [8], 43, UNSUPPORTED, "type 43", "unknown", "end at 42")
    for id_, name in ((4, "Q4_2"), (5, "Q4_3"), (31, "Q4_0_4_4"), (33, "Q4_0_8_8"), (38, "IQ4_NL_8_8")):
        one(f"type_{name}", [256], id_, UNSUPPORTED, f"type {id_} ({name})", "taken out")
    one("row_33", [33], Q8_0, BAD, "rows of 33", "Q8_0", "32")
    one("row_1", [1, 32], Q4_0, BAD, "rows of 1 ", "Q4_0")
    one("row_128", [128, 2], Q4_K, BAD, "rows of 128", "Q4_K", "256")
    one("row_255", [255], Q6_K, BAD, "rows of 255", "Q6_K")
    good = TI("t", [8, 2, 1, 1], F32, 0)
    for cut, word in ((3, "room for 0"), (32, "room for 0"), (36, "dimension takes 8"), (47, "type takes 4"), (52, "offset takes 8")):
        case(f"tensor_cut_{cut}", G([ARCH], n_tensors=1) + good[:cut], BAD, word)


def places():
    one("offset_1", [8], F32, BAD, "offset 1 ", "alignment 32", offset=1)
    one("offset_16", [8], F32, BAD, "offset 16 ", "alignment 32", offset=16)
    kvs = [ARCH, KV("general.alignment", U32T, 64)]
    one("offset_32_of_64", [8], F32, BAD, "offset 32 ", "alignment 64", offset=32, kvs=kvs, alignment=64)
    one("offset_wraps", [8], F32, BAD, "too big", offset=2**64 - 32)
    one("offset_end_wraps", [2**20], F32, BAD, "too big", offset=2**64 - 2**20)
    one("offset_2_63", [8], F32, BAD, "missing", offset=2**63)
    one("offset_beyond", [8], F32, BAD, "the file ends", "32 bytes are missing", offset=4096)
    one("data_short_by_1", [8], F32, BAD, "1 bytes are missing", "unfinished download", data=bytes(31))
    one("data_none", [8], F32, BAD, "32 bytes are missing", data=b"")
    case("data_padding_missing", G([ARCH], n_tensors=1) + TI("t", [8], F32, 0), BAD, "'t'", "missing")
    third = [TI("a", [8], F32, 0), TI("b", [8], F32, 32), TI("c", [64], F32, 64)]
    tensors("download_cut", third, BAD, "'b'", "272 bytes are missing", data=bytes(48))
    last_first = [TI("c", [64], F32, 64), TI("a", [8], F32, 0), TI("b", [8], F32, 32)]
    tensors("download_cut_backwards", last_first, BAD, "'c'", "272 bytes are missing", data=bytes(48))
    tensors("same_place", [TI("a", [8], F32, 0), TI("b", [8], F32, 0)], BAD, "overlaps", "'a'", "'b'")
    tensors("overlap", [TI("a", [16], F32, 0), TI("b", [8], F32, 32)], BAD, "'b'", "overlaps that of 'a'", "64 bytes")
    tensors("overlap_backwards", [TI("b", [8], F32, 32), TI("a", [16], F32, 0)], BAD, "'b'", "overlaps that of 'a'")
    tensors("overlap_inside", [TI("a", [256], F32, 0), TI("c", [8], F32, 1024), TI("b", [8], F32, 128)], BAD, "'b'", "that of 'a'")


def part(no, count, total, infos, kvs=(), /, **other):
    """One file of a split model; other: a key's value and type instead of the right one."""
    keys_ = {"split.no": (U16, no), "split.count": (U16, count), "split.tensors.count": (I32T, total)}
    keys_.update({"split." + k.replace("_", "."): v for k, v in other.items()})
    records = list(kvs) + [KV(k, *v) for k, v in keys_.items() if v is not None]
    return G(records, infos, bytes(64 * len(infos)))


def info(name, i=0):
    return TI(name, [16], F32, 64 * i)


def model3(**change):
    """Files of a good model in three parts; change: number of a part (p1, p2, p3) -> its bytes, or None to leave it out."""
    files = {"p1": part(0, 3, 4, [info("a"), info("b", 1)], [ARCH, KV("llama.block_count", U32T, 1)]),
             "p2": part(1, 3, 4, [info("c")]), "p3": part(2, 3, 4, [info("d")])}
    files.update(change)
    return {f"m-0000{k[1]}-of-00003.gguf": v for k, v in files.items() if v is not None}


def splits():
    first, second, third = (f"m-0000{i}-of-00003.gguf" for i in (1, 2, 3))
    for i, name in enumerate((first, second, third), 1):
        split(f"split_good_{i}", model3(), name, GOOD)
    split("split_extra_keys", model3(p2=part(1, 3, 4, [info("c")], [ARCH, KV("x.y", U8, 1)])), first, GOOD)
    aligned = part(1, 3, 4, [info("c")], [KV("general.alignment", U32T, 64)])
    split("split_alignment", model3(p2=pad(aligned[:-64], 64) + bytes(64)), first, GOOD)
    split("split_merged", {"m.gguf": part(0, 0, 1, [info("a")], [ARCH])}, "m.gguf", GOOD)
    split("split_of_one", {"m.gguf": part(0, 1, 1, [info("a")], [ARCH])}, "m.gguf", GOOD)
    split("split_no_part_2", model3(p2=None), first, IO, "part 2 of 3", second, "No such file")
    split("split_no_part_1", model3(p1=None), third, IO, "part 1 of 3", first, "No such file")
    split("split_no_part_3", model3(p3=None), second, IO, "part 3 of 3", third)
    split("split_renamed", {"model.gguf": model3()[first]}, "model.gguf", BAD, "3 files", "-00001-of-00003.gguf")
    for name in ("m-0000x-of-00003", "m_00001-of-00003", "m-00001-ov-00003", "m-00001-of-0003x", "m-1-of-3"):
        split(f"split_as_{name}", {name + ".gguf": model3()[first]}, name + ".gguf", BAD, "3 files", "-00001-of-00003.gguf")
    split("split_extension", {"m-00001-of-00003.GGUF": model3()[first]}, "m-00001-of-00003.GGUF", BAD, "3 files")
    split("split_zero", {"m-00000-of-00003.gguf": model3()[first]}, "m-00000-of-00003.gguf", BAD, "3 files")
    split("split_beyond", {"m-00004-of-00003.gguf": model3()[first]}, "m-00004-of-00003.gguf", BAD, "3 files")
    split("split_count_differs", model3(p2=part(1, 4, 4, [info("c")])), first, BAD, second, "'split.count' is 4", "expected 3")
    four = {n.replace("-of-00003", "-of-00004"): d for n, d in model3().items()}
    split("split_count_in_name", four, "m-00001-of-00004.gguf", BAD, "'split.count' is 3", "expected 4")
    split("split_no_differs", model3(p2=model3()[third]), first, BAD, second, "'split.no' is 2", "expected 1")
    split("split_copy_of_first", model3(p3=model3()[first]), first, BAD, third, "'a'", "part 1 too")
    split("split_swapped", model3(p2=model3()[third], p3=model3()[second]), first, BAD, second, "'split.no'")
    split("split_no_missing", model3(p3=part(2, 3, 4, [info("d")], no=None)), first, BAD, third, "'split.no' is missing")
    split("split_keys_missing", model3(p2=G([], [info("c")], bytes(64))), first, BAD, second, "'split.count' is missing")
    split("split_count_text", model3(p1=part(0, 3, 4, [], count=(STR, "3"))), first, BAD, "'split.count'", "string", "an integer")
    split("split_count_negative", model3(p1=part(0, 3, 4, [], count=(I32T, -3))), first, BAD, "'split.count'", "-3")
    split("split_total", model3(p1=part(0, 3, 5, [info("a")], tensors_count=(I32T, 4))), first, BAD, "count' is 4", "3 tensors")
    split("split_total_differs", model3(p2=part(1, 3, 9, [info("c")])), first, BAD, second, "'split.tensors.count'", "different models")
    split("split_name_twice", model3(p3=part(2, 3, 4, [info("c")])), first, BAD, third, "'c'", "part 2 too", second)
    other = part(1, 3, 4, [info("c")], [KV("general.architecture", STR, "qwen2")])
    split("split_mixed", model3(p2=other), first, BAD, second, "'general.architecture' differs", "different models")
    split("split_html", model3(p2=b"<html>"), first, BAD, "part 2 of 3", second, "HTML")
    split("split_empty", model3(p2=b""), first, BAD, "part 2 of 3", "empty file")
    split("split_cut", model3(p3=model3()[third][:-5]), first, BAD, "part 3 of 3", "'d'", "5 bytes are missing")
    split("split_type", model3(p2=part(1, 3, 4, [TI("c", [256], 99, 0)])), first, UNSUPPORTED, second, "'c'", "type 99")


def good():
    case("good_no_keys", G(), GOOD)
    case("good_version_2", G([ARCH], version=2), GOOD)
    case("good_trailing_bytes", G([ARCH], [TI("t", [8], F32, 0)], bytes(1000)), GOOD)
    case("good_gap", G([ARCH], [TI("a", [8], F32, 0), TI("b", [8], F32, 320)], bytes(352)), GOOD)
    case("good_backwards", G([ARCH], [TI("a", [8], F32, 32), TI("b", [8], F32, 0)], bytes(64)), GOOD)
    case("good_names", G([ARCH], [TI("n" * 254 + c, [1], F32, 32 * i) for i, c in enumerate("ab")], bytes(64)), GOOD)
    case("good_utf8", G([KV("a.ключ", U8, 1)], [TI("вес", [1], F32, 0)], bytes(4)), GOOD)
    case("good_empty_arrays", G([KV("a", ARRAY, ARR(STR, [])), KV("b", ARRAY, ARR(U8, []))]), GOOD)
    case("good_strings_any_bytes", G([KV("a", STR, b"\xff\0\xfe"), KV("b", ARRAY, ARR(STR, ["", b"\xc0", "x"]))]), GOOD)
    case("good_types_not_computed", G([ARCH], [TI("a", [256], Q2_K, 0), TI("b", [256], IQ4_XS, 96)], bytes(232)), GOOD)
    case("good_dims_4", G([ARCH], [TI("a", [2, 3, 4, 5], BF16, 0)], bytes(240)), GOOD)
    case("good_alignment", G([KV("general.alignment", U32T, 4096)], [TI("a", [1], F32, 0)], bytes(4), alignment=4096), GOOD)
    case("good_key_65535", G([S("k" * 65535) + U32(U8) + b"\1"]), GOOD)
    for arch in ("qwen2", "qwen3", "llama"):
        case(f"good_{arch}", tiny_model.build(arch, with_rope_factors=arch == "llama").bytes(), GOOD)


def main():
    folder = pathlib.Path(sys.argv[1])
    for group in (no_gguf, headers, keys, values, arrays, alignments, names, shapes, places, splits, good):
        group()
    lines = []
    for _, files, open_, status, words in CASES:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        lines.append("\t".join([open_, status, *words]) + "\n")
    (folder / "manifest.tsv").write_text("".join(lines))
    print(f"{sum(c[3] != GOOD for c in CASES)} bad files, {sum(c[3] == GOOD for c in CASES)} good ones")


if __name__ == "__main__":
    main()
