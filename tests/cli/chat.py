#!/usr/bin/env python3
"""Conversations: files that are kept, full disks, kills; and a real terminal, which tmux is.

    chat.py PROGRAM"""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import made

PROGRAM = os.path.abspath(sys.argv.pop(1))
SANITIZER = {k: os.environ[k] for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS") if k in os.environ}
SPEECH = "<think>hm</think>Hi 🦊!"
DIM, RESET = "\x1b[2m", "\x1b[0m"


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-chat-"))
        cls.names = made.write_all(cls.folder)
        made.scripted(["on ", "and "], endless=True, n_ctx=1 << 16).write(cls.folder / "endless.gguf")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="home-", dir=self.folder))
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **SANITIZER}

    def chat(self, text, *args, status=0, model="speech.gguf", **more):
        done = subprocess.run([PROGRAM, "chat", str(self.folder / model), *map(str, args)], input=text.encode(), env=self.env,
                              capture_output=True, timeout=120, cwd=self.home, **more)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def messages(self, name="s.json"):
        return [(m["role"], m["content"]) for m in json.loads((self.home / name).read_text())["messages"]]


def small_files(size):
    """For preexec_fn: no file may grow beyond size bytes, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Files(Case):
    def test_session_is_as_one_conversation(self):
        """Three runs with a file, or one run: the same answers, of a model whose answers depend on all that was said."""
        args = ("-n", 12, "--greedy", "--system", "Be brief.")
        lines = ["hello", "what is that?", "and this?"]
        whole = self.chat("\n".join(lines), *args, model=self.names["qwen2"])[0]
        parts = ""
        for line in lines:
            out, err = self.chat(line, *args, "--session", "s.json", "-v", model=self.names["qwen2"])
            parts += out
            self.assertNotIn("again", err)
        self.assertEqual(parts, whole)
        self.assertEqual(len(self.messages()), 7)
        self.assertRegex(err, r"prompt of (\d+) tokens, [1-9]\d* of them known")
        (self.home / "s.json.kv").unlink()
        self.chat("/undo", "--session", "s.json", model=self.names["qwen2"])
        out, err = self.chat(lines[2], *args, "--session", "s.json", model=self.names["qwen2"])
        self.assertTrue(whole.endswith(out))

    def test_damaged_cache(self):
        """Whatever lies beside the messages: a line that says what is wrong, and the same answer."""
        self.chat("hello", "--session", "s.json")
        kept, cache = (self.home / "s.json").read_bytes(), (self.home / "s.json.kv").read_bytes()
        rng = random.Random(3)
        flipped = bytearray(cache)
        flipped[rng.randrange(len(cache))] ^= 16
        for bad in (b"", b"MINFERKV", cache[:-1], cache + b"x", bytes(flipped), b"x" * 1000):
            (self.home / "s.json").write_bytes(kept)
            (self.home / "s.json.kv").write_bytes(bad)
            out, err = self.chat("there", "--session", "s.json")
            self.assertEqual(out, SPEECH + "\n")
            self.assertRegex(err, r"s\.json\.kv: .*; the messages will be evaluated again\n")
            self.assertEqual(len(self.messages()), 4)

    def test_foreign_cache(self):
        self.chat("hello", "--session", "s.json", "--system", "One.")
        other = self.home / "other.json"
        other.write_text('[{"role": "user", "content": "hello"}]')
        shutil.copy(self.home / "s.json.kv", self.home / "other.json.kv")
        out, err = self.chat("/regen", "--session", "other.json", "--cache-type", "f32")
        self.assertIn("other.json.kv: saved with", err)
        self.assertEqual(out, SPEECH + "\n")

    def test_messages_of_another_hand(self):
        (self.home / "s.json").write_text('[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hi."}]')
        out, err = self.chat("there", "--session", "s.json")
        self.assertEqual(out, SPEECH + "\n")
        self.assertIn("there is no s.json.kv", err)
        self.assertEqual([r for r, _ in self.messages()], ["user", "assistant"] * 2)

    def test_refused_session_is_left_alone(self):
        for text in ("", "{", "[1]", '{"messages": [{"role": "user"}]}'):
            (self.home / "s.json").write_text(text)
            _, err = self.chat("hello", "--session", "s.json", status=1)
            self.assertRegex(err, r"^minfer: s\.json: .*\n$")
            self.assertEqual((self.home / "s.json").read_text(), text)
            self.assertFalse((self.home / "s.json.kv").exists())

    def test_full_disk(self):
        """The conversation goes on, what was saved before stays, nothing half-written is left; at the end the program says so."""
        self.chat("hello", "--session", "s.json")
        before = {p.name: p.read_bytes() for p in self.home.iterdir() if p.is_file()}
        out, err = self.chat("one\ntwo\n/save x.json", "--session", "s.json", status=1, preexec_fn=small_files(64))
        self.assertEqual(out, 2 * (SPEECH + "\n"))
        self.assertEqual(err.count("the conversation is not saved: "), 2)
        self.assertIn("x.json: File too large", err)
        self.assertEqual({p.name: p.read_bytes() for p in self.home.iterdir() if p.is_file()}, before)

    def test_full_disk_for_the_cache(self):
        """The messages are small enough to be kept, keys and values are not."""
        self.chat("hello", "--session", "s.json")
        cache = (self.home / "s.json.kv").read_bytes()
        _, err = self.chat("one", "--session", "s.json", status=1, preexec_fn=small_files(1000))
        self.assertIn("s.json.kv", err)
        self.assertEqual(len(self.messages()), 4)
        self.assertEqual((self.home / "s.json.kv").read_bytes(), cache)
        self.assertEqual(sorted(p.name for p in self.home.iterdir()), ["s.json", "s.json.kv"])

    def test_kill(self):
        """Killed at any moment: the file is a conversation, as it was after some answer."""
        rng = random.Random(5)
        self.chat("hello", "--session", "s.json")
        for i in range(12):
            n = len(self.messages())
            p = subprocess.Popen([PROGRAM, "chat", str(self.folder / "speech.gguf"), "--session", "s.json", "--n-ctx", "512"], env=self.env,
                                 cwd=self.home, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            p.stdin.write(b"more\n" * 20)
            p.stdin.flush()
            if i % 2:
                p.stdin.close()
            time.sleep(rng.uniform(0, 0.25))
            p.kill()
            p.wait()
            if not i % 2:
                p.stdin.close()
            now = self.messages()
            self.assertGreaterEqual(len(now), n)
            self.assertEqual(len(now) % 2, 0)
        out, _ = self.chat("there", "--session", "s.json")
        self.assertEqual(out, SPEECH + "\n")

    def test_terminate(self):
        """SIGTERM in the middle of an answer: 143, and what was answered before is kept."""
        p = subprocess.Popen([PROGRAM, "chat", str(self.folder / "endless.gguf"), "--session", "s.json", "-n", "-1"], env=self.env,
                             cwd=self.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(b"hello\n")
        p.stdin.flush()
        p.stdout.read(100)
        p.terminate()
        out, _ = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 143)
        self.assertFalse((self.home / "s.json.kv").exists())

    def test_reader_goes_away(self):
        p = subprocess.Popen([PROGRAM, "chat", str(self.folder / "endless.gguf"), "-n", "-1"], env=self.env, cwd=self.home,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(b"hello\n")
        p.stdin.flush()
        p.stdout.read(100)
        p.stdout.close()
        self.assertEqual((p.wait(60), p.stderr.read()), (0, b""))
        p.stdin.close()
        p.stderr.close()

    def test_saved_text(self):
        self.chat('a "b"\\\n\\\nc\x00d\n/save t.json', "--system", "é")
        self.assertEqual(self.messages("t.json"), [("system", "é"), ("user", 'a "b"\n\nc\x00d'), ("assistant", SPEECH)])

    def test_thoughts(self):
        """A template that opens the thoughts and leaves them out of later turns: they are kept, and not evaluated again."""
        m = made.scripted(["hm", "</think>", b"O", b"K"])
        m.set("tokenizer.chat_template", made.STR,
              "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
              "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}")
        m.write(self.folder / "thinks.gguf")
        _, err = self.chat("hello\nthere\n/save t.json", "-v", model="thinks.gguf")
        answer = ("assistant", "<think>\nhm</think>OK")
        self.assertEqual(self.messages("t.json"), [("user", "hello"), answer, ("user", "there"), answer])
        turn = lambda role, text: f"<|im_start|>{role}\n{text}<|im_end|>\n"  # noqa: E731
        seen = turn("user", "hello") + turn("assistant", "OK") + turn("user", "there") + "<|im_start|>assistant\n<think>\n"
        ids = subprocess.run([PROGRAM, "tokenize", self.folder / "thinks.gguf", seen, "--special", "--ids"], env=self.env, capture_output=True)
        self.assertIn(f"prompt of {len(json.loads(ids.stdout))} tokens, ", err)

    def test_stop_string(self):
        """Its tokens are not part of the conversation."""
        out, _ = self.chat("hello\n/save t.json", "--stop", "🦊")
        self.assertEqual(out, "<think>hm</think>Hi \n")
        self.assertEqual(self.messages("t.json")[-1], ("assistant", "<think>hm</think>Hi "))


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Terminal(Case):
    def setUp(self):
        super().setUp()
        self.socket = self.home / "tmux"
        self.running = False

    def tearDown(self):
        if self.running:
            self.tmux("kill-server", check=False)

    def tmux(self, *args, check=True):
        done = subprocess.run(["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *map(str, args)], capture_output=True, timeout=30,
                              env=dict(self.env, LC_ALL="C.UTF-8"))
        if check and done.returncode:
            raise AssertionError(done.stderr.decode())
        return done.stdout.decode()

    def start(self, *args, model="speech.gguf", ready="\n>", **env):
        settings = [f"{k}={v}" for k, v in dict(self.env, **env).items()]
        command = ["env", "-u", "LC_ALL", "-u", "LANG", *settings, PROGRAM, "chat", self.folder / model, *args]
        words = " ".join("'%s'" % str(w) for w in command)
        self.tmux("new-session", "-d", "-x", 180, "-y", 60, f"cd '{self.home}'; {words}; echo status $?; stty -a; sleep 600")
        self.running = True
        self.wait_for(ready)

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def wait_for(self, words, times=1, seconds=150):
        end = time.monotonic() + seconds
        while self.screen().count(words) < times:
            if time.monotonic() > end:
                raise AssertionError(f"{words!r} did not come {times} times:\n{self.screen()}")
            time.sleep(0.05)

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def bytes(self, data):
        self.tmux("send-keys", "-H", *(f"{b:02x}" for b in data))

    def say(self, text):
        self.type(text)
        self.keys("Enter")

    def left(self, status=0):
        self.wait_for("extproc")  # the end of what stty says
        self.assertIn(f"status {status}\n", self.screen())
        self.assertRegex(self.screen(), r"[ ;]icanon\b")  # the terminal is as it was
        self.assertRegex(self.screen(), r"[ ;]echo\b")
        self.assertRegex(self.screen(), r"intr = \^C")

    def history(self):
        return (self.home / ".local/state/minfer/history").read_text()

    def test_conversation(self):
        self.start()
        self.assertIn("/help lists the commands, Ctrl-D leaves", self.screen())
        self.say("hello")
        self.wait_for("stopped; context 30 of 512]")
        self.wait_for("\n>", 2)
        self.assertIn(f"> hello\n{SPEECH}\n[prompt 19 tokens, ", self.screen())
        coloured = self.screen(colours=True)
        self.assertRegex(coloured, r"\x1b\[(0;)?2m<think>hm</think>\x1b\[0m")
        self.say("/undo")
        self.wait_for("the last exchange is forgotten; 0 are left")
        self.keys("C-d")
        self.left()
        self.assertEqual(self.history(), "hello\n/undo\n")

    def test_editing(self):
        """Moving about, deleting, characters of several bytes and columns, recalling lines."""
        self.start()
        self.type("żeby 🦊 wörld")
        self.keys("C-a")
        self.type("é")
        self.keys("C-e", "BSpace", "BSpace")
        self.type("ds")
        self.keys("Left", "Left", "Left", "Left", "Left", "Left", "BSpace", "BSpace")
        self.type("=")
        self.keys("Enter")
        self.wait_for(SPEECH)
        self.say("second")
        self.wait_for(SPEECH, 2)
        self.wait_for("\n>", 3)
        self.keys("Up", "Up")
        self.type("!")
        self.keys("Enter")
        self.wait_for(SPEECH, 3)
        self.say("/save t.json")
        self.wait_for("saved in t.json")
        self.say("/exit")
        self.left()
        self.assertEqual([text for role, text in self.messages("t.json") if role == "user"], ["éżeby= wörds", "second", "éżeby= wörds!"])
        self.start_again_and_recall()

    def start_again_and_recall(self):
        """The lines of the last time are there."""
        self.tmux("kill-server")
        time.sleep(0.2)
        self.start()
        self.keys("Up", "Up", "Up")
        self.wait_for("éżeby= wörds!")
        self.keys("C-u", "C-d")
        self.left()

    def test_several_lines(self):
        self.start()
        self.say("one\\")
        self.wait_for("\n.")
        self.say("two")
        self.wait_for(SPEECH)
        self.say('"""')
        self.say("three")
        self.say('four"""')
        self.wait_for(SPEECH, 2)
        self.say("/save t.json")
        self.wait_for("saved in")
        self.assertEqual([text for role, text in self.messages("t.json") if role == "user"], ["one\ntwo", "three\nfour"])

    def test_interrupt(self):
        """Ctrl-C stops the answer and keeps it; at the prompt it leaves the line, and twice the program."""
        self.start("-n", "-1", "--session", "s.json", model="endless.gguf")
        self.say("hello")
        self.wait_for("on and on and")
        self.keys("C-c")
        self.wait_for("cancelled; context")
        self.wait_for("\n>")
        self.assertEqual([r for r, _ in self.messages()], ["user", "assistant"])
        self.assertTrue(self.messages()[1][1].startswith("on and on and"))
        self.type("half a line")
        self.wait_for("half a line")
        self.keys("C-c")
        self.wait_for("Ctrl-C once more or Ctrl-D leaves")
        self.say("/undo")
        self.wait_for("is forgotten")
        self.keys("C-c")
        self.wait_for("Ctrl-C once more", 2)
        self.keys("C-c")
        self.left()
        self.assertEqual(self.messages(), [])

    def test_not_utf8(self):
        self.start()
        self.bytes(b"a\xff\xc3")
        self.keys("Enter")
        self.wait_for("the text is not UTF-8: byte 2 is 0xff")
        self.bytes("é".encode())
        self.keys("Enter")
        self.wait_for(SPEECH)
        self.keys("C-d")
        self.left()
        self.assertEqual(self.history(), "é\n")

    def test_signals_at_the_prompt(self):
        self.start()
        self.type("half")
        self.wait_for("> half")
        pid = int(subprocess.run(["pgrep", "-f", f"^{PROGRAM} chat {self.folder}/speech"], capture_output=True, check=True).stdout.split()[0])
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGCONT)
        self.tmux("resize-window", "-x", 70, "-y", 60)
        self.type(" way")
        self.wait_for("half way")
        os.kill(pid, signal.SIGTERM)
        self.left(143)

    def test_history_that_cannot_be_kept(self):
        state = self.home / "state/minfer"
        (state / "history").mkdir(parents=True)
        self.start(XDG_STATE_HOME=self.home / "state")
        self.assertIn("minfer: lines are not kept for the next time: ", self.screen())
        self.assertIn("is a directory", self.screen())
        self.say("hello")
        self.wait_for(SPEECH)
        self.keys("Up")
        self.wait_for("> hello", 2)
        self.keys("C-u", "C-d")
        self.left()

    def test_history_in_no_folder(self):
        (self.home / "file").write_text("")
        self.start(XDG_STATE_HOME=self.home / "file")
        self.say("hello")
        self.wait_for(SPEECH)
        self.wait_for("lines are not kept for the next time: ")
        self.assertIn("Not a directory", self.screen())

    def test_long_history(self):
        folder = self.home / ".local/state/minfer"
        folder.mkdir(parents=True)
        (folder / "history").write_text("".join(f"line {i}\n" for i in range(5000)))
        self.start()
        self.keys("Up")
        self.wait_for("> line 4999")
        self.assertEqual(self.history(), "".join(f"line {i}\n" for i in range(4000, 5000)))

    def test_plain_terminal(self):
        """A terminal that cannot move its cursor: lines as it hands them over, no colours; Ctrl-C at the prompt ends the program."""
        self.start(TERM="dumb")
        self.say("hello")
        self.wait_for(SPEECH)
        self.wait_for("\n>", 2)
        self.assertNotIn(DIM, self.screen(colours=True))
        self.keys("C-c")
        self.left(130)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    for case, why in result.skipped:
        print(f"SKIP {case}: {why}")
    sys.exit(0 if result.wasSuccessful() else 1)
