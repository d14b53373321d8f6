#!/usr/bin/env python3
"""Runs the program as the files in cases/ say and compares what it prints.

    transcripts.py PROGRAM [--update] [case file ...]

A case:
    === title
    env NAME=VALUE          any number; the rest of the environment is empty but for HOME and PATH
    < a line of stdin       any number; `<\\ text` has no line end; none: stdin is empty
    $ run {llama} hello     the command line after the program's name; {name} is a file of made.py
    exit 0
    1> a line of stdout     `1\\ text` has no line end
    2> a line of stderr
Paths of made files stand as {name}, speeds and other numbers of the machine as N. --update writes what was printed."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import made

CASES = pathlib.Path(__file__).resolve().parent / "cases"
MACHINE = [(re.compile(p), r) for p, r in (
    (r"\d+\.\d tokens/s", "N tokens/s"), (r"\| \d+\.\d \|$", "| N |"), (r"seed \d{5,}", "seed N"), (r"\d+ threads", "N threads"),
    (r"CPU tier \w+", "CPU tier T"),
    (r"\| \d+ \| (scalar|avx2|avx512|neon) \|", "| N | T |"), (r"\d+\.\d\d ± \d+\.\d\d", "N ± N"),  # bench, as a table
    (r"(N ± N \|(?: \| \|)?) \d+\.\d\d \|(?: \d+ %)? \|", r"\1 N | N |"),
    (r'"cpu",\d+,(scalar|avx2|avx512|neon),', '"cpu",N,T,'), (r"(,T,\w+(?:,\d+){5}),[\d.,]+$", r"\1,N"),  # and as CSV
    (r"(N ± N \|) \d+\.\d\d \| \d+\.\d\d \| (?:\d+ % |never )?\|$", r"\1 N | N | N |"),  # specverify
    (r"(,T,\w+(?:,\d+){3}),\d+\.[\d.,]+$", r"\1,N"),
    (r"^(1> \d+,\d+,\d+),[\d.]+,", r"\1,N,"),  # perplexity
    (r"^(2>   cpu: barrier) .*", r"\1 N"), (r"^(2>   \S.*?) +\d+\.\d{3} +\d+\.\d %( +\d+)[ \d.]*$", r"\1 N\2"),  # times
    (r"\d+\.\d{3} ms", "N ms"))]


def parse(text):
    """Blocks of (title, lines) from a case file; what stands before the first is its head."""
    head, *blocks = re.split(r"(?m)^=== ", text)
    return head, [b.split("\n", 1) for b in blocks]


def input_of(lines):
    out = ""
    for line in lines:
        if line.startswith("< ") or line == "<":
            out += line[2:] + "\n"
        elif line.startswith("<\\ "):
            out += line[3:]
    return out.encode().decode("unicode_escape").encode("latin-1") if "\\x" in out else out.encode()


def printed(mark, data):
    text = data.decode("utf-8", "backslashreplace")
    lines = text.split("\n")
    out = [f"{mark}> {line}".rstrip() if not line else f"{mark}> {line}" for line in lines[:-1]]
    return out + ([f"{mark}\\ {lines[-1]}"] if lines[-1] else [])


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.names = made.write_all(folder)

    def expand(self, text):
        return re.sub(r"\{([\w.-]+)\}", lambda m: str(self.names.get(m[1], f"{self.folder}/{m[1]}")), text)

    def shorten(self, text):
        for name, path in sorted(self.names.items(), key=lambda n: -len(str(n[1]))):
            text = text.replace(str(path), "{%s}" % name)
        text = text.replace(str(self.folder) + "/", "{new}/")
        for pattern, by in MACHINE:
            text = pattern.sub(by, text)
        return text

    def run(self, lines):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.names["home"])}
        for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            env.update({key: os.environ[key]} if key in os.environ else {})
        for line in lines:
            if line.startswith("env "):
                key, value = line[4:].split("=", 1)
                env[key] = self.expand(value)
                if key == "HOME" and not value:
                    del env["HOME"]
        command = next(line[2:] for line in lines if line.startswith("$ ") or line == "$")
        done = subprocess.run([self.program, *map(self.expand, shlex.split(command))], input=input_of(lines), env=env,
                              capture_output=True, cwd=self.folder, timeout=120)
        got = [f"exit {done.returncode}"]
        got += [self.shorten(x) for x in printed(1, done.stdout)] + [self.shorten(x) for x in printed(2, done.stderr)]
        return got


def check_file(path, runner, update):
    head, blocks = parse(path.read_text())
    bad, out = 0, head
    for title, body in blocks:
        lines = body.rstrip("\n").split("\n")
        asked = [line for line in lines if line.startswith(("env ", "<", "$", "#"))]
        want = [line for line in lines if line.startswith(("exit ", "1", "2"))]
        got = runner.run(lines)
        out += "=== " + title + "\n" + "\n".join(asked + got) + "\n\n"
        if got != want and not update:
            bad += 1
            print(f"{path.name}: {title}")
            for line in want:
                print("  - " + line if line not in got else "    " + line)
            for line in got:
                if line not in want:
                    print("  + " + line)
    if update:
        path.write_text(out.rstrip("\n") + "\n")
    return len(blocks), bad


def main():
    update = "--update" in sys.argv
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    paths = [pathlib.Path(a) for a in args[1:]] or sorted(CASES.glob("*.txt"))
    total = bad = 0
    with tempfile.TemporaryDirectory(prefix="minfer-cli-") as folder:
        runner = Runner(os.path.abspath(args[0]), folder)
        for path in paths:
            n, wrong = check_file(path, runner, update)
            total, bad = total + n, bad + wrong
    print(f"{total} transcripts, {bad} differ")
    return 1 if bad else 0


sys.exit(main())
