"""The running chain, for the end-to-end suites: starts `tessera up`, talks to it, stops it.

A suite is a list of functions; each gets a Chain, passes by returning and fails by raising. Results are
printed as "ok NAME" and "FAIL NAME", one line each, for test.sh to count.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "bazel-bin/deploy/bin")
DEMO = os.path.join(ROOT, "deploy/demo_model")
TESSERA = os.path.join(BIN, "tessera")
READY_SECONDS_MAX = 60


class Chain:
    """`tessera up` on free ports. Use as a context manager."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.ready = None
        self.logs = tempfile.TemporaryDirectory(prefix="tessera-e2e-")
        self.stderr_path = os.path.join(self.logs.name, "up.log")

    def __enter__(self):
        self.stderr = open(self.stderr_path, "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [TESSERA, "up", DEMO, "--json", "--port", "0", "--log-dir", self.logs.name, *self.arguments],
            stdout=subprocess.PIPE, stderr=self.stderr)
        os.set_blocking(self.process.stdout.fileno(), False)
        text, deadline = b"", time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            text += self.process.stdout.read() or b""
            if b"\n" in text:
                self.ready = json.loads(text.split(b"\n")[0])
                return self
            time.sleep(0.05)
        self.stop()
        raise RuntimeError("the chain did not come up:\n" + self.log())

    def __exit__(self, *_):
        self.stop()
        self.logs.cleanup()

    def log(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-4000:]

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.stderr.close()

    @property
    def url(self):
        return self.ready["gateway_url"]

    def pid(self, name):
        """The process id of "engine", "worker", "tokenizer", "parser" or "gateway" now."""
        out = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        parents, rows = {self.process.pid}, [line.split(None, 2) for line in out.splitlines()]
        found = None
        for _ in range(3):  # children and grandchildren
            for pid, ppid, args in rows:
                if int(ppid) in parents:
                    parents.add(int(pid))
                    if os.path.basename(args.split()[0]) == "tessera-" + name:
                        found = int(pid)
        return found

    def request(self, method, path, body=None, headers=None, timeout=30):
        """(status, headers, text) of one HTTP request; an HTTP error is not an exception."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"content-type": "application/json", **(headers or {})})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as response:
                return response.status, dict(response.headers), response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read().decode()

    def chat(self, text, **fields):
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0, **fields}
        return self.request("POST", "/v1/chat/completions", body)

    def wait_until_serving(self, seconds=15):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.request("GET", "/health", timeout=2)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("not serving again within %d s:\n%s" % (seconds, self.log()))


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def run_suite(cases, context=None):
    """Runs each case (a function of `context`) and exits with the number that failed."""
    failed = 0
    for case in cases:
        name, begin = case.__name__.replace("_", " ").strip(), time.monotonic()
        try:
            case(context) if context is not None else case()
            print("ok    %s (%.1f s)" % (name, time.monotonic() - begin), flush=True)
        except Exception:  # noqa: BLE001 - a failing case must not end the suite
            failed += 1
            traceback.print_exc(limit=3, file=sys.stdout)
            print("FAIL  %s" % name, flush=True)
    return 1 if failed else 0
