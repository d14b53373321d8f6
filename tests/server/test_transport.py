#!/usr/bin/env python3
"""The server's transport: states, methods, keys, origins, limits, clients that misbehave, and the end.

    test_transport.py PROGRAM"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from served import InFolder, Server, read_stream

import made  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv.pop(1))


class Folder(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.speech = cls.folder / "speech.gguf"
        made.scripted(made.SPEECH).write(cls.speech)
        cls.endless = cls.folder / "endless.gguf"
        made.scripted(["on ", "and "], endless=True, n_ctx=1 << 20).write(cls.endless)

    def serve(self, model, *args, **more):
        server = Server(PROGRAM, model, *args, **more)
        self.addCleanup(lambda: server.stop())
        return server


class Answers(Folder):
    def setUp(self):
        self.server = self.serve(self.speech, "--api-key", "first", "--api-key", "second", "--cors", "http://x.test")
        self.key = {"Authorization": "Bearer second"}

    def test_keys(self):
        s, body = self.server, {"messages": [{"role": "user", "content": "hi"}]}
        for headers, status in (({}, 401), ({"Authorization": "Bearer wrong!"}, 401), ({"Authorization": "Bearer firs"}, 401),
                                ({"Authorization": "Bearer firstfirst"}, 401), ({"Authorization": "Bearer "}, 401),
                                ({"Authorization": "Basic second"}, 401), ({"X-Api-Key": "nope"}, 401),
                                ({"Authorization": "bearer first"}, 200), ({"X-Api-Key": "second"}, 200), (self.key, 200)):
            r = s.post("/v1/chat/completions", body, headers=headers)
            self.assertEqual(r.status, status, headers)
            if status == 401:
                self.assertEqual(r.headers["Content-Type"], "application/json")
                self.assertEqual(r.error["code"], "invalid_api_key")
        for path, status in (("/health", 200), ("/", 200), ("/page.js", 200), ("/page.css", 200), ("/v1/models", 401), ("/metrics", 401)):
            self.assertEqual(s.get(path).status, status, path)
        models = s.get("/v1/models", headers=self.key).json["data"]
        self.assertEqual([m["id"] for m in models], ["speech"])
        self.assertEqual(s.get("/v1/models/speech", headers=self.key).json, models[0])
        self.assertEqual(s.get("/v1/models/speech").status, 401)

    def test_keys_of_a_file(self):
        keys = self.folder / "keys"
        keys.write_text("one\r\n\ntwo words\n")
        s = self.serve(self.speech, "--api-key", "three", "--api-key-file", keys)
        for key, status in (("one", 200), ("two words", 200), ("three", 200), ("two", 401), ("", 401)):
            self.assertEqual(s.get("/v1/models", headers={"X-Api-Key": key}).status, status, key)

    def test_paths_and_methods(self):
        s = self.server
        for method, path, status, allow in (("GET", "/nope", 404, None), ("POST", "/v1/chat/completions/", 404, None),
                                            ("PUT", "/v1/models", 405, "GET, HEAD"), ("GET", "/v1/chat/completions", 405, "POST"),
                                            ("DELETE", "/tokenize", 405, "POST"), ("POST", "/health", 405, "GET, HEAD"),
                                            ("HEAD", "/health", 200, None), ("PATCH", "/", 405, "GET, HEAD"),
                                            ("GET", "/v1/models/speech", 200, None), ("GET", "/v1/models/speec", 404, None),
                                            ("GET", "/v1/models/", 404, None), ("GET", "/v1/models/speech%00", 404, None),
                                            ("GET", "/health%00x", 404, None), ("GET", "/h%65alth", 200, None),
                                            ("DELETE", "/v1/models/speech", 405, "GET, HEAD"), ("GET", "/v1/modelsspeech", 404, None)):
            r = s.request(method, path, headers=self.key)
            self.assertEqual((r.status, r.headers["Allow"]), (status, allow), (method, path))
            if status >= 400 and method != "HEAD":
                self.assertEqual(r.headers["Content-Type"], "application/json")
                self.assertLessEqual({"message", "type", "param", "code"}, r.error.keys())

    def test_origins(self):
        s = self.server
        asked = {"Origin": "http://x.test", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os"}
        r = s.request("OPTIONS", "/v1/chat/completions", headers=asked)
        self.assertEqual((r.status, r.body), (204, b""))
        self.assertEqual(r.headers["Access-Control-Allow-Origin"], "http://x.test")
        self.assertEqual(r.headers["Access-Control-Allow-Headers"], asked["Access-Control-Request-Headers"])
        self.assertIn("POST", r.headers["Access-Control-Allow-Methods"])
        other = s.request("OPTIONS", "/v1/chat/completions", headers={**asked, "Origin": "http://y.test"})
        self.assertIsNone(other.headers["Access-Control-Allow-Origin"])
        r = s.get("/v1/models", headers={"Origin": "http://x.test"})
        self.assertEqual((r.status, r.headers["Access-Control-Allow-Origin"]), (401, "http://x.test"))

    def test_bodies(self):
        s = self.server
        chat = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
        post = lambda body, **h: s.post("/v1/chat/completions", body, headers={**self.key, **h})  # noqa: E731
        self.assertEqual(post(chat, **{"Content-Type": "multipart/form-data; boundary=x"}).status, 415)
        for kind in ("application/json; charset=utf-8", "application/x-www-form-urlencoded", "", "application/problem+json"):
            self.assertEqual(post(chat, **{"Content-Type": kind}).status, 200, kind)
        self.assertEqual(post("").status, 400)
        self.assertEqual(post(chat[:-1]).status, 400)
        self.assertEqual(post(iter([chat[:9].encode(), chat[9:].encode()])).status, 200)  # chunked
        self.assertEqual(post(chat, **{"Expect": "100-continue"}).status, 200)

    def test_connection_is_kept(self):
        """Requests one after the other on one connection, refusals without a body among them."""
        head = "GET {} HTTP/1.1\r\nHost: x\r\nX-Api-Key: first\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as c:
            for path, status in (("/v1/models", 200), ("/nope", 404), ("/health", 200)):
                c.sendall(head.format(path).encode())
                r = b""
                while b"\r\n\r\n" not in r or r[-1:] not in b"}\n":
                    r += c.recv(65536)
                self.assertTrue(r.startswith(f"HTTP/1.1 {status} ".encode()), r)


class Limits(Folder):
    def test_large_bodies(self):
        s = self.serve(self.speech, "--max-body", 1)
        over, big = b'{"prompt":"' + b"a" * (1 << 20), b" " * (100 << 20)
        self.assertEqual(s.post("/v1/completions", over).status, 413)
        r = s.post("/v1/completions", iter([over, b'"}']))  # of unknown length
        self.assertEqual((r.status, r.error["type"]), (413, "invalid_request_error"))
        before = s.status("VmRSS")
        for body in (big, iter([big])):
            try:
                self.assertEqual(s.post("/v1/completions", body).status, 413)
            except OSError:
                pass  # the line was cut while the client was still sending
        self.assertLess(s.status("VmRSS"), before + (32 << 10))
        self.assertEqual(s.chat().status, 200)

    def test_slow_clients(self):
        """Headers a byte at a time, a body that does not come, silence: one connection each, and an end."""
        s = self.serve(self.speech, "--header-time", 1, "--idle-time", 3, "--max-connections", 64)
        slow = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(8)]
        half = [s.open("POST", "/v1/completions", None, "Content-Length: 100\r\n") for _ in range(8)]
        start = time.monotonic()
        head, closed = b"GET /health HTTP/1.1\r\nX-Slow: " + b"a" * 200, 0
        for i in range(30):
            for c in slow:
                try:
                    c.send(head[i:i + 1])
                except OSError:
                    closed += 1
            self.assertEqual(s.chat().status, 200)
            time.sleep(0.1)
        self.assertGreater(closed, 0)
        for c in slow + half:
            c.settimeout(20)
            try:
                while c.recv(4096):
                    pass
            except OSError:
                pass
            c.close()
        self.assertLess(time.monotonic() - start, 20)
        s.wait_metric("connections", 1)

    def test_reader_that_stalls(self):
        """A client that asks for a long stream and does not read it loses it, and nobody waits for it."""
        s = self.serve(self.endless, "--idle-time", 2, "--n-ctx", 200000, "--n-slots", 2)
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        body = json.dumps({"messages": [{"role": "user", "content": "go"}], "stream": True, "max_tokens": 150000}).encode()
        c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        s.wait_metric("slots_busy", 1)
        for _ in range(5):
            self.assertEqual(s.chat(max_tokens=5).status, 200)
        s.wait_metric("slots_busy", 0, 60)
        s.wait_metric("connections", 1, 20)
        c.close()

    def test_queue(self):
        s = self.serve(self.endless, "--n-slots", 1, "--max-queue", 2, "--n-ctx", 500000)
        ask = lambda: s.open("POST", "/v1/completions", {"prompt": "a\n", "max_tokens": 400000})  # noqa: E731
        running = ask()
        s.wait_metric("slots_busy", 1)
        waiting = [ask(), ask()]
        s.wait_metric("queue_length", 2)
        r = s.chat()
        self.assertEqual((r.status, r.error["type"]), (429, "rate_limit_error"))
        self.assertGreaterEqual(int(r.headers["Retry-After"]), 1)
        for c in waiting + [running]:
            c.close()
        s.wait_metric("slots_busy", 0)
        self.assertEqual(s.chat(max_tokens=5).status, 200)

    def test_connections(self):
        s = self.serve(self.speech, "--max-connections", 8, "--idle-time", 2, "--header-time", 2)
        many = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(100)]
        time.sleep(3)
        for c in many:
            c.close()
        self.assertEqual(s.chat().status, 200)
        self.assertLess(s.descriptors(), 64)


class Leaving(Folder):
    def setUp(self):
        self.server = self.serve(self.endless, "--n-slots", 1, "--n-ctx", 600000)

    def ask(self, **fields):
        return self.server.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": 500000, "temperature": 0, **fields})

    def gone(self, c):
        c.close()
        self.server.wait_metric("slots_busy", 0, 5)

    def test_while_running(self):
        for stream in (True, False):
            c = self.ask(stream=stream)
            self.server.wait_metric("slots_busy", 1)
            if stream:
                self.assertTrue(c.recv(1000).startswith(b"HTTP/1.1 200"))
            self.gone(c)
        drawn = self.server.metric("generated_tokens_total")
        time.sleep(0.2)
        self.assertEqual(self.server.metric("generated_tokens_total"), drawn)

    def test_while_reading_the_prompt(self):
        c = self.ask(prompt="and " * 100000)
        self.server.wait_metric("slots_busy", 1)
        self.gone(c)
        self.assertEqual(self.server.metric("generated_tokens_total"), 0)

    def test_while_waiting(self):
        """A queued client's leaving touches neither who runs nor who waits behind it."""
        s = self.server
        running = self.ask(max_tokens=5000, stream=True)
        s.wait_metric("slots_busy", 1)
        leaves, stays = self.ask(), self.ask(max_tokens=3)
        s.wait_metric("queue_length", 2)
        leaves.close()
        s.wait_metric("queue_length", 1)
        text = read_stream(running)
        self.assertEqual(text.count(b'"text":"on "') + text.count(b'"text":"and "'), 5000)
        self.assertIn(b'"completion_tokens":3', stays.recv(65536))

    def test_many(self):
        s = self.server
        for c in [self.ask(stream=i % 2 == 0) for i in range(4)]:
            c.close()
        s.wait_metric("slots_busy", 0)
        fds, threads = s.descriptors(), s.status("Threads")
        for i in range(100):
            c = self.ask(stream=i % 3 == 0)
            time.sleep(0.001 * (i % 7))
            c.close()
        s.wait_metric("slots_busy", 0)
        s.wait_metric("queue_length", 0)
        s.wait_metric("connections", 1)
        self.assertLessEqual(s.descriptors(), fds + 1)
        self.assertEqual(s.status("Threads"), threads)
        self.assertEqual(s.metric("clients_left_total"), 104)


