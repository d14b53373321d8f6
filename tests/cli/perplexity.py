#!/usr/bin/env python3
"""`perplexity` against the same numbers computed here from rows of `logits`, and its files of stored logits.

    perplexity.py PROGRAM"""
import array
import csv
import io
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import logits_bytes
import made

PROGRAM = os.path.abspath(sys.argv.pop(1))
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("MINFER_", "NO_COLOR"))}
TEXT = "the cat and the other one in the hat, on and on; " * 6 + "\n"
COARSE, FINE = made.TINY / "tiny-llama-Q4_0.gguf", made.TINY / "tiny-llama-Q8_0.gguf"


def log_softmax(row):
    most = max(row)
    total = math.log(math.fsum(math.exp(x - most) for x in row)) + most
    return [x - total for x in row]


def mean_and_error(values):
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-perplexity-"))
        cls.text = cls.folder / "text.txt"
        cls.text.write_text(TEXT)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_program(self, *args, status=0, **more):
        more.setdefault("input", b"")
        done = subprocess.run([PROGRAM, *map(str, args)], env=ENV, capture_output=True, timeout=120, cwd=self.folder, **more)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done

    def refused(self, *args, status=1, says=""):
        done = self.run_program("perplexity", *args, status=status)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(done.stderr.decode(), r"^minfer: [^\n]*\n$")
        self.assertIn(says, done.stderr.decode())

    def ids(self, model, text=None):
        return json.loads(self.run_program("tokenize", model, "-f", text or self.text, "--ids").stdout)

    def rows(self, model, tokens):
        out = self.run_program("logits", model, "--tokens", ",".join(map(str, tokens)), "-o", "-").stdout
        values = array.array("f", out)
        n = len(values) // len(tokens)
        return [values[i * n:(i + 1) * n] for i in range(len(tokens))]

    def windows(self, model, ids, n_ctx, stride, counted, bos=None):
        """(row, token it predicts) of all counted predictions."""
        out = []
        for start in range(0, len(ids) - n_ctx + 1, stride):
            tokens = ids[start:start + n_ctx]
            if bos is not None:
                tokens = [bos] + tokens[1:]
            rows = self.rows(model, tokens)
            out += [(rows[i - 1], tokens[i]) for i in range(n_ctx - counted, n_ctx)]
        return out

    def result(self, *args):
        return json.loads(self.run_program("perplexity", *args, "-o", "json").stdout)


