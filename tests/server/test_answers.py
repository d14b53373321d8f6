#!/usr/bin/env python3
"""The server's answers: the same alone and under load, with shared beginnings and without, and what fails alone.

    test_answers.py PROGRAM"""
import array
import json
import os
import random
import resource
import sys
import unittest

from served import InFolder, Server, in_parallel, joined, said

import made  # noqa: E402  (served has put it on the path)
import tiny_model  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
WORDS = "the and of in a to he on were re at or is but his hot heat rain oration then and".split()


def text(rng, n):
    return " ".join(rng.choice(WORDS) for _ in range(n))


class Folder(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.folder / "random.gguf"  # whose answers depend on all that was said
        tiny_model.build("qwen2", n_ctx=1 << 14, seed=5).write(cls.model)

    def serve(self, *args, model=None, **more):
        server = Server(PROGRAM, model or self.model, *args, **more)
        self.addCleanup(lambda: server.stop())
        return server


def requests(n, seed, shared=0):
    """Chats of mixed lengths, greedy and not, streamed and not; some begin alike."""
    rng = random.Random(seed)
    start = text(rng, shared)
    out = []
    for i in range(n):
        messages = [{"role": "user", "content": (start + " " if i % 2 else "") + text(rng, rng.choice((1, 5, 40, 300)))}]
        out.append({"messages": messages, "max_tokens": rng.choice((1, 7, 30, 90)), "seed": i,
                    "temperature": rng.choice((0, 1)), "stream": i % 3 == 0, "n": 1 + (i % 5 == 0)})
    return out


def ask(server, request):
    """What was said, without what differs from one reply to the next."""
    if request.get("stream"):
        events, _ = server.stream(**request)
        assert events[-1] == "[DONE]"
        texts = {}
        for e in events[:-1]:
            for c in json.loads(e)["choices"]:
                texts[c["index"]] = texts.get(c["index"], "") + (c["delta"].get("content") or "")
        return [texts[i] for i in sorted(texts)]
    r = server.post("/v1/chat/completions", request)
    assert r.status == 200, r.body
    return [c["message"]["content"] for c in r.json["choices"]]


class Load(Folder):
    def check(self, n, args, shared=0, env=None):
        alone = self.serve("--n-slots", 1, "--n-ctx", 8192, env={"MINFER_NO_PREFIX_REUSE": "1"})
        asked = requests(n, 17, shared)
        expected = [ask(alone, r) for r in asked]
        self.assertGreater(len(set(map(str, expected))), n // 3)
        s = self.serve(*args, env=env)
        got = in_parallel([lambda r=r: ask(s, r) for r in asked])
        for r, e, g in zip(asked, expected, got):
            self.assertEqual(g, e, r)
        s.wait_metric("slots_busy", 0)
        return s

    def test_many_clients(self):
        s = self.check(64, ("--n-slots", 8, "--n-ctx", 16384))
        self.assertLess(s.metric("steps_total"), s.metric("generated_tokens_total"))  # they were answered together

    def test_shared_beginnings(self):
        s = self.check(32, ("--n-slots", 6, "--n-ctx", 16384), shared=400)
        self.assertGreater(s.metric("prompt_tokens_cached_total"), 0.3 * s.metric("prompt_tokens_total"))

    def test_few_cells(self):
        """Four answers that together need more context than there is: some are parked, none changes."""
        alone = self.serve("--n-slots", 1, "--n-ctx", 700)
        asked = [{"messages": [{"role": "user", "content": text(random.Random(i), 60)}], "max_tokens": -1, "seed": i, "temperature": 1,
                  "logit_bias": {}} for i in range(6)]
        expected = [ask(alone, r) for r in asked]
        s = self.serve("--n-slots", 4, "--n-ctx", 700)
        self.assertEqual(in_parallel([lambda r=r: ask(s, r) for r in asked]), expected)
        self.assertGreater(s.metric("parked_total"), 0)

    def test_one_after_the_other(self):
        self.check(16, ("--n-slots", 4, "--n-ctx", 8192), env={"MINFER_BATCH": "0"})


class Reuse(Folder):
    def usage(self, r):
        u = r.json["usage"]
        return u["prompt_tokens"], u["prompt_tokens_details"]["cached_tokens"]

    def test_conversation(self):
        s = self.serve("--n-ctx", 4096)
        messages = [{"role": "user", "content": text(random.Random(1), 200)}]
        first = s.chat(messages, max_tokens=20, temperature=0)
        n, cached = self.usage(first)
        self.assertEqual(cached, 0)
        self.assertEqual(self.usage(s.chat(messages, max_tokens=20, temperature=0)), (n, n - 1))
        messages += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "and then"}]
        n2, cached2 = self.usage(s.chat(messages, max_tokens=1))
        self.assertGreater(cached2, n - 2)
        self.assertLess(cached2, n2)

    def test_from_a_running_answer(self):
        """A second request with the same system prompt shares the cells of the first, while that runs."""
        s = self.serve("--n-ctx", 8192)
        system = {"role": "system", "content": text(random.Random(2), 700)}
        running = s.open("POST", "/v1/chat/completions", {"messages": [system, {"role": "user", "content": "a"}], "max_tokens": 5000})
        s.wait_metric("slots_busy", 1)
        while s.metric("generated_tokens_total") == 0:
            pass
        n, cached = self.usage(s.chat([system, {"role": "user", "content": "b"}], max_tokens=3))
        self.assertGreater(cached, n - 20)
        running.close()

    def test_at_once(self):
        """Eight prompts that come together and begin alike are read once."""
        s = self.serve("--n-ctx", 8192, "--n-slots", 8)
        system = {"role": "system", "content": text(random.Random(3), 700)}
        replies = in_parallel([lambda i=i: s.chat([system, {"role": "user", "content": WORDS[i]}], max_tokens=5) for i in range(8)])
        tokens = [self.usage(r) for r in replies]
        self.assertEqual(sum(cached < n / 2 for n, cached in tokens), 1, tokens)

    def test_choices_read_the_prompt_once(self):
        s = self.serve("--n-ctx", 4096)
        r = s.chat(text(random.Random(4), 300), n=4, max_tokens=8, temperature=1, seed=3)
        n, cached = self.usage(r)
        self.assertEqual(cached, 0)
        self.assertEqual(len({c["message"]["content"] for c in r.json["choices"]}), 4)
        self.assertLess(s.metric("evaluated_tokens_total"), n + 4 * 10)
        one = s.chat(text(random.Random(4), 300), max_tokens=8, temperature=1, seed=3)
        self.assertEqual(one.text, r.text)

    def test_none(self):
        s = self.serve("--n-ctx", 4096, env={"MINFER_NO_PREFIX_REUSE": "1"})
        for _ in range(2):
            self.assertEqual(self.usage(s.chat(text(random.Random(1), 50), max_tokens=2))[1], 0)


