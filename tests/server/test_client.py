#!/usr/bin/env python3
"""The openai package as a client: sync, async, streams, tools, structured output, embeddings, errors, clients that give up.
Skips without the package.

    test_client.py PROGRAM"""
import asyncio
import json
import os
import signal
import sys
import unittest

from served import InFolder, Server

try:
    import openai
    import pydantic
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import made  # noqa: E402  (served has put it on the path)
import tiny_model  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
ZONE = " ".join(f"z{i}" for i in range(120))
# Cut so that no piece occurs in what the template says of the tools: pieces are tokens of their own.
CALLS = ["Ok.", b" ", '<tool_call>\n{"name": "add"', ', "arguments": {"a": 1, "b"', ": 2}}\n</tool_call>", '\n<tool_call>\n{"name": "now"', ', "arguments": {"zone": "',
         *(ZONE[i:i + 30] for i in range(0, len(ZONE), 30)), '"}}\n</tool_call>']
ADD = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}}
HI = [{"role": "user", "content": "hi"}]


class Verdict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    yes: bool
    tags: list[bool] = pydantic.Field(max_length=2)


class Folder(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made.scripted(["Hel", "lo ", "you", b"."]).write(cls.folder / "hello.gguf")
        made.scripted(CALLS, n_ctx=2048).write(cls.folder / "tools.gguf")
        made.scripted(["on ", "and "], endless=True, n_ctx=1 << 20).write(cls.folder / "endless.gguf")
        tiny_model.build("qwen2", n_ctx=4096, seed=5).write(cls.folder / "random.gguf")

    def client(self, model, *args, kind=openai.OpenAI, **more):
        self.server = server = Server(PROGRAM, self.folder / f"{model}.gguf", "--api-key", "secret", *args, **more)
        server.headers = {"Authorization": "Bearer secret"}
        self.addCleanup(lambda: server.stop())
        return kind(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="secret", max_retries=0)


class Chat(Folder):
    def test_sync(self):
        c = self.client("hello")
        r = c.chat.completions.create(model="hello", messages=HI, temperature=0)
        self.assertEqual((r.choices[0].message.content, r.choices[0].finish_reason), ("Hello you.", "stop"))
        self.assertEqual(r.usage.total_tokens, r.usage.prompt_tokens + r.usage.completion_tokens)
        self.assertIsNone(r.choices[0].message.refusal)
        r = c.completions.create(model="hello", prompt=["a\n", "b\n"], max_tokens=2, temperature=0)
        self.assertEqual([x.text for x in r.choices], ["Hello ", "Hello "])

    def test_models(self):
        c = self.client("hello")
        self.assertEqual([m.id for m in c.models.list()], ["hello"])
        self.assertEqual(c.models.retrieve("hello"), c.models.list().data[0])
        with self.assertRaises(openai.NotFoundError) as e:
            c.models.retrieve("another")
        self.assertEqual(e.exception.code, "model_not_found")
        named = self.client("hello", "--alias", "some/na me")
        self.assertEqual(named.models.retrieve("some/na me").id, "some/na me")

    def test_raw_response(self):
        c = self.client("hello")
        raw = c.chat.completions.with_raw_response.create(model="hello", messages=HI, temperature=0)
        self.assertEqual((raw.status_code, raw.headers["content-type"]), (200, "application/json"))
        self.assertEqual(raw.parse().choices[0].message.content, "Hello you.")
        self.assertEqual(json.loads(raw.text)["object"], "chat.completion")
        with c.chat.completions.with_streaming_response.create(model="hello", messages=HI, temperature=0, stream=True) as r:
            self.assertEqual(r.headers["content-type"], "text/event-stream")
            lines = [line for line in r.iter_lines() if line]
        self.assertTrue(all(line.startswith("data: ") for line in lines))
        self.assertEqual(lines[-1], "data: [DONE]")

    def test_stream(self):
        c = self.client("hello")
        chunks = list(c.chat.completions.create(model="hello", messages=HI, temperature=0, stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(x.choices[0].delta.content or "" for x in chunks if x.choices), "Hello you.")
        self.assertEqual([x.choices[0].finish_reason for x in chunks if x.choices][-1], "stop")
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 5))
        self.assertEqual(len({(x.id, x.created, x.model, x.object) for x in chunks}), 1)
        pieces = list(c.completions.create(model="hello", prompt="a\n", temperature=0, stream=True))
        self.assertEqual("".join(x.choices[0].text for x in pieces), "Hello you.")
        self.assertEqual(pieces[-1].choices[0].finish_reason, "stop")

    def test_choices(self):
        """n at a time, as one reply and as a stream of all of them."""
        c = self.client("random")
        ask = {"model": "random", "messages": HI, "n": 3, "seed": 4, "temperature": 1, "max_tokens": 12}
        whole = [x.message.content for x in c.chat.completions.create(**ask).choices]
        streamed = [""] * 3
        for x in c.chat.completions.create(**ask, stream=True):
            streamed[x.choices[0].index] += x.choices[0].delta.content or ""
        self.assertEqual(streamed, whole)
        self.assertEqual(len(set(whole)), 3)

    def test_logprobs(self):
        c = self.client("hello")
        ask = {"model": "hello", "messages": HI, "temperature": 0, "logprobs": True, "top_logprobs": 3}
        whole = c.chat.completions.create(**ask).choices[0].logprobs.content
        tokens = ["Hel", "lo ", "you", ".", "<|im_end|>"]
        self.assertEqual([t.token for t in whole], tokens)
        self.assertEqual([bytes(t.bytes).decode() for t in whole], tokens)
        self.assertTrue(all(len(t.top_logprobs) == 3 and t.top_logprobs[0].token == t.token and t.logprob <= 0 for t in whole))
        chunks = list(c.chat.completions.create(**ask, stream=True))
        self.assertEqual([t for x in chunks if x.choices[0].logprobs for t in x.choices[0].logprobs.content], whole)
        old = c.completions.create(model="hello", prompt="a\n", temperature=0, logprobs=2).choices[0].logprobs
        self.assertEqual(old.tokens, tokens)
        self.assertEqual([len(t) for t in old.top_logprobs], [2] * 5)
        self.assertEqual([t[n] for t, n in zip(old.top_logprobs, old.tokens)], old.token_logprobs)

    def test_async(self):
        async def work():
            c = self.client("hello", kind=openai.AsyncOpenAI)
            ask = {"model": "hello", "messages": HI, "temperature": 0}
            stream = await c.chat.completions.create(**ask, stream=True)
            text = "".join([x.choices[0].delta.content or "" async for x in stream])
            async with c.chat.completions.stream(**ask) as s:
                final = (await s.get_final_completion()).choices[0].message.content
            many = await asyncio.gather(*(c.chat.completions.create(**ask) for _ in range(16)))
            vector = (await c.embeddings.create(model="hello", input="he")).data[0].embedding
            models = [m.id async for m in c.models.list()]
            await c.close()
            return {text, final, *(r.choices[0].message.content for r in many)}, len(vector), models

        self.assertEqual(asyncio.run(work()), ({"Hello you."}, made.WIDTH, ["hello"]))


