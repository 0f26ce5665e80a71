"""`galatea top`: its tables and JSON against our server and the real Triton, and the screen that it draws."""

import contextlib
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import numpy as np
import pytest
import tritonclient.http as httpclient

import clients
import fault_proxy
import repositories
import servers
import tiers

TERMINAL = servers.PEERS / "unpacked/terminal"
sys.path.append(str(TERMINAL))
LIMIT = 60
needs_terminal = pytest.mark.skipif(not TERMINAL.exists(), reason="the terminal emulator is not installed")


def write_models(path, target):
    repositories.write_model(path, "vector", target, "identity", repositories.identity_config())
    repositories.write_model(path, "broken", target, "no_such_backend", repositories.identity_config())


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, tmp_path_factory):
    target = request.param
    path = tmp_path_factory.mktemp(target)
    write_models(path, target)
    flags = ["--exit-on-error=false", "--strict-readiness=false", "--metrics-config=summary_latencies=true"]
    with servers.TARGETS[target](path, *flags) as running:
        running.target = target
        yield running


def command(server, *words, protocol="http"):
    where = ["-i", protocol, "-u", getattr(server, protocol), "--metrics-url", server.metrics]
    return [str(servers.galatea_binary()), "top", *where, *map(str, words)]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)


@contextlib.contextmanager
def requests(server):
    """Sends requests all the time; one has been answered before this begins."""
    stop, answered = threading.Event(), threading.Event()

    def send():
        client = httpclient.InferenceServerClient(server.http)
        given = clients.inputs(httpclient, {"INPUT0": np.ones(4, np.float32)})
        while not stop.is_set():
            client.infer("vector", given)
            answered.set()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        assert answered.wait(LIMIT)
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_one_interval_is_printed_as_json(server, protocol):
    with requests(server):
        done = run(*command(server, "--once", "--json", "--interval", "0.5", protocol=protocol))
    assert done.returncode == 0 and "\n" not in done.stdout.rstrip("\n"), done
    seen = json.loads(done.stdout)
    assert seen["ready"] is True and seen["interval_s"] > 0.3
    # The real Triton measures some seconds after its start.
    assert server.target == "triton" or seen["memory_total_bytes"] > 0
    models = {model["name"]: model for model in seen["models"]}
    vector = models["vector"]
    assert vector["state"] == "READY" and vector["requests_per_s"] > 0 and vector["failed_per_s"] == 0
    assert vector["inferences_per_s"] == pytest.approx(vector["requests_per_s"], rel=0.1)
    assert 0 < vector["p50_us"] <= vector["p99_us"] and vector["latency_us"] > 0 and vector["batch_size"] == 1
    assert vector["quantiles_from"] == "summary of about a minute" and vector["pending"] >= 0
    assert models["broken"]["state"] == "UNAVAILABLE" and models["broken"]["requests_per_s"] is None
    assert models["broken"]["reason"]


def test_without_a_terminal_a_table_is_printed_per_interval(server):
    with requests(server), subprocess.Popen(command(server, "--interval", "0.2"), stdout=subprocess.PIPE, text=True) as top:
        lines = [top.stdout.readline() for _ in range(8)]
        top.terminate()
    heads = [line for line in lines if line.startswith("MODEL ")]
    assert len(heads) >= 2 and "REQ/S" in heads[0] and "\x1b" not in "".join(lines), lines
    assert any(re.match(r"vector +1 +READY +[0-9.]+", line) for line in lines), lines


def test_missing_metrics_are_reported(server):
    where = [str(servers.galatea_binary()), "top", "--once", "--interval", "0.1"]
    done = run(*where, "-u", server.http, "--metrics-url", "127.0.0.1:1")
    assert done.returncode == 0 and "# No metrics (--metrics-url): failed to connect" in done.stdout, done
    assert run(*where, "-u", "127.0.0.1:1").returncode == 1
    for wrong in (["--sort", "size"], ["word"], ["-H", "no header"]):
        assert run(*where, *wrong).returncode == 2