class Ends(Folder):
    def test_lengths(self):
        s = self.serve("--n-ctx", 256)
        a = lambda n: [97] * n  # noqa: E731
        for n, most, status, made_n in ((300, 5, 400, 0), (256, 5, 400, 0), (255, 5, 200, 1), (250, 100, 200, 6), (10, 0, 200, 0),
                                        (10, None, 200, 246), (10, -1, 200, 246), (10, 3, 200, 3)):
            fields = {} if most is None else {"max_tokens": most}
            r = s.complete(a(n), temperature=0, ignore_eos=True, **fields)
            self.assertEqual(r.status, status, (n, most, r.body))
            if status == 400:
                self.assertEqual(r.error["code"], "context_length_exceeded")
                self.assertEqual(s.post("/v1/completions", {"prompt": a(n), "stream": True}).status, 400)
            else:
                self.assertEqual(r.json["usage"]["completion_tokens"], made_n, (n, most))
                self.assertEqual(r.json["choices"][0]["finish_reason"], "length")

    def test_prompts_as_lists(self):
        s = self.serve("--n-ctx", 2048)
        alone = [s.complete(p, max_tokens=6, temperature=1, seed=9, n=2).json["choices"] for p in ("he and", "in the")]
        both = s.complete(["he and", "in the"], max_tokens=6, temperature=1, seed=9, n=2).json["choices"]
        self.assertEqual([c["index"] for c in both], [0, 1, 2, 3])
        self.assertEqual([c["text"] for c in both], [c["text"] for one in alone for c in one])
        self.assertEqual(s.complete([999999999]).status, 400)

    def test_seeds(self):
        s = self.serve("--n-ctx", 2048)
        said = [s.chat("he", temperature=1, seed=7, max_tokens=20).text for _ in range(3)]
        self.assertEqual(len(set(said)), 1)
        self.assertNotEqual(s.chat("he", temperature=1, seed=8, max_tokens=20).text, said[0])
        self.assertNotEqual(s.chat("he", temperature=1, max_tokens=20).text, s.chat("he", temperature=1, max_tokens=20).text)

    def test_stops_and_streams(self):
        path = self.folder / "speech.gguf"
        made.scripted(made.SPEECH).write(path)
        s = self.serve(model=path)
        self.assertEqual(s.chat().text, "Hi 🦊!")
        self.assertEqual(s.chat().json["choices"][0]["message"]["reasoning_content"], "hm")
        for n in range(4, 9):
            whole = s.chat(max_tokens=n)
            events, r = s.stream(messages=[{"role": "user", "content": "hello"}], max_tokens=n)
            self.assertEqual(joined(events), whole.text or "", n)
            self.assertEqual(whole.json["choices"][0]["finish_reason"], "length")
        events, _ = s.stream(messages=[{"role": "user", "content": "hello"}])
        self.assertEqual(joined(events), "Hi 🦊!")
        self.assertNotIn("\ufffd", joined(events))
        self.assertEqual(s.chat(stop="🦊").text, "Hi ")
        self.assertEqual(s.chat(stop=["🦊!", " "]).text, "Hi")


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": False}}}]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
# As Qwen 3's: thoughts of old answers are cut off, so that the template looks for the tag inside messages.
CUTTING = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content.split('</think>')[-1] + '<|im_end|>\n' }}{% endfor %}"
           "{{ '<|im_start|>assistant\n' }}")


