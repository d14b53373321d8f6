#!/usr/bin/env python3
"""The chat page in Chromium, driven over the WebDriver protocol: streaming, stop, markdown, no network. Skips without chromedriver.

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
import tempfile
import time
import unittest

from served import Server

if not shutil.which("chromedriver") or not (shutil.which("chromium") or shutil.which("google-chrome")):
    print("skipped: chromium and chromedriver are not installed")
    sys.exit(77)

import made  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))
PICTURES = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PIECES = ["<think>", "A greeting.", "</think>", "# He", "llo\n\n", "Some **bold** and `code`", ":\n\n", "```c\n", "int main(void)", " { return 0; }", "\n```\n",
          "\n- one\n", "- two <b>\n"]


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

    def picture(self, name):
        if PICTURES:
            (PICTURES / name).write_bytes(base64.b64decode(self.do("/screenshot", method="GET")))

    def close(self):
        self.do("", method="DELETE")
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-page-"))
        made.scripted(PIECES).write(cls.folder / "markdown.gguf")
        made.scripted(["on ", "and "], endless=True, n_ctx=1 << 20).write(cls.folder / "endless.gguf")
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

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
        self.assertEqual(b.script("return [...document.querySelectorAll('.body li')].map((e) => e.textContent.trim())"), ["one", "two <b>"])
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