class Pages(http.server.BaseHTTPRequestHandler):
    """A server without statistics whose counters run and go back, and whose names would command the terminal."""

    protocol_version = "HTTP/1.1"
    counts = iter([10, 20, 5, 6] + list(range(7, 1000)))
    endless = False

    def do_GET(self):
        documents = {"/v2": {"name": "odd", "version": "1\x1b[2J", "extensions": []}, "/v2/health/ready": {}}
        if self.path == "/metrics":
            line = 'nv_inference_request_success{{model="evil\x1b]0;x\x07\x9b2J",version="1"}} {}\n'
            body = ("#" * (20 << 20) if self.endless else line.format(next(self.counts))).encode()
        else:
            body = json.dumps(documents.get(self.path, {"error": "not here"})).encode()
        self.send_response(200 if self.path in documents or self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def pages():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{running.server_port}"
        yield [str(servers.galatea_binary()), "top", "-u", address, "--metrics-url", f"http://{address}", "--interval", "0.1"]
        running.shutdown()


def test_decreasing_counters_give_no_rates(pages):
    with subprocess.Popen([*pages, "--json"], stdout=subprocess.PIPE, text=True) as top:
        seen = [json.loads(top.stdout.readline()) for _ in range(3)]
        top.terminate()
    rates = [look["models"][0]["requests_per_s"] for look in seen]
    assert rates[0] > 0 and rates[1] is None and 0 < rates[2] < 20
    assert "No statistics" in seen[0]["notes"][0]


def test_a_hostile_server_cannot_send_terminal_commands(pages):
    done = run(*pages, "--once")
    assert done.returncode == 0 and "evil\\u{1b}]0;x\\u{7}" in done.stdout, done
    assert not [c for c in done.stdout + done.stderr if c in "\x1b\x07\x9b"]


def test_an_oversized_metrics_page_is_refused(pages, monkeypatch):
    monkeypatch.setattr(Pages, "endless", True)
    done = run(*pages, "--once")
    assert done.returncode == 0 and "it is longer than 16777216 bytes" in done.stdout, done


class Watched:
    """`galatea top` on a terminal of a size."""

    def __init__(self, words, width=120, height=40, env=None):
        import pyte

        self.screen = pyte.Screen(width, height)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.main, child = pty.openpty()
        self.set_size(width, height)
        self.before = termios.tcgetattr(child)
        self.child = child
        environment = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        environment = {name: value for name, value in environment.items() if value}
        self.process = subprocess.Popen(
            words, stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def set_size(self, width, height):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width, height):
        self.screen.resize(height, width)
        self.set_size(width, height)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def read(self, seconds):
        if select.select([self.main], [], [], seconds)[0]:
            data = os.read(self.main, 1 << 16)
            self.raw += data
            self.stream.feed(data)

    def wait(self, happened, what):
        """Reads until `happened(text)`; the text."""
        deadline = time.monotonic() + LIMIT
        while not happened(self.text()):
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.text()}"
            self.read(0.1)
        return self.text()

    def sees(self, pattern):
        return self.wait(lambda text: re.search(pattern, text), pattern)

    def keys(self, text):
        os.write(self.main, text.encode())

    def end(self):
        """Its exit status; the terminal is as it was."""
        deadline = time.monotonic() + LIMIT
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self.read(0.1)
        self.read(0)
        assert termios.tcgetattr(self.child) == self.before
        for code in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?7h"):
            assert code in self.raw[self.raw.rindex(b"\x1b[?1049h"):], code
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)
        os.close(self.child)


@needs_terminal
@pytest.mark.parametrize("width, height", [(120, 40), (80, 24), (40, 15)])
def test_the_screen_fits_every_window(server, width, height):
    with requests(server), Watched(command(server, "--interval", "0.2"), width, height) as top:
        text = top.sees(r"vector +.*[1-9]")
        text = top.sees(r"\d req/s")
        lines = text.split("\n")
        assert lines[0].startswith("galatea top http://127.0.0.1") and len(lines) == height
        assert re.search(r"2 models, 1 ready", text) and "MODEL" in text and "REQ/S" in text and "P99" in text
        assert lines[-1].startswith("q quit")
        if width >= 80:
            assert "READY" in lines[0] and "UNAVAILABLE" in text and "CPU" in text
        top.keys("q")
        assert top.end() == 0


