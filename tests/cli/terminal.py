#!/usr/bin/env python3
"""The program on a terminal: a pseudo-terminal whose both ends are here.

    terminal.py PROGRAM"""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import made

PROGRAM = os.path.abspath(sys.argv.pop(1))
DIM, RESET = "\x1b[2m", "\x1b[0m"
BAR = r"\rloading \[[#-]{30}\] +\d+ %"


class Terminal:
    """A running program with the named descriptors on a terminal; the others go to pipes."""

    def __init__(self, args, env, on=(0, 1, 2)):
        self.master, slave = pty.openpty()
        pipe = lambda fd: slave if fd in on else subprocess.PIPE  # noqa: E731
        self.p = subprocess.Popen([PROGRAM, *map(str, args)], stdin=pipe(0) if 0 in on else subprocess.DEVNULL, stdout=pipe(1), stderr=pipe(2),
                                  env=env, start_new_session=True, preexec_fn=lambda: os.close(self.master))
        os.close(slave)
        self.seen = ""

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def wait_for(self, words, seconds=60):
        end = time.monotonic() + seconds
        while words not in self.seen:
            if time.monotonic() > end or (not self.read(1) and self.p.poll() is not None):
                raise AssertionError(f"{words!r} did not come; seen: {self.seen!r}")

    def say(self, text):
        os.write(self.master, text.encode())

    def finish(self):
        while self.read(60):
            pass
        status = self.p.wait(60)
        os.close(self.master)
        for f in (self.p.stdout, self.p.stderr):
            if f:
                f.close()
        return status


class OnTerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-terminal-"))
        cls.names = made.write_all(cls.folder)
        cls.env = {"PATH": os.environ["PATH"], "HOME": str(cls.folder), "TERM": "xterm"}
        cls.speech = cls.names["speech.gguf"]
        made.scripted(["<think>", "on ", "and "], endless=True, n_ctx=1 << 20).write(cls.folder / "endless.gguf")
        made.scripted(["Hi\n"]).write(cls.folder / "line.gguf")
        opened = made.scripted(["hm", "</think>", "Hi"])
        opened.set("tokenizer.chat_template", made.STR, "{{ messages[0].content + '<think>\\n' }}")
        opened.write(cls.folder / "opened.gguf")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def start(self, *args, on=(0, 1, 2), **env):
        return Terminal(args, dict(self.env, **env), on)

    def closing(self, text):
        return re.search(r"\[prompt 19 tokens, [\d.]+ tokens/s; answer 11 tokens, [\d.]+ tokens/s; stopped; seed \d+\]\r\n", text)

    def test_answer(self):
        t = self.start("run", self.speech, "hello")
        self.assertEqual(t.finish(), 0)
        self.assertRegex(t.seen, BAR)
        bar_end = t.seen.rindex("\r\x1b[K")
        self.assertNotRegex(t.seen[bar_end:], BAR)
        self.assertIn(f"\r\x1b[K{DIM}<think>hm</think>{RESET}Hi 🦊!\r\n[prompt", t.seen)
        self.assertTrue(self.closing(t.seen), t.seen)

    def test_prompt_is_asked_for(self):
        t = self.start("run", self.speech)
        t.wait_for("> ")
        self.assertNotIn("loading", t.seen)
        t.say("hello\n")
        self.assertEqual(t.finish(), 0)
        self.assertTrue(self.closing(t.seen), t.seen)

    def test_end_of_input(self):
        t = self.start("run", self.speech)
        t.wait_for("> ")
        t.say("\x04")
        self.assertEqual(t.finish(), 1)
        self.assertIn("minfer: the prompt is empty", t.seen)

    def test_no_second_line_end(self):
        t = self.start("run", self.folder / "line.gguf", "hello")
        self.assertEqual(t.finish(), 0)
        self.assertIn("Hi\r\n[prompt", t.seen)

    def test_thoughts_that_the_prompt_opens(self):
        t = self.start("run", self.folder / "opened.gguf", "hello")
        self.assertEqual(t.finish(), 0)
        self.assertIn(f"{DIM}hm</think>{RESET}Hi", t.seen)

    def test_ids_have_no_colour(self):
        t = self.start("run", self.speech, "hello", "--ids")
        self.assertEqual(t.finish(), 0)
        self.assertIn("[300,301,302,303,32,240,159,166,138,33,299]\r\n[prompt", t.seen)
        self.assertNotIn(DIM, t.seen)

    def test_plain(self):
        for env, args in (({"NO_COLOR": "1"}, ()), ({"TERM": "dumb"}, ()), ({"TERM": ""}, ()), ({}, ("--color", "off"))):
            t = self.start("run", self.speech, "hello", *args, **env)
            self.assertEqual(t.finish(), 0)
            self.assertNotIn(DIM, t.seen)
            self.assertIn("<think>hm</think>Hi", t.seen)

    def test_output_to_a_pipe(self):
        """Text as it is on the pipe; bar and closing line on the terminal."""
        t = self.start("run", self.speech, "hello", on=(0, 2))
        text = t.p.stdout.read()
        self.assertEqual(t.finish(), 0)
        self.assertEqual(text.decode(), "<think>hm</think>Hi 🦊!")
        self.assertRegex(t.seen, BAR)
        self.assertTrue(self.closing(t.seen))

    def test_notes_to_a_pipe(self):
        t = self.start("run", self.speech, "hello", on=(0, 1))
        err = t.p.stderr.read()
        self.assertEqual(t.finish(), 0)
        self.assertEqual(err, b"")
        self.assertEqual(t.seen, f"{DIM}<think>hm</think>{RESET}Hi 🦊!\r\n")

    def test_failure_wipes_the_bar(self):
        t = self.start("run", self.names["cut-data.gguf"], "hello")
        self.assertEqual(t.finish(), 1)
        self.assertRegex(t.seen, r"\r\x1b\[Kminfer: .*cut-data")

    def test_interrupt(self):
        """Ctrl-C in the middle of an answer: 130, and the terminal is as before."""
        t = self.start("run", self.folder / "endless.gguf", "hello", "-n", "-1", "--n-ctx", 1 << 20)
        t.wait_for("on and ")
        os.killpg(t.p.pid, signal.SIGINT)
        self.assertEqual(t.finish(), 130)
        self.assertIn(DIM, t.seen)
        self.assertTrue(t.seen.endswith(f"{RESET}\r\n"), t.seen[-40:])

    def test_interrupt_at_the_prompt(self):
        t = self.start("run", self.speech)
        t.wait_for("> ")
        os.killpg(t.p.pid, signal.SIGINT)
        self.assertEqual(t.finish(), 130)
        self.assertNotIn(RESET, t.seen)

    def test_terminate(self):
        t = self.start("run", self.folder / "endless.gguf", "hello", "-n", "-1", "--n-ctx", 1 << 20)
        t.wait_for("on and ")
        t.p.terminate()
        self.assertEqual(t.finish(), 143)
        self.assertTrue(t.seen.endswith(f"{RESET}\r\n"))

    def test_interrupt_on_a_pipe(self):
        """Nothing but text has reached the pipe."""
        t = self.start("run", self.folder / "endless.gguf", "hello", "-n", "-1", "--n-ctx", 1 << 20, on=())
        head = t.p.stdout.read(20)
        t.p.send_signal(signal.SIGINT)
        rest, err = t.p.stdout.read(), t.p.stderr.read()
        self.assertEqual(t.finish(), 130)
        self.assertEqual((head, err), (b"<think>on and <think", b""))
        self.assertNotIn(b"\x1b", rest)

    def test_binary_is_not_for_terminals(self):
        t = self.start("logits", self.names["llama"], "--tokens", "1", "-o", "-")
        self.assertEqual(t.finish(), 2)
        self.assertEqual(t.seen, "minfer: -o -: stdout is a terminal, and logits are binary\r\n")


if __name__ == "__main__":
    unittest.main()
