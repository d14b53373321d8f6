#!/usr/bin/env python3
"""/metrics as Prometheus' own parser reads it: types, words, names, histograms, and counters that say what was asked. `promtool
check metrics` as well, where it is installed. Skips without the Python package.

    test_metrics.py PROGRAM"""
import os
import re
import shutil
import subprocess
import sys
import threading
import unittest

from served import ROOT, InFolder, Server, in_parallel

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    print("skipped: the Python package prometheus_client is not installed")
    sys.exit(77)

import tiny_model  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))


def request(i):
    return {"messages": [{"role": "user", "content": f"number {i}"}], "max_tokens": 3 + i % 9, "seed": i, "n": 1 + i % 2}


class Metrics(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tiny_model.build("qwen2", n_ctx=4096, seed=5).write(cls.folder / "random.gguf")

    def setUp(self):
        self.server = Server(PROGRAM, self.folder / "random.gguf", "--n-ctx", 4096)
        self.addCleanup(lambda: self.server.stop())

    def scrape(self):
        """Families by name, each checked; samples by name and labels."""
        r = self.server.get("/metrics")
        self.assertEqual(r.status, 200)
        self.assertTrue(r.headers["Content-Type"].startswith("text/plain; version=0.0.4"), r.headers["Content-Type"])
        text = r.body.decode()
        families = list(text_string_to_metric_families(text))
        self.assertEqual(len({f.name for f in families}), len(families))
        samples = {}
        for f in families:
            self.check_family(f, text)
            for s in f.samples:
                key = (s.name, *sorted(s.labels.items()))
                self.assertNotIn(key, samples)
                samples[key] = s.value
        return {f.name: f for f in families}, samples

    def check_family(self, f, text):
        written = f.name + ("_total" if f.type == "counter" else "")
        self.assertRegex(written, r"^minfer_[a-z]+(_[a-z]+)*$")
        self.assertIn(f.type, ("counter", "gauge", "histogram"))
        self.assertRegex(f.documentation, r"^.*\w.*\.$")
        self.assertEqual(len(re.findall(rf"^# TYPE {written} {f.type}$", text, re.M)), 1)
        self.assertTrue(f.samples and all(s.value >= 0 for s in f.samples), f)
        if f.type == "counter":
            self.assertEqual({s.name for s in f.samples}, {written})
        if f.type == "gauge":
            self.assertFalse(written.endswith(("_total", "_count", "_sum", "_bucket")), written)
        if f.type == "histogram":
            self.check_histogram(f)

    def check_histogram(self, f):
        self.assertTrue(f.name.endswith("_seconds"), f.name)
        buckets = [(float(s.labels["le"]), s.value) for s in f.samples if s.name.endswith("_bucket")]
        rest = {s.name.removeprefix(f.name): s.value for s in f.samples if not s.name.endswith("_bucket")}
        bounds, counts = zip(*buckets)
        self.assertEqual(list(bounds), sorted(set(bounds)))
        self.assertEqual(list(counts), sorted(counts))
        self.assertEqual(bounds[-1], float("inf"))
        self.assertEqual(set(rest), {"_sum", "_count"})
        self.assertEqual(counts[-1], rest["_count"])
        least = sum((b - a) * low for low, (a, b) in zip((0, *bounds), zip((0, *counts), counts)))
        self.assertGreaterEqual(rest["_sum"] * 1.000001, least)

    def growing(self, families):
        return {(s.name, *sorted(s.labels.items())) for f in families.values() for s in f.samples
                if f.type == "counter" or (f.type == "histogram")}

    def test_counters_only_grow(self):
        """While many ask, some leave, and some ask for what is refused."""
        done, faults, scraped = threading.Event(), [], [0]

        def watch():
            last = {}
            while not done.is_set() and not faults:
                try:
                    families, samples = self.scrape()
                    faults.extend(k for k in self.growing(families) if samples[k] < last.get(k, 0))
                    last = samples
                    scraped[0] += 1
                except Exception as e:  # noqa: BLE001
                    faults.append(repr(e))

        def leave(i):
            self.server.open("POST", "/v1/chat/completions", {**request(i), "max_tokens": 2000, "ignore_eos": True}).close()

        watcher = threading.Thread(target=watch)
        watcher.start()
        calls = [lambda i=i: self.server.post("/v1/chat/completions", request(i)) for i in range(40)]
        calls += [lambda: self.server.chat(temperature=-1)] * 10 + [lambda i=i: leave(i) for i in range(10)]
        try:
            in_parallel(calls)
        finally:
            done.set()
            watcher.join()
        self.assertEqual(faults, [])
        self.assertGreater(scraped[0], 2)

    def test_they_say_what_was_asked(self):
        _, before = self.scrape()
        replies = [self.server.post("/v1/chat/completions", request(i)) for i in range(10)]
        refused = [self.server.chat(temperature=-1), self.server.get("/nope")]
        self.assertEqual({r.status for r in replies}, {200})
        self.assertEqual([r.status for r in refused], [400, 404])
        families, after = self.scrape()
        grown = {k: after[k] - before[k] for k in after}
        usage = [r.json["usage"] for r in replies]
        total = lambda name: sum(u[name] for u in usage)  # noqa: E731
        self.assertEqual(set(before), set(after))
        self.assertEqual(grown["minfer_requests_total", ("code", "2xx")], len(replies) + 1)  # the first look at the metrics, too
        self.assertEqual(grown["minfer_requests_total", ("code", "4xx")], len(refused))
        self.assertEqual(grown["minfer_prompt_tokens_total",], total("prompt_tokens"))
        self.assertEqual(grown["minfer_prompt_tokens_cached_total",], sum(u["prompt_tokens_details"]["cached_tokens"] for u in usage))
        self.assertEqual(grown["minfer_generated_tokens_total",], total("completion_tokens"))
        self.assertGreater(grown["minfer_step_seconds_total",], 0)
        for name in ("queue_seconds", "first_token_seconds", "request_seconds"):
            self.assertEqual(grown[f"minfer_{name}_count",], len(replies), name)
        first, whole = (grown[f"minfer_{name}_sum",] for name in ("first_token_seconds", "request_seconds"))
        self.assertLess(0, first)
        self.assertLess(first, whole)
        self.assertEqual(families["minfer_state"].type, "gauge")
        self.assertEqual({s.labels["state"]: s.value for s in families["minfer_state"].samples}, {"loading": 0, "ok": 1, "draining": 0})
        self.assertEqual(after["minfer_slots",], 4)

    def test_document(self):
        """docs/server.md lists them with their types."""
        part = (ROOT / "docs/server.md").read_text().split("<!-- metrics -->")[1].split("<!-- end of metrics -->")[0]
        told = {(name, kind) for names, kind in re.findall(r"^\| (`.*`) \| (\w+) \|", part, re.M) for name in re.findall(r"`(\w+)`", names)}
        families, _ = self.scrape()
        self.assertEqual(told, {(f.name + ("_total" if f.type == "counter" else ""), f.type) for f in families.values()})

    def test_promtool(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        self.server.chat(max_tokens=3)
        r = subprocess.run(["promtool", "check", "metrics"], input=self.server.get("/metrics").body, capture_output=True)
        self.assertEqual((r.returncode, r.stdout + r.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main(verbosity=1)
