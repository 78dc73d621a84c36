#!/usr/bin/env python3
"""Processes that die, and input that is wrong, over the running chain."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from chain import BIN, DEMO, TESSERA, Chain, check, run_suite

ANSWER_SECONDS_MAX = 1.0


def kill_and_recover(chain, name):
    """kill -9 one process in mid-stream: the caller hears of it at once, and the next request works."""
    pid = chain.pid(name)
    check(pid, "no process %s" % name)
    result = {}

    def stream():
        body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": 6000, "ignore_eos": True}
        try:
            result["answer"] = chain.request("POST", "/v1/chat/completions", body, timeout=30)
        except Exception as error:  # noqa: BLE001 - a cut connection is what a dead gateway gives
            result["error"] = error
        result["ended"] = time.monotonic()

    thread = threading.Thread(target=stream)
    thread.start()
    time.sleep(0.5)
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    thread.join(15)
    check(not thread.is_alive(), "the stream hangs")
    check(result["ended"] - killed < ANSWER_SECONDS_MAX, "told after %.1f s" % (result["ended"] - killed))
    if name == "gateway":
        check("error" in result or "[DONE]" not in result["answer"][2], "a dead gateway finished the stream")
    else:
        status, _, text = result["answer"]
        check(status == 503 or ("error" in text and "[DONE]" not in text.split("error")[0]), "no error: %d %s" % (status, text[-300:]))
    # While it is down a new request is refused at once, never hangs.
    begin = time.monotonic()
    try:
        status = chain.chat("Hi", max_tokens=4)[0]
        check(status in (200, 503), "status %d" % status)
    except OSError:
        check(name == "gateway", "the gateway does not answer")
    check(time.monotonic() - begin < 5, "a request hung for %.1f s" % (time.monotonic() - begin))
    chain.wait_until_serving()
    status, _, text = chain.chat("4*7=?", chat_template_kwargs={"enable_thinking": False})
    check(status == 200 and "28" in text, "after the restart: %d %s" % (status, text))
    check(chain.pid(name) not in (None, pid), "%s was not restarted" % name)


def kill_9_of_the_parser(chain):
    kill_and_recover(chain, "parser")
    check("parser" in chain.log() and "signal 9" in chain.log(), "the supervisor does not say what died:\n" + chain.log())


def kill_9_of_the_tokenizer(chain):
    kill_and_recover(chain, "tokenizer")


def kill_9_of_the_engine(chain):
    kill_and_recover(chain, "engine")


def kill_9_of_the_worker(chain):
    kill_and_recover(chain, "worker")


def kill_9_of_the_gateway(chain):
    kill_and_recover(chain, "gateway")


def error_of(chain, status, param, body, path="/v1/chat/completions"):
    got, _, text = chain.request("POST", path, body)
    check(got == status, "%s: status %d, expected %d: %s" % (param, got, status, text[:300]))
    error = json.loads(text)["error"]
    check(error.get("param") == param, "param is %r, expected %r: %s" % (error.get("param"), param, text[:300]))
    check(error.get("message"), "no message")


def user(text):
    return [{"role": "user", "content": text}]


def bad_requests_name_their_field(chain):
    error_of(chain, 400, "messages[1].role", {"messages": user("Hi") + [{"content": "x"}]})
    error_of(chain, 400, "messages", {})
    error_of(chain, 400, "max_tokens", {"messages": user("Hi"), "max_tokens": 0})
    error_of(chain, 400, "temperature", {"messages": user("Hi"), "temperature": "hot"})
    error_of(chain, 400, "top_p", {"messages": user("Hi"), "top_p": 7})
    error_of(chain, 400, "prompt[1]", {"prompt": [5, 99999]}, "/v1/completions")
    error_of(chain, 404, "model", {"messages": user("Hi"), "model": "gpt-9"})


def a_10_mb_prompt_gets_one_clear_error_quickly(chain):
    begin = time.monotonic()
    status, _, text = chain.request("POST", "/v1/chat/completions", {"messages": user("word " * 2_100_000)})
    check(status in (400, 413), "status %d" % status)
    error = json.loads(text)["error"]
    check("messages" in (error.get("param") or ""), "does not name the field: %s" % text[:300])
    check(len(text) < 2000, "the error is %d bytes long" % len(text))
    check(time.monotonic() - begin < 5, "took %.1f s" % (time.monotonic() - begin))
    check(chain.chat("Hi", max_tokens=4)[0] == 200, "the chain does not answer afterwards")


def broken_json_is_refused_and_the_process_lives(chain):
    for body in (b"{", b"[" * 100000, b"\xff\xfe", b'{"messages": "x\\u0000"}', b""):
        status, _, text = chain.request("POST", "/v1/chat/completions", body)
        check(status == 400 and "error" in json.loads(text), "%r: %d %s" % (body[:20], status, text[:200]))
    check(chain.chat("Hi", max_tokens=4)[0] == 200, "the chain does not answer afterwards")


def unknown_paths_and_methods_are_refused(chain):
    check(chain.request("GET", "/v2/chat")[0] == 404, "unknown path")
    check(chain.request("GET", "/v1/chat/completions")[0] == 405, "wrong method")


def metrics_are_served_by_every_process(chain):
    chain.chat("Hi", max_tokens=4)
    text = chain.request("GET", "/metrics")[2]
    check("tessera_gateway_requests_total" in text or "tessera_gateway" in text, "the gateway's own metrics are missing")
    import urllib.request
    for name, expected in (("engine", "vllm:generation_tokens_total"), ("tokenizer", "tessera_tokenizer"), ("parser", "tessera_parser")):
        url = "http://%s/metrics" % chain.ready[name + "_metrics_address"]
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as response:
            check(expected in response.read().decode(), "%s lacks %s" % (url, expected))


def broken_checkpoints_are_refused_by_name():
    """tessera-engine on copies of the demo model with one fault each: one clear line, a non-zero exit."""
    faults = {
        "truncated": (lambda d: os.truncate(os.path.join(d, "model.safetensors"), 10_000_000), "model.safetensors"),
        "unknown architecture": (lambda d: replace(d, "NemotronHPuzzleForCausalLM", "LlamaForCausalLM"), "LlamaForCausalLM"),
        "no config": (lambda d: os.remove(os.path.join(d, "config.json")), "config.json"),
        "wrong width": (lambda d: replace(d, '"hidden_size": 256', '"hidden_size": 320'), "embed"),
    }
    for name, (breaks, expected) in faults.items():
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model")
            shutil.copytree(DEMO, model, ignore=shutil.ignore_patterns("train"))
            breaks(model)
            done = subprocess.run([TESSERA, "up", model, "--port", "0"], capture_output=True, text=True, timeout=60, check=False)
            said = done.stdout + done.stderr
            check(done.returncode != 0, "%s: exit status 0" % name)
            check(expected in said, "%s: does not name %s: %s" % (name, expected, said[-600:]))


def replace(folder, old, new):
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    check(old in text, "%s is not in config.json" % old)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))


def everything_stops_on_sigterm():
    with Chain() as chain:
        pids = [chain.pid(name) for name in ("engine", "worker", "tokenizer", "parser", "gateway")]
        check(all(pids), "pids: %s" % pids)
        begin = time.monotonic()
        chain.process.send_signal(signal.SIGTERM)
        status = chain.process.wait(20)
        check(status == 0, "exit status %d" % status)
        check(time.monotonic() - begin < 10, "took %.1f s" % (time.monotonic() - begin))
        left = [pid for pid in pids if os.path.exists("/proc/%d" % pid)]
        check(not left, "still there: %s" % left)


check(os.path.isdir(BIN), "build //deploy/bin first")
status = run_suite([broken_checkpoints_are_refused_by_name, everything_stops_on_sigterm])
with Chain() as chain:
    status |= run_suite([
        bad_requests_name_their_field,
        a_10_mb_prompt_gets_one_clear_error_quickly,
        broken_json_is_refused_and_the_process_lives,
        unknown_paths_and_methods_are_refused,
        metrics_are_served_by_every_process,
        kill_9_of_the_parser,
        kill_9_of_the_tokenizer,
        kill_9_of_the_engine,
        kill_9_of_the_worker,
        kill_9_of_the_gateway,
    ], chain)
sys.exit(status)