class Numbers(Case):
    def check(self, got, predictions):
        surprise, error = mean_and_error([-log_softmax(row)[token] for row, token in predictions])
        self.assertEqual(got["predictions"], len(predictions))
        self.assertAlmostEqual(got["perplexity"] / math.exp(surprise), 1, 9)
        self.assertAlmostEqual(got["perplexity_error"], math.exp(surprise) * error, delta=1e-9 * math.exp(surprise))

    def test_halves(self):
        ids = self.ids(COARSE)
        self.assertGreater(len(ids), 120)
        for n_ctx in (3, 4, 16, 31, 64):
            got = self.result(COARSE, self.text, "--n-ctx", n_ctx)
            counted = n_ctx - n_ctx // 2 - 1
            self.assertEqual((got["setup"]["stride"], got["setup"]["counted"]), (n_ctx, counted))
            self.assertEqual(got["setup"]["n_windows"], len(ids) // n_ctx)
            self.assertEqual(got["result"]["tokens"], len(ids) // n_ctx * (n_ctx - 1))
            if n_ctx > 8:
                self.check(got["result"], self.windows(COARSE, ids, n_ctx, n_ctx, counted))

    def test_whole_text(self):
        """Without --n-ctx a short text is one window."""
        ids = self.ids(COARSE)
        got = self.result(COARSE, self.text)
        self.assertEqual((got["setup"]["n_ctx"], got["setup"]["n_windows"]), (len(ids), 1))
        self.check(got["result"], self.windows(COARSE, ids, len(ids), len(ids), len(ids) - len(ids) // 2 - 1))

    def test_strides(self):
        """Every token from the first window's counted ones on is predicted once."""
        ids = self.ids(COARSE)
        for n_ctx, stride in ((32, 20), (32, 31), (40, 1), (60, 7)):
            got = self.result(COARSE, self.text, "--n-ctx", n_ctx, "--stride", stride, "--windows", 5)
            used = ids[:(min(5, (len(ids) - n_ctx) // stride + 1) - 1) * stride + n_ctx]
            predictions = self.windows(COARSE, used, n_ctx, stride, stride)
            self.assertEqual([t for _, t in predictions], used[n_ctx - stride:])
            self.check(got["result"], predictions)

    def test_running(self):
        """Every row is the estimate of the windows so far, the last one the result."""
        ids, got = self.ids(COARSE), self.result(COARSE, self.text, "--n-ctx", 24)
        predictions = self.windows(COARSE, ids, 24, 24, 11)
        for k, row in enumerate(got["running"]):
            self.assertEqual(row["windows"], k + 1)
            self.check(row, predictions[:11 * (k + 1)])
        self.assertEqual(got["running"][-1]["perplexity"], got["result"]["perplexity"])

    def test_bos(self):
        """A model that wants BOS gets it in place of the first token of every window, and only there."""
        m = made.tiny_model.build("qwen2")
        m.set("tokenizer.ggml.add_bos_token", made.tiny_model.BOOL, True)
        model = self.folder / "bos.gguf"
        m.write(model)
        ids = self.ids(model)
        bos = made.tiny_model.vocabulary().index("<|endoftext|>")
        self.assertEqual(ids[0], bos)
        got = self.result(model, self.text, "--n-ctx", 20)
        self.check(got["result"], self.windows(model, ids, 20, 20, 9, bos))

    def test_same_whatever_the_engine(self):
        keys = ("perplexity", "perplexity_error")
        want = [self.result(COARSE, self.text, "--n-ctx", 50)["result"][k] for k in keys]
        for args in (("-t", 1), ("--n-batch", 1), ("--n-batch", 7), ("--cpu-tier", "scalar")):
            got = self.result(COARSE, self.text, "--n-ctx", 50, *args)["result"]
            self.assertEqual([got[k] for k in keys], want, args)

    def test_where_the_text_comes_from(self):
        want = self.result(COARSE, self.text, "--n-ctx", 50)["result"]["perplexity"]
        for args, data in ((("-f", self.text), b""), (("-",), TEXT.encode()), (("-f", "-"), TEXT.encode())):
            done = self.run_program("perplexity", COARSE, *args, "--n-ctx", 50, "-o", "json", input=data)
            self.assertEqual(json.loads(done.stdout)["result"]["perplexity"], want)

    def test_formats_agree(self):
        model = self.folder / "even.gguf"
        made.tiny_model.build("llama").write(model)
        want = self.result(model, self.text, "--n-ctx", 50)
        rows = list(csv.DictReader(io.StringIO(self.run_program("perplexity", model, self.text, "--n-ctx", 50, "-o", "csv").stdout.decode())))
        self.assertEqual(len(rows), want["setup"]["n_windows"] + 1)
        for row, numbers in zip(rows, want["running"] + [want["result"]]):
            for key in ("windows", "predictions", "tokens", "perplexity", "perplexity_error"):
                self.assertAlmostEqual(float(row[key]), numbers[key], delta=1e-9 * abs(numbers[key]) + 1e-12)
            self.assertEqual(row["kl"], "")
        text = self.run_program("perplexity", model, self.text, "--n-ctx", 50).stdout.decode()
        self.assertIn("| perplexity | %.4f ± %.4f |" % (want["result"]["perplexity"], want["result"]["perplexity_error"]), text)


class Comparison(Case):
    def stored(self, model, *args, name="stored.lg"):
        self.run_program("perplexity", model, self.text, "--save-logits", name, *args)
        return self.folder / name

    def test_bytes(self):
        """The file is what its description says, byte by byte."""
        ids = self.ids(FINE)[:84]
        data = self.stored(FINE, "--n-ctx", 36, "--stride", 12, "--windows", 5).read_bytes()
        rows = [x for row, _ in self.windows(FINE, ids, 36, 12, 12) for x in row]
        want = logits_bytes.build(n_vocab=512, n_ctx=36, stride=12, n_counted=12, n_windows=5, ids=ids, rows=rows)
        self.assertEqual(data, want)

    def test_itself(self):
        path = self.stored(FINE, "--n-ctx", 40)
        for args in ((), (self.text,)):
            got = self.result(FINE, *args, "--kl", path)["result"]
            self.assertEqual([got[k] for k in ("kl", "kl_error", "kl_99", "kl_max", "same_best", "ratio", "ratio_error")], [0, 0, 0, 0, 1, 1, 0])
            self.assertEqual(got["perplexity"], got["stored_perplexity"])
            self.assertEqual(got["perplexity"], self.result(FINE, self.text, "--n-ctx", 40)["result"]["perplexity"])

    def test_numbers(self):
        path = self.stored(FINE, "--n-ctx", 40)
        got = self.result(COARSE, "--kl", path)["result"]
        ids = self.ids(FINE)
        kls, same, more = [], [], []
        for (p, token), (q, _) in zip(self.windows(FINE, ids, 40, 40, 19), self.windows(COARSE, ids, 40, 40, 19)):
            lp, lq = log_softmax(p), log_softmax(q)
            kls.append(math.fsum(math.exp(a) * (a - b) for a, b in zip(lp, lq)))
            same.append(float(max(range(512), key=lp.__getitem__) == max(range(512), key=lq.__getitem__)))
            more.append(lp[token] - lq[token])
        mean, error = mean_and_error(kls)
        kls.sort()
        at = 0.99 * (len(kls) - 1)
        quantile = kls[int(at)] + (at - int(at)) * (kls[int(at) + 1] - kls[int(at)])
        ratio, ratio_error = mean_and_error(more)
        self.assertGreater(mean, 1e-5)
        self.assertLess(mean_and_error(same)[0], 1)
        for key, want in (("kl", mean), ("kl_error", error), ("kl_99", quantile), ("kl_max", kls[-1]), ("same_best", mean_and_error(same)[0]),
                          ("ratio", math.exp(ratio)), ("ratio_error", math.exp(ratio) * ratio_error)):
            self.assertAlmostEqual(got[key], want, delta=1e-9 * want, msg=key)

    def test_fewer_windows(self):
        path = self.stored(FINE, "--n-ctx", 40)
        got = self.result(COARSE, "--kl", path, "--windows", 1)
        self.assertEqual(got["running"], [got["running"][0]])
        self.assertEqual(got["running"][0]["kl"], self.result(COARSE, "--kl", path)["running"][0]["kl"])

    def test_compared_and_stored_at_once(self):
        path = self.stored(FINE, "--n-ctx", 40)
        self.run_program("perplexity", COARSE, "--kl", path, "--save-logits", "again.lg")
        self.assertEqual((self.folder / "again.lg").read_bytes(), self.stored(COARSE, "--n-ctx", 40, name="direct.lg").read_bytes())

    def test_bos_is_stored(self):
        m = made.tiny_model.build("qwen2")
        m.set("tokenizer.ggml.add_bos_token", made.tiny_model.BOOL, True)
        m.write(self.folder / "bos.gguf")
        path = self.stored(self.folder / "bos.gguf", "--n-ctx", 20)
        self.assertEqual(self.result(self.folder / "bos.gguf", "--kl", path)["result"]["kl"], 0)

    def test_another_text_or_model(self):
        path = self.stored(FINE, "--n-ctx", 40)
        other = self.folder / "other.txt"
        other.write_text(TEXT.replace("hat", "hut", 1))
        self.refused(COARSE, other, "--kl", path, says="that of the text is")
        other.write_text(TEXT[:60])
        self.refused(COARSE, other, "--kl", path, says="the text has")
        small = self.folder / "small.gguf"
        made.tiny_model.build("llama").write(small)
        self.refused(small, "--kl", path, says="rows of 512 logits, the model's have 300")
        made.tiny_model.build("llama", n_ctx=39).write(small)
        self.refused(small, "--kl", path, says="windows of 40 tokens are more than the context of the model, 39")


class Files(Case):
    def test_broken_files(self):
        path = self.folder / "broken.lg"
        for name, (data, says) in logits_bytes.variants().items():
            path.write_bytes(data)
            with self.subTest(name):
                self.refused(COARSE, "--kl", path, says=says or "rows of 5 logits")
        self.refused(COARSE, "--kl", self.folder / "absent.lg", says="No such file")
        self.refused(COARSE, "--kl", self.folder, says="directory")

    def test_corpus_is_up_to_date(self):
        corpus = made.ROOT / "fuzz" / "corpus" / "logits"
        for name, (data, _) in logits_bytes.variants().items():
            self.assertEqual((corpus / name).read_bytes(), data, name)

    def test_infinite_logits(self):
        self.run_program("perplexity", FINE, self.text, "--n-ctx", 40, "--save-logits", "inf.lg")
        data = bytearray((self.folder / "inf.lg").read_bytes())
        data[-4:] = b"\0\0\x80\x7f"
        (self.folder / "inf.lg").write_bytes(data)
        done = self.run_program("perplexity", FINE, "--kl", "inf.lg", status=1)
        self.assertRegex(done.stderr.decode(), r"^minfer: inf.lg: window \d+, prediction 18: a logit is infinite or NaN\n$")

    def test_texts(self):
        empty, short = self.folder / "empty.txt", self.folder / "short.txt"
        empty.write_bytes(b"")
        short.write_text("zq")
        self.refused(COARSE, empty, says="the text has no tokens")
        self.refused(COARSE, short, says="the text's tokens, 2, do not fill a window of 3")
        self.refused(COARSE, self.text, "--n-ctx", 2000, says="do not fill a window of 2000")
        self.refused(COARSE, self.folder / "absent.txt", says="absent.txt: No such file")
        self.refused(COARSE, self.text, "--n-ctx", 2, says="--n-ctx 2")
        self.refused(COARSE, self.text, "--stride", 4096, says="--stride 4096")

    def test_nothing_is_left_behind(self):
        before = sorted(p.name for p in self.folder.iterdir())
        self.refused(COARSE, self.folder / "absent.txt", "--save-logits", "new.lg", says="absent.txt")
        self.refused(COARSE, self.text, "--save-logits", self.folder, says="is a directory")
        done = self.run_program("perplexity", COARSE, self.text, "--save-logits", "/dev/full", status=1)
        self.assertIn("No space left", done.stderr.decode())
        p = subprocess.Popen([PROGRAM, "perplexity", str(COARSE), "-", "--save-logits", "new.lg"], env=ENV, stdin=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, cwd=self.folder)
        for _ in range(600):
            if any("new.lg" in q.name for q in self.folder.iterdir()):
                break
            time.sleep(0.05)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(60), 130)
        p.stdin.close()
        self.assertEqual(sorted(q.name for q in self.folder.iterdir()), before)


if __name__ == "__main__":
    unittest.main()