class Tools(Folder):
    def check(self, choice):
        calls = choice.message.tool_calls
        self.assertEqual([c.function.name for c in calls], ["add", "now"])
        self.assertEqual([json.loads(c.function.arguments) for c in calls], [{"a": 1, "b": 2}, {"zone": ZONE}])
        self.assertEqual((choice.finish_reason, choice.message.content.strip()), ("tool_calls", "Ok."))
        self.assertEqual(len({c.id for c in calls}), 2)

    def test_calls(self):
        c = self.client("tools")
        ask = {"model": "tools", "messages": HI, "temperature": 0, "tools": [ADD, NOW]}
        self.check(c.chat.completions.create(**ask).choices[0])
        with c.chat.completions.stream(**ask) as s:
            events = list(s)
            self.check(s.get_final_completion().choices[0])
        pieces = [e for e in events if e.type == "tool_calls.function.arguments.delta"]
        self.assertGreater(len([e for e in pieces if e.index == 1]), 2)  # long arguments come piece by piece
        done = [e for e in events if e.type == "tool_calls.function.arguments.done"]
        self.assertEqual([(e.index, e.name) for e in done], [(0, "add"), (1, "now")])
        one = c.chat.completions.create(**ask, parallel_tool_calls=False)
        self.assertEqual([x.function.name for x in one.choices[0].message.tool_calls], ["add"])
        none = c.chat.completions.create(**ask, tool_choice="none")
        self.assertIsNone(none.choices[0].message.tool_calls)

    def test_deltas(self):
        """As clients that put the pieces together themselves read them."""
        c = self.client("tools")
        calls, why = {}, None
        for x in c.chat.completions.create(model="tools", messages=HI, temperature=0, tools=[ADD, NOW], stream=True):
            for d in x.choices[0].delta.tool_calls or []:
                call = calls.setdefault(d.index, {"arguments": ""})
                if d.id:
                    self.assertEqual((set(call), d.type), ({"arguments"}, "function"))
                    call.update(id=d.id, name=d.function.name)
                else:
                    self.assertIsNone(d.function.name)
                call["arguments"] += d.function.arguments
            why = x.choices[0].finish_reason or why
        self.assertEqual(why, "tool_calls")
        self.assertEqual([(k, v["name"]) for k, v in sorted(calls.items())], [(0, "add"), (1, "now")])
        self.assertEqual(json.loads(calls[0]["arguments"]), {"a": 1, "b": 2})

    def test_conversation(self):
        """The calls go back with what the tools said."""
        c = self.client("tools")
        first = c.chat.completions.create(model="tools", messages=HI, temperature=0, tools=[ADD, NOW]).choices[0].message
        results = [{"role": "tool", "tool_call_id": x.id, "content": "3"} for x in first.tool_calls]
        r = c.chat.completions.create(model="tools", messages=[*HI, first, *results], tools=[ADD, NOW], max_tokens=3)
        self.assertGreater(r.usage.prompt_tokens, 20)

    def test_parsed(self):
        """Arguments as an object of the caller's class, with a forced call that a random model fills in."""
        class Add(pydantic.BaseModel):
            a: bool
            b: bool

        c = self.client("random")
        for seed in range(4):
            r = c.chat.completions.parse(model="random", messages=HI, seed=seed, temperature=1.5, max_tokens=300, tools=[openai.pydantic_function_tool(Add)],
                                         tool_choice="required", parallel_tool_calls=False)
            got = r.choices[0].message.tool_calls[0].function.parsed_arguments
            self.assertIsInstance(got, Add)


