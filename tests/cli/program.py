#!/usr/bin/env python3
"""What transcripts cannot say: binary output, closed and full outputs, files that appear whole or not at all, randomness.

    program.py PROGRAM"""
import array
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import made

PROGRAM = os.path.abspath(sys.argv.pop(1))
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("MINFER_", "NO_COLOR"))}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-program-"))
        cls.names = made.write_all(cls.folder)
        cls.env = dict(ENV, HOME=str(cls.names["home"]))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_program(self, *args, status=0, **more):
        env = dict(self.env, **more.pop("env", {}))
        more.setdefault("stdin", subprocess.DEVNULL)
        if "input" in more:
            del more["stdin"]
        if "stdout" not in more:
            more.update(stdout=subprocess.PIPE)
        done = subprocess.run([PROGRAM, *map(str, args)], env=env, stderr=subprocess.PIPE, timeout=120, cwd=self.folder, **more)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done

    def file(self, name):
        return self.names[name]


class Streams(Case):
    def test_reader_goes_away(self):
        """The program stops, without a word and with status 0."""
        for args in (("run", self.file("speech.gguf"), "hi", "--ignore-eos", "-n", "400"), ("info", self.file("llama"), "--json", "-v"),
                     ("logits", self.file("llama"), "--tokens", ",".join(["1"] * 300), "-o", "-"), ("run", "-h"), ("env",)):
            with self.subTest(args=args[0]):
                p = subprocess.Popen([PROGRAM, *map(str, args)], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     stdin=subprocess.DEVNULL)
                p.stdout.close()
                err = p.stderr.read()
                p.stderr.close()
                self.assertEqual((p.wait(60), err), (0, b""))

    def test_head(self):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", f'"{PROGRAM}" info "{self.file("llama")}" --tensors | head -1'],
                              env=self.env, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout.startswith(b"file "))

    def test_full_device(self):
        for args in (("run", self.file("speech.gguf"), "hi"), ("run", self.file("speech.gguf"), "hi", "--ids"), ("-h",), ("env",),
                     ("info", self.file("llama")), ("tokenize", self.file("llama"), "a"), ("bench", self.file("llama"), "-p", 2, "-n", 0),
                     ("logits", self.file("llama"), "--tokens", 1, "-o", "-"), ("logits", self.file("llama"), "--tokens", 1, "-o", "/dev/full"),
                     ("template", self.file("llama"), "--messages", self.file("chat.json")),
                     ("run", self.file("llama"), "--dump-graph", "-")):
            with self.subTest(args=args[0]), open("/dev/full", "wb") as full:
                done = self.run_program(*args, status=1, stdout=full)
                self.assertRegex(done.stderr.decode(), r"^minfer: (stdout|/dev/full): No space left on device\n$")

    def closed(self, fd, *args):
        return subprocess.run([PROGRAM, *map(str, args)], env=self.env, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(fd),
                              stdin=None if fd == 0 else subprocess.DEVNULL, timeout=60)

    def test_closed_stdout(self):
        done = self.closed(1, "run", self.file("speech.gguf"), "hi")
        self.assertEqual((done.returncode, done.stderr), (1, b"minfer: stdout: Bad file descriptor\n"))

    def test_closed_stdin(self):
        done = self.closed(0, "run", self.file("speech.gguf"))
        self.assertEqual((done.returncode, done.stderr), (1, b"minfer: stdin: Bad file descriptor\n"))

    def test_output_file_never_takes_the_place_of_stdout(self):
        """With stdout closed, the file for logits must not become descriptor 1."""
        out = self.folder / "closed.f32"
        done = self.closed(1, "logits", self.file("llama"), "--tokens", "1,2", "-o", out, "-v")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(out.stat().st_size, 2 * 512 * 4)

    def test_text_comes_piece_by_piece(self):
        """Characters whole, each as soon as it is certain: reading slowly sees more than one write."""
        p = subprocess.Popen([PROGRAM, "run", str(self.file("speech.gguf")), "hi"], env=self.env, stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL)
        with p.stdout:
            text = b""
            for piece in iter(lambda: os.read(p.stdout.fileno(), 1), b""):
                text += piece
        self.assertEqual(p.wait(60), 0)
        self.assertEqual(text.decode(), "<think>hm</think>Hi 🦊!")

    def test_nul_and_broken_utf8_in_the_prompt(self):
        """What follows a NUL counts; broken bytes do no harm."""
        short = self.run_program("run", self.file("llama"), "-n", 0, "-v", input=b"one").stderr
        long = self.run_program("run", self.file("llama"), "-n", 0, "-v", input=b"one\0two three").stderr
        count = lambda err: int(err.split(b"[prompt ")[1].split()[0])  # noqa: E731
        self.assertGreater(count(long), count(short))
        self.run_program("run", self.file("llama"), "-n", 1, "--greedy", input=b"\xff\xfe\xc0\xaf\xed\xa0\x80x")


