#!/usr/bin/env python3
"""Writes tests/data/gguf/dequant.json: random blocks of every weight type and the floats that the Python package gguf makes
of them. Run by hand when a type is added: pip install gguf numpy; make_dequant_golden.py > ../data/gguf/dequant.json
"""
import json

import gguf
import numpy as np
from gguf.quants import dequantize

BLOCKS = 3
# Byte offsets of half floats inside a block; random bits there would give infinities and NaN.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
SCALES = [0x2E66, 0xB123, 0x0001, 0x83FF, 0x0000, 0x8000, 0x3C00, 0x7BFF, 0x1A2B]  # small, negative, subnormal, zeros, 1, largest


def blocks(name, rng):
    """Bytes of a row: for the plain types one value is a block."""
    qtype = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[qtype]
    if name == "F32":
        return rng.normal(size=32).astype("<f4").tobytes()
    if name == "F16":
        return np.array(SCALES + [0x7C00, 0xFC00, 0x0400, 0x03FF], "<u2").tobytes()
    if name == "BF16":
        return np.array([0x3F80, 0xBF81, 0x0000, 0x8000, 0x0001, 0x7F7F, 0x7F80, 0x4049], "<u2").tobytes()
    data = rng.integers(0, 256, (BLOCKS, size), np.uint8)
    for b in range(BLOCKS):
        for at in HALVES[name]:
            data[b, at:at + 2] = np.array([rng.choice(SCALES)], "<u2").view(np.uint8)
    return data.tobytes()


def main():
    rng = np.random.default_rng(20240229)
    cases = []
    for name in ["F32", "F16", "BF16", *HALVES]:
        data = blocks(name, rng)
        qtype = gguf.GGMLQuantizationType[name]
        floats = dequantize(np.frombuffer(data, np.uint8)[None, :], qtype) if name not in ("F32", "F16") else \
            np.frombuffer(data, "<f4" if name == "F32" else "<f2")
        floats = np.asarray(floats, "<f4").reshape(-1)
        cases.append({"type": name, "id": int(qtype), "blocks": data.hex(), "floats": floats.tobytes().hex()})
    origin = "gguf.quants.dequantize of the Python package gguf 0.19.0 on random blocks, tests/gguf/make_dequant_golden.py, seed 20240229"
    print(json.dumps({"origin": origin, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
