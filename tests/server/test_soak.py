#!/usr/bin/env python3
"""64 clients that ask for all there is, streamed and not, and leave at random, in every phase of a request: no answer is lost or
differs from what the same request gets alone, and memory and descriptors do not grow.

    test_soak.py PROGRAM [SECONDS]"""
import collections
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import unittest

from served import Server

import tiny_model  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))
SECONDS = int(sys.argv.pop(1)) if len(sys.argv) > 1 else 10
CLIENTS = 64
SCHEMA = {"type": "object", "properties": {"yes": {"type": "boolean"}, "tag": {"enum": ["x", "y"]}}, "required": ["yes", "tag"],
          "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "pick", "parameters": SCHEMA}}


def words(i, n):
    rng = random.Random(i)
    return " ".join(rng.choice(("the", "and", "of", "he", "rain", "heat")) for _ in range(n)) + f" {i}"


def chat(i, n=30, **fields):
    return "chat/completions", {"messages": [{"role": "system", "content": words(i % 3, 60)}, {"role": "user", "content": words(i, n)}], "seed": i,
                                "temperature": i % 2, "max_tokens": 5 + i * 13 % 60, **fields}


def completion(i, prompt, **fields):
    return "completions", {"prompt": prompt, "seed": i, "temperature": i % 2, "max_tokens": 5 + i * 7 % 40, **fields}


def kinds():
    """Name and requests of each kind: (path, body)."""
    yield "chat", [chat(i) for i in range(12)]
    yield "long chat", [chat(i, 900) for i in range(4)]
    yield "choices", [chat(i, n=2) for i in range(4)]
    yield "logprobs", [chat(i, logprobs=True, top_logprobs=2) for i in range(4)]
    yield "tools", [chat(i, tools=[TOOL], max_tokens=80) for i in range(4)]
    yield "forced call", [chat(i, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=200) for i in range(4)]
    yield "schema", [chat(i, response_format={"type": "json_schema", "json_schema": {"name": "t", "schema": SCHEMA}}, max_tokens=200) for i in range(4)]
    yield "grammar", [chat(i, grammar='root ::= "<" [a-z]{2,20} ">"') for i in range(4)]
    yield "stop", [chat(i, stop=["e", "zz"]) for i in range(4)]
    yield "completion", [completion(i, words(i, 20), echo=i % 2 == 0) for i in range(8)]
    yield "prompts", [completion(i, [words(i, 5), words(i + 1, 50)]) for i in range(4)]
    yield "old logprobs", [completion(i, words(i, 5), logprobs=2) for i in range(4)]
    yield "embedding", [("embeddings", {"input": [words(i, 4), words(i, 300)], "encoding_format": ("float", "base64")[i % 2]}) for i in range(4)]
    yield "tokenize", [("../tokenize", {"content": words(i, 40), "with_pieces": True}) for i in range(2)]
    yield "detokenize", [("../detokenize", {"tokens": list(range(i, 200))}) for i in range(2)]


def bare(reply):
    """A reply without what is another one each time."""
    reply = {k: v for k, v in reply.items() if k not in ("id", "created")}
    if reply.get("usage"):
        reply["usage"] = {k: v for k, v in reply["usage"].items() if k != "prompt_tokens_details"}
    for c in reply.get("choices", []):
        for call in c.get("message", {}).get("tool_calls", []):
            del call["id"]
    return reply


def put_logprobs(choice, more):
    if more:
        mine = choice["logprobs"] = choice["logprobs"] or {}
        for k, v in more.items():
            mine[k] = mine.get(k, []) + v if isinstance(v, list) else v


def put_delta(message, delta):
    for key in ("content", "reasoning_content"):
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for d in delta.get("tool_calls", []):
        calls = message.setdefault("tool_calls", [])
        if d["index"] == len(calls):
            calls.append({"type": "function", "function": {"name": d["function"]["name"], "arguments": ""}})
        calls[d["index"]]["function"]["arguments"] += d["function"]["arguments"]


def whole(frames):
    """The reply that a stream's frames add up to."""
    reply, choices = None, {}
    for f in frames:
        f = json.loads(f)
        reply = reply or bare({**f, "object": f["object"].removesuffix(".chunk")})
        if f.get("usage"):
            reply["usage"] = bare(f)["usage"]
        for x in f["choices"]:
            fresh = {"index": x["index"], "logprobs": None, **({"text": ""} if "text" in x else {"message": {"role": "assistant", "content": None, "refusal": None}})}
            c = choices.setdefault(x["index"], fresh)
            put_logprobs(c, x.get("logprobs"))
            c["finish_reason"] = x["finish_reason"]
            if "text" in x:
                c["text"] += x["text"]
            else:
                put_delta(c["message"], x["delta"])
    return {**reply, "choices": [choices[i] for i in sorted(choices)]}


def texts_are_none(reply):
    """Streams of no content cannot tell "" from null."""
    for c in reply.get("choices", []):
        if c.get("message") and not c["message"]["content"]:
            c["message"]["content"] = None
    return reply


class Soak(unittest.TestCase):
    def ask(self, path, body, streamed=False):
        if streamed:
            frames, _ = self.server.stream("/v1/" + path, **body, stream_options={"include_usage": True})
            if frames.pop() != "[DONE]":
                raise RuntimeError(f"no end: {frames[-1]}")
            return texts_are_none(whole(frames))
        r = self.server.post(path[2:] if path.startswith("..") else "/v1/" + path, body)
        if r.status != 200:
            raise RuntimeError(f"{r.status}: {r.body}")
        return texts_are_none(bare(r.json))

    def leave(self, rng, path, body):
        """In the middle of the request, while it waits or its prompt is read, or while it is answered."""
        phase = rng.choice(("sending", "at once", "soon", "later", "answered"))
        self.left[phase] += 1
        if phase == "sending":
            data = json.dumps(body).encode()
            s = self.server.open("POST", "/v1/" + path, data[:-5], headers="X-Pad: 1\r\n")
            s.close()
            return
        body = {**body, "stream": phase == "answered" or rng.random() < 0.5}
        s = self.server.open("POST", "/v1/" + path, body)
        if phase == "answered":
            seen, enough = b"", rng.randrange(2, 9)
            while seen.count(b"\n\ndata: ") < enough and b"[DONE]" not in seen and (part := s.recv(4096)):
                seen += part
        else:
            time.sleep({"at once": 0, "soon": 0.05, "later": 1}[phase] * rng.random())
        s.close()

    def client(self, k):
        rng = random.Random(k)
        while time.monotonic() < self.end:
            i = rng.randrange(len(self.requests))
            name, path, body = self.requests[i]
            text = path.endswith("completions")
            try:
                if text and rng.random() < 0.3:
                    self.leave(rng, path, body)
                    continue
                streamed = text and rng.random() < 0.5
                got = self.ask(path, body, streamed)
                if got != self.expected[i]:
                    self.wrong.append((name, streamed, got, self.expected[i]))
                self.answered[name] += 1
            except Exception as e:  # noqa: BLE001
                self.wrong.append((name, repr(e)))

    def run_clients(self):
        self.end = time.monotonic() + SECONDS
        threads = [threading.Thread(target=self.client, args=(k,)) for k in range(CLIENTS)]
        for t in threads:
            t.start()
        time.sleep(SECONDS / 3)
        early = self.server.status("VmRSS")
        for t in threads:
            t.join()
        return early

    def test_many_clients(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-soak-"))
        self.addCleanup(lambda: shutil.rmtree(folder))
        tiny_model.build("qwen2", n_ctx=4096, seed=5).write(folder / "random.gguf")
        s = self.server = Server(PROGRAM, folder / "random.gguf", "--n-slots", 8, "--n-ctx", 4096, "--max-queue", 2 * CLIENTS)
        self.addCleanup(s.stop)
        self.requests = [(name, path, body) for name, some in kinds() for path, body in some]
        self.expected = [self.ask(path, body) for _, path, body in self.requests]
        self.wrong, self.answered, self.left = [], collections.Counter(), collections.Counter()
        threads, early = s.status("Threads"), self.run_clients()
        s.wait_metric("slots_busy", 0)
        s.wait_metric("queue_length", 0)
        s.wait_metric("connections", 1)
        late = s.status("VmRSS")
        print(f"{SECONDS} s: {sum(self.answered.values())} answers, {sum(self.left.values())} clients left; {early} KiB after a third, {late} KiB at the end; "
              f"parked {s.metric('parked_total'):.0f}, steps {s.metric('steps_total'):.0f}; {dict(self.answered)} {dict(self.left)}")
        self.assertEqual(self.wrong[:3], [])
        self.assertGreater(sum(self.answered.values()), CLIENTS)
        if SECONDS >= 60:
            self.assertEqual(set(self.answered), {name for name, _ in kinds()})
        self.assertLess(s.descriptors(), 32)
        self.assertEqual(s.status("Threads"), threads)
        if s.status("VmSize") < 1 << 30:  # sanitizers reserve terabytes, and keep what was freed
            self.assertLess(late, early + (4 << 10))


if __name__ == "__main__":
    unittest.main(verbosity=1)