class Logits(Case):
    def logits(self, *args, out="l.f32", **more):
        self.run_program("logits", self.file("llama"), "-o", self.folder / out, *args, **more)
        return (self.folder / out).read_bytes()

    def test_against_the_oracle(self):
        index = json.loads((made.TINY / "index.json").read_text())
        for model in index["models"]:
            name = model["model"]
            if not (made.TINY / name).exists():
                continue
            rows = array.array("f", (made.TINY / name.replace(".gguf", ".logits.f32")).read_bytes())
            run = model["runs"][2]
            tokens, n = run["tokens"], index["vocab"]
            self.run_program("logits", made.TINY / name, "--tokens", ",".join(map(str, tokens)), "-o", self.folder / "o.f32")
            got = array.array("f", (self.folder / "o.f32").read_bytes())
            self.assertEqual(len(got), len(tokens) * n)
            for k, pos in enumerate(run["positions"]):
                want = rows[(run["logits_at"] + k) * n:][:n]
                rms = (sum((a - b) ** 2 for a, b in zip(want, got[pos * n:(pos + 1) * n])) / n) ** 0.5
                self.assertLess(rms / model["rms_logit"], 0.05, f"{name} position {pos}")

    def test_same_bits(self):
        """Whatever the batch, the threads, the tier, and how the rows are asked for."""
        tokens = ",".join(str(i * 37 % 512) for i in range(70))
        want = self.logits("--tokens", tokens)
        self.assertEqual(len(want), 70 * 512 * 4)
        for args in (("--n-batch", 1), ("--n-batch", 7), ("-t", 1), ("--cpu-tier", "scalar"), ("--n-ctx", 8)):
            self.assertEqual(self.logits("--tokens", tokens, *args), want, args)
        self.assertEqual(self.logits("--tokens", tokens, "--last"), want[-512 * 4:])
        self.assertEqual(self.run_program("logits", self.file("llama"), "--tokens", tokens, "-o", "-").stdout, want)

    def test_text(self):
        ids = self.run_program("tokenize", self.file("llama"), "the cat", "--ids").stdout.decode().strip()
        want = self.logits("--tokens", ids)
        self.assertEqual(self.logits("--text", "the cat"), want)
        (self.folder / "cat.txt").write_text("the cat")
        self.assertEqual(self.logits("-f", self.folder / "cat.txt"), want)
        self.assertEqual(self.logits("-f", "-", input=b"the cat"), want)
        self.assertEqual(len(self.logits("--text", "<|im_end|>", "--special")), 512 * 4)

    def left_behind(self):
        return [p.name for p in self.folder.iterdir() if ".f32" in p.name]

    def test_files(self):
        before = self.left_behind()
        new = self.folder / "new.f32"
        for args, words in ((("--tokens", "1,600"), "token 600"), (("--text", ""), "no tokens"), (("--tokens", ",".join(["1"] * 2049)), "2049")):
            done = self.run_program("logits", self.file("llama"), *args, "-o", new, status=1)
            self.assertIn(words, done.stderr.decode())
        self.assertIn("is a directory", self.run_program("logits", self.file("llama"), "--tokens", 1, "-o", self.file("folder"), status=1).stderr.decode())
        self.assertIn("No such file", self.run_program("logits", self.file("llama"), "--tokens", 1, "-o", self.folder / "no/where", status=1).stderr.decode())
        self.assertIn("No such file", self.run_program("logits", self.file("llama"), "--tokens", 1, "-o", "", status=1).stderr.decode())
        self.assertEqual(self.left_behind(), before)
        self.logits("--tokens", "1", out="old.f32")
        link = self.folder / "link.f32"
        link.symlink_to("old.f32")
        os.umask(0o027)
        self.logits("--tokens", "1,2", out="link.f32")
        self.assertTrue(link.is_symlink())
        self.assertEqual((self.folder / "old.f32").stat().st_size, 2 * 512 * 4)
        self.assertEqual((self.folder / "old.f32").stat().st_mode & 0o777, 0o640)
        self.run_program("logits", self.file("llama"), "--tokens", 1, "-o", "/dev/null")

    def test_failed_run_keeps_the_old_file(self):
        old = self.folder / "kept.f32"
        old.write_bytes(b"old")
        self.run_program("logits", self.file("llama"), "--tokens", 9999, "-o", old, status=1)
        self.assertEqual(old.read_bytes(), b"old")

    def test_interrupted(self):
        """A signal leaves no unfinished file. The input is a pipe that says nothing, so the program surely waits."""
        out = self.folder / "stopped.f32"
        p = subprocess.Popen([PROGRAM, "logits", str(self.file("llama")), "-f", "-", "-o", str(out)], env=self.env, stdin=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        waiting = lambda: any(".f32." in n and n.startswith("stopped") for n in os.listdir(self.folder))  # noqa: E731
        for _ in range(600):
            if waiting():
                break
            time.sleep(0.05)
        self.assertTrue(waiting())
        p.send_signal(2)
        self.assertEqual(p.wait(60), 130)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("stopped")], [])
        p.stdin.close()
        p.stderr.close()