class Structured(Folder):
    def test_schema(self):
        c = self.client("random")
        for seed in range(8):
            r = c.chat.completions.parse(model="random", messages=HI, seed=seed, temperature=1.5, response_format=Verdict)
            got = r.choices[0].message.parsed
            self.assertIsInstance(got, Verdict)
            with c.chat.completions.stream(model="random", messages=HI, seed=seed, temperature=1.5, response_format=Verdict) as s:
                self.assertEqual(s.get_final_completion().choices[0].message.parsed, got)

    def test_cut(self):
        c = self.client("random")
        with self.assertRaises(openai.LengthFinishReasonError):
            c.chat.completions.parse(model="random", messages=HI, seed=1, max_tokens=3, response_format=Verdict)

    def test_json_object(self):
        c = self.client("random")
        r = c.chat.completions.create(model="random", messages=HI, seed=1, temperature=1, max_tokens=60, response_format={"type": "json_object"})
        self.assertTrue(r.choices[0].message.content.startswith("{"))


class Errors(Folder):
    def test_classes(self):
        c = self.client("hello")
        ask = c.chat.completions.create
        with self.assertRaises(openai.BadRequestError) as e:
            ask(model="hello", messages=HI, temperature=-1)
        self.assertEqual((e.exception.status_code, e.exception.param, e.exception.type), (400, "temperature", "invalid_request_error"))
        with self.assertRaises(openai.BadRequestError) as e:
            ask(model="hello", messages=[{"role": "user", "content": "a b c " * 2000}])
        self.assertEqual(e.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError) as e:
            ask(model="hello", messages=HI, stream=True, stop=[""])
        self.assertEqual(e.exception.param, "stop[0]")
        with self.assertRaises(openai.AuthenticationError):
            c.with_options(api_key="wrong").models.list()
        with self.assertRaises(openai.NotFoundError) as e:
            ask(model="another", messages=HI)
        self.assertEqual(e.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            c.responses.create(model="hello", input="hi")

    def test_full(self):
        """429 is a RateLimitError at once, and an answer for a client that tries again."""
        c = self.client("endless", "--n-slots", 1, "--max-queue", 1, "--n-ctx", 1 << 20)
        ask = {"model": "endless", "prompt": "a\n", "temperature": 0}
        running = c.completions.create(**ask, max_tokens=900000, stream=True)
        next(running)
        waiting = c.completions.create(**ask, max_tokens=900000, stream=True)  # its headers come while it waits
        with self.assertRaises(openai.RateLimitError) as e:
            c.completions.create(**ask, max_tokens=2)
        self.assertEqual((e.exception.status_code, e.exception.response.headers["Retry-After"]), (429, "1"))
        running.close()
        waiting.close()
        self.assertEqual(c.with_options(max_retries=5).completions.create(**ask, max_tokens=2).choices[0].text, "on and ")

    def test_end_of_the_server(self):
        """A stream that the end cuts is an APIError; afterwards nobody is there."""
        c = self.client("endless", "--n-ctx", 1 << 20)
        stream = c.completions.create(model="endless", prompt="a\n", max_tokens=900000, stream=True)
        next(stream)
        self.server.process.send_signal(signal.SIGTERM)
        with self.assertRaises(openai.APIError) as e:
            for _ in stream:
                pass
        self.assertIn("the server has ended", e.exception.message)
        self.assertEqual(self.server.stop(), 0)
        with self.assertRaises(openai.APIConnectionError):
            c.models.list()

    def test_draining(self):
        c = self.client("endless", "--n-ctx", 1 << 20, env={"MINFER_DRAIN_MS": "60000"})
        stream = c.completions.create(model="endless", prompt="a\n", max_tokens=900000, stream=True)
        next(stream)
        self.server.process.send_signal(signal.SIGTERM)
        while self.server.get("/health").status == 200:
            pass
        with self.assertRaises(openai.InternalServerError) as e:
            c.models.list()
        self.assertEqual((e.exception.status_code, e.exception.code), (503, "draining"))
        stream.close()


class GivingUp(Folder):
    """Clients that stop waiting free what they held."""

    def idle(self):
        for name in ("slots_busy", "queue_length"):
            self.server.wait_metric(name, 0)

    def ask(self, **more):
        return {"model": "endless", "prompt": "a\n", "max_tokens": 900000, **more}

    def test_timeout(self):
        c = self.client("endless", "--n-ctx", 1 << 20)
        with self.assertRaises(openai.APITimeoutError):
            c.with_options(timeout=0.5).completions.create(**self.ask())
        self.idle()

    def test_stream_left(self):
        c = self.client("endless", "--n-ctx", 1 << 20)
        with c.completions.create(**self.ask(stream=True)) as stream:
            for i, _ in enumerate(stream):
                if i == 20:
                    break
        self.idle()

    def test_cancelled(self):
        async def work():
            c = self.client("endless", "--n-ctx", 1 << 20, kind=openai.AsyncOpenAI)
            tasks = [asyncio.create_task(c.completions.create(**self.ask())) for _ in range(8)]
            await asyncio.sleep(0.5)
            for t in tasks:
                t.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertTrue(all(isinstance(d, asyncio.CancelledError) for d in done), done)
            await asyncio.to_thread(self.idle)
            r = await c.completions.create(**self.ask(max_tokens=2, temperature=0))
            await c.close()
            return r.choices[0].text

        self.assertEqual(asyncio.run(work()), "on and ")


class Embeddings(Folder):
    def test_vectors(self):
        """The client asks for base64 by itself."""
        c = self.client("random")
        one = c.embeddings.create(model="random", input="the heat and the rain")
        vector = one.data[0].embedding
        self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
        floats = c.embeddings.create(model="random", input=["he", "the heat and the rain"], encoding_format="float")
        packed = c.embeddings.create(model="random", input=["he", "the heat and the rain"])
        for f, p in zip(floats.data, packed.data):
            self.assertLess(max(abs(a - b) for a, b in zip(f.embedding, p.embedding)), 1e-6)
        self.assertEqual(packed.data[1].embedding, vector)
        self.assertNotEqual(floats.data[0].embedding, floats.data[1].embedding)
        text = c.embeddings.create(model="random", input="he", encoding_format="base64").data[0].embedding
        self.assertIsInstance(text, str)
        self.assertEqual(one.usage.prompt_tokens, one.usage.total_tokens)
        with self.assertRaises(openai.BadRequestError):
            c.embeddings.create(model="random", input="he", dimensions=3)


if __name__ == "__main__":
    unittest.main(verbosity=1)