class Streams(Folder):
    def test_comments_in_silence(self):
        """From the moment a request waits on; told apart from data."""
        s = self.serve(self.endless, "--n-slots", 1, "--n-ctx", 600000, "--ping", 1)
        running = s.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": 500000})
        s.wait_metric("slots_busy", 1)
        waiting = s.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": 2, "stream": True})
        text, start = b"", time.monotonic()
        while text.count(b": ") < 12 and time.monotonic() - start < 5:
            text += waiting.recv(65536)
            if text.count(b"\n: ") >= 2:
                break
        self.assertGreaterEqual(text.count(b"\n: "), 2)
        self.assertIn(b"text/event-stream", text)
        self.assertIn(b"no-cache", text)
        running.close()
        self.assertIn(b"[DONE]", read_stream(waiting))
        waiting.close()

    def test_http_1_0(self):
        s = self.serve(self.speech)
        body = b'{"messages":[{"role":"user","content":"hi"}],"stream":true}'
        with socket.create_connection(("127.0.0.1", s.port), timeout=20) as c:
            c.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            text = b""
            while part := c.recv(65536):
                text += part
        self.assertTrue(text.endswith(b"data: [DONE]\n\n"), text)


class End(Folder):
    def test_states(self):
        """Loading, ok, draining, and the exit: a running stream ends whole."""
        s = self.serve(self.endless, "--n-ctx", 100000, env={"MINFER_DRAIN_MS": "60000"})
        c = s.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": 10000, "stream": True})
        s.wait_metric("slots_busy", 1)
        s.process.send_signal(signal.SIGTERM)
        for _ in range(200):
            r = s.get("/health")
            if r.status != 200:
                break
            time.sleep(0.01)
        self.assertEqual((r.status, r.json["status"]), (503, "draining"))
        r = s.chat()
        self.assertEqual((r.status, r.error["code"]), (503, "draining"))
        self.assertEqual(r.headers["Retry-After"], "1")
        text = read_stream(c)
        self.assertIn(b"[DONE]", text[-40:])
        self.assertEqual(text.count(b'"text":"on "') + text.count(b'"text":"and "'), 10000)
        self.assertEqual(s.stop(), 0)

    def test_drain_has_an_end(self):
        s = self.serve(self.endless, "--n-ctx", 900000, env={"MINFER_DRAIN_MS": "300"})
        streams = [s.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": 800000, "stream": k}) for k in (True, False)]
        s.wait_metric("slots_busy", 2)
        start = time.monotonic()
        self.assertEqual(s.stop(), 0)
        self.assertLess(time.monotonic() - start, 10)
        text = [b"", b""]
        for i, c in enumerate(streams):
            while part := c.recv(1 << 20):
                text[i] += part
        self.assertIn(b"the server has ended", text[0])
        self.assertIn(b"data: [DONE]\n\n", text[0])
        self.assertTrue(text[1].startswith(b"HTTP/1.1 503"), text[1])

    def test_second_signal(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            s = self.serve(self.endless, "--n-ctx", 900000, env={"MINFER_DRAIN_MS": "60000"})
            c = s.open("POST", "/v1/completions", {"prompt": "go\n", "max_tokens": 800000})
            s.wait_metric("slots_busy", 1)
            s.process.send_signal(sig)
            time.sleep(0.3)
            self.assertIsNone(s.process.poll())
            start = time.monotonic()
            self.assertEqual(s.stop(), 0)
            self.assertLess(time.monotonic() - start, 2)
            c.close()

    def test_starts_that_fail(self):
        s = self.serve(self.speech)
        empty = self.folder / "empty"
        empty.write_text("\n")
        cases = ((["--port", str(s.port)], 1, "cannot listen"), (["--tls-cert", "x.pem"], 2, "--tls-key"), (["--api-key", ""], 2, "--api-key"),
                 (["--host", "no.such.host.invalid", "--port", "0"], 1, "--host"), (["--n-slots", "0"], 2, "--n-slots"),
                 (["--api-key-file", str(empty), "--port", "0"], 1, "no key"), (["--tls-cert", "/nope", "--tls-key", "/nope"], 1, "/nope"), (["--port", "70000"], 2, "--port"))
        for args, status, words in cases:
            done = subprocess.run([PROGRAM, "serve", str(self.speech), *args], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, status, (args, done.stderr))
            self.assertIn(words, done.stderr)
        broken = self.folder / "broken.gguf"
        broken.write_bytes(self.speech.read_bytes()[:5000])
        done = subprocess.run([PROGRAM, "serve", str(broken), "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)

    def test_warning(self):
        for args, warned in ((["--host", "0.0.0.0"], True), (["--host", "0.0.0.0", "--api-key", "k"], False), ([], False)):
            s = self.serve(self.speech, *args)
            self.assertEqual(any("warning" in line for line in s.log), warned, s.log)
            self.assertEqual(s.stop(), 0)


class Tls(Folder):
    def test_https(self):
        import ssl
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        pem, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", pem], check=True, capture_output=True)
        s = self.serve(self.speech, "--tls-cert", pem, "--tls-key", key, wait=False)
        context = ssl.create_default_context(cafile=pem)
        import http.client
        for _ in range(100):
            c = http.client.HTTPSConnection("127.0.0.1", s.port, context=context, timeout=20)
            c.request("GET", "/health")
            if c.getresponse().status == 200:
                break
            time.sleep(0.05)
        c = http.client.HTTPSConnection("127.0.0.1", s.port, context=context, timeout=20)
        c.request("POST", "/v1/chat/completions", '{"messages":[{"role":"user","content":"hi"}],"stream":true}')
        self.assertTrue(c.getresponse().read().endswith(b"data: [DONE]\n\n"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