class Graphs(Case):
    def test_dot(self):
        for args in (("hello",), ()):
            done = self.run_program("run", self.file("llama"), *args, "--dump-graph", self.folder / "g.dot")
            self.assertEqual((done.stdout, done.stderr), (b"", b""))
            text = (self.folder / "g.dot").read_text()
            self.assertTrue(text.startswith("digraph "))
            self.assertEqual("tail_ids" in text, bool(args))
            if shutil.which("dot"):
                subprocess.run(["dot", "-Tsvg", "-o", os.devnull, self.folder / "g.dot"], check=True, timeout=60)

    def test_json(self):
        kinds = []
        for args in (("hello",), ("--tokens", "1,2,3"), ("--tokens", "1"), ()):
            self.run_program("run", self.file("llama"), *args, "--dump-graph-json", self.folder / "g.json")
            graph = json.loads((self.folder / "g.json").read_text())
            self.assertEqual((graph["format"], graph["version"]), ("minfer-graph", 1))
            kinds.append(graph["kind"])
        self.assertEqual(kinds, ["prefill", "prefill", "decode", "decode"])

    def test_both(self):
        done = self.run_program("run", self.file("llama"), "--dump-graph", self.folder / "a.dot", "--dump-graph-json", "-")
        self.assertEqual(json.loads(done.stdout)["model"], "tiny llama")
        self.assertTrue((self.folder / "a.dot").exists())

    def test_larger_prompt_than_a_batch(self):
        done = self.run_program("run", self.file("llama"), "--tokens", ",".join(["5"] * 30), "--n-batch", 8, "--dump-graph-json", "-")
        nodes = json.loads(done.stdout)["nodes"]
        self.assertEqual(nodes[0]["shape"][0], 8)


