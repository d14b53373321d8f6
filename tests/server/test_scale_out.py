#!/usr/bin/env python3
"""Two servers behind HAProxy with deploy/haproxy.cfg: conversations stay where their prefix is, no answer is lost while one
server after the other restarts under load, and what a server that is killed loses is what docs/scale-out.md says. Skips
without haproxy.

    test_scale_out.py PROGRAM"""
import csv
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from served import ROOT, Server, joined

HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
if not HAPROXY:
    print("skipped: haproxy is not installed")
    sys.exit(77)

import tiny_model  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))
LONG = {"max_tokens": 150, "temperature": 1, "repeat_penalty": 1}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Clients:
    """Threads that ask all the time, half of them for streams, and know the right answers."""

    def __init__(self, front, n):
        self.front, self.done, self.lock = front, threading.Event(), threading.Lock()
        self.wrong, self.broken, self.answered = [], [], 0
        self.expected = [self.whole(i) for i in range(12)]
        self.threads = [threading.Thread(target=self.run, args=(k,)) for k in range(n)]

    def whole(self, i):
        r = self.front.chat(f"number {i}", seed=i, **LONG)
        if r.status != 200:
            raise RuntimeError(f"{r.status}: {r.body}")
        return r.text

    def stream(self, i):
        """Its text, and whether it came to its end."""
        c = http.client.HTTPConnection("127.0.0.1", self.front.port, timeout=300)
        try:
            c.request("POST", "/v1/chat/completions", json.dumps({"messages": [{"role": "user", "content": f"number {i}"}], "seed": i,
                                                                  "stream": True, **LONG}))
            r = c.getresponse()
            try:
                body, status = r.read(), r.status
            except http.client.IncompleteRead as e:
                body, status = e.partial, None
        finally:
            c.close()
        if status not in (200, None):
            raise RuntimeError(f"{status}: {body}")
        frames = [f[len("data: "):] for f in body.decode().split("\n\n")[:-1] if not f.startswith(":")]
        return joined(frames), status == 200 and frames[-1] == "[DONE]"

    def ask(self, i, streamed):
        start = time.monotonic()
        text, whole = self.stream(i) if streamed else (self.whole(i), True)
        with self.lock:
            if whole and text == self.expected[i]:
                self.answered += 1
            elif not whole and self.expected[i].startswith(text):
                self.broken.append(start)
            else:
                self.wrong.append((i, streamed, text))

    def once(self, i, streamed):
        try:
            self.ask(i, streamed)
        except Exception as e:  # noqa: BLE001
            with self.lock:
                self.wrong.append(repr(e))

    def run(self, k):
        rng = random.Random(k)
        while not self.done.is_set():
            self.once(rng.randrange(len(self.expected)), k % 2)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for t in self.threads:
            t.join()

    def wait_answers(self, n):
        """Until n more are there."""
        n += self.answered
        end = time.monotonic() + 300
        while self.answered < n and not self.wrong and time.monotonic() < end:
            time.sleep(0.02)
        if self.answered < n:
            raise AssertionError(f"{self.answered} answers instead of {n}; wrong: {self.wrong}")


