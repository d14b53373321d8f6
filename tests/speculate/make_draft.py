#!/usr/bin/env python3
"""tools/make_draft: what it makes is the model with fewer layers, drafts for it without changing an answer, and refuses what is
no such model.

    make_draft.py PROGRAM"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "make_draft"
sys.path.insert(0, str(ROOT / "tests" / "gguf"))
import tiny_model  # noqa: E402
from gguf_bytes import U32T  # noqa: E402

CACHE = pathlib.Path(os.environ.get("MINFER_MODEL_DIR") or pathlib.Path.home() / ".cache/minfer/models")
REAL = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
bad = []


def check(good, what):
    print("ok   " if good else "WRONG", what)
    if not good:
        bad.append(what)


def make(*args):
    return subprocess.run([sys.executable, str(TOOL), *map(str, args)], capture_output=True, text=True)


def run(*args):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, stdin=subprocess.DEVNULL, timeout=500)
    if done.returncode:
        raise SystemExit(f"{args}: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def cut(arch, layers, n_layer):
    """The same model, cut by hand: layers is a list."""
    m = tiny_model.build(arch, n_layer=n_layer)
    blocks = {k: v for k, v in m.tensors.items() if k.startswith("blk.")}
    for name in blocks:
        del m.tensors[name]
    for new, old in enumerate(layers):
        for name, tensor in blocks.items():
            if name.startswith(f"blk.{old}."):
                m.tensors[f"blk.{new}." + name.split(".", 2)[2]] = tensor
    m.set(f"{arch}.block_count", U32T, len(layers))
    return m


def same_as_cut(folder, arch, choice, layers):
    whole, draft, want = (folder / f"{n}.gguf" for n in ("whole", "draft", "want"))
    tiny_model.build(arch, n_layer=5).write(whole)
    cut(arch, layers, 5).write(want)
    made = make(whole, draft, choice)
    check(made.returncode == 0 and not made.stderr, f"{arch}: {choice} is made {made.stderr}")
    logits = [run("logits", f, "--tokens", "1,2,3,4,5,6,7", "-o", "-") for f in (draft, want)]
    check(logits[0] == logits[1], f"{arch}: {choice} computes what the layers {layers} compute")
    info = json.loads(run("info", draft, "--json"))
    check("layers" in json.dumps(info), f"{arch}: the name tells")
    plain = run("run", whole, "one two three", "--greedy", "--ids", "-n", 30)
    check(plain == run("run", whole, "one two three", "--greedy", "--ids", "-n", 30, "--spec-draft", draft), f"{arch}: it drafts")


def refusals(folder):
    whole, out = folder / "whole.gguf", folder / "out.gguf"
    tiny_model.build("llama", n_layer=5).write(whole)
    for choice in ("6", "0", "3-9", "x", "1,", "2-1", ""):
        made = make(whole, out, choice)
        check(made.returncode == 1 and made.stderr.startswith("make_draft: ") and made.stderr.count("\n") == 1,
              f"refused: '{choice}': {made.stderr.strip()}")
    data = whole.read_bytes()
    for n in (0, 3, 20, 100, 3000, len(data) - 10):
        (folder / "short.gguf").write_bytes(data[:n])
        made = make(folder / "short.gguf", out, 2)
        check(made.returncode == 1 and made.stderr.count("\n") == 1, f"refused: {n} bytes: {made.stderr.strip()}")
    check(make(folder / "none.gguf", out, 2).returncode == 1, "refused: no file")
    check(not [p for p in folder.iterdir() if p.name.startswith("out")], "nothing is left behind")


def real(folder):
    if not REAL.exists():
        print(f"SKIP {REAL.name} is not in {CACHE}")
        return
    draft = folder / "real.gguf"
    check(make(REAL, draft, "0-3,29").returncode == 0, "five layers of SmolLM2")
    args = ("run", REAL, "Name three colours.", "--seed", 5, "--ids", "-n", 24)
    check(run(*args) == run(*args, "--spec-draft", draft, "--spec-draft-n", 3), "SmolLM2 answers the same")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        for arch in ("llama", "qwen2", "qwen3"):
            same_as_cut(folder, arch, "2", [0, 1])
            same_as_cut(folder, arch, "0,2-3,4", [0, 2, 3, 4])
        refusals(folder)
        real(folder)
    return 1 if bad else 0


sys.exit(main())
