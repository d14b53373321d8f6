#!/usr/bin/env python3
"""The openai package as a client: sync, async, streaming, tools, structured output, lists. Skips without the package.

    test_client.py PROGRAM"""
import asyncio
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from served import Server

try:
    import openai
except ImportError:
    print("skipped: the openai package is not installed")
    sys.exit(77)

import made  # noqa: E402  (served has put it on the path)
import tiny_model  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
ADD = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}
HI = [{"role": "user", "content": "hi"}]


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-serve-"))
        made.scripted(["Hel", "lo ", "you", b"."]).write(cls.folder / "hello.gguf")
        made.scripted(["Ok.", b" ", CALL[:14], CALL[14:30], CALL[30:41], CALL[41:]]).write(cls.folder / "tools.gguf")
        tiny_model.build("qwen2", n_ctx=4096, seed=5).write(cls.folder / "random.gguf")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def client(self, model, kind=openai.OpenAI, *args):
        server = Server(PROGRAM, self.folder / f"{model}.gguf", "--api-key", "secret", *args)
        self.addCleanup(lambda: server.stop())
        return kind(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="secret", max_retries=0)

    def test_sync(self):
        c = self.client("hello")
        r = c.chat.completions.create(model="hello", messages=HI, temperature=0)
        self.assertEqual((r.choices[0].message.content, r.choices[0].finish_reason), ("Hello you.", "stop"))
        self.assertEqual(r.usage.total_tokens, r.usage.prompt_tokens + r.usage.completion_tokens)
        self.assertEqual(c.models.list().data[0].id, "hello")
        r = c.chat.completions.create(model="hello", messages=HI, temperature=0, logprobs=True, top_logprobs=3, max_tokens=2)
        self.assertEqual([t.token for t in r.choices[0].logprobs.content], ["Hel", "lo "])
        self.assertEqual(len(r.choices[0].logprobs.content[0].top_logprobs), 3)
        r = c.completions.create(model="hello", prompt=["a\n", "b\n"], max_tokens=2, temperature=0)
        self.assertEqual([x.text for x in r.choices], ["Hello ", "Hello "])

    def test_stream(self):
        c = self.client("hello")
        chunks = list(c.chat.completions.create(model="hello", messages=HI, temperature=0, stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(x.choices[0].delta.content or "" for x in chunks if x.choices), "Hello you.")
        self.assertEqual([x.choices[0].finish_reason for x in chunks if x.choices][-1], "stop")
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 5))
        self.assertEqual(len({(x.id, x.created, x.model, x.object) for x in chunks}), 1)

    def test_async(self):
        async def work():
            c = self.client("hello", openai.AsyncOpenAI)
            one = c.chat.completions.create(model="hello", messages=HI, temperature=0)
            stream = await c.chat.completions.create(model="hello", messages=HI, temperature=0, stream=True)
            text = "".join([x.choices[0].delta.content or "" async for x in stream])
            many = await asyncio.gather(one, *(c.chat.completions.create(model="hello", messages=HI, temperature=0) for _ in range(16)))
            await c.close()
            return {text, *(r.choices[0].message.content for r in many)}

        self.assertEqual(asyncio.run(work()), {"Hello you."})

    def test_tools(self):
        c = self.client("tools")
        r = c.chat.completions.create(model="tools", messages=HI, temperature=0, tools=[ADD])
        call = r.choices[0].message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("add", {"a": 1, "b": 2}))
        self.assertEqual((r.choices[0].finish_reason, r.choices[0].message.content), ("tool_calls", "Ok."))
        with c.chat.completions.stream(model="tools", messages=HI, temperature=0, tools=[ADD]) as s:
            final = s.get_final_completion()
        streamed = final.choices[0].message.tool_calls[0]
        self.assertEqual(json.loads(streamed.function.arguments), {"a": 1, "b": 2})
        self.assertEqual(final.choices[0].finish_reason, "tool_calls")

    def test_structured_output(self):
        c = self.client("random")
        schema = {"type": "object", "properties": {"yes": {"type": "boolean"}, "tag": {"enum": ["x", "y"]}}, "required": ["yes", "tag"],
                  "additionalProperties": False}
        for seed in range(8):
            r = c.chat.completions.create(model="random", messages=HI, seed=seed, temperature=1.5, max_tokens=400, response_format={
                "type": "json_schema", "json_schema": {"name": "t", "strict": True, "schema": schema}})
            if r.choices[0].finish_reason == "stop":
                got = json.loads(r.choices[0].message.content)
                self.assertEqual(set(got), {"yes", "tag"})
                self.assertIn(got["tag"], ("x", "y"))

    def test_errors(self):
        c = self.client("hello")
        with self.assertRaises(openai.BadRequestError) as e:
            c.chat.completions.create(model="hello", messages=HI, temperature=-1)
        self.assertEqual(e.exception.param, "temperature")
        with self.assertRaises(openai.AuthenticationError):
            c.with_options(api_key="wrong").models.list()
        with self.assertRaises(openai.NotFoundError):
            c.with_options(base_url=str(c.base_url) + "nope/").models.list()

    def test_embeddings(self):
        c = self.client("random")
        one = c.embeddings.create(model="random", input="the heat and the rain")
        vector = one.data[0].embedding
        self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
        both = c.embeddings.create(model="random", input=["he", "the heat and the rain"], encoding_format="float")
        self.assertLess(max(abs(a - b) for a, b in zip(both.data[1].embedding, vector)), 1e-6)
        self.assertNotEqual(both.data[0].embedding, both.data[1].embedding)


if __name__ == "__main__":
    unittest.main(verbosity=1)