@needs_terminal
def test_keys_sort_filter_and_quit(server):
    with Watched(command(server, "--interval", "0.2"), 80, 24) as top:
        top.sees(r"vector")
        top.keys("h")
        top.sees(r"Ctrl-L")
        top.keys("G")
        top.sees(r"99 of 100 requests")
        top.keys("h")
        top.sees(r"REQ/S▼")
        top.keys("s")
        top.sees(r"FAIL/S▼")
        top.keys("<<r")
        top.sees(r"▲")
        top.keys("/BROK\r")
        text = top.sees(r"filter: BROK")
        top.wait(lambda text: "vector" not in text, "the filter")
        top.keys("/\x1b")
        top.sees(r"vector")
        top.keys("p")
        top.sees(r"PAUSED")
        top.keys("p")
        top.wait(lambda text: "PAUSED" not in text, "the end of the pause")
        top.keys("/vector\r\r")
        text = top.sees(r"vector version 1")
        assert re.search(r"successful +[\d.]+k?", text) and "queue" in text and "summary of about a minute" in text
        top.keys("q")
        top.sees(r"MODEL")
        top.keys("\x03")
        assert top.end() == 0


@needs_terminal
def test_the_screen_follows_the_window_size(server):
    with Watched(command(server), 120, 40) as top:
        top.sees(r"COMPUTE")
        top.resize(40, 15)
        text = top.wait(lambda text: "COMPUTE" not in text and text.count("\n") == 14 and "q quit" in text, "a small window")
        assert max(map(len, text.split("\n"))) <= 40
        top.resize(100, 30)
        top.sees(r"COMPUTE")
        top.process.send_signal(signal.SIGTERM)
        assert top.end() == 0


@needs_terminal
@pytest.mark.parametrize("variable, value", [("NO_COLOR", "1"), ("NO_COLOR", "")])
def test_colours_follow_the_environment(server, variable, value):
    with Watched(command(server), 120, 40, {variable: value}) as top:
        top.sees(r"UNAVAILABLE")
        top.keys("q")
        assert top.end() == 0
    assert bool(re.search(rb"\x1b\[(3\d|38;5;\d+)m", top.raw)) == (value == "")


@needs_terminal
def test_a_dumb_terminal_gets_tables(server):
    with Watched(command(server, "--interval", "0.2"), env={"TERM": "dumb"}) as top:
        top.wait(lambda text: text.count("MODEL") >= 2, "two tables")
        assert b"\x1b" not in top.raw
        top.process.terminate()
        top.process.wait(LIMIT)


@needs_terminal
def test_top_can_be_suspended_and_resumed(server):
    """`galatea top` is a job of its own on the terminal, as under a shell with job control."""
    script = 'set -m; "$@"; echo stopped; fg >/dev/null; echo ended'
    with Watched(["bash", "-c", script, "job", *command(server)], 80, 24) as top:
        top.sees(r"vector")
        entered = top.raw.count(b"\x1b[?1049h")
        top.keys("\x1a")
        top.wait(lambda _: b"stopped" in top.raw, "the stop")
        assert b"\x1b[?1049l" in top.raw
        top.wait(lambda text: top.raw.count(b"\x1b[?1049h") > entered and "vector" in text, "the view again")
        top.keys("q")
        assert top.end() == 0 and b"ended" in top.raw


@needs_terminal
def test_top_survives_a_server_restart(server):
    """The last values stay on the screen while the server is away."""
    with fault_proxy.FaultProxy(server.http) as between:
        between.stop()
        words = [str(servers.galatea_binary()), "top", "-u", between.address, "--metrics-url", "127.0.0.1:1", "--interval", "0.2"]
        with Watched(words, 80, 24) as top:
            top.sees(r"AWAY, \d+ tr(y|ies): failed to connect")
            between.start()
            top.sees(r"2 models, 1 ready")
            top.wait(lambda text: "AWAY" not in text, "the server")
            between.stop()
            text = top.sees(r"AWAY, \d+ tries")
            assert "vector" in text
            between.start()
            top.wait(lambda text: "AWAY" not in text, "the server again")
            top.keys("q")
            assert top.end() == 0
