#!/usr/bin/env python3
"""The files in deploy/ fit the program and the tree: what they call it with is understood, what they copy is there, and the
system's own checks of them pass, where those are installed.

    test_deploy.py PROGRAM"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from served import ROOT, Server

import made  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))


def deployed(name):
    return (ROOT / "deploy" / name).read_text()


class Deploy(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-deploy-"))
        self.addCleanup(lambda: shutil.rmtree(self.folder))
        made.scripted(["Hel", "lo"]).write(self.folder / "model.gguf")

    def serve(self, command):
        """The server, started as `command` says, but with this program and model, and at a free port."""
        args = shlex.split(command)
        self.assertEqual([pathlib.Path(args[0]).name, args[1]], ["minfer", "serve"])
        args = [a for a in args[2:] if not a.endswith(".gguf")]
        server = Server(PROGRAM, self.folder / "model.gguf", *args, "--port", 0)
        self.addCleanup(lambda: server.process.kill())
        return server

    def test_unit(self):
        text = deployed("minfer.service")
        (self.folder / "key").write_text("sesame\n")
        server = self.serve(re.search("^ExecStart=(.*)$", text, re.M).group(1).replace("${CREDENTIALS_DIRECTORY}", str(self.folder)))
        self.assertEqual(server.get("/v1/models").status, 401)
        self.assertEqual(server.get("/v1/models", headers={"Authorization": "Bearer sesame"}).status, 200)
        stop = int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M).group(1))
        drain = int(re.search(r"MINFER_DRAIN_MS=(\d+)$", text, re.M).group(1))
        grace = int(re.search(r"--drain-grace (\d+)", text).group(1))
        self.assertGreater(stop, drain / 1000 + grace + 5)

    def test_unit_is_one(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        unit = self.folder / "minfer.service"
        unit.write_text(deployed("minfer.service").replace("/usr/local/bin/minfer", PROGRAM))
        r = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_proxy(self):
        haproxy = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        if not haproxy:
            self.skipTest("haproxy is not installed")
        r = subprocess.run([haproxy, "-c", "-dW", "-f", ROOT / "deploy/haproxy.cfg"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_container(self):
        text = deployed("Containerfile")
        for source in re.findall(r"^COPY (\S+) \S+$", text, re.M):
            if not source.startswith("--from"):
                self.assertTrue((ROOT / source).exists(), source)
        built = "".join((ROOT / name).read_text() for name in ("CMakeLists.txt", "src/CMakeLists.txt", "apps/CMakeLists.txt", "bench/CMakeLists.txt"))
        for folder in re.findall(r"^add_subdirectory\((\w+)\)", built.split("if(MINFER_TESTS)")[0], re.M):
            self.assertIn(f"COPY {folder} {folder}\n", text)
        server = self.serve(shlex.join(json.loads(re.search("^ENTRYPOINT (.*)$", text, re.M).group(1))))
        self.assertEqual(server.chat().text, "Hello")


if __name__ == "__main__":
    unittest.main(verbosity=1)
