"""A running server and ways to talk to it, for the tests: http.client where that is enough, sockets where it is not."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "gguf")]
SANITIZER = {k: os.environ[k] for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS") if k in os.environ}


class InFolder(unittest.TestCase):
    """Tests with a folder for their models."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-serve-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    @property
    def text(self):
        """Of the first choice, chat or completion."""
        c = self.json["choices"][0]
        return c["text"] if "text" in c else c["message"]["content"]


class Server:
    headers = {}  # of every request

    def __init__(self, program, model, *args, wait=True, env=None, **more):
        self.env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "MINFER_DRAIN_MS": "0", **SANITIZER, **(env or {})}
        self.process = subprocess.Popen([program, "serve", str(model), "--port", "0", *map(str, args)], env=self.env,
                                        stderr=subprocess.PIPE, text=True, **more)
        self.log = []
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        if not self.listening.wait(120) or self.process.poll() is not None:
            self.process.wait(10)
            raise RuntimeError("the server did not start: " + "".join(self.log))
        self.port = int(re.search(r"://\S*:(\d+)", "".join(self.log)).group(1))
        if wait:
            self.wait_ready()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            if "listening at" in line:
                self.listening.set()
        self.listening.set()

    def wait_ready(self):
        for _ in range(3000):
            if self.process.poll() is not None:
                break
            try:
                if self.get("/health").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError("the server is never ready: " + "".join(self.log))

    def stop(self):
        """Ends the server; its exit status. What is running is given up, unless MINFER_DRAIN_MS says otherwise."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join(10)
        self.process.stderr.close()
        if any("Sanitizer" in line or "runtime error" in line for line in self.log):
            raise AssertionError("".join(self.log[-200:]))
        return status

    def request(self, method, path, body=None, headers=None, timeout=300):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            c.request(method, path, body, {"Content-Type": "application/json", **self.headers, **(headers or {})})
            r = c.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            c.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def chat(self, text="hello", path="/v1/chat/completions", **fields):
        messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
        return self.post(path, {"messages": messages, **fields})

    def complete(self, prompt="hello", **fields):
        return self.post("/v1/completions", {"prompt": prompt, **fields})

    def stream(self, path="/v1/chat/completions", **fields):
        """The data of each event, and the bytes of all of them."""
        r = self.post(path, {"stream": True, **fields})
        assert r.status == 200, r.body
        lines = r.body.decode("utf-8").split("\n\n")
        assert lines.pop() == ""
        return [line[len("data: "):] for line in lines if not line.startswith(":")], r

    def open(self, method, path, body=None, headers=""):
        """A socket on which a request was sent."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        length = f"Content-Length: {len(data)}\r\n" if body is not None else ""
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}{headers}\r\n".encode() + data)
        return s

    def metric(self, name):
        text = self.get("/metrics").body.decode()
        return float(re.search(rf"^minfer_{re.escape(name)} (\S+)$", text, re.M).group(1))

    def wait_metric(self, name, value, seconds=20):
        """Waits until the metric has the value; how long that took."""
        start = time.monotonic()
        while self.metric(name) != value:
            if time.monotonic() - start > seconds:
                raise AssertionError(f"{name} is {self.metric(name)} after {seconds} s, not {value}")
            time.sleep(0.01)
        return time.monotonic() - start

    def status(self, field):
        """A field of /proc/PID/status."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+)", text, re.M).group(1))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def joined(events):
    """The text of a chat's stream."""
    return "".join(c["delta"].get("content") or "" for e in events if e != "[DONE]" for c in json.loads(e)["choices"])


def said(server, text="hello", **fields):
    """(content, thoughts, calls, finish_reason) of a chat, which are the same whether it is streamed or not."""
    r = server.chat(text, **fields)
    assert r.status == 200, r.body
    choice = r.json["choices"][0]
    m = choice["message"]
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", [])]
    whole = (m["content"] or "", m.get("reasoning_content"), calls, choice["finish_reason"])
    content, thoughts, calls, ids, finish = "", "", {}, set(), None
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    events, _ = server.stream(messages=messages, **fields)
    assert events[-1] == "[DONE]", events
    for c in (json.loads(e)["choices"][0] for e in events[:-1]):
        assert finish is None, events
        content += c["delta"].get("content") or ""
        thoughts += c["delta"].get("reasoning_content") or ""
        for call in c["delta"].get("tool_calls", []):
            name, args = calls.get(call["index"], ("", ""))
            calls[call["index"]] = (name + call["function"].get("name", ""), args + call["function"].get("arguments", ""))
            ids |= {call["id"]} if "id" in call else set()
        finish = c["finish_reason"]
    streamed = (content, thoughts or None, [calls[i] for i in sorted(calls)], finish)
    assert streamed == whole and len(ids) == len(calls), (streamed, whole)
    return whole


def read_stream(sock):
    """All of a stream up to its end, or the connection's."""
    text = bytearray()
    while b"[DONE]" not in text[-100:] and (part := sock.recv(1 << 20)):
        text += part
    return bytes(text)


def in_parallel(calls):
    """Runs all at once; their results in order, or the first exception."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except Exception as e:  # noqa: BLE001
            results[i] = e

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, Exception):
            raise r
    return results
