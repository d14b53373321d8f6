#!/usr/bin/env python3
"""Models with one fault each: the program refuses every one of them with one line that names what is wrong.

    faults.py PROGRAM"""
import os
import pathlib
import subprocess
import sys
import tempfile

import made
from gguf_bytes import ARR, ARRAY, F32, F32T, I32T, Q4_0, Q8_0, STR, U32T

PROGRAM = os.path.abspath(sys.argv[1])


def drop(key):
    return lambda m: m.drop(key)


def put(key, type_, value):
    return lambda m: m.set(key, type_, value)


def delete(name):
    def change(m):
        del m.tensors[name]
    return change


def transpose(name):
    return lambda m: m.transpose(name)


def retype(name, type_):
    def change(m):
        dims, _, data = m.tensors[name]
        m.tensors[name] = (dims, type_, data)
    return change


def shape(name, *dims):
    def change(m):
        size = 4
        for d in dims:
            size *= d
        m.tensors[name] = (list(dims), F32, bytes(size))
    return change


def rename(old, new):
    def change(m):
        m.tensors[new] = m.tensors.pop(old)
    return change


def both(first, second):
    def change(m):
        first(m)
        second(m)
    return change


# architecture, change, what the line says
FAULTS = [
    ("llama", drop("general.architecture"), "general.architecture"),
    ("llama", put("general.architecture", STR, "Llama"), "'Llama' is not supported (llama, qwen2, qwen3)"),
    ("llama", put("general.architecture", U32T, 3), "general.architecture"),
    ("llama", drop("llama.block_count"), "llama.block_count"),
    ("qwen2", drop("qwen2.embedding_length"), "qwen2.embedding_length"),
    ("qwen3", drop("qwen3.feed_forward_length"), "qwen3.feed_forward_length"),
    ("llama", drop("llama.context_length"), "llama.context_length"),
    ("llama", drop("llama.attention.head_count"), "llama.attention.head_count"),
    ("llama", drop("llama.attention.layer_norm_rms_epsilon"), "llama.attention.layer_norm_rms_epsilon"),
    ("qwen3", drop("qwen3.attention.key_length"), "key length 16 and value length 32 differ"),
    ("llama", drop("llama.attention.head_count_kv"), "blk.0.attn_k.weight"),
    ("llama", put("llama.block_count", U32T, 3), "tensor blk.2.attn_norm.weight is missing"),
    ("llama", put("llama.block_count", U32T, 1), "blk.1"),
    ("llama", put("llama.block_count", U32T, 0), "llama.block_count is 0"),
    ("llama", put("llama.block_count", STR, "two"), "llama.block_count"),
    ("llama", put("llama.attention.head_count", U32T, 5), "5 query heads cannot share 2"),
    ("llama", put("llama.attention.head_count_kv", U32T, 3), "4 query heads cannot share 3"),
    ("llama", put("llama.attention.key_length", U32T, 15), "15"),
    ("llama", put("llama.attention.value_length", U32T, 8), "value length 8"),
    ("llama", put("llama.rope.dimension_count", U32T, 64), "llama.rope.dimension_count is 64"),
    ("llama", put("llama.rope.dimension_count", U32T, 7), "7 is odd"),
    ("llama", put("llama.rope.freq_base", F32T, float("nan")), "llama.rope.freq_base"),
    ("llama", put("llama.attention.layer_norm_rms_epsilon", F32T, -1.0), "layer_norm_rms_epsilon is -1"),
    ("llama", put("llama.rope.scaling.type", STR, "yarn"), "'yarn' is not supported"),
    ("llama", put("llama.expert_count", U32T, 8), "8 experts"),
    ("llama", put("llama.attention.sliding_window", U32T, 16), "sliding window of 16"),
    ("llama", delete("token_embd.weight"), "tensor token_embd.weight is missing"),
    ("llama", delete("output_norm.weight"), "tensor output_norm.weight is missing"),
    ("llama", delete("blk.1.ffn_up.weight"), "tensor blk.1.ffn_up.weight is missing"),
    ("llama", delete("blk.0.attn_norm.weight"), "tensor blk.0.attn_norm.weight is missing"),
    ("qwen2", delete("blk.1.attn_k.bias"), "tensor blk.1.attn_k.bias is missing"),
    ("qwen3", delete("blk.0.attn_q_norm.weight"), "tensor blk.0.attn_q_norm.weight is missing"),
    ("llama", transpose("blk.0.attn_k.weight"), "tensor blk.0.attn_k.weight is [32, 64, 1, 1], must be [64, 32]"),
    ("qwen3", transpose("blk.1.attn_q.weight"), "tensor blk.1.attn_q.weight"),
    ("llama", transpose("blk.1.ffn_down.weight"), "tensor blk.1.ffn_down.weight is [64, 96, 1, 1], must be [96, 64]"),
    ("llama", transpose("output.weight"), "tensor output.weight"),
    ("llama", transpose("token_embd.weight"), "token_embd.weight"),
    ("llama", shape("blk.0.attn_norm.weight", 32), "tensor blk.0.attn_norm.weight is [32, 1, 1, 1], must be [64, 1]"),
    ("qwen2", shape("blk.0.attn_q.bias", 16), "tensor blk.0.attn_q.bias"),
    ("qwen3", shape("blk.0.attn_k_norm.weight", 64), "tensor blk.0.attn_k_norm.weight"),
    ("llama", shape("rope_freqs.weight", 4), "tensor rope_freqs.weight is [4, 1, 1, 1], must be [8, 1]"),
    ("qwen2", shape("rope_freqs.weight", 8), "tensor rope_freqs.weight has no place in architecture qwen2"),
    ("llama", shape("blk.0.attn_q.weight", 64, 64, 2), "tensor blk.0.attn_q.weight is [64, 64, 2, 1]"),
    ("llama", rename("blk.0.ffn_up.weight", "blk.0.ffn_upp.weight"), "blk.0.ffn_up"),
    ("llama", shape("blk.0.extra.weight", 64), "tensor blk.0.extra.weight has no place in architecture llama"),
    ("qwen3", shape("blk.0.attn_q.bias", 128), "tensor blk.0.attn_q.bias has no place in architecture qwen3"),
    ("llama", retype("output_norm.weight", Q8_0), "output_norm.weight"),
    ("llama", retype("blk.0.ffn_norm.weight", Q4_0), "blk.0.ffn_norm.weight has type Q4_0, must be F32"),
    ("llama", retype("blk.0.ffn_gate.weight", 99), "blk.0.ffn_gate.weight"),
    ("llama", retype("blk.0.ffn_gate.weight", 19), "blk.0.ffn_gate.weight"),
    ("llama", both(delete("output.weight"), shape("token_embd.weight", 64, 10)), "300 tokens, but token_embd.weight has 10 rows"),
    ("llama", drop("tokenizer.ggml.model"), "tokenizer.ggml.model"),
    ("llama", put("tokenizer.ggml.model", STR, "llama"), "tokenizer.ggml.model is 'llama'"),
    ("llama", put("tokenizer.ggml.pre", STR, "strange"), "'strange'"),
    ("llama", drop("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens"),
    ("llama", drop("tokenizer.ggml.merges"), "tokenizer.ggml.merges"),
    ("llama", put("tokenizer.ggml.token_type", ARRAY, ARR(I32T, [1])), "tokenizer.ggml.token_type"),
    ("llama", put("tokenizer.ggml.eos_token_id", U32T, 300), "tokenizer.ggml.eos_token_id is 300"),
]


def problems(folder, i, arch, change, words):
    path = folder / f"fault-{i}.gguf"
    model = made.tiny_model.build(arch)
    change(model)
    model.write(path)
    for args in (["run", path, "hi", "-n", "1"], ["logits", path, "--tokens", "1", "-o", folder / "out.f32"], ["bench", path, "-p", "1"]):
        done = subprocess.run([PROGRAM, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        lines = done.stderr.decode().split("\n")
        good = done.returncode == 1 and not done.stdout and len(lines) == 2 and lines[0].startswith(f"minfer: {path}: ")
        if not good or words not in lines[0]:
            yield f"{arch}, fault {i}, {args[0]}: status {done.returncode}, expected '{words}' in:\n  {done.stderr.decode()}"
    info = subprocess.run([PROGRAM, "info", str(path), "--tensors"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if info.returncode not in (0, 1) or (info.returncode == 1 and info.stdout):
        yield f"{arch}, fault {i}, info: status {info.returncode}"


def main():
    bad = 0
    with tempfile.TemporaryDirectory(prefix="minfer-faults-") as folder:
        for i, (arch, change, words) in enumerate(FAULTS):
            for line in problems(pathlib.Path(folder), i, arch, change, words):
                bad += 1
                print(line)
        if (pathlib.Path(folder) / "out.f32").exists():
            bad += 1
            print("a refused model left a file of logits")
    print(f"{len(FAULTS)} faults, {bad} problems")
    return 1 if bad else 0


sys.exit(main())
