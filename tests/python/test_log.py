"""The log from outside: what each verbose level says beside the real server's, lines of models in processes of their own, what
models print, files that are moved away, and what a terminal shows."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

import clients
import servers
import tiers
import torchscript
from processes import read_all
from repositories import add_sub_config, identity_config, tensor, write_model
from waiting import eventually

LIMIT = 30

# What happens to a request -> how each server says it over HTTP and gRPC, and from which level on.
EVENTS = {
    "it comes in": {
        "galatea": (1, {"http": "HTTP request: POST /v2/models/simple/infer", "grpc": "gRPC request: POST .*/ModelInfer"}),
        "triton": (1, {"http": "HTTP request: 2 /v2/models/simple/infer", "grpc": "Process for ModelInferHandler, rpc_ok=1, .* step START"}),
    },
    "its model is looked up": {
        "galatea": (2, r"model: simple, requested version: -1, actual version: 1"),
        "triton": (2, r"GetModel\(\) 'simple' version -1"),
    },
    "it was checked": {
        "galatea": (2, "prepared: model: simple, .* batch size: 1"),
        "triton": (1, "prepared: .* model: simple, .* batch size: 1"),
    },
    "a batch is executed": {
        "galatea": (1, "model simple, instance simple_0, executing 1 requests"),
        "triton": (1, "model simple, instance simple_0, executing 1 requests"),
    },
    "it is answered": {
        "galatea": (1, {"http": "HTTP answer to POST .*: 200, ", "grpc": "gRPC answer to ModelInfer: 0, "}),
        "triton": (1, {"http": "HTTP using buffer for: 'OUTPUT1'", "grpc": "ModelInferHandler::InferResponseComplete"}),
    },
    "its inputs are described": {
        "galatea": (3, r"input: INPUT1, type: INT32, shape: \[1,16\], 64 bytes"),
        "triton": (1, r"input: INPUT1, type: INT32, original shape: \[1,16\]"),
    },
}


@tiers.both
def test_each_verbose_level_logs_the_same_kinds_of_events_as_triton(stage, target):
    server = stage.get(target, lambda folder, _: write_model(folder, "simple", target, "add_sub", add_sub_config()))
    try:
        for level in (0, 1, 2, 3):
            for protocol in ("http", "grpc"):
                check_level(server, target, level, protocol)
    finally:
        set_level(server, 0)


def check_level(server, target, level, protocol):
    set_level(server, level)
    first, ones = len(server.log), np.ones((1, 16), np.int32)
    with clients.client(server, protocol) as stock:
        clients.infer(stock, protocol, "simple", {"INPUT0": ones, "INPUT1": ones})
    told = {event: pattern(words[target], protocol) for event, words in EVENTS.items()}
    expected = {event for event in told if level >= EVENTS[event][target][0]}
    for event in expected:
        server.wait(lambda: any(re.search(told[event], line) for line in server.log[first:]), (level, protocol, event), LIMIT)
    if target == "triton":
        # Its lines of the request are there by now; what it says of a wrong one it says from here on.
        set_level(server, 1)
    mark = f"mark_{level}_{protocol}"
    clients.ask(server.http, "GET", f"/v2/models/{mark}")
    server.wait(lambda: any(mark in line for line in server.log[first:]), mark, LIMIT)
    text = "\n".join(server.log[first:]).partition(mark)[0]
    found = {event for event in told if re.search(told[event], text)}
    assert found == expected, (level, protocol, text)


def set_level(server, level):
    assert clients.ask(server.http, "POST", "/v2/logging", {"log_verbose_level": level})[0] == 200


def pattern(told, protocol):
    words = told[1]
    return words if isinstance(words, str) else words[protocol]


@tiers.peers
@pytest.mark.skipif(not servers.has_libtorch(), reason="no libtorch here: apt-get install libtorch-dev g++")
def test_isolated_models_log_at_the_servers_levels(tmp_path, serve):
    """Levels changed after the start apply too: details of libtorch's errors appear at level 1."""
    tensors = tensor("input", "x", "TYPE_FP32", "2") + tensor("output", "y", "TYPE_FP32", "2")
    folder = write_model(tmp_path, "torch", "galatea", "pytorch", tensors)
    torchscript.write_script(folder / "1/model.pt", "x: Tensor) -> Tensor:\n    return torch.mm(x, x)")
    server = serve(tmp_path, "--backend-config=pytorch,isolation=process")
    ask = {"inputs": [clients.tensor_json("x", np.ones(2, np.float32))]}

    def fail():
        assert clients.ask(server.http, "POST", "/v2/models/torch/infer", ask)[0] == 500
        return "libtorch: " in server.text()

    assert not fail()
    set_level(server, 1)
    # The worker hears of it beside its requests.
    eventually("libtorch's error is told", fail)
    set_level(server, 0)
    later = serve(tmp_path, "--backend-config=pytorch,isolation=process", "--log-verbose=1")
    clients.ask(later.http, "POST", "/v2/models/torch/infer", ask)
    assert re.search(r'^I.*"libtorch: ', later.wait_for_line("libtorch: ", LIMIT))


