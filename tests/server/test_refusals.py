#!/usr/bin/env python3
"""What the server refuses: each wrong field, bodies that are no JSON, templates that fail. Every refusal has OpenAI's shape and names
the field, nothing of it reaches the engine, and the server goes on.

    test_refusals.py PROGRAM"""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from served import ROOT, InFolder, Server

import made  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))
CHAT, COMPLETIONS, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
MAKING = (CHAT, COMPLETIONS)
HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "now"}}
GOOD = {CHAT: {"messages": HI}, COMPLETIONS: {"prompt": "hi"}, EMBEDDINGS: {"input": "hi"}, "/tokenize": {"content": "hi"},
        "/detokenize": {"tokens": [1]}}

TEXT, BOOL, REAL, OBJECT, ARRAY = [5, 0.5, True, [], {}], [0, 1, "true", [], {}], ["0.5", True, [], {}], [5, "x", True, []], [5, "x", True, {}]
INT = ["5", True, 1.5, [], {}]
IDS = [True, {}, [], [True], [1.5], [-1], [999999999], [[]], [["a"]], ["a", 5], [1, "a"], [[1], 2], [None], [{}]]


def message(**fields):
    return [{"role": "user", "content": "hi", **fields}]


def call(**function):
    return [*HI, {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}]


def tool(**function):
    return [{"type": "function", "function": {"name": "now", **function}}]


def format_of(schema):
    return {"type": "json_schema", "json_schema": {"name": "t", "schema": schema}}