class Tags(Folder):
    """Tags of thoughts and calls are found whatever type the file gives their tokens; other control tokens are not text."""

    def models(self, pieces):
        for name, control in (("user", []), ("control", TAGS)):
            path = self.folder / f"tags-{name}.gguf"
            model = made.scripted(pieces, control=[*control, "<|fim|>"])
            model.set("tokenizer.chat_template", made.STR, CUTTING)
            model.write(path)
            yield self.serve(model=path)

    def test_thoughts_and_calls(self):
        pieces = ["<think>", "hm", "</think>", "Ok.", "<|fim|>", "<tool_call>", '\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n', "</tool_call>"]
        call = ("add", '{"a": 1, "b": 2}')
        for s in self.models(pieces):
            self.assertEqual(said(s, tools=TOOLS), ("Ok.", "hm", [call], "tool_calls"))
            self.assertEqual(said(s, reasoning_format="none"), ("<think>hm</think>Ok." + "".join(pieces[5:]), None, [], "stop"))
            self.assertNotIn("<|", s.complete("hello\n").text)
            self.assertEqual(s.complete("hello\n", stop="</think>").text, "<think>hm")
            old = [{"role": "user", "content": "a <think> b"}, {"role": "assistant", "content": "<think>x</think>y"}, {"role": "user", "content": "z"}]
            self.assertEqual(s.chat(old).status, 200)

    def test_forced(self):
        """The grammar takes the tags' own tokens."""
        pieces = ["<think>", "hm", "</think>", "<tool_call>", '\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n', "</tool_call>"]
        for s in self.models(pieces):
            self.assertEqual(said(s, tools=TOOLS, tool_choice="required", temperature=0), ("", "hm", [("add", '{"a": 1, "b": 2}')], "tool_calls"))
            r = s.chat(tools=TOOLS, tool_choice="required", temperature=0)
            self.assertLessEqual(r.json["usage"]["completion_tokens"], len(pieces) + 1)