PRINTS = r'''
import os
import sys

import triton_python_backend_utils as pb

HOSTILE = [
    b"two\nlines\n", b"\n\n", b"{\"level\": \"info\"}\n", b"\"quoted\\\"\n", bytes(range(32)) + b"\n", b"\x7f\x80\xc3\n",
    "é".encode()[:1], "é".encode()[1:] + b"\n", b"\xed\xa0\x80 \xff\xfe\n", b"\x1b[2J\x1b]0;title\x07\n", b"\r\n \r\n", "\u2028\u0085\n".encode(),
    b"x" * (1 << 16) + b"\n", "€".encode() * (1 << 14) + b"\n", b"ends without a line break",
]


class TritonPythonModel:
    def execute(self, requests):
        # Less in all than the 1 MiB that the log holds for a reader that is late.
        for text in HOSTILE:
            for file in (1, 2):
                at = 0
                while at < len(text):
                    at += os.write(file, text[at:])
            pb.Logger.log_warn(text.decode(errors="replace"))
            pb.Logger.log_error(text.decode(errors="surrogateescape").encode(errors="replace").decode())
        print("\nall of it was printed", flush=True)
        print("\nall of it was printed", file=sys.stderr, flush=True)
        raise RuntimeError("several\nlines \x1b[2J \x00 é \ud800")
'''


