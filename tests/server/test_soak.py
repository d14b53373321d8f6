#!/usr/bin/env python3
"""64 clients that ask, and leave at random, for a while: no answer is lost or wrong, memory and descriptors do not grow.

    test_soak.py PROGRAM [SECONDS]"""
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
CLIENTS, KINDS = 64, 40


def request(i):
    return {"prompt": "the and of " * (1 + i * 7 % 90) + str(i), "max_tokens": 5 + i * 13 % 70, "seed": i, "temperature": i % 2}


class Soak(unittest.TestCase):
    def client(self, k):
        rng = random.Random(k)
        while time.monotonic() < self.end:
            i = rng.randrange(KINDS)
            try:
                if rng.random() < 0.3:
                    c = self.server.open("POST", "/v1/completions", {**request(i), "stream": rng.random() < 0.5})
                    time.sleep(rng.random() * 0.05)
                    c.close()
                    continue
                r = self.server.post("/v1/completions", request(i))
                if r.status != 200 or r.text != self.expected[i]:
                    self.wrong.append((i, r.status, r.body))
                self.answered += 1
            except Exception as e:  # noqa: BLE001
                self.wrong.append(repr(e))

    def test_many_clients(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-soak-"))
        self.addCleanup(lambda: shutil.rmtree(folder))
        tiny_model.build("qwen2", n_ctx=4096, seed=5).write(folder / "random.gguf")
        s = self.server = Server(PROGRAM, folder / "random.gguf", "--n-slots", 8, "--n-ctx", 4096)
        self.addCleanup(s.stop)
        self.expected = [s.post("/v1/completions", request(i)).text for i in range(KINDS)]
        self.wrong, self.answered, self.end = [], 0, time.monotonic() + SECONDS
        threads = [threading.Thread(target=self.client, args=(k,)) for k in range(CLIENTS)]
        for t in threads:
            t.start()
        time.sleep(SECONDS / 3)
        early = s.status("VmRSS")
        for t in threads:
            t.join()
        self.assertEqual(self.wrong, [])
        self.assertGreater(self.answered, CLIENTS)
        s.wait_metric("slots_busy", 0)
        s.wait_metric("queue_length", 0)
        s.wait_metric("connections", 1)
        self.assertLess(s.descriptors(), 32)
        if s.status("VmSize") < 1 << 30:  # sanitizers reserve terabytes, and keep what was freed
            self.assertLess(s.status("VmRSS"), early + (4 << 10))


if __name__ == "__main__":
    unittest.main(verbosity=1)
