#!/usr/bin/env python3
"""Token ids by the `tokenizers` library, for test_golden.c to compare with.

The vocabulary and merges come out of a GGUF file; normalizer and pre-tokenizer are built here as the models' tokenizer.json
files at Hugging Face have them. Needs: pip install tokenizers gguf.

  oracle.py MODEL.gguf --pre smollm --count 2000 --seed 1 --out cases.json
  oracle.py --classes --out classes.json

--pre overrides the file's tokenizer.ggml.pre, so that one vocabulary serves to check every expression. Each case has the ids
with added tokens recognised and, where they differ, the ids of the same text as plain text. --classes writes which characters
the library's expressions take for letters, numbers, marks and space.
"""
import argparse
import json
import random

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?%s+|\p{N}%s| ?[^\s%s\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def split(expression):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(expression), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def pre_tokenizer(pre):
    if pre in ("qwen2", "deepseek-r1-qwen"):
        return split(WORDS % (r"\p{L}", "", r"\p{L}"))
    if pre == "qwen35":
        return split(WORDS % (r"[\p{L}\p{M}]", "", r"\p{L}\p{M}"))
    if pre in ("llama-bpe", "llama3", "llama-v3"):
        return split(WORDS % (r"\p{L}", "{1,3}", r"\p{L}"))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if pre in ("gpt-2", "default"):
        return byte_level
    raise SystemExit(f"no pre-tokenizer {pre}")


def build(path, pre=None):
    """(tokenizer, the same without added tokens, pre, texts of the added tokens)"""
    fields = gguf.GGUFReader(path).fields
    texts = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    pre = pre or fields["tokenizer.ggml.pre"].contents()
    vocab = {s: i for i, s in enumerate(texts)}
    # The library looks a whole piece up in all of the vocabulary; a model's own vocabulary has the normal tokens only.
    normal = {s: i for (s, i), k in zip(vocab.items(), types) if k == NORMAL}
    pair = []
    for v in (vocab, normal):
        t = Tokenizer(models.BPE(v, merges, ignore_merges=pre in ("llama-bpe", "llama3", "llama-v3")))
        if pre in ("qwen2", "deepseek-r1-qwen", "qwen35"):
            t.normalizer = normalizers.NFC()
        t.pre_tokenizer = pre_tokenizer(pre)
        pair.append(t)
    named = list(zip(texts, types))
    pair[0].add_special_tokens([AddedToken(s, special=True, normalized=False) for s, k in named if k == CONTROL])
    pair[0].add_tokens([AddedToken(s, special=False, normalized=False) for s, k in named if k == USER_DEFINED])
    return *pair, pre, [s for s, k in named if k in (CONTROL, USER_DEFINED)]


# Where expressions disagree: blanks of every kind, line ends, contractions, digits and numerals of every category, marks,
# compatibility forms, jamo, emoji sequences, private use, unassigned.
ATOMS = (
    " |  |   |\t|\n|\r|\r\n|\n\n|\v|\f|\x00|\x04|\x1c|\x7f|\x85|\xa0|\u1680|\u180e|\u2003|\u200b|\u2028|\u2029|\u202f|\u205f|\u3000|\ufeff"
    "|'s|'S|'T|'re|'RE|'Ve|'m|'ll|'lL|'d|'\u017f|'|''|\u2019s|a|b|Z|the|Hello|World|don|it|caf\u00e9|cafe\u0301|na\u00efve|\u00e5|\u212b|\u1e9b\u0323"
    "|0|1|7|12|123|1234|12345|3.14|\u0663|\u0967|\u216f|\u00bd|\u00b2|\u2460|\u4e8c|\uff11|\U0001d7d9|\U0001f101"
    "|.|,|!|?|...|-|--|_|(|)|[|]|{|}|<|>|</|/>|=|==|+=|::|->|#|$|%|&|*|/|\\|\"|`|~|^|@|;|:|\u00ab|\u2014|\u2026|\u20ac|\u00a9"
    "|\u0301|\u0323|\u0327|\u0308\u0301|a\u0323\u0301|a\u0301\u0323|\u0915\u094d\u0937|\u0915\u093f|\u0e01\u0e33|\u0e49|\u05e9\u05c1|\u0645\u064f"
    "|\u1100\u1161|\u1100\u1161\u11a8|\uac00\u11a8|\ud55c\uae00|\u304b\u3099|\u65e5\u672c|\u4e2d\u6587|\u3002|\uff0c|\u0416|\u0436\u0438\u0306|\u03b1\u0301"
    "|\ufb01|\uff21|\u2126|\u0344|\u0958|\u2adc|\U0001d15e|\U0002f800|\U000323af|\U0002ebf0|\U00013460|\U00010d40|\U0001e4d0|\U00011f00"
    "|\U0001f600|\U0001f468\u200d\U0001f469\u200d\U0001f467|\U0001f1eb\U0001f1f7|\u2764\ufe0f|\U0001f44d\U0001f3fd|\ue000|\U0010fffd|\U000e0041|\U00050000|\u0378"
    "|def |return |    |for (int i = 0; i < n; i++)|https://a.b/c?d=1&e=%20|foo_bar|fooBar|<|im_end|\U0001d400"
).split("|")


def random_text(rng, special):
    kind = rng.random()
    if kind < 0.1:
        return "".join(chr(rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0xD800)]))
                       for _ in range(rng.randrange(12)))
    if kind < 0.2:
        return "".join(chr(rng.choice([rng.randrange(0xE000, 0x20000), rng.randrange(0x10000, 0x110000)]))
                       for _ in range(rng.randrange(8)))
    pool = ATOMS
    if kind < 0.3 and special:
        pool = ATOMS + special * (1 + len(ATOMS) // (2 * len(special)))
    return "".join(rng.choice(pool) for _ in range(rng.randrange(1, 14)))


def byte_of_char():
    """The printable characters that byte-level BPE writes bytes as."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [b for b in range(256) if b not in plain]
    return {**{chr(b): b for b in plain}, **{chr(256 + i): b for i, b in enumerate(moved)}}


def words_of(tokenizer):
    """The texts of the vocabulary's tokens: run together they are like nothing and like everything."""
    byte = byte_of_char()
    texts = sorted(tokenizer.get_vocab())
    return [bytes(byte[c] for c in s).decode("utf-8", "replace") for s in texts if all(c in byte for c in s)]


def make_texts(tokenizer, special, count, seed):
    rng = random.Random(seed)
    words = words_of(tokenizer)
    texts = ["", *(a for a in ATOMS if a), *special]
    rng.shuffle(texts)
    while len(texts) < count:
        if rng.random() < 0.25:
            texts.append("".join(rng.choice(words) for _ in range(rng.randrange(1, 10))))
        else:
            texts.append(random_text(rng, special))
    return texts[:count]


def ranges(chars):
    out = []
    for c in sorted(chars):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def members(expression):
    """The characters that expression, a class, matches: what the library does not remove, it does not."""
    remove = pre_tokenizers.Split(Regex(expression), "removed")
    chars = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    left = set()
    for i in range(0, len(chars), 4096):
        for piece, _ in remove.pre_tokenize_str("".join(map(chr, chars[i:i + 4096]))):
            left.update(map(ord, piece))
    return ranges(set(chars) - left)


def write_classes(path):
    classes = {"letter": r"\p{L}", "number": r"\p{N}", "mark": r"\p{M}", "space": r"\s"}
    with open(path, "w") as f:
        f.write(f'{{"origin":"tokenizers {tokenizers.__version__}, oracle.py --classes"')
        for name, expression in classes.items():
            f.write(f',\n"{name}":{json.dumps(members(expression), separators=(",", ":"))}')
        f.write("}\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model", nargs="?")
    ap.add_argument("--classes", action="store_true")
    ap.add_argument("--pre")
    ap.add_argument("--count", type=int, default=2000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    if args.classes:
        return write_classes(args.out)
    tokenizer, plain, pre, special = build(args.model, args.pre)
    cases = []
    for text in make_texts(tokenizer, special, args.count, args.seed):
        case = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
        as_typed = plain.encode(text, add_special_tokens=False).ids
        if as_typed != case["ids"]:
            case["plain"] = as_typed
        cases.append(case)
    with open(args.out, "w") as f:
        origin = f"tokenizers {tokenizers.__version__}, oracle.py --pre {pre} --count {args.count} --seed {args.seed}"
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        f.write(f'{{"origin":{json.dumps(origin)},"pre":"{pre}","cases":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
