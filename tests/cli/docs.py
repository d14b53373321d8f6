#!/usr/bin/env python3
"""docs/cli.md shows what the program says: each block after a line `<!-- minfer ARGS -->` is the output of that command.

    docs.py PROGRAM [--update]"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])
DOC = pathlib.Path(os.environ.get("MINFER_TEST_DOCS") or pathlib.Path(__file__).resolve().parent.parent.parent / "docs") / "cli.md"
BLOCK = re.compile(r"(<!-- minfer (.*?) -->\n```\n)(.*?)(```\n)", re.S)


def output(args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MINFER_")}
    return subprocess.run([PROGRAM, *shlex.split(args)], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout.decode()


def main():
    text = DOC.read_text()
    commands = {line.split()[0] for line in output("-h").splitlines() if re.match(r"  [a-z]+ ", line)}
    shown = {m[2].split()[0] for m in BLOCK.finditer(text) if m[2].endswith(" -h")}
    bad = [f"{DOC.name}: no help of {c}" for c in sorted(commands - shown)]
    if "--update" in sys.argv:
        DOC.write_text(BLOCK.sub(lambda m: m[1] + output(m[2]) + m[4], text))
    else:
        bad += [f"{DOC.name}: the block of `minfer {m[2]}` is not what the program prints" for m in BLOCK.finditer(text)
                if m[3] != output(m[2])]
    print("\n".join(bad) if bad else f"{len(shown)} commands, {len(BLOCK.findall(text))} blocks")
    return 1 if bad else 0


sys.exit(main())
