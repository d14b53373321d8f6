#!/usr/bin/env python3
"""compare_peer and plot with programs that stand in for minfer and its peer: what is asked of them, medians, ratios, tables, the picture.

    scripts.py FOLDER_OF_THE_SCRIPTS"""
import csv
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(sys.argv.pop(1)).resolve()
SMALL, LARGE = "SmolLM2-135M-Instruct.Q4_1.gguf", "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"

# Notes every call, and answers with the next number of its list.
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys
me = pathlib.Path(__file__)
with open(me.with_suffix(".calls"), "a") as f:
    f.write(" ".join(sys.argv[1:]) + "\\n")
n = len(me.with_suffix(".calls").read_text().splitlines())
values = %s
value = values[(n - 1) %% len(values)]
row = {"avg_ts": value, "gb_s": %s, "read_gb_s": 20.0}
if "jsonl" in sys.argv:
    print("what a peer says first\\n" + json.dumps({"speed_tg": value}))
else:
    print("text" if "run" in sys.argv[1:2] else json.dumps([row]))
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-bench-"))
        self.peer = self.folder / ".cache/minfer/peer/build/bin"
        self.peer.mkdir(parents=True)
        self.stand_in(self.folder / "minfer", [30.0, 10.0, 20.0], "10.0 if sys.argv[sys.argv.index('-n') + 1] != '0' else None")
        self.stand_in(self.peer / "llama-bench", [5.0, 8.0, 2.0], "None")
        self.stand_in(self.peer / "llama-batched-bench", [1.0], "None")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def stand_in(self, path, values, gb_s):
        path.write_text(STAND_IN % (values, gb_s))
        path.chmod(0o755)

    def calls(self, path):
        return path.with_suffix(".calls").read_text().splitlines()

    def compare(self, *args, status=0):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, BENCH / "compare_peer", "--minfer", self.folder / "minfer", "--threads", "2", *args], env=env,
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def rows(self):
        with open(self.folder / "r.csv", newline="") as f:
            return list(csv.DictReader(f))

    def test_speeds(self):
        text = self.compare("--rounds", "3", "--models", "smollm2", "--tests", "pp512,tg64@4096", "--csv", "r.csv", "--out", "r.md").stdout
        prefill, decode = self.rows()
        self.assertEqual([float(prefill[k]) for k in ("minfer", "min", "max", "peer", "peer_min", "peer_max", "ratio")],
                         [20, 10, 30, 5, 2, 8, 6])  # ratios 30/5, 10/8, 20/2
        self.assertEqual((prefill["unit"], prefill["gb_s"], decode["gb_s"], decode["read_gb_s"]), ("tokens/s", "", "10.0", "20.0"))
        self.assertIn("| 10.0 | 50 % |", text)
        self.assertEqual((self.folder / "r.md").read_text() + "\n", text)
        model = self.folder / ".cache/minfer/models" / SMALL
        self.assertEqual(self.calls(self.folder / "minfer"), [f"bench {model} -p 512 -n 0 -d 0 -r 1 -o json -t 2"] * 3
                         + [f"bench {model} -p 0 -n 64 -d 4096 -r 1 -o json -t 2"] * 3)
        self.assertEqual(self.calls(self.peer / "llama-bench"), [f"-m {model} -p 512 -n 0 -d 0 -r 1 -o json -t 2"] * 3
                         + [f"-m {model} -p 0 -n 64 -d 4096 -r 1 -o json -t 2"] * 3)

    def test_sequences_together(self):
        self.compare("--rounds", "2", "--models", "smollm2", "--tests", "tg64x8@16", "--csv", "r.csv")
        (row,) = self.rows()
        self.assertEqual([float(row[k]) for k in ("minfer", "peer", "ratio")], [20, 1, 20])
        self.assertIn("-p 0 -n 64 -d 16 -r 1 -o json -pl 8", self.calls(self.folder / "minfer")[-1])
        self.assertIn("-c 640 -npp 16 -ntg 64 -npl 8", self.calls(self.peer / "llama-batched-bench")[-1])

    def test_time_and_memory(self):
        self.compare("--rounds", "2", "--models", "qwen", "--tests", "ttft,rss", "--csv", "r.csv")
        first, memory = self.rows()
        self.assertEqual((first["model"], first["unit"], first["peer"], first["ratio"]), (LARGE, "s", "", ""))
        self.assertGreater(float(first["minfer"]), 0)
        self.assertEqual(memory["unit"], "MiB")
        self.assertGreater(float(memory["minfer"]), 1)
        self.assertGreater(float(memory["peer"]), 1)
        self.assertLess(abs(float(memory["ratio"]) - 1), 0.5)  # of two programs that do nothing
        self.assertIn("--n-ctx 4096", self.calls(self.folder / "minfer")[-1])
        self.assertIn("-c 4096", self.calls(self.peer / "llama-batched-bench")[-1])

    def test_all_tests_by_default(self):
        self.compare("--rounds", "1", "--csv", "r.csv")
        self.assertEqual([(r["model"], r["test"]) for r in self.rows()],
                         [(SMALL, t) for t in ("pp512", "tg64", "tg64@4096", "tg64x8@16", "ttft", "rss")]
                         + [(LARGE, t) for t in ("pp512", "tg64", "tg64x8@16", "ttft", "rss")])

    def test_refusals(self):
        self.assertIn("test 'xx' is none of", self.compare("--tests", "xx", status=1).stderr)
        self.assertIn("test 'pp0' is none of", self.compare("--tests", "pp0", status=1).stderr)
        self.assertIn("test 'tg64x8' is none of", self.compare("--tests", "tg64x8", status=1).stderr)
        self.assertIn("model 'gpt' is none of", self.compare("--models", "gpt", status=1).stderr)

    def plot(self, *args, status=0):
        done = subprocess.run([sys.executable, BENCH / "plot", *args], capture_output=True, text=True, timeout=200, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_plot(self):
        if not importlib.util.find_spec("matplotlib"):
            print("SKIP test_plot: the Python package matplotlib is not installed")
            self.skipTest("no matplotlib")
        results = BENCH / "results/2026-11-30.csv"
        self.plot(results, "--out", "a.svg")
        self.plot(results, "--out", "b.svg")
        picture = (self.folder / "a.svg").read_text()
        self.assertEqual(picture, (self.folder / "b.svg").read_text())
        for word in ("SmolLM2-135M.Q4_1", "Qwen2.5-Coder-1.5B.Q4_K_M", "pp512", "tg64", ">2.56<", ">1.28<"):
            self.assertIn(word, picture)
        for word in ("dc:date", "#ffffff", "#000000"):
            self.assertNotIn(word, picture)
        self.compare("--rounds", "1", "--csv", "r.csv")
        self.plot("r.csv")
        self.assertIn("peak memory", (self.folder / "r.svg").read_text())
        (self.folder / "empty.csv").write_text("model,test,ratio\n")
        self.assertIn("has no ratios", self.plot("empty.csv", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
