#!/usr/bin/env python3
"""Files of stored logits, byte by byte, and the corpus of their fuzz target.

    logits_bytes.py FOLDER    writes the corpus"""
import pathlib
import random
import struct
import sys

FIELDS = ("version", "n_vocab", "n_ctx", "stride", "n_counted", "n_windows", "bos")


def build(rows=None, ids=None, magic=b"MINFERLG", **fields):
    """A file of 2 windows of 4 tokens; whatever is given differs from that."""
    f = {"version": 1, "n_vocab": 5, "n_ctx": 4, "stride": 4, "n_counted": 1, "n_windows": 2, "bos": -1, **fields}
    head = magic + b"".join(struct.pack("<I", f[k] & 0xFFFFFFFF) for k in FIELDS)
    n_ids = (f["n_windows"] - 1) * f["stride"] + f["n_ctx"]
    if ids is None:
        ids = [i % f["n_vocab"] for i in range(n_ids)]
    if rows is None:
        rng = random.Random(1)
        rows = [rng.gauss(0, 3) for _ in range(f["n_windows"] * f["n_counted"] * f["n_vocab"])]
    return head + struct.pack(f"<{len(ids)}i", *ids) + struct.pack(f"<{len(rows)}f", *rows)


# name -> (bytes, what the refusal says; None: nothing is wrong)
def variants():
    whole, ids, rows = build(), [0] * 8, [0.0] * 10
    big = {"n_vocab": 2 ** 31 - 1, "n_ctx": 2 ** 31 - 1, "stride": 2 ** 31 - 1, "n_counted": 2 ** 31 - 2, "n_windows": 2 ** 31 - 1}
    return {
        "whole": (whole, None),
        "overlap": (build(stride=2, n_counted=2), None),
        "bos": (build(bos=3), None),
        "empty": (b"", "is no file of stored logits"),
        "text": (b"This is no file of logits, however long it goes on.", "is no file of stored logits"),
        "gguf": (build(magic=b"GGUF\3\0\0\0"), "is no file of stored logits"),
        "head_alone": (whole[:36], "36 bytes do not hold"),
        "cut_head": (whole[:35], "is no file of stored logits"),
        "cut": (whole[:-1], "do not hold 2 windows of 1 rows of 5 logits"),
        "trailing": (whole + b"\0", "do not hold"),
        "version_2": (build(version=2), "has version 2, this program reads 1"),
        "no_vocab": (build(n_vocab=0, ids=ids, rows=rows), "n_vocab is 0"),
        "negative_vocab": (build(n_vocab=-1, ids=ids, rows=rows), "n_vocab is 4294967295"),
        "short_window": (build(n_ctx=1, ids=ids, rows=rows), "n_ctx is 1"),
        "no_stride": (build(stride=0, ids=ids, rows=rows), "stride is 0"),
        "long_stride": (build(stride=5, ids=ids, rows=rows), "stride is 5, not in 1..4"),
        "none_counted": (build(n_counted=0, ids=ids, rows=rows), "n_counted is 0"),
        "all_counted": (build(n_counted=4, ids=ids, rows=rows), "n_counted is 4, not in 1..3"),
        "no_windows": (build(n_windows=0, ids=ids, rows=rows), "n_windows is 0"),
        "bos_beyond": (build(bos=5), "bos is 5, not in -1..4"),
        "bos_negative": (build(bos=-2), "bos is -2"),
        "id_beyond": (build(ids=[0, 1, 5, 0, 0, 0, 0, 0]), "token 2 is 5, not in 0..4"),
        "id_negative": (build(ids=[0, 1, 2, 0, 0, 0, 0, -1]), "token 7 is -1"),
        "wraps": (build(ids=ids, rows=rows, **big), "do not hold"),
        "many_windows": (build(ids=ids, rows=rows, n_windows=2 ** 31 - 1), "do not hold"),
        "nan": (build(rows=[0.0] * 5 + [float("nan")] + [0.0] * 4), None),
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (data, _) in variants().items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