class Failures(Folder):
    def test_nan(self):
        """A token whose row holds NaN fails the request that has it, and nobody else's."""
        model = tiny_model.build("qwen2", n_ctx=4096, seed=5)
        dims, kind, data = model.tensors["token_embd.weight"]
        rows = array.array("f", data)
        rows[dims[0] * ord("~"):dims[0] * (ord("~") + 1)] = array.array("f", [float("nan")] * dims[0])
        bad_id = tiny_model.byte_tokens().index("~")
        rows = array.array("f", data)
        rows[dims[0] * bad_id:dims[0] * (bad_id + 1)] = array.array("f", [float("nan")] * dims[0])
        model.tensors["token_embd.weight"] = (dims, kind, rows.tobytes())
        path = self.folder / "nan.gguf"
        model.write(path)
        s = self.serve("--n-ctx", 4096, model=path)
        good = s.chat("he is", temperature=0, max_tokens=60).text
        calls = [lambda: s.chat("he is", temperature=0, max_tokens=60), lambda: s.chat("a ~ b", max_tokens=60)] * 3
        for i, r in enumerate(in_parallel(calls)):
            self.assertEqual(r.status, 500 if i % 2 else 200, r.body)
            if i % 2:
                self.assertEqual(r.error["type"], "server_error")
            else:
                self.assertEqual(r.text, good)
        events, _ = s.stream(messages=[{"role": "user", "content": "~"}])
        self.assertIn("error", json.loads(events[-2]))
        self.assertEqual(events[-1], "[DONE]")

    def test_memory_of_the_process(self):
        """The system gives the running server no more memory: what needs much is told so, what needs little is answered."""
        if not hasattr(resource, "prlimit"):
            self.skipTest("the process cannot be limited")
        s = self.serve("--n-ctx", 4096, env={"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"})  # keeps nothing back
        if s.status("VmSize") > 1 << 30:
            self.skipTest("built with a sanitizer that reserves all addresses")
        good = s.chat("he is", temperature=0, max_tokens=30).text
        pid = s.process.pid
        old = resource.prlimit(pid, resource.RLIMIT_AS)
        for _ in range(2):
            resource.prlimit(pid, resource.RLIMIT_AS, (s.status("VmSize") << 10, old[1]))
            for path, body in (("/tokenize", {"content": "a " * (6 << 20)}), ("/v1/completions", {"prompt": [5] * (4 << 20)}),
                               ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * (12 << 20)}], "stream": True})):
                r = s.post(path, body)
                self.assertEqual((r.status, r.error["type"]), (500, "server_error"), path)
                self.assertEqual(s.chat("he is", temperature=0, max_tokens=30).text, good)
            resource.prlimit(pid, resource.RLIMIT_AS, old)
            self.assertEqual(s.chat("he is", temperature=0, max_tokens=30).text, good)
            self.assertEqual(s.post("/tokenize", {"content": "a " * (1 << 20)}).status, 200)

    def test_grammars(self):
        s = self.serve("--n-ctx", 2048)
        r = s.chat(grammar='root ::= "[" "]"', max_tokens=20)
        self.assertEqual((r.text, r.json["choices"][0]["finish_reason"]), ("[]", "stop"))
        for bad in ('root ::= root "a"', "root ::= x", "root ::= ["):
            self.assertEqual(s.chat(grammar=bad).status, 400, bad)
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
        calls = [lambda: s.chat(response_format={"type": "json_schema", "json_schema": {"name": "t", "schema": schema}}, max_tokens=200)] * 8
        for r in in_parallel(calls):
            if r.json["choices"][0]["finish_reason"] == "stop":
                self.assertEqual(set(json.loads(r.text)), {"n"})


if __name__ == "__main__":
    unittest.main(verbosity=1)
