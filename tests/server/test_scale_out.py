#!/usr/bin/env python3
"""Two servers behind HAProxy with deploy/haproxy.cfg: conversations stay where their prefix is, and no answer is lost while one
server after the other restarts under load. Skips without haproxy.

    test_scale_out.py PROGRAM"""
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from served import ROOT, Server

HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
if not HAPROXY:
    print("skipped: haproxy is not installed")
    sys.exit(77)

import tiny_model  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ScaleOut(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-scale-"))
        self.addCleanup(lambda: shutil.rmtree(self.folder))
        self.model = self.folder / "random.gguf"
        tiny_model.build("qwen2", n_ctx=1 << 14, seed=5).write(self.model)
        self.ports = [free_port(), free_port()]
        self.servers = [self.start(p) for p in self.ports]
        self.addCleanup(lambda: [s.stop() for s in self.servers])
        text = (ROOT / "deploy" / "haproxy.cfg").read_text()
        front = free_port()
        for old, new in ((8081, self.ports[0]), (8082, self.ports[1]), (8080, front)):
            text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
        (self.folder / "haproxy.cfg").write_text(text)
        self.proxy = subprocess.Popen([HAPROXY, "-db", "-q", "-f", self.folder / "haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (self.proxy.terminate(), self.proxy.wait()))
        self.front = Server.__new__(Server)  # the same ways to talk, at another port
        self.front.port = front
        for _ in range(200):
            try:
                if self.front.get("/health").status == 200:
                    break
            except OSError:
                pass
            time.sleep(0.05)
        time.sleep(1.5)  # both servers have been checked

    def start(self, port):
        return Server(PROGRAM, self.model, "--port", port, "--n-ctx", 8192, "--n-slots", 8, "--drain-grace", 2, env={"MINFER_DRAIN_MS": "60000"})

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
        expected = {}
        ask = lambda i: self.front.chat(f"number {i}", max_tokens=150, temperature=1, seed=i, repeat_penalty=1)  # noqa: E731
        for i in range(12):
            expected[i] = ask(i).text
        done, wrong, asked = threading.Event(), [], [0]

        def client(k):
            rng = random.Random(k)
            while not done.is_set():
                i = rng.randrange(12)
                try:
                    r = ask(i)
                    if r.status != 200 or r.text != expected[i]:
                        wrong.append((r.status, r.body))
                except Exception as e:  # noqa: BLE001
                    wrong.append(repr(e))
                asked[0] += 1

        threads = [threading.Thread(target=client, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for k in (0, 1):
            time.sleep(1)
            self.assertEqual(self.servers[k].stop(), 0)
            self.servers[k] = self.start(self.ports[k])
            time.sleep(2.5)  # it is up again before the other one goes
        done.set()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        self.assertGreater(asked[0], 50)


if __name__ == "__main__":
    unittest.main(verbosity=1)