# field -> (the paths that have it, values that each are refused)
FIELDS = {
    "model": (GOOD, TEXT),
    "messages": ([CHAT], [*ARRAY, [], [5], [None], [{}], [{"role": "user"}], [{"content": "x"}], message(role="wizard"), message(role=5),
                          message(content=42), message(content={}), message(content=[5]), message(content=[{}]),
                          message(content=[{"type": "text"}]), message(content=[{"type": "text", "text": 5}]), message(name=5),
                          message(content=[{"type": "image_url", "image_url": {"url": "data:,"}}]), [{"role": "tool", "content": 5}],
                          [{"role": "tool", "content": "x", "tool_call_id": 5}], call(), call(name=5), call(name="f", arguments=5),
                          call(name="f", arguments="{zone:"), call(name="f", arguments='"x"'), call(name="f", arguments="[]"),
                          [{"role": "assistant", "tool_calls": 5}], [{"role": "assistant", "tool_calls": [5]}],
                          [{"role": "assistant", "tool_calls": [{}]}], HI * 4097]),
    "prompt": ([COMPLETIONS], [5, *IDS, ["x"] * 129]),
    "input": ([EMBEDDINGS], [5, "", [""], *IDS, ["x"] * 2049]),
    "content": (["/tokenize"], [None, *TEXT]),
    "tokens": (["/detokenize"], [None, *ARRAY, ["a"], [-1], [1.5], [999999999], [[1]]]),
    "max_tokens": (MAKING, [*INT, -2]),
    "max_completion_tokens": ([CHAT], [*INT, -2]),
    "n": (MAKING, [*INT, 0, -1, 129]),
    "stream": (MAKING, BOOL),
    "stream_options": (MAKING, [*OBJECT, {"include_usage": 1}]),
    "stop": (MAKING, [5, True, {}, "", [5], [""], ["x" * 1025], ["x"] * 17, "a\0b"]),
    "ignore_eos": (MAKING, BOOL),
    "seed": (MAKING, INT),
    "temperature": (MAKING, [*REAL, -0.1]),
    **{name: (MAKING, [*REAL, -0.1, 1.1]) for name in ("top_p", "min_p", "typical_p", "xtc_probability", "xtc_threshold")},
    **{name: (MAKING, [*REAL, -2.1, 2.1]) for name in ("frequency_penalty", "presence_penalty")},
    **{name: (MAKING, [*REAL, -1]) for name in ("repeat_penalty", "dry_multiplier", "dry_base", "mirostat_tau", "mirostat_eta")},
    "top_k": (MAKING, INT),
    "repeat_last_n": (MAKING, [*INT, -2]),
    "dry_allowed_length": (MAKING, [*INT, -1]),
    "mirostat": (MAKING, [*INT, -1, 3]),
    "logit_bias": (MAKING, [*OBJECT, {"x": 1}, {"-1": 1}, {"1.5": 1}, {"99999999": 1}, {"1": "x"}, {"1": 101}, {"1": True},
                            {str(i): 0 for i in range(1025)}]),
    "top_logprobs": ([CHAT], [*INT, -1, 21, 3]),  # the last: without logprobs
    "response_format": (MAKING, [*OBJECT, {}, {"type": 5}, {"type": "xml"}, {"type": "json_schema"},
                                 {"type": "json_schema", "json_schema": 5}, {"type": "json_schema", "json_schema": {}}, format_of(5),
                                 format_of({"type": "wat"}), format_of({"$ref": "#/$defs/none"}),
                                 format_of({"type": "string", "pattern": "^(?<q>a)\\1$"})]),
    "grammar": (MAKING, [*TEXT, "", "root ::= x", 'root ::= root "a"', "root ::= [", "other ::= \"a\"", "root"]),
    "tools": ([CHAT], [*ARRAY, [5], [{}], [{"type": "x", "function": {"name": "f"}}], [{"function": 5}], [{"function": {}}],
                       tool(name=""), tool(name=5), tool(name="x" * 257), tool(parameters=5), tool(parameters={"type": "array"}),
                       tool(strict=5), tool(strict=True, parameters={"type": "wat"}), [TOOL] * 2, [TOOL] * 129]),
    "tool_choice": ([CHAT], [5, True, [], {}, "maybe", "required", {"type": "function"}, {"type": "function", "function": {"name": "zzz"}},
                             {"type": "function", "function": {"name": 5}}, {"type": "allowed_tools"}]),
    "parallel_tool_calls": ([CHAT], BOOL),
    "chat_template_kwargs": ([CHAT], OBJECT),
    "reasoning_format": ([CHAT], [*TEXT, "deep"]),
    "echo": ([COMPLETIONS], BOOL),
    "suffix": ([COMPLETIONS], [*TEXT, "x"]),
    "best_of": ([COMPLETIONS], [*INT, 0, 2]),
    "encoding_format": ([EMBEDDINGS], [*TEXT, "int8"]),
    "dimensions": ([EMBEDDINGS], [*INT, 0, 7]),
    **{name: (["/tokenize"], BOOL) for name in ("add_special", "parse_special", "with_pieces")},
    "special": (["/detokenize"], BOOL),
}
LOGPROBS = {CHAT: BOOL, COMPLETIONS: [*INT, -1, 21]}  # a switch in one, a count in the other


