"""Files for the tests of the program: models that say what a test wants, and files that are no models.

A scripted model says its pieces one after the other: nothing but the last token matters, because all layers are zero. Each
piece is one token and occurs once; the line end that closes the tests' chat template leads to the first piece, the last one to
the end of the turn, or, in an endless model, to the first again. Any other token leads to the end."""
import array
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "tests" / "data" / "tiny"
sys.path.insert(0, str(ROOT / "tests" / "gguf"))

import tiny_model  # noqa: E402
from gguf_bytes import ARR, ARRAY, F32, F32T, I32T, STR, U32T, U64T  # noqa: E402,F401

WIDTH = 128
USER_DEFINED = 4


def floats(rows):
    return array.array("f", (x for row in rows for x in row)).tobytes()


def scripted(pieces, endless=False, n_ctx=512, control=()):
    """A model that answers with the pieces: texts, or bytes objects of length 1 for byte tokens. Texts in control are
    control tokens, the others user-defined ones."""
    m = tiny_model.build("llama", n_embd=WIDTH, n_layer=1, n_ctx=n_ctx)
    letters = tiny_model.byte_tokens()
    tokens = tiny_model.vocabulary()
    types = [tiny_model.CONTROL if t in tiny_model.SPECIALS else tiny_model.NORMAL for t in tokens]
    ids = []
    for piece in pieces:
        if isinstance(piece, bytes):
            ids.append(letters.index(letters[piece[0]]))
        else:
            ids.append(len(tokens))
            tokens.append(piece)
            types.append(tiny_model.CONTROL if piece in control else USER_DEFINED)
    end = tokens.index("<|im_end|>")
    after = dict(zip([letters.index(letters[10])] + ids, ids + [ids[0] if endless else end]))
    rng = random.Random(7)
    sign = lambda: [rng.choice((-1.0, 1.0)) for _ in range(WIDTH)]  # noqa: E731
    other, zero = sign(), [0.0] * WIDTH
    embd, out = [other] * len(tokens), [zero] * len(tokens)
    out[end] = other
    for token, follower in after.items():
        embd[token] = sign()
        out[follower] = [a + b for a, b in zip(out[follower], embd[token])]
    m.set("tokenizer.ggml.tokens", ARRAY, ARR(STR, tokens))
    m.set("tokenizer.ggml.token_type", ARRAY, ARR(I32T, types))
    m.set("llama.vocab_size", U32T, len(tokens))
    m.tensors["token_embd.weight"] = ([WIDTH, len(tokens)], F32, floats(embd))
    m.tensors["output.weight"] = ([WIDTH, len(tokens)], F32, floats(out))
    for name, (dims, type_, data) in m.tensors.items():
        if "norm" in name:
            m.tensors[name] = (dims, type_, floats([[1.0] * dims[0]]))
        elif name.startswith("blk."):
            m.tensors[name] = (dims, type_, bytes(len(data)))
    return m


SPEECH = ["<think>", "hm", "</think>", "Hi", b" ", b"\xf0", b"\x9f", b"\xa6", b"\x8a", b"!"]  # "Hi", a fox, and a mark


def write_drafts(at):
    """Models that would draft for speech.gguf, and one that repeats itself."""
    scripted(SPEECH, endless=True).write(at("endless.gguf"))
    scripted([p if p != "Hi" else "Ho" for p in SPEECH]).write(at("other-token.gguf"))
    for n in (128, 129):
        scripted(SPEECH + [f"x{i}" for i in range(n)]).write(at(f"longer-{n}.gguf"))
    for name in ("bos", "eos"):
        other = scripted(SPEECH)
        other.set(f"tokenizer.ggml.{name}_token_id", U32T, 7)
        other.write(at(f"other-{name}.gguf"))


def write_all(folder):
    """Everything the transcripts name, made in folder. Returns name -> path."""
    folder = pathlib.Path(folder)
    at = lambda name: folder / name  # noqa: E731
    llama = (TINY / "tiny-llama-Q4_0.gguf").read_bytes()
    scripted(SPEECH).write(at("speech.gguf"))
    write_drafts(at)
    plain = tiny_model.build("qwen2", n_ctx=64)
    plain.drop("tokenizer.chat_template")
    plain.write(at("plain.gguf"))
    broken = tiny_model.build("llama")
    broken.set("tokenizer.chat_template", STR, "line one\n{% for x in %}")
    broken.write(at("broken-template.gguf"))
    raising = tiny_model.build("llama")
    raising.set("tokenizer.chat_template", STR, "{{ raise_exception('system messages are not for me') }}")
    raising.write(at("raising.gguf"))
    unknown = tiny_model.build("llama")
    unknown.set("general.architecture", STR, "mamba")
    unknown.write(at("unknown-arch.gguf"))
    at("truncated.gguf").write_bytes(llama[:5000])
    at("cut-data.gguf").write_bytes(llama[:-1000])
    at("text.txt").write_text("This is no model.\n")
    at("empty.txt").write_bytes(b"")
    at("bytes.bin").write_bytes(b"ab\xe4\xb8\x00c")
    at("folder").mkdir()
    at("cache").mkdir()
    for name in ("Small-Q4_0", "Small-Q8_0", "Other.Q4_1"):
        at(f"cache/{name}.gguf").write_bytes(llama)
    at("home").mkdir()
    at("chat.json").write_text('[{"role": "user", "content": "Hi"}]')
    at("full.json").write_text('{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true, "tools": null, '
                               '"kwargs": {"mood": "calm"}, "special_tokens": {"bos_token": "<s>"}, "comment": 1}')
    at("digits.gbnf").write_text('root ::= "<" [0-9]{2,5} ">"\n')
    at("bad.json").write_text('{"messages": [\n  {"role": }\n]}')
    at("number.json").write_text("42")
    at("none.json").write_text('{"tools": []}')
    at("wrong.json").write_text('{"messages": {"role": "user"}}')
    at("wrong-add.json").write_text('{"messages": [], "add_generation_prompt": "yes"}')
    at("t.jinja").write_text("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}; {% endfor %}"
                             "{{ mood }}{{ add_generation_prompt }}\n")
    at("bad.jinja").write_text("one\n  {{ messages[ }}")
    names = {p.name: p for p in folder.iterdir()}
    names["llama"] = TINY / "tiny-llama-Q4_0.gguf"
    names["qwen2"] = TINY / "tiny-qwen2-Q4_K.gguf"
    return names
