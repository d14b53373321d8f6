#!/usr/bin/env python3
"""Real models answer sensibly. Skipped, with the reason, where they are not in the cache.

    real.py PROGRAM"""
import json
import os
import pathlib
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])
CACHE = pathlib.Path(os.environ.get("MINFER_MODEL_DIR") or pathlib.Path.home() / ".cache/minfer/models")
GIVEN = pathlib.Path(__file__).resolve().parent.parent / "data/models"
SMALL, LARGE = "SmolLM2-135M-Instruct.Q4_1.gguf", "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"


def run(*args):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, stdin=subprocess.DEVNULL, timeout=500)
    if done.returncode:
        raise SystemExit(f"{args}: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


def greedy_text(given, name):
    return next(g for g in json.loads((GIVEN / given).read_text())["greedy"] if g["name"] == name)


def check(good, what, got):
    print(("ok   " if good else "WRONG"), what, repr(got)[:200])
    return good


def check_small(path):
    want = greedy_text("smollm2-given.json", "chat-capital")
    ids = json.loads(run("run", path, "What is the capital of France?", "--system", "You are a helpful assistant.", "--greedy", "--ids"))
    text = run("run", path, "What is the capital of France?", "--system", "You are a helpful assistant.", "--greedy")
    prompt = json.loads(run("tokenize", path, want["text"], "--special", "--ids"))
    return [check(ids == want["continuation"][:len(ids)] and len(ids) == 8, "SmolLM2 gives the oracle's tokens", ids),
            check(text == "The capital of France is Paris.", "SmolLM2 answers", text),
            check(prompt == want["prompt_tokens"], "SmolLM2's prompt has the oracle's tokens", prompt)]


def check_large(path):
    text = run("run", path, "What is the capital of France? Answer in one word.", "--greedy", "-n", "4")
    return [check(text.startswith("Paris"), "Qwen2.5-Coder answers", text)]


def main():
    results = []
    for name, test in ((SMALL, check_small), (LARGE, check_large)):
        path = CACHE / name
        if path.exists():
            results += test(path)
        else:
            print(f"SKIP {name} is not in {CACHE}")
    if not results:
        return 77
    return 0 if all(results) else 1


sys.exit(main())
