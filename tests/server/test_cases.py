#!/usr/bin/env python3
"""What went wrong in servers like this one, over HTTP: characters across tokens, frames of streams, limits, schemas, tool calls, lists,
seeds, rows of logits with nothing to choose from, grammars that have ended.

    test_cases.py PROGRAM"""
import array
import base64
import json
import os
import pathlib
import sys
import time
import unittest

from served import InFolder, Server, in_parallel, said

import made  # noqa: E402  (served has put it on the path)
import tiny_model  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
HI = [{"role": "user", "content": "hi"}]
CHAT = "/v1/chat/completions"
ADD = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}
NOW = {"type": "function", "function": {"name": "now"}}


class Folder(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = cls.folder / "random.gguf"  # whose answers depend on all that was said
        tiny_model.build("qwen2", n_ctx=1 << 14, seed=5).write(cls.random)
        cls.speech = cls.folder / "speech.gguf"
        made.scripted(made.SPEECH).write(cls.speech)

    def serve(self, model, *args, **more):
        """model: a path, or one to be written."""
        if not isinstance(model, pathlib.Path):
            path = self.folder / "made.gguf"
            model.write(path)
            model = path
        server = Server(PROGRAM, model, *args, **more)
        self.addCleanup(lambda: server.stop())
        return server


class Characters(Folder):
    def test_bytes_that_are_no_text(self):
        pieces = [b"\x84", b"\x85", b"\x96", b"a", b"\xe4", b"\xb8", b"b", b"\xf0", b"\x9f"]
        s = self.serve(made.scripted(pieces))
        self.assertEqual(said(s), ("\ufffd\ufffd\ufffda\ufffdb\ufffd", None, [], "stop"))
        for n in range(1, len(pieces) + 1):
            content, _, _, finish = said(s, max_tokens=n)
            self.assertEqual(finish, "length")
            self.assertTrue("\ufffd\ufffd\ufffda\ufffdb\ufffd".startswith(content.rstrip("\ufffd")), content)
            said(s, max_tokens=n, logprobs=True, top_logprobs=5)
        r = s.chat(logprobs=True)
        self.assertEqual([t["bytes"] for t in r.json["choices"][0]["logprobs"]["content"]][:2], [[0x84], [0x85]])
        self.assertEqual(s.complete("\n", logprobs=0).json["choices"][0]["logprobs"]["tokens"][0], "bytes:\\x84")

    def test_cut_within_a_character(self):
        s = self.serve(self.speech)
        for n in range(6, 9):  # the fox is tokens 6 to 9
            self.assertIn(said(s, max_tokens=n), [("Hi ", "hm", [], "length"), ("Hi \ufffd", "hm", [], "length")])
        self.assertEqual(said(s, stop="🦊"), ("Hi ", "hm", [], "stop"))


class Frames(Folder):
    def test_frames(self):
        s = self.serve(self.speech)
        for options in (None, {}, {"include_usage": False}, {"include_usage": True}):
            events, r = s.stream(messages=HI, stream_options=options, reasoning_format="none")
            for name, value in (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")):
                self.assertEqual(r.headers[name], value)
            self.assertEqual(events.pop(), "[DONE]")
            frames = [json.loads(e) for e in events]
            self.assertEqual(len({(f["id"], f["created"], f["model"], f["object"]) for f in frames}), 1)
            self.assertEqual(frames[0]["object"], "chat.completion.chunk")
            if options and options.get("include_usage"):
                last = frames.pop()
                self.assertEqual((last["choices"], last["usage"]["completion_tokens"]), ([], 11))
                self.assertEqual(last["usage"]["total_tokens"], last["usage"]["prompt_tokens"] + 11)
            self.assertTrue(all(f.get("usage") is None for f in frames))
            deltas = [f["choices"][0]["delta"] for f in frames]
            self.assertEqual((deltas[0]["role"], deltas[-1]), ("assistant", {}))
            self.assertEqual([f["choices"][0]["finish_reason"] for f in frames], [None] * (len(frames) - 1) + ["stop"])
            self.assertEqual("".join(d.get("content") or "" for d in deltas), "<think>hm</think>Hi 🦊!")
        self.assertEqual(s.chat(stream_options={"include_usage": True}).text, "Hi 🦊!")

    def test_choices_in_one_stream(self):
        s = self.serve(self.random)
        r = s.chat(n=3, max_tokens=9, seed=4)
        events, _ = s.stream(messages=[{"role": "user", "content": "hello"}], n=3, max_tokens=9, seed=4)
        texts = [""] * 3
        for c in (json.loads(e)["choices"][0] for e in events[:-1]):
            texts[c["index"]] += c["delta"].get("content") or ""
        self.assertEqual(texts, [c["message"]["content"] for c in r.json["choices"]])


class Leaving(Folder):
    def test_who_waits_is_served(self):
        """The running client leaves: those who wait are answered, in their order."""
        s = self.serve(made.scripted(["on ", "and "], endless=True, n_ctx=1 << 20), "--n-slots", 1, "--n-ctx", 600000)
        ask = lambda n: s.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": n})  # noqa: E731
        running = ask(500000)
        s.wait_metric("slots_busy", 1)
        waiting = [ask(3000), ask(5)]
        s.wait_metric("queue_length", 2)
        running.close()
        bodies = []
        for c in waiting:
            body = b""
            while b"total_tokens" not in body:
                body += c.recv(1 << 20)
            bodies.append(body)
        self.assertIn(b'"completion_tokens":3000', bodies[0])
        self.assertIn(b'"completion_tokens":5', bodies[1])
        for c in waiting:
            c.close()


class Loading(Folder):
    def test_while_the_model_loads(self):
        model = tiny_model.build("llama", n_embd=32, n_layer=1)
        tokens = tiny_model.vocabulary() + [f"w{i}" for i in range(600000)]
        model.set("tokenizer.ggml.tokens", made.ARRAY, made.ARR(made.STR, tokens))
        model.set("tokenizer.ggml.token_type", made.ARRAY, made.ARR(made.I32T, [3 if t in tiny_model.SPECIALS else 1 for t in tokens]))
        model.set("llama.vocab_size", made.U32T, len(tokens))
        for name in ("token_embd.weight", "output.weight"):
            model.tensors[name] = ([32, len(tokens)], made.F32, bytes(4 * 32 * len(tokens)))
        s = self.serve(model, "--n-ctx", 64, wait=False)
        r = s.get("/health")
        if r.status == 200:
            self.skipTest("the model was loaded before the first request")
        self.assertEqual((r.status, r.json), (503, {"status": "loading"}))
        seen = [s.chat(), s.get("/v1/models"), s.post("/tokenize", {"content": "x"}), s.get("/metrics"), s.get("/"), s.get("/health")]
        if seen[-1].status == 503:
            for r in seen[:3]:
                self.assertEqual((r.status, r.error["code"], r.headers["Retry-After"]), (503, "loading", "1"))
            self.assertEqual([r.status for r in seen[3:5]], [200, 200])
            self.assertIn(b'minfer_state{state="loading"} 1', seen[3].body)
        s.wait_ready()
        self.assertEqual(s.get("/health").json, {"status": "ok"})


class Ends(Folder):
    def test_limits_of_chats(self):
        s = self.serve(self.random, "--n-ctx", 256)
        n = s.chat(max_tokens=0).json["usage"]["prompt_tokens"]
        for fields, made_n in (({"max_tokens": 0}, 0), ({"max_tokens": 1}, 1), ({"max_completion_tokens": 3}, 3), ({"max_tokens": 9, "max_completion_tokens": 3}, 3),
                               ({"max_tokens": 3, "max_completion_tokens": None}, 3), ({"max_tokens": 5.0}, 5), ({"max_tokens": 2147483648}, 256 - n),
                               ({"max_tokens": None}, 256 - n), ({"max_tokens": -1}, 256 - n), ({}, 256 - n)):
            r = s.chat(ignore_eos=True, temperature=0, **fields)
            self.assertEqual((r.json["usage"]["completion_tokens"], r.json["choices"][0]["finish_reason"]), (made_n, "length"), fields)


class Schemas(Folder):
    SCHEMAS = [
        {"type": "object", "properties": {"n": {"type": "integer"}, "tag": {"enum": ["x", "y"]}}, "required": ["n", "tag"], "additionalProperties": False},
        {"$defs": {"l": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/l"}, {"type": "null"}]}}, "required": ["next"]}}, "$ref": "#/$defs/l"},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 100000},
        {"type": "object", "properties": {'a"b\n': {"type": "number"}}, "required": ['a"b\n']},
    ]
    REFUSED = [({"type": "string", "pattern": "^(?<q>a)\\1$"}, "pattern"), ({"$ref": "#/$defs/none"}, "$ref"), ({"type": "wat"}, "wat")]

    def ask(self, s, response_format, **fields):
        return s.chat("Write a haiku.", response_format=response_format, temperature=1.5, **{"seed": 1, **fields})

    def of(self, schema):
        return {"type": "json_schema", "json_schema": {"name": "t", "strict": True, "schema": schema}}

    def test_samples(self):
        """50 of each: valid where they end by themselves, the beginning of JSON where the limit cuts them."""
        try:
            import jsonschema
        except ImportError:
            self.skipTest("the jsonschema package is not installed")
        s = self.serve(self.random, "--n-ctx", 16384, "--n-slots", 8)
        for schema in self.SCHEMAS:
            r = self.ask(s, self.of(schema), n=50, max_tokens=150)
            if r.status == 400:  # too much for the compiler, which must be said
                self.assertIn("maxItems", r.error["message"])
                continue
            self.assertEqual(r.status, 200, r.body)
            ended = [c for c in r.json["choices"] if c["finish_reason"] == "stop"]
            self.assertEqual(len(r.json["choices"]), 50)
            self.assertGreater(len(ended), 10, schema)
            for c in ended:
                jsonschema.validate(json.loads(c["message"]["content"]), schema)
            for c in r.json["choices"]:
                self.assertIn(c["finish_reason"], ("stop", "length"))
        for c in self.ask(s, {"type": "json_object"}, n=50, max_tokens=150).json["choices"]:
            if c["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(c["message"]["content"]), dict)
            else:
                self.assertTrue(c["message"]["content"].startswith("{"))

    def test_cut(self):
        s = self.serve(self.random)
        for seed in range(20):
            r = self.ask(s, self.of(self.SCHEMAS[0]), seed=seed, max_tokens=3)
            text = r.text.replace(" ", "")
            self.assertEqual(r.json["choices"][0]["finish_reason"], "length")
            self.assertTrue(text and '{"n":'.startswith(text[:5]), text)

    def test_refused(self):
        """By the keyword, and never answered with free text."""
        s = self.serve(self.random)
        for schema, word in self.REFUSED:
            for stream in (False, True):
                r = self.ask(s, self.of(schema), stream=stream, max_tokens=20)
                self.assertEqual((r.status, r.error["param"]), (400, "response_format.json_schema.schema"))
                self.assertIn(word, r.error["message"])
        self.assertEqual(s.metric("steps_total"), 0)


class Tools(Folder):
    CALLS = ["Ok.", "\n<tool_call>\n", '{"name": "add", "arguments"', ': {"a": 1,', ' "b": 2}}\n', "</tool_call>", "\n<tool", '_call>\n{"name": "now", "arguments": {}}\n</tool_', "call>"]

    def test_choices(self):
        s = self.serve(made.scripted(self.CALLS))
        add, now = ("add", '{"a": 1, "b": 2}'), ("now", "{}")
        text = "".join(p if isinstance(p, str) else p.decode() for p in self.CALLS)
        self.assertEqual(said(s, tools=[ADD, NOW]), ("Ok.", None, [add, now], "tool_calls"))
        self.assertEqual(said(s, tools=[ADD, NOW], tool_choice="auto", parallel_tool_calls=False), ("Ok.", None, [add], "tool_calls"))
        self.assertEqual(said(s, tools=[ADD, NOW], tool_choice="none"), (text, None, [], "stop"))
        self.assertEqual(said(s), (text, None, [], "stop"))
        content, _, calls, finish = said(s, tools=[NOW])  # the first one names no tool
        self.assertEqual((calls, finish), ([now], "tool_calls"))
        self.assertIn('"name": "add"', content)
        for n in range(2, 6):  # cut within the first call
            content, _, calls, finish = said(s, tools=[ADD, NOW], max_tokens=n)
            self.assertEqual((calls, finish), ([add] if calls else [], "length"), n)
            self.assertTrue(content.startswith("Ok."))
        zzz = {"type": "function", "function": {"name": "zzz"}}
        r = s.chat(tools=[ADD, NOW], tool_choice=zzz)
        self.assertEqual((r.status, r.error["param"]), (400, "tool_choice.function.name"))

    def test_forced(self):
        """Whatever the model would say."""
        s = self.serve(self.random, "--n-ctx", 4096)
        yes = {"type": "function", "function": {"name": "vote", "parameters": {"type": "object", "properties": {"v": {"enum": [1, 2]}}, "required": ["v"], "additionalProperties": False}}}
        named = {"type": "function", "function": {"name": "vote"}}
        for seed in range(5):
            for choice, names in (("required", {"vote", "now"}), (named, {"vote"})):
                _, _, calls, finish = said(s, tools=[yes, NOW], tool_choice=choice, parallel_tool_calls=False, seed=seed, temperature=1, max_tokens=200)
                self.assertEqual((len(calls), finish), (1, "tool_calls"))
                self.assertIn(calls[0][0], names)
                self.assertIn(json.loads(calls[0][1]), ({"v": 1}, {"v": 2}) if calls[0][0] == "vote" else ({},))

    def test_text_about_calls(self):
        for pieces in (["Write `", "<tool_call>", "` and", " then JSON."], ["Just ", "text", "..."], ["<tool_", "box>", " is", " none"]):
            s = self.serve(made.scripted(pieces))
            text = "".join(pieces)
            self.assertEqual(said(s, tools=[ADD, NOW]), (text, None, [], "stop"))
        events, _ = s.stream(messages=HI, tools=[ADD])
        self.assertGreaterEqual(len(events), len(pieces) + 2)  # text comes as it is made

    def test_history(self):
        """Calls of old turns, with arguments as text or as an object, render alike."""
        s = self.serve(self.speech)
        n = []
        for arguments in ('{"zone": "Riga"}', {"zone": "Riga"}):
            old = [{"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "clock", "arguments": arguments}}]},
                   {"role": "tool", "tool_call_id": "c1", "content": "14:05"}]
            n.append(s.chat([*HI, *old], max_tokens=1).json["usage"]["prompt_tokens"])
        self.assertEqual(n[0], n[1])


class Lists(Folder):
    def test_prompts(self):
        s = self.serve(self.random)
        for prompt, n in (("a", 1), (["a", "b"], 2), ([87, 88], 1), ([[87], [88, 89]], 2), ([""], 1)):
            r = s.complete(prompt, max_tokens=2, n=2, seed=1)
            self.assertEqual(r.status, 200, (prompt, r.body))
            self.assertEqual([c["index"] for c in r.json["choices"]], list(range(2 * n)), prompt)
            echoed = s.complete(prompt, max_tokens=2, n=2, seed=1, echo=True)
            texts = prompt if isinstance(prompt, list) else [prompt]
            for i, c in enumerate(echoed.json["choices"]):
                given = texts[i // 2] if isinstance(texts[i // 2], str) and len(texts) == n else ""
                self.assertEqual(c["text"], given + r.json["choices"][i]["text"], prompt)

    def test_embeddings(self):
        s = self.serve(self.random, "--n-ctx", 4096)
        ask = lambda given, **fields: [d["embedding"] for d in s.post("/v1/embeddings", {"input": given, **fields}).json["data"]]  # noqa: E731
        floats = ask(["alpha", "beta"])
        self.assertEqual(ask(["alpha", "beta"], encoding_format="float"), floats)
        packed = [array.array("f", base64.b64decode(b)) for b in ask(["alpha", "beta"], encoding_format="base64")]
        for a, b in zip(packed, floats):
            self.assertEqual(list(a), list(array.array("f", b)))
            self.assertAlmostEqual(sum(x * x for x in a), 1, places=4)
        texts = [f"{w} rain" * (i + 1) for i, w in enumerate("he the and on was his hot in".split())]
        self.assertEqual(ask(texts), [ask(t)[0] for t in texts])
        together = in_parallel([lambda: ask("alpha")] * 16)
        self.assertEqual(together, [floats[:1]] * 16)
        self.assertEqual(len(ask("the rain " * 400)), 1)  # longer than a step's share of prompts


class Seeds(Folder):
    def test_seeds(self):
        s = self.serve(self.random, "--n-ctx", 4096)
        ask = lambda **fields: s.chat("he", temperature=1, max_tokens=20, **fields)  # noqa: E731
        given = in_parallel([lambda: ask(seed=7)] * 8)
        self.assertEqual(len({r.text for r in given}), 1)
        self.assertEqual({r.json["seed"] for r in given}, {7})
        for fields in ({}, {"seed": -1}, {"seed": None}):
            a, b = ask(**fields), ask(**fields)
            self.assertNotEqual((a.text, a.json["seed"]), (b.text, b.json["seed"]))
            self.assertEqual(ask(seed=a.json["seed"]).text, a.text)


class Rows(Folder):
    """Rows of logits with no number in them, or only one."""

    def rows(self, of):
        """A model whose rows of the output matrix are multiples, far beyond what floats hold, of what a line end leads to."""
        model = made.scripted(["aa", "bb"])
        dims, kind, data = model.tensors["token_embd.weight"]
        line_end = tiny_model.byte_tokens().index(tiny_model.byte_tokens()[10])
        sign = array.array("f", data)[dims[0] * line_end:dims[0] * (line_end + 1)]
        huge = array.array("f")
        for token in range(dims[1]):
            huge.extend(of(token) * x for x in sign)
        model.tensors["output.weight"] = (dims, kind, huge.tobytes())
        return model

    def test_nothing_to_choose_from(self):
        for name, of in (("all -inf", lambda t: -3e38), ("one +inf", lambda t: 3e38 if t == 70 else 0.0), ("all nan", lambda t: float("nan")),
                         ("one nan", lambda t: float("nan") if t == 70 else 0.0), ("nan and -inf", lambda t: float("nan") if t == 70 else -3e38)):
            s = self.serve(self.rows(of))
            for temperature in (0, 1):
                for path, body in ((CHAT, {"messages": HI}), ("/v1/completions", {"prompt": "\n"}),
                                   (CHAT, {"messages": HI, "grammar": "root ::= [a-z]+"}), (CHAT, {"messages": HI, "tools": [NOW], "tool_choice": "required"})):
                    body = {**body, "temperature": temperature, "max_tokens": 3}
                    r = s.post(path, body)
                    self.assertEqual((r.status, r.error["type"]), (500, "server_error"), (name, r.body))
                    events, _ = s.stream(path, **body)
                    self.assertEqual((json.loads(events[-2])["error"]["message"], events[-1]), (r.error["message"], "[DONE]"))
            s.wait_metric("slots_busy", 0)
            self.assertEqual(s.complete("b", max_tokens=0).status, 200)

    def test_one_to_choose(self):
        letter = tiny_model.byte_tokens().index("q")
        s = self.serve(self.rows(lambda t: 0.0 if t == letter else -3e38))
        for temperature in (0, 1):
            for fields in ({}, {"top_k": 1}, {"min_p": 1}, {"logprobs": True, "top_logprobs": 3}, {"grammar": "root ::= [a-z]"}):
                r = s.chat(temperature=temperature, max_tokens=1, **fields)
                self.assertEqual((r.status, r.text), (200, "q"), r.body)

    def test_vectors(self):
        s = self.serve(self.random)
        self.assertEqual(s.post("/v1/embeddings", {"input": "a"}).status, 200)
        model = tiny_model.build("qwen2", n_ctx=256, seed=5)
        dims, kind, data = model.tensors["token_embd.weight"]
        rows = array.array("f", data)
        bad = tiny_model.byte_tokens().index("~")
        rows[dims[0] * bad:dims[0] * (bad + 1)] = array.array("f", [float("nan")] * dims[0])
        model.tensors["token_embd.weight"] = (dims, kind, rows.tobytes())
        s = self.serve(model)
        good = s.post("/v1/embeddings", {"input": "a b"}).json["data"]
        for given in ("~", ["a b", "~"], ["~", "a b"]):
            r = s.post("/v1/embeddings", {"input": given})
            self.assertEqual((r.status, r.error["type"]), (500, "server_error"), given)
            self.assertEqual(s.post("/v1/embeddings", {"input": "a b"}).json["data"], good)


class Grammars(Folder):
    def test_ends(self):
        s = self.serve(self.random)
        ask = lambda g, **fields: s.chat(grammar=g, **{"max_tokens": 8, "seed": 3, **fields})  # noqa: E731
        for grammar, text in (('root ::= "[" "]"', "[]"), ('root ::= "ok"', "ok"), ('root ::= ""', ""), ('root ::= "🦊"', "🦊"), ('root ::= "a" | "a" "b"', None)):
            for fields in ({}, {"ignore_eos": True}, {"temperature": 0}, {"stream": False, "logprobs": True}):
                r = ask(grammar, **fields)
                self.assertEqual((r.status, r.json["choices"][0]["finish_reason"]), (200, "stop"), (grammar, r.body))
                self.assertIn(r.text, [text] if text is not None else ["a", "ab"])
        for _ in range(3):
            r = ask("root ::= [a-f]+", ignore_eos=True, seed=-1)
            self.assertRegex(r.text, "^[a-f]+$")
        started = time.monotonic()
        r = ask("root ::= [a-z]{1,100000}")
        self.assertLess(time.monotonic() - started, 20)
        self.assertIn(r.status, (200, 400))
        if r.status == 200:
            self.assertRegex(r.text, "^[a-z]+$")
        else:
            self.assertIn("100000", r.error["message"])

    def test_wrong(self):
        s = self.serve(self.random)
        for grammar, place in (('root ::= root "a"', "line 1"), ("root ::= x", "line 1, column 10"), ("", ""), ('root ::= "a"\nx ::= [', "line 2"),
                               ('root ::= "a', "line 1"), ("root = 5", "line 1")):
            r = s.chat(grammar=grammar)
            self.assertEqual((r.status, r.error["param"]), (400, "grammar"), grammar)
            self.assertIn(place, r.error["message"], grammar)

    def test_no_token_follows(self):
        """The vocabulary has no byte 0: an error, not an abort, and nobody else's."""
        model = tiny_model.build("qwen2", n_ctx=256, seed=5)
        tokens = tiny_model.vocabulary()
        tokens[0 if tokens[0] == "\u0100" else tokens.index("\u0100")] = "no byte"
        model.set("tokenizer.ggml.tokens", made.ARRAY, made.ARR(made.STR, tokens))
        s = self.serve(model)
        good = s.chat(temperature=0, max_tokens=20).text
        for grammar in ('root ::= "a" "\\x00"', 'root ::= "a" "\\u0000"'):
            calls = [lambda g=grammar: s.chat(grammar=g, max_tokens=8), lambda: s.chat(temperature=0, max_tokens=20)] * 3
            for i, r in enumerate(in_parallel(calls)):
                self.assertEqual(r.status, 200 if i % 2 else 500, r.body)
                if i % 2:
                    self.assertEqual(r.text, good)
            events, _ = s.stream(messages=HI, grammar=grammar)
            self.assertIn("error", json.loads(events[-2]))


if __name__ == "__main__":
    unittest.main(verbosity=1)
