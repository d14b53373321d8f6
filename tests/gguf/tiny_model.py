#!/usr/bin/env python3
"""Complete tiny models with random F32 weights: qwen2 (biases), qwen3 (head norms) and llama. Standard library only.

    model = tiny_model.build("qwen3", tied=True)
    del model.tensors["blk.1.ffn_up.weight"]; model.transpose("blk.0.attn_q.weight"); model.drop("qwen3.block_count")
    model.write("broken.gguf")

As a program: tiny_model.py OUT.gguf [--arch llama] [--tied] [--rope-factors] [--seed 1]
"""
import argparse
import array
import math
import random
import sys

from gguf_bytes import (ARR, ARRAY, BOOL, F32, F32T, G, I32T, KV, STR, TI, U32T, pad)

TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")

# Pairs in GPT-2's spelling of bytes, where a blank is the letter below.
BLANK = "\u0120"
MERGES = [p.replace("_", BLANK).split() for p in (
    "_ t|h e|_t he|i n|_ a|o n|e r|_ s|r e|a t|n d|_a nd|o r|e n|_ w|_ c|i s|_ o|e s|_ b|a n|i t|o u|a l|_ f|in g|_ p|"
    "_o f|e d|_ m|_t o|a r|_ in|l l|_ d|r o|l e|i c|o m|_ h|_h e").split("|")]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
NORMAL, CONTROL = 1, 3  # tokenizer.ggml.token_type


def byte_tokens():
    """GPT-2's printable letter for each of the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 256
    for b in range(256):
        letters[b] = b if b in plain else extra
        extra += b not in plain
    return [chr(letters[b]) for b in range(256)]


def vocabulary():
    return byte_tokens() + [a + b for a, b in MERGES] + SPECIALS


class Model:
    """kv: key -> (type, value), tensors: name -> (dims, type, data); both in file order and free to be changed."""

    def __init__(self, arch, seed):
        self.arch, self.rng = arch, random.Random(seed)
        self.kv, self.tensors = {}, {}

    def set(self, key, type_, value):
        self.kv[key] = (type_, value)

    def drop(self, key):
        del self.kv[key]

    def add(self, name, dims, sigma=0.0, mean=0.0):
        """A tensor of F32 values from a normal distribution."""
        n = math.prod(dims)
        values = array.array("f", (mean + sigma * self.rng.gauss(0, 1) for _ in range(n)))
        if sys.byteorder == "big":
            values.byteswap()
        self.tensors[name] = (list(dims), F32, values.tobytes())

    def transpose(self, name):
        """Swaps the first two dimensions; the data stays."""
        dims, type_, data = self.tensors[name]
        self.tensors[name] = (dims[1::-1] + dims[2:], type_, data)

    def bytes(self):
        infos, data = [], b""
        for name, (dims, type_, values) in self.tensors.items():
            infos.append(TI(name, dims, type_, len(data)))
            data += pad(values)
        return G([KV(k, t, v) for k, (t, v) in self.kv.items()], infos, data)

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.bytes())


def rope_factors(half, base, factor=32.0, low=1.0, high=4.0, original=8192):
    """Llama 3's frequency factors, one per pair of dimensions."""
    out = []
    for i in range(half):
        wave = 2 * math.pi * base ** (i / half)
        if wave < original / high:
            out.append(1.0)
        elif wave > original / low:
            out.append(factor)
        else:
            smooth = (original / wave - low) / (high - low)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return out


def add_metadata(m, p):
    a = m.arch
    m.set("general.architecture", STR, a)
    m.set("general.name", STR, "tiny " + a)
    for key, value in (("block_count", p["n_layer"]), ("context_length", p["n_ctx"]), ("embedding_length", p["n_embd"]),
                       ("feed_forward_length", p["n_ff"]), ("attention.head_count", p["n_head"]),
                       ("attention.head_count_kv", p["n_kv"])):
        m.set(f"{a}.{key}", U32T, value)
    m.set(f"{a}.attention.layer_norm_rms_epsilon", F32T, 1e-5 if a == "llama" else 1e-6)
    m.set(f"{a}.rope.freq_base", F32T, p["rope_base"])
    if p["head_dim"] * p["n_head"] != p["n_embd"] or a == "qwen3":
        m.set(f"{a}.attention.key_length", U32T, p["head_dim"])
        m.set(f"{a}.attention.value_length", U32T, p["head_dim"])
    if a == "llama":
        m.set("llama.rope.dimension_count", U32T, p["head_dim"])
        m.set("llama.vocab_size", U32T, len(vocabulary()))


