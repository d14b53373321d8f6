#!/usr/bin/env python3
"""Makes tests/data/tokenizer/small.gguf: a byte-level vocabulary of some 700 tokens, trained on the text below, with special
tokens of every type. Needs: pip install tokenizers gguf.

  make_small.py ../data/tokenizer/small.gguf
"""
import json
import sys

import gguf
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXT = """The quick brown fox jumps over the lazy dog, and the dog doesn't mind; it's asleep. They'll say we've seen I'm what they're at.
When the weather was better there were other things to do than to sit here and write about the weather.
    for (int i = 0; i < n; i++) {\n        if (x[i] == 0) return i;\n    }\n\treturn -1;\n}\n\n\n
def main(args):\n    print("hello, world")\n    return 0\n
<html><body><p class="note">Text &amp; more text</p></body></html>
In 1999 and 2024 there were 365 or 366 days; 3.14159 is not 22/7, 10000 is 1e4.
Der schnelle braune Fuchs springt über den faulen Hund; der Hund möchte schlafen. Straße, größer, schön.
Le cœur a ses raisons que la raison ne connaît pas; l'été était à nous. Café, naïve, déjà vu.
Съешь же ещё этих мягких французских булок, да выпей чаю. Жили-были старик со старухой.
我们今天去看电影，你们也来吗？他说他不来。日本語の文章も少しあります。한국어 문장도 있어요.
मैं आज घर जा रहा हूँ। שלום עולם. مرحبا بالعالم. สวัสดีชาวโลก
Smile 😀 and wave 👋🏽, family 👨‍👩‍👧, flag 🇫🇷, heart ❤️.
"""

# Tokens that no merge makes: only a tokenizer that takes whole pieces finds them.
WHOLE = ["Ġunmergeable", "zqx", "123", "!?!"]
SPECIAL = [("<|endoftext|>", 3), ("<|im_start|>", 3), ("<|im_end|>", 3), ("<|im", 3), ("<|eot_id|>", 3), ("<|fim_pad|>", 3),
           ("<think>", 4), ("</think>", 4), ("<tool_call>", 4), ("<｜end▁of▁sentence｜>", 3), ("<unk>", 2), ("<|end|>", 1),
           ("[PAD0]", 5), ("[PAD1]", 5)]


def main():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator([TEXT] * 3,
                          trainers.BpeTrainer(vocab_size=700, min_frequency=2, show_progress=False,
                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    vocab = t.get_vocab()
    texts = sorted(vocab, key=vocab.get)
    merges = [" ".join(m) if isinstance(m, list) else m for m in json.loads(t.to_str())["model"]["merges"]]
    rows = [(s, 1) for s in texts + WHOLE] + SPECIAL
    ids = {s: i for i, (s, _) in enumerate(rows)}
    assert len(ids) == len(rows)
    w = gguf.GGUFWriter(sys.argv[1], "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list([s for s, _ in rows])
    w.add_token_types([k for _, k in rows])
    w.add_token_merges(merges)
    w.add_bos_token_id(ids["<|endoftext|>"])
    w.add_eos_token_id(ids["<|im_end|>"])
    w.add_add_bos_token(False)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


if __name__ == "__main__":
    main()
