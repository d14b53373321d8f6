#!/usr/bin/env python3
"""Writes fuzz/corpus/template: seeds for fuzz_template, taken from the golden cases and chat templates. The first byte of a seed
chooses the values (see fuzz/fuzz_template.c)."""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "fuzz/corpus/template"
PER_SEED, SEEDS, BROKEN = 20, 2, 10


def seeds():
    """Of each group some of the cases that render, many in one seed; some that do not parse; every chat template."""
    cases = json.loads((ROOT / "tests/data/template/golden.json").read_text())["cases"]
    groups = {}
    for c in cases:
        if "out" in c and "{" in c["template"]:
            groups.setdefault(c["group"], set()).add(c["template"])
    for group, texts in groups.items():
        texts = sorted(texts)
        picked = texts[:: max(1, len(texts) // (PER_SEED * SEEDS))]
        for i in range(SEEDS):
            yield f"{group.replace(' ', '_')}_{i}", b"3" + "\n".join(picked[i * PER_SEED:(i + 1) * PER_SEED]).encode()
    broken = sorted({c["template"] for c in cases if c.get("error") == "syntax"}, key=lambda t: (-len(t), t))
    for i, text in enumerate(broken[:BROKEN]):
        yield f"broken_{i}", b"0" + text.encode()
    for path in sorted((ROOT / "tests/template/chats").glob("*.jinja")):
        yield f"chat_{path.stem}", b"2" + path.read_bytes()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    n = 0
    for name, data in seeds():
        (OUT / name).write_bytes(data)
        n += 1
    print(f"{n} seeds")


main()