def add_tokenizer(m):
    tokens = vocabulary()
    types = [CONTROL if t in SPECIALS else NORMAL for t in tokens]
    m.set("tokenizer.ggml.model", STR, "gpt2")
    m.set("tokenizer.ggml.pre", STR, "smollm" if m.arch == "llama" else "qwen2")
    m.set("tokenizer.ggml.tokens", ARRAY, ARR(STR, tokens))
    m.set("tokenizer.ggml.token_type", ARRAY, ARR(I32T, types))
    m.set("tokenizer.ggml.merges", ARRAY, ARR(STR, [" ".join(p) for p in MERGES]))
    m.set("tokenizer.ggml.bos_token_id", U32T, tokens.index("<|endoftext|>"))
    m.set("tokenizer.ggml.eos_token_id", U32T, tokens.index("<|im_end|>"))
    m.set("tokenizer.ggml.add_bos_token", BOOL, False)
    m.set("tokenizer.chat_template", STR, TEMPLATE)


def add_layer(m, p, i):
    b, embd, ff, q, kv = f"blk.{i}.", p["n_embd"], p["n_ff"], p["n_head"] * p["head_dim"], p["n_kv"] * p["head_dim"]
    wide, deep = embd ** -0.5, ff ** -0.5
    m.add(b + "attn_norm.weight", [embd], 0.1, 1.0)
    m.add(b + "attn_q.weight", [embd, q], wide)
    m.add(b + "attn_k.weight", [embd, kv], wide)
    m.add(b + "attn_v.weight", [embd, kv], wide)
    if m.arch == "qwen2":
        for name, n in (("q", q), ("k", kv), ("v", kv)):
            m.add(f"{b}attn_{name}.bias", [n], 0.5)
    if m.arch == "qwen3":
        m.add(b + "attn_q_norm.weight", [p["head_dim"]], 0.1, 1.0)
        m.add(b + "attn_k_norm.weight", [p["head_dim"]], 0.1, 1.0)
    m.add(b + "attn_output.weight", [q, embd], q ** -0.5)
    m.add(b + "ffn_norm.weight", [embd], 0.1, 1.0)
    m.add(b + "ffn_gate.weight", [embd, ff], wide)
    m.add(b + "ffn_up.weight", [embd, ff], wide)
    m.add(b + "ffn_down.weight", [ff, embd], deep)


def build(arch, tied=False, with_rope_factors=False, seed=1, **overrides):
    """A whole model. Sizes to override: n_embd n_head n_kv head_dim n_ff n_layer n_ctx rope_base."""
    p = {"n_embd": 64, "n_head": 4, "n_kv": 2, "head_dim": 32 if arch == "qwen3" else 16, "n_ff": 96, "n_layer": 2, "n_ctx": 512,
         "rope_base": 10000.0}
    unknown = set(overrides) - set(p)
    if unknown or arch not in ("qwen2", "qwen3", "llama"):
        raise ValueError(f"no such architecture or size: {arch} {unknown or ''}")
    p.update(overrides)
    m = Model(arch, seed)
    add_metadata(m, p)
    add_tokenizer(m)
    m.add("token_embd.weight", [p["n_embd"], len(vocabulary())], 1.0)
    m.add("output_norm.weight", [p["n_embd"]], 0.1, 1.0)
    if not tied:
        m.add("output.weight", [p["n_embd"], len(vocabulary())], p["n_embd"] ** -0.5)
    if with_rope_factors:
        values = array.array("f", rope_factors(p["head_dim"] // 2, p["rope_base"]))
        m.tensors["rope_freqs.weight"] = ([len(values)], F32, values.tobytes())
    for i in range(p["n_layer"]):
        add_layer(m, p, i)
    return m


def main():
    ap = argparse.ArgumentParser(description="writes a tiny random model")
    ap.add_argument("out")
    ap.add_argument("--arch", default="llama", choices=["qwen2", "qwen3", "llama"])
    ap.add_argument("--tied", action="store_true")
    ap.add_argument("--rope-factors", action="store_true")
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    build(a.arch, a.tied, a.rope_factors, a.seed).write(a.out)


if __name__ == "__main__":
    main()