class Describing(Case):
    def test_info(self):
        info = json.loads(self.run_program("info", self.file("plain.gguf"), "--json", "--tensors").stdout)
        self.assertEqual(len(info["tensors"]), 27)
        self.assertEqual(info["types"], {"F32": {"tensors": 27, "bytes": sum(t["bytes"] for t in info["tensors"])}})
        embd = next(t for t in info["tensors"] if t["name"] == "token_embd.weight")
        self.assertEqual((embd["shape"], embd["bytes"]), ([64, 300], 64 * 300 * 4))
        self.assertEqual(info["metadata"]["qwen2.attention.layer_norm_rms_epsilon"], 1e-6)
        self.assertIs(info["metadata"]["tokenizer.ggml.add_bos_token"], False)
        whole = json.loads(self.run_program("info", self.file("plain.gguf"), "--json", "-v").stdout)
        self.assertEqual(len(whole["metadata"]["tokenizer.ggml.tokens"]), 300)

    def test_strange_metadata(self):
        """Controls and broken UTF-8 of a file reach neither the terminal nor the JSON as they are."""
        m = made.tiny_model.build("llama")
        m.set("general.name", made.STR, b"a\x1b[31m\xff\n")
        m.set("x.nan", made.F32T, float("nan"))
        m.set("x.big", made.U64T, 2 ** 64 - 1)
        m.write(self.folder / "strange.gguf")
        text = self.run_program("info", self.folder / "strange.gguf").stdout
        self.assertNotIn(b"\x1b", text)
        self.assertIn(rb"a\x1B[31m\xFF\n", text)
        self.assertIn(b"x.big = 18446744073709551615", text)
        info = json.loads(self.run_program("info", self.folder / "strange.gguf", "--json").stdout)
        self.assertEqual(info["name"], "a\x1b[31m\ufffd\n")
        self.assertIsNone(info["metadata"]["x.nan"])
        self.assertAlmostEqual(info["metadata"]["x.big"] / 2.0 ** 64, 1)

    def test_bench_work(self):
        """Bytes and products of the tests, from the tensors as `info` lists them and the positions of tokens."""
        for name, cache in (("llama", "f16"), ("plain.gguf", "f32")):  # tied, and with an output matrix of its own
            info = json.loads(self.run_program("info", self.file(name), "--json", "--tensors").stdout)
            tensors = {t["name"]: t for t in info["tensors"]}
            tied = "output.weight" not in tensors
            embd = tensors["token_embd.weight"]
            weights = sum(t["bytes"] for t in tensors.values()) - (0 if tied else embd["bytes"]) + embd["bytes"] // embd["shape"][1]
            meta, arch = info["metadata"], info["architecture"]
            heads = meta[f"{arch}.attention.head_count_kv"]
            width = meta.get(f"{arch}.attention.key_length", meta[f"{arch}.embedding_length"] // meta[f"{arch}.attention.head_count"])
            layers = meta[f"{arch}.block_count"]
            cell = 2 * layers * heads * width * {"f16": 2, "f32": 4}[cache]
            out = embd if tied else tensors["output.weight"]
            once = [out["name"]] + [f"blk.{layers - 1}.ffn_{k}.weight" for k in ("gate", "up", "down")]
            size = lambda t: t["shape"][0] * t["shape"][1]  # noqa: E731
            matrices = [t for t in tensors.values() if len(t["shape"]) == 2 and (tied or t is not embd)]
            rows = json.loads(self.run_program("bench", self.file(name), "-p", 6, "-n", 5, "-d", "0,30", "-r", 2, "-o", "json",
                                               "--cache-type", cache).stdout)
            self.assertEqual([(r["test"], r["depth"]) for r in rows], [("pp6", 0), ("tg5", 0), ("pp6@30", 30), ("tg5@30", 30)])
            for r in rows:
                rate = r["avg_ts"]
                self.assertGreater(r["read_gb_s"], 0)
                if r["n_gen"]:
                    cells = sum(r["depth"] + i + 1 for i in range(5)) / 5
                    self.assertAlmostEqual(r["gb_s"] / (rate * (weights + cells * cell) * 1e-9), 1, 9)
                    self.assertIsNone(r["gmac_s"])
                else:
                    products = sum(size(t) * (1 if t["name"] in once else 6) for t in matrices) / 6
                    self.assertAlmostEqual(r["gmac_s"] / (rate * products * 1e-9), 1, 9)
                    self.assertIsNone(r["gb_s"])

    def test_bench_depth_changes_nothing_but_time(self):
        """A context that holds what a test needs is kept, one that is longer cut: every order of depths works."""
        for depths in ("0,9,3", "9,9,0", "1500,2"):
            rows = json.loads(self.run_program("bench", self.file("llama"), "-p", 4, "-n", 3, "-d", depths, "-r", 2, "-o", "json").stdout)
            self.assertEqual([r["depth"] for r in rows], [d for d in map(int, depths.split(",")) for _ in range(2)])

    def test_bench_json(self):
        rows = json.loads(self.run_program("bench", self.file("llama"), "-p", "4,8", "-n", 3, "-r", 4, "-o", "json").stdout)
        self.assertEqual([(r["n_prompt"], r["n_gen"], r["depth"]) for r in rows], [(4, 0, 0), (8, 0, 0), (0, 3, 0)])
        for r in rows:
            self.assertEqual(len(r["samples_ts"]), 4)
            mean = sum(r["samples_ts"]) / 4
            sd = (sum((x - mean) ** 2 for x in r["samples_ts"]) / 3) ** 0.5
            self.assertAlmostEqual(r["avg_ts"] / mean, 1, 6)
            self.assertAlmostEqual(r["stddev_ts"], sd, delta=1e-6 * mean)


class Sampling(Case):
    def ids(self, model, *args):
        return json.loads(self.run_program("run", model, "--tokens", "1,2,3", "--ids", *args).stdout)

    def test_seeds_differ_by_themselves(self):
        runs = {tuple(self.ids(self.file("llama"), "-n", 40, "--temp", 3, "--top-k", 0, "--top-p", 1)) for _ in range(3)}
        self.assertEqual(len(runs), 3)

    def test_reported_seed_gives_the_text_again(self):
        args = ("run", self.file("llama"), "--tokens", "1,2,3", "-n", 30, "--temp", 2, "--top-k", 0, "--ids", "-v")
        first = self.run_program(*args)
        seed = first.stderr.decode().rsplit("seed ", 1)[1].split("]")[0]
        self.assertEqual(self.run_program(*args, "--seed", seed).stdout, first.stdout)

    def test_recommended_values(self):
        """A file's temperature 0 counts where the user gave none, and not where one is given."""
        m = made.tiny_model.build("llama")
        m.set("general.sampling.temp", made.F32T, 0.0)
        m.set("general.sampling.penalty_repeat", made.F32T, 1.0)
        m.write(self.folder / "cool.gguf")
        greedy = self.ids(self.folder / "cool.gguf", "-n", 20, "--greedy")
        self.assertEqual(self.ids(self.folder / "cool.gguf", "-n", 20), greedy)
        self.assertNotEqual(self.ids(self.folder / "cool.gguf", "-n", 20, "--temp", 3, "--top-k", 0, "--seed", 1), greedy)
        m.set("general.sampling.temp", made.F32T, -1.0)
        m.write(self.folder / "wrong.gguf")
        done = self.run_program("run", self.folder / "wrong.gguf", "hi", status=1)
        self.assertIn("general.sampling.temp", done.stderr.decode())

    def test_greedy_continuation_of_the_oracle(self):
        index = json.loads((made.TINY / "index.json").read_text())
        for model in index["models"]:
            if not (made.TINY / model["model"]).exists():
                continue
            g = model["greedy"]
            margin = 0.1 * model["rms_logit"]  # of quantized weights: what a token has to lead by to be sure
            sure = next((i for i, gap in enumerate(g["gap_to_second"]) if gap < margin), len(g["gap_to_second"]))
            got = json.loads(self.run_program("run", made.TINY / model["model"], "--tokens", ",".join(map(str, g["prompt"])), "--ids",
                                              "--greedy", "--ignore-eos", "-n", len(g["continuation"])).stdout)
            self.assertEqual(got[:sure], g["continuation"][:sure], model["model"])
            self.assertEqual(len(got), len(g["continuation"]))


if __name__ == "__main__":
    unittest.main()