class ScaleOut(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-scale-"))
        self.addCleanup(lambda: shutil.rmtree(self.folder))
        self.model = self.folder / "random.gguf"
        tiny_model.build("qwen2", n_ctx=1 << 14, seed=5).write(self.model)
        self.ports = [free_port(), free_port()]
        self.servers = [self.start(p) for p in self.ports]
        self.addCleanup(lambda: [s.stop() for s in self.servers])
        front = free_port()
        text = (ROOT / "deploy" / "haproxy.cfg").read_text()
        for old, new in (("127.0.0.1:8081", f"127.0.0.1:{self.ports[0]}"), ("127.0.0.1:8082", f"127.0.0.1:{self.ports[1]}"),
                         ("127.0.0.1:8080", f"127.0.0.1:{front}"), ("global\n", f"global\n    stats socket {self.folder}/stats\n")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.folder / "haproxy.cfg").write_text(text)
        self.proxy = subprocess.Popen([HAPROXY, "-db", "-q", "-f", self.folder / "haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (self.proxy.terminate(), self.proxy.wait()))
        self.front = Server.__new__(Server)  # the same ways to talk, at another port
        self.front.port = front
        for k in (0, 1):
            self.wait_state(k, "UP")

    def start(self, port):
        return Server(PROGRAM, self.model, "--port", port, "--n-ctx", 8192, "--n-slots", 8, "--drain-grace", 2, env={"MINFER_DRAIN_MS": "600000"})

    def restart(self, k):
        self.assertEqual(self.servers[k].stop(), 0)
        self.servers[k] = self.start(self.ports[k])

    def state(self, k):
        """UP or DOWN, as HAProxy has it from a check."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.folder / "stats"))
            s.sendall(b"show stat\n")
            text = b""
            while part := s.recv(1 << 16):
                text += part
        rows = csv.DictReader(text.decode().removeprefix("# ").splitlines())
        row = next(r for r in rows if (r["pxname"], r["svname"]) == ("minfer", ("one", "two")[k]))
        return row["status"] if row["check_status"][:1] == "L" else "not checked yet"

    def wait_state(self, k, wanted):
        end = time.monotonic() + 120
        while True:
            try:
                state = self.state(k)
            except OSError as e:
                state = repr(e)
            if state == wanted:
                return
            if time.monotonic() > end:
                raise AssertionError(f"server {k} is {state}, not {wanted}")
            time.sleep(0.05)

    def test_conversations_stay(self):
        system = {"role": "system", "content": "be brief"}
        for i in range(12):
            messages = [system, {"role": "user", "content": f"conversation {i} " + "the and of " * 60}]
            for turn in range(3):
                r = self.front.chat(messages, max_tokens=8, seed=turn)
                self.assertEqual(r.status, 200, r.body)
                u = r.json["usage"]
                if turn:
                    self.assertGreater(u["prompt_tokens_details"]["cached_tokens"], 60, (i, turn))
                messages += [{"role": "assistant", "content": r.text}, {"role": "user", "content": "and then"}]
        self.assertTrue(all(s.metric("generated_tokens_total") > 0 for s in self.servers))

    def test_restarts_lose_nothing(self):
        with Clients(self.front, 6) as c:
            for k in (0, 1):
                c.wait_answers(10)
                self.restart(k)
                c.wait_answers(10)  # by the other one, or by it, when it is known to be up
                self.wait_state(k, "UP")
            c.wait_answers(10)
        self.assertEqual((c.wrong, c.broken), ([], []))

    def test_restart_beside_a_slow_one(self):
        """The one that stays answers nothing for a while, not even /health: it is late, not gone."""
        with Clients(self.front, 6) as c:
            c.wait_answers(10)
            restart = threading.Thread(target=self.restart, args=(0,))
            restart.start()
            self.wait_state(0, "DOWN")
            self.servers[1].process.send_signal(signal.SIGSTOP)
            time.sleep(1.5)  # longer than the time between checks
            late = [threading.Thread(target=c.once, args=(i, i % 2)) for i in range(4)]
            for t in late:
                t.start()
            time.sleep(0.5)
            self.servers[1].process.send_signal(signal.SIGCONT)
            for t in [restart, *late]:
                t.join()
            c.wait_answers(10)
        self.assertEqual((c.wrong, c.broken), ([], []))

    def test_killed(self):
        """Streams that it was sending break off; all other requests are answered by the other one."""
        with Clients(self.front, 8) as c:
            c.wait_answers(10)
            while self.servers[0].metric("slots_busy") == 0:
                time.sleep(0.01)
            self.servers[0].process.kill()
            killed = time.monotonic()
            self.servers[0].process.wait()
            self.wait_state(0, "DOWN")
            c.wait_answers(20)
            self.servers[0] = self.start(self.ports[0])
            self.wait_state(0, "UP")
            c.wait_answers(20)
        self.assertEqual(c.wrong, [])
        self.assertLessEqual(len(c.broken), 4)  # the streams at that time
        self.assertTrue(all(start <= killed for start in c.broken), (c.broken, killed))
        self.assertGreater(self.servers[0].metric("generated_tokens_total"), 0)

    def test_client_that_leaves(self):
        """Its answer ends, before it would by itself, also where HAProxy is not sending anything to the client yet."""
        for stream in (True, False):
            body = {"prompt": "he is", "max_tokens": 8000, "ignore_eos": True, "stream": stream}
            s = self.front.open("POST", "/v1/completions", body)
            end = time.monotonic() + 20
            while sum(server.metric("slots_busy") for server in self.servers) == 0:
                self.assertLess(time.monotonic(), end)
            s.close()
            for server in self.servers:
                server.wait_metric("slots_busy", 0)
        self.assertEqual(sum(server.metric("clients_left_total") for server in self.servers), 2)

    def test_no_server(self):
        for k in (0, 1):
            self.servers[k].process.kill()
            self.servers[k].process.wait()
            self.wait_state(k, "DOWN")
        r = self.front.chat()
        self.assertEqual((r.status, r.error["type"], r.headers["Content-Type"], r.headers["Retry-After"]), (503, "unavailable_error", "application/json", "1"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