class Refusals(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.speech = cls.folder / "speech.gguf"
        made.scripted(made.SPEECH).write(cls.speech)
        cls.server = Server(PROGRAM, cls.speech)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0

    def setUp(self):
        self.server.wait_metric("slots_busy", 0)  # a slot is given back after the reply
        self.work = self.done()

    def tearDown(self):
        """Nothing was queued, and the server answers."""
        self.assertEqual(self.done(), self.work)
        r = self.server.chat()
        self.assertEqual((r.status, r.text), (200, "Hi 🦊!"))

    def done(self):
        return [self.server.metric(name) for name in ("steps_total", "prompt_tokens_total", "slots_busy", "queue_length", "queue_seconds_count")]

    def check(self, r, status, what, param=None, code=None):
        self.assertEqual(r.status, status, (what, r.body))
        self.assertEqual(r.headers["Content-Type"], "application/json")
        self.assertEqual(r.json.keys(), {"error"})
        e = r.error
        self.assertEqual(e.keys(), {"message", "type", "param", "code"}, what)
        self.assertEqual(e["type"], {400: "invalid_request_error", 413: "invalid_request_error", 404: "not_found_error"}[status])
        self.assertEqual(e["code"], code, what)
        if param is None:
            self.assertIsNone(e["param"], what)
        else:
            self.assertTrue(e["param"] == param or e["param"].startswith((param + ".", param + "[")), (what, e))
            self.assertIn(param, e["message"])

    def test_every_field(self):
        for name, (paths, values) in [*FIELDS.items(), *(("logprobs", ([path], values)) for path, values in LOGPROBS.items())]:
            for path in paths:
                for value in values:
                    r = self.server.post(path, {**GOOD[path], name: value})
                    self.check(r, 400, (path, name, str(value)[:200]), name)

    def test_fields_that_are_named(self):
        """The table above has all that the document lists."""
        table = re.search(r"<!-- fields -->(.*)<!-- end of fields -->", (ROOT / "docs/server.md").read_text(), re.S).group(1)
        listed = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")}
        self.assertEqual(listed, {*FIELDS, "logprobs"})

    def test_missing(self):
        for path, param in ((CHAT, "messages"), (COMPLETIONS, "prompt"), (EMBEDDINGS, "input"), ("/tokenize", "content"), ("/detokenize", "tokens")):
            for body in ({}, {param: None}):
                self.check(self.server.post(path, body), 400, path, param)

    def test_names(self):
        """Which element it was."""
        for body, param in (({"messages": call(name="f", arguments="{zone:")}, "messages[1].tool_calls[0].function.arguments"),
                            ({"messages": [*HI, *message(content=[{"type": "text", "text": "a"}, {"type": "audio"}])]}, "messages[1].content[1].type"),
                            ({"messages": HI, "tools": [TOOL, {"type": "function", "function": {"name": 5}}]}, "tools[1].function.name"),
                            ({"messages": HI, "stop": ["a", 5]}, "stop[1]"), ({"messages": HI, "logit_bias": {"1": "x"}}, "logit_bias.1")):
            r = self.server.post(CHAT, body)
            self.assertEqual((r.status, r.error["param"]), (400, param))

    def test_fields_together(self):
        for fields, param in (({"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}}, "grammar"),
                              ({"tools": [TOOL], "tool_choice": "required", "grammar": 'root ::= "a"'}, "tool_choice")):
            self.check(self.server.post(CHAT, {**GOOD[CHAT], **fields}), 400, fields, param)

    def test_unknown_model(self):
        for path in GOOD:
            r = self.server.post(path, {**GOOD[path], "model": "gpt-4"})
            self.check(r, 404, path, "model", "model_not_found")

    def test_no_json(self):
        deep = lambda n: b'{"messages":' + b"[" * n + b"]" * n + b"}"  # noqa: E731
        cases = (b"", b" ", b"{", b"}", b"x", b"[]", b'"x"', b"5", b"null", b'{"a":1,}', b"{'a':1}", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-}',
                 b'{"a":01}', b'{"a":1e999}', b'{"a":99999999999999999999}', b'{"a":"\n"}', b'{"a":"\\x"}', b'{"a":"\\ud800"}', b'{"a":"\\udc00\\ud800"}',
                 b'{"a":1}{"a":1}', b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b'{"a\\u0000":1}', b'{"a":1} trailing', b"\xef\xbb\xbf{}", b'{"a":"\xff"}',
                 b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\xaf"}', b'{"a":"\xe4\xb8"}', b'\x00{}', "{\"prompt\":\"中文\"}".encode("gbk"),
                 "{\"prompt\":\"hi\"}".encode("utf-16"), deep(100), deep(101), deep(10000), deep(1000000), b"[" * 5000000, b'{"a":' * 1000000)
        for path in GOOD:
            for body in cases if path == CHAT else cases[:25]:
                r = self.server.post(path, body)
                if body != deep(100):
                    self.check(r, 400, (path, body[:80]))
        r = self.server.post(CHAT, b'{"messages": [\n  {"role": }\n]}')
        self.assertIn("line 2, column 12", r.error["message"])
        self.assertIn('"temperature" is there twice', self.server.post(CHAT, b'{"temperature":1,"messages":[],"temperature":2}').error["message"])
        self.check(self.server.post(CHAT, deep(99)), 400, "99 brackets are JSON", "messages")

    def test_large_bodies(self):
        """10 MB are read, and are too long a prompt; 100 MB are not."""
        before = self.server.status("VmRSS")
        r = self.server.post(CHAT, {"messages": message(content="a" * (10 << 20))})
        self.check(r, 400, "10 MB", "messages", "context_length_exceeded")
        for size in (20 << 20, 100 << 20):
            try:
                self.check(self.server.post(CHAT, b'{"messages":"' + b"a" * size + b'"}'), 413, size)
            except OSError:
                pass  # the line was cut while the client was still sending
        self.assertLess(self.server.status("VmRSS"), before + (512 << 10))

    def test_lengths(self):
        for path, param in ((CHAT, "messages"), (COMPLETIONS, "prompt"), (EMBEDDINGS, "input")):
            body = {"messages": message(content="a" * 600)} if path == CHAT else {param: [97] * 600}
            for stream in ((False, True) if path in MAKING else (False,)):
                self.check(self.server.post(path, {**body, "stream": stream}), 400, path, param, "context_length_exceeded")

    def test_what_is_taken(self):
        """Unusual, and right: the prompt is what the plain form gives."""
        n = self.server.chat("tell me a riddle").json["usage"]["prompt_tokens"]
        parts = [{"type": "text", "text": "tell me a "}, {"type": "text", "text": "riddle"}]
        more = {"metadata": {}, "user": "u", "store": False, "parallel_tool_calls": True, "reasoning_effort": "low", "tools": None, "stop": None,
                "seed": None, "temperature": None, "model": None, "n": 1.0, "logit_bias": None, "stream_options": {"include_usage": True}}
        for content, fields in (("tell me a riddle", more), (parts, {}), (parts, more), ("tell me a riddle", {"model": "speech"})):
            r = self.server.chat(message(content=content), **fields)
            self.assertEqual((r.status, r.text, r.json["usage"]["prompt_tokens"]), (200, "Hi 🦊!", n), r.body)
        empty = [self.server.chat(message(content=c)).json["usage"]["prompt_tokens"] for c in ("", [])]
        self.assertEqual(empty[0], empty[1])
        for role in ("developer", "system", "tool"):
            self.assertEqual(self.server.chat([{"role": role, "content": "x"}, *HI]).status, 200, role)
        shorter = self.server.chat("a").json["usage"]["prompt_tokens"]
        self.assertGreater(self.server.chat("a\0 Ignore that").json["usage"]["prompt_tokens"], shorter + 5)
        self.assertEqual(self.server.chat([{"role": "assistant", "content": None}, *HI]).status, 200)
        self.work = self.done()  # these were answered


class Templates(unittest.TestCase):
    """Templates that fail: with their words where the request may be at fault, and other endpoints answer."""

    def serve(self, template):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-serve-"))
        self.addCleanup(shutil.rmtree, folder)
        model = made.scripted(made.SPEECH)
        model.set("tokenizer.chat_template", made.STR, template)
        model.write(folder / "model.gguf")
        server = Server(PROGRAM, folder / "model.gguf")
        self.addCleanup(lambda: server.stop())
        return server

    def test_failures(self):
        for template, words in (("{{ raise_exception('no system messages, please') }}", "no system messages, please"),
                                ("{{ messages.x.y }}", "no attribute"), ("{{ 1 // 0 }}", "zero"), ("{{ messages | nope }}", "nope"),
                                ("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}", ""), ("", "renders to nothing"),
                                ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "")):
            s = self.serve(template)
            for stream in (False, True):
                r = s.post(CHAT, {"messages": HI, "stream": stream})
                self.assertEqual((r.status, r.error["type"], r.error["param"]), (400, "invalid_request_error", "messages"), (template, r.body))
                self.assertIn(words, r.error["message"])
            self.assertEqual(s.metric("steps_total"), 0)
            self.assertEqual(s.complete("\n").status, 200)

    def test_one_that_does_not_parse(self):
        s = self.serve("line one\n{% for x in %}")
        r = s.chat()
        self.assertEqual((r.status, r.error["param"]), (400, "messages"))
        self.assertIn("the model's chat template: line 2, column 13", r.error["message"])
        self.assertEqual(s.complete("\n").status, 200)


if __name__ == "__main__":
    unittest.main(verbosity=1)
