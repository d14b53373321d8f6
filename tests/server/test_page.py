#!/usr/bin/env python3
"""The chat page in Chromium, driven over the WebDriver protocol: streaming, stop, markdown, no network, small and dark
windows, keyboard, a server that is gone. Skips without chromedriver.

    test_page.py PROGRAM [FOLDER for pictures]"""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

from served import InFolder, Server

if not shutil.which("chromedriver") or not (shutil.which("chromium") or shutil.which("google-chrome")):
    print("skipped: chromium and chromedriver are not installed")
    sys.exit(77)

import made  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))
PICTURES = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PIECES = ["<think>", "A greeting.", "</think>", "# He", "llo\n\n", "Some **bold** and `code`", ":\n\n", "```c\n", "int main(void)", " { return 0; }", "\n```\n",
          "\n- one\n", "  1. deep\n", "- two <b>\n", "| a | b |\n|---|:-:|\n", "| 1 | `x` |\n", "> quoted\n", "> *words*\n\n", "---\n",
          "[here](https://example.org/a?b=1) and ", "[not](javascript:alert(1)) ", "a_very_long_word_" * 20, "\n\n```\n" + "wide " * 60]
NARROW = {"width": 360, "height": 640, "deviceScaleFactor": 1, "mobile": True}


class Browser:
    def __init__(self):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if m := re.search(r"successfully on port (\d+)", line):
                self.port = int(m.group(1))
                break
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1000,800", "--disable-dev-shm-usage"]}
        reply = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = "/session/" + reply["sessionId"]

    def call(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, None if body is None else json.dumps(body))
        value = json.loads(c.getresponse().read())["value"]
        c.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(value["message"])
        return value

    def do(self, path, body=None, method="POST"):
        return self.call(method, self.session + path, {} if body is None and method == "POST" else body)

    def script(self, text, *args):
        return self.do("/execute/sync", {"script": text, "args": args})

    def find(self, css):
        return self.do("/element", {"using": "css selector", "value": css})[ELEMENT]

    def type(self, css, text):
        self.do(f"/element/{self.find(css)}/value", {"text": text})

    def click(self, css):
        self.do(f"/element/{self.find(css)}/click")

    def press(self, keys):
        """Keys for what has the focus."""
        self.do("/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": way, "value": k} for k in keys for way in ("keyDown", "keyUp")]}]})

    def emulate(self, command, **params):
        self.do("/goog/cdp/execute", {"cmd": "Emulation." + command, "params": params})

    def picture(self, name):
        if PICTURES:
            (PICTURES / name).write_bytes(base64.b64decode(self.do("/screenshot", method="GET")))

    def close(self):
        self.do("", method="DELETE")
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Page(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made.scripted(PIECES).write(cls.folder / "markdown.gguf")
        made.scripted(["on ", "and "], endless=True, n_ctx=1 << 20).write(cls.folder / "endless.gguf")
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def open(self, model, *args):
        server = Server(PROGRAM, self.folder / f"{model}.gguf", *args)
        self.addCleanup(lambda: server.stop())
        self.browser.do("/url", {"url": f"http://127.0.0.1:{server.port}/"})
        self.wait("return document.getElementById('model').textContent !== 'connecting…'")
        return server

    def wait(self, script, seconds=20):
        end = time.monotonic() + seconds
        while not self.browser.script(script):
            self.assertLess(time.monotonic(), end, self.browser.script("return document.body.innerText"))
            time.sleep(0.05)

    def complaints(self):
        return [e["message"] for e in self.browser.do("/se/log", {"type": "browser"}) if e["level"] == "SEVERE"]

    def test_answer(self):
        b = self.browser
        self.open("markdown")
        self.assertEqual(b.script("return document.getElementById('model').textContent"), "markdown")
        b.type("#text", "hi\ue007")
        self.wait("return /tokens/.test((document.querySelector('.note') || {}).textContent)")
        b.picture("page.png")
        self.assertEqual(b.script("return document.querySelector('.body h3').textContent"), "Hello")
        self.assertEqual(b.script("return document.querySelector('.body strong').textContent"), "bold")
        self.assertEqual(b.script("return document.querySelector('.body p code').textContent"), "code")
        self.assertEqual(b.script("return document.querySelector('.code pre').textContent"), "int main(void) { return 0; }\n")
        self.assertEqual(b.script("return [...document.querySelectorAll('.body li')].map((e) => e.textContent.trim())"), ["one", "deep", "two <b>"])
        self.assertEqual(b.script("return [...document.querySelectorAll('.body td, .body th')].map((e) => e.tagName + e.textContent)"), ["THa", "THb", "TD1", "TDx"])
        self.assertEqual(b.script("return document.querySelector('.body blockquote em').textContent"), "words")
        self.assertEqual(b.script("return [...document.querySelectorAll('.body a')].map((e) => e.href)"), ["https://example.org/a?b=1"])
        self.assertEqual(b.script("return document.querySelectorAll('.body hr').length"), 1)
        self.assertEqual(b.script("return document.querySelectorAll('.body .code').length"), 2)
        self.assertEqual(b.script("return document.querySelector('.thoughts div').textContent"), "A greeting.")
        self.assertEqual(b.script("return performance.getEntriesByType('resource').filter((e) => !e.name.startsWith(location.origin)).length"), 0)
        self.assertEqual(self.complaints(), [])

    def test_stop(self):
        b = self.browser
        server = self.open("endless", "--n-ctx", 900000)
        b.type("#text", "go\ue007")
        self.wait("return (document.querySelector('.body') || {textContent: ''}).textContent.length > 20")
        b.click("#stop")
        self.wait("return document.querySelector('.note').textContent === 'stopped'")
        server.wait_metric("slots_busy", 0, 10)
        b.click("#new")
        self.assertEqual(b.script("return document.querySelectorAll('.turn').length"), 0)

    def broken(self):
        return self.browser.script("return [...document.querySelectorAll('.note.error')].pop()?.textContent")

    def fits(self):
        """Nothing of the page lies beyond the window's sides."""
        return self.browser.script("return document.documentElement.scrollWidth <= innerWidth && document.querySelector('main').scrollWidth <= innerWidth")

    def test_narrow_and_dark(self):
        b = self.browser
        b.emulate("setDeviceMetricsOverride", **NARROW)
        self.addCleanup(lambda: b.emulate("clearDeviceMetricsOverride"))
        self.open("markdown", "--alias", "a-model-whose-name-is-longer-than-the-window-is-wide")
        b.type("#text", "hi\ue007")
        self.wait("return /tokens/.test((document.querySelector('.note') || {}).textContent)")
        self.assertTrue(self.fits())
        b.picture("narrow.png")
        b.click("#settings summary")
        box = b.script("const r = document.querySelector('.panel').getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]")
        header = b.script("return document.querySelector('header').getBoundingClientRect().bottom")
        b.picture("narrow-settings.png")
        self.assertTrue(box[0] >= 0 and box[2] <= 360 and box[3] <= 640 and box[1] >= header - 2, (box, header))
        b.press("\ue00c")
        b.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.addCleanup(lambda: b.emulate("setEmulatedMedia", features=[]))
        b.picture("dark.png")
        back, ink = (b.script(f"return getComputedStyle(document.body).{what}") for what in ("backgroundColor", "color"))
        light = lambda color: sum(map(int, re.findall(r"\d+", color)[:3]))  # noqa: E731
        self.assertTrue(light(back) < 150 and light(ink) > 550, (back, ink))

    def test_long_conversation(self):
        """The newest line stays in view, unless its reader has scrolled up."""
        b = self.browser
        self.open("endless", "--n-ctx", 900000)
        low = "const log = document.getElementById('log'); return log.scrollHeight - log.scrollTop - log.clientHeight < 40 && log.scrollHeight > 3 * log.clientHeight"
        b.type("#text", "go\ue007")
        self.wait(low)
        b.script("document.getElementById('log').scrollTop = 0")
        n = b.script("return document.querySelector('.body').textContent.length")
        self.wait(f"return document.querySelector('.body').textContent.length > {n} + 500")
        self.assertEqual(b.script("return document.getElementById('log').scrollTop"), 0)
        b.press("\ue00c")
        self.wait("return document.querySelector('.note').textContent === 'stopped'")
        b.type("#text", "go on\ue007")
        self.wait("return document.querySelectorAll('.user').length === 2")
        self.wait("const log = document.getElementById('log'); return log.scrollHeight - log.scrollTop - log.clientHeight < 40")
        b.picture("long.png")
        b.click("#stop")

    def test_keyboard(self):
        b = self.browser
        server = self.open("endless", "--n-ctx", 900000)
        self.assertEqual(b.script("return document.activeElement.id"), "text")
        b.press("a")
        b.do("/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": way, "value": k} for way, k in (("keyDown", "\ue008"), ("keyDown", "\ue007"), ("keyUp", "\ue007"), ("keyUp", "\ue008"))]}]})
        b.press("b\ue007")
        self.assertEqual(b.script("return document.querySelector('.user').textContent"), "a\nb")
        self.wait("return (document.querySelector('.body') || {textContent: ''}).textContent.length > 20")
        b.press("c\ue007")  # while an answer comes, what is typed stays
        self.assertEqual(b.script("return document.getElementById('text').value"), "c")
        b.press("\ue00c")
        self.wait("return document.querySelector('.note').textContent === 'stopped'")
        server.wait_metric("slots_busy", 0, 10)
        b.script("document.querySelector('#settings summary').focus()")
        b.press("\ue007")
        self.assertTrue(b.script("return document.getElementById('settings').open"))
        b.press("\ue004\ue004.5\ue00c")
        self.assertEqual(b.script("return [document.getElementById('settings').open, document.getElementById('temperature').value, document.activeElement.id]"), [False, ".5", "text"])

    def test_server_that_goes(self):
        """In the middle of an answer, and before the next question, which can be sent again."""
        b = self.browser
        server = self.open("endless", "--n-ctx", 900000)
        b.type("#text", "go\ue007")
        self.wait("return (document.querySelector('.body') || {textContent: ''}).textContent.length > 20")
        server.process.kill()
        server.process.wait()
        self.wait("return document.querySelectorAll('.note.error').length === 1")
        self.assertEqual(self.broken(), "the connection broke off")
        self.assertGreater(b.script("return document.querySelector('.body').textContent.length"), 20)
        b.type("#text", "again\ue007")
        self.wait("return document.querySelectorAll('.note.error').length === 2")
        self.assertEqual(self.broken(), "the server does not answer")
        self.assertEqual(b.script("return document.getElementById('text').value"), "again")
        self.assertFalse(b.script("return document.getElementById('send').hidden"))
        b.picture("gone.png")
        self.complaints()  # Chromium tells of connections that fail

    def test_error(self):
        b = self.browser
        self.open("markdown", "--n-ctx", 64)
        b.type("#text", "word " * 60 + "\ue007")
        self.wait("return document.querySelectorAll('.note.error').length === 1")
        self.assertIn("context of 64 tokens", self.broken())
        self.complaints()

    def test_key(self):
        b = self.browser
        self.open("markdown", "--api-key", "sesame")
        self.assertIn("API key", b.script("return document.getElementById('model').textContent"))
        b.click("#settings summary")
        b.type("#key", "sesame\ue004")
        self.wait("return document.getElementById('model').textContent === 'markdown'")
        b.picture("settings.png")


if __name__ == "__main__":
    unittest.main(verbosity=1)