def test_every_line_is_json_for_any_model_output(repository, serve):
    repository.add("prints", "python", identity_config(), files={"1/model.py": PRINTS})
    server = serve(repository.path, "--log-format=json", "--log-verbose=3")
    ask = {"id": "h-1", "inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
    assert clients.ask(server.http, "POST", "/v2/models/prints/infer", ask)[0] == 500
    server.wait(lambda: server.text().count('"text":"all of it was printed"') == 2, "what it printed", LIMIT)
    server.wait_for_line(r'"request_id":"h-1","text":"model .prints. version 1', LIMIT)
    server.stop()
    lines = [json.loads(line) for line in server.log]
    for line in lines:
        assert isinstance(line["text"], str) and line["level"] in ("error", "warning", "info", "debug", "trace"), line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"]) and line["pid"] == server.pid, line
    printed = [line for line in lines if (line.get("model"), line.get("version")) == ("prints", 1)]
    assert sum(line["text"] == "all of it was printed" for line in printed) == 2 and any("file" in line for line in printed), "and logs"
    assert {line["level"] for line in printed} >= {"error", "warning", "info"}
    assert sum(line["text"].count("x") for line in printed if set(line["text"]) == {"x"}) >= 2 << 16, "no byte of a long line is lost"
    failed = [line for line in lines if line.get("request_id") == "h-1" and line["level"] == "error"]
    assert len(failed) == 1 and (failed[0]["model"], failed[0]["version"]) == ("prints", 1)
    assert failed[0]["text"].count("Traceback (most recent call last)") == 1 and "several\nlines \x1b[2J" in failed[0]["text"]
    assert any(line["text"].startswith("+--") and "| prints" in line["text"] for line in lines), "tables are lines too"


def test_a_moved_log_file_is_reopened_at_sighup(repository, serve, tmp_path_factory):
    """The access log is reopened too."""
    repository.add("simple", "add_sub", add_sub_config())
    folder = tmp_path_factory.mktemp("rotated")
    logs, old = folder / "logs", folder / "old"
    logs.mkdir()
    files = [logs / "server.log", logs / "access.log"]
    server = serve(repository.path, f"--log-file={files[0]}", f"--access-log={files[1]}", "--log-verbose=1", wait=False)
    ports = until_ports(files[0])
    address = f"127.0.0.1:{ports['HTTPService']}"

    def told(path):
        """Both logs have it, in these files."""
        clients.ask(address, "GET", path)
        eventually(f"both logs have {path}", lambda: all(path in text(file) for file in files))

    told("/v2/models/before")
    logs.rename(old)
    logs.mkdir()
    server.process.send_signal(signal.SIGHUP)
    eventually("both files are made again", lambda: all(file.exists() for file in files))
    told("/v2/models/after")
    for file in files:
        assert "/v2/models/before" not in text(file)
        assert "/v2/models/before" in text(old / file.name) and "/v2/models/after" not in text(old / file.name)
    # A folder that is gone: the log goes on where it was, and says so.
    logs.rename(folder / "gone")
    server.process.send_signal(signal.SIGHUP)
    gone = folder / "gone/server.log"
    eventually("the log says that it is not opened", lambda: "failed to open the log file again: " in text(gone))
    assert clients.ask(address, "GET", "/v2/health/ready")[0] == 200
    assert server.stop() == 0


def text(file):
    return file.read_text() if file.exists() else ""


def until_ports(log):
    """The ports that the server says it has, by service."""
    found = {}

    def read():
        found.update(re.findall(r"Started (\w+) at [\d.]+:(\d+)", text(log)))
        return "HTTPService" in found

    eventually("the log has the ports", read)
    return found


BROKEN = {
    "raises": ("python", "1/model.py", "class TritonPythonModel:\n    def initialize(self, args):\n        self.load()\n    def load(self):\n"
               "        raise OSError('no \\x1b[2J weights')\n    def execute(self, requests):\n        return []\n"),
    "syntax": ("python", "1/model.py", "class TritonPythonModel:\n    def execute(self, requests)\n        return []\n"),
    "pointer": ("onnxruntime", "1/model.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"),
    "folder": ("onnxruntime", "v1/model.onnx", "x"),
}


def write_broken(folder):
    for name, (backend, file, content) in BROKEN.items():
        path = folder / name / file
        path.parent.mkdir(parents=True)
        path.write_text(content)
        (folder / name / "config.pbtxt").write_text(f'backend: "{backend}"\n' + identity_config())
    (folder / "typo").mkdir()
    (folder / "typo/config.pbtxt").write_text('imput { name: "A" }\n')


def failing_start(folder):
    """The command of a server that cannot start with the models of the folder."""
    return [servers.galatea_binary(), "serve", f"--model-repository={folder}", "--http-port=0", "--grpc-port=0", "--metrics-port=0",
            f"--backend-config=python,python-interpreter={sys.executable}"]


def test_a_failed_start_is_logged_in_json_to_the_last_line(tmp_path):
    write_broken(tmp_path)
    command = [*failing_start(tmp_path), "--log-format=json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, env={**os.environ, **servers.onnx_runtime()})
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    errors = {line.get("model"): line["text"] for line in lines if line["level"] == "error"}
    assert set(errors) == {*BROKEN, "typo", None}
    assert "\nTraceback (most recent call last):\n" in errors["raises"] and "no \x1b[2J weights" in errors["raises"]
    assert errors["typo"].endswith("typo/config.pbtxt:1:1: no field `imput` in ModelConfig; did you mean `input`?")
    assert lines[-1]["level"] == "error" and lines[-1]["text"].startswith("error: creating server: ") and not any("\x1b[1" in t for t in errors.values())


def test_a_narrow_terminal_shows_each_error_once_and_completely(tmp_path):
    write_broken(tmp_path)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    server = subprocess.Popen(failing_start(tmp_path), stdout=theirs, stderr=theirs, env={**os.environ, **servers.onnx_runtime(), "TERM": "xterm"})
    os.close(theirs)
    raw = "\n".join(read_all(ours))
    assert server.wait(60) == 1
    assert "\x1b[2J" not in raw and r"\u001B[2J" in raw, "what a model says commands no terminal"
    shown = re.sub(r"\x1b\[[0-9;]*m", "", raw)
    lines = shown.splitlines()
    tables = [line for line in lines if line.startswith(("|", "+-"))]
    assert len(tables) > 10 and max(map(len, tables)) <= 80, "tables fit the terminal"
    head, _, models = shown.partition("| Model ")
    # Each is told once above the table, and in the table; the traceback only above.
    assert head.count("OSError: no ") == 2 and head.count("Traceback (most recent call last):") == 1, head
    assert "At:" not in head and "in initialize" in head, head
    assert "SyntaxError: expected ':' (model.py, line 2)\n      File " in head, head
    assert "    def execute(self, requests)\n                                   ^" in head, head
    assert head.count("the folder 'v1' is not a version") == 1 and head.count("rename it to '1'") == 1, head
    assert head.count("run `git lfs pull`") == 1 and "did you mean `input`?" in head, head
    for name in [*BROKEN, "typo"]:
        assert re.search(rf"^\| {name} +\| +[-1] +\| UNAVAILABLE: ", models, re.M), models
    assert lines[-1].startswith("error: creating server: Internal - failed to load all models") and lines[-1].endswith("see the log above")


def test_messages_of_a_model_cannot_forge_log_lines(repository, stage):
    """Messages cannot forge a table either, which begins with a line break."""
    code = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        pb.Logger.log_info('\\nE1121 11:45:34.163989 1 engine.rs:1] "forged"')

    def execute(self, requests):
        return []
"""
    repository.add("forges", "python", identity_config(), files={"1/model.py": code})
    server = stage.serves(repository.path)
    line = server.wait_for_line("forged", LIMIT)
    assert line.startswith("I") and r'"\nE1121' in line
