"""Signals while the server does something that lasts: the first ends it in order and soon, the second ends the program at
once, in every phase. Nothing half-made stays, and no message blames the disk or the package index."""

import http.client
import json
import signal
import threading

import pytest

import clients
import processes
import servers
from model_hub import Hub
from package_index import PackageIndex
from repositories import identity_config, write_model
from waiting import eventually

MODEL = "class TritonPythonModel:\n    pass\n"
SLOW_MODEL = "import sys, time\nprint('the model begins', file=sys.stderr, flush=True)\ntime.sleep(3600)\n"
# What a person would look for in vain.
BLAMED = ["ermission", "GALATEA_HOME", "PIP_FIND_LINKS", "cannot reach", "cannot build", "cannot compile", "cannot install", "CXX"]
STUCK_START = 'parameters { key: "creation_delay_sec" value { string_value: "3600" } }\n'
STUCK_RUN = 'parameters { key: "execute_delay_ms" value { string_value: "3600000" } }\n'
# Hangs where a compiler works, with a child that does the work, as real ones have it.
COMPILER = """\
#!/bin/sh
sleep 3600 &
echo $! > "$(dirname "$0")/child"
wait
"""
VERSION = "".join(f"#define TORCH_VERSION_{part} {number}\n" for part, number in (("MAJOR", 2), ("MINOR", 15), ("PATCH", 0)))


def ended_in_order(server, how):
    """The text of a server that a signal has ended before it served."""
    # Far less than the time that it would wait for a load.
    server.process.send_signal(how)
    assert server.wait_for_exit(20) == 0, server.text()
    text = server.text()
    assert not [word for word in BLAMED if word in text], text
    assert f"Signal ({int(how)}) received." in text
    return text


class SilentIndex(PackageIndex):
    def answer(self, request):
        self.released.wait(120)


def has_ended(pid):
    return not processes.status(pid) or processes.is_zombie(pid)


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def asked_for_file(index):
    return lambda: [path for path in index.asked if path.startswith("/files/")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_environment_build_ends_at_the_first_signal(tmp_path, how):
    """pip waits for an index that sends no more: it is killed, and its folder is removed."""
    write_model(tmp_path / "models", "slow", "galatea", "python", identity_config(), {"1/model.py": MODEL, "requirements.txt": "numpy\n"})
    home = tmp_path / "home"
    with PackageIndex(processes.WHEELS, numpy="stalled") as index:
        env = {**index.environment(), "GALATEA_HOME": str(home), "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"}
        server = servers.galatea(tmp_path / "models", env=env, wait=False)
        eventually("numpy is being downloaded", asked_for_file(index))
        workers = servers.descendants(server.pid)
        assert workers
        text = ended_in_order(server, how)
    assert "interrupted, because the program was asked to stop" in text
    assert all(has_ended(pid) for pid in workers)
    kept = list((home / "python-environments").iterdir())
    assert all(path.is_file() for path in kept), kept


def test_adding_numpy_ends_at_the_first_signal(tmp_path):
    """The server builds this environment because the interpreter has no numpy."""
    write_model(tmp_path / "models", "slow", "galatea", "python", identity_config(), {"1/model.py": MODEL})
    bare = tmp_path / "bare"
    interpreter = next(path for path in processes.interpreters().values() if "target" not in str(path))
    bare.write_text(f'#!/bin/sh\nexec {interpreter} -S "$@"\n')
    bare.chmod(0o755)
    with PackageIndex(processes.WHEELS, numpy="stalled") as index:
        env = {**index.environment(), "GALATEA_HOME": str(tmp_path / "home"), "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"}
        server = servers.galatea(tmp_path / "models", f"--backend-config=python,python-interpreter={bare}", env=env, wait=False)
        eventually("numpy is being downloaded", asked_for_file(index))
        ended_in_order(server, signal.SIGTERM)


def test_an_environment_build_for_a_loading_model_ends_when_draining(tmp_path):
    write_model(tmp_path / "models", "slow", "galatea", "python", identity_config(), {"1/model.py": MODEL, "requirements.txt": "numpy\n"})
    with PackageIndex(processes.WHEELS, numpy="stalled") as index:
        env = {**index.environment(), "GALATEA_HOME": str(tmp_path / "home"), "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"}
        server = servers.galatea(tmp_path / "models", "--model-control-mode=explicit", env=env)
        load = http.client.HTTPConnection(server.http, timeout=60)
        load.request("POST", "/v2/repository/models/slow/load")
        eventually("numpy is being downloaded", asked_for_file(index))
        ended_in_order(server, signal.SIGTERM)
        load.close()


def test_a_library_download_ends_at_the_first_signal(tmp_path):
    """The index accepts the request for ONNX Runtime and never answers."""
    write_model(tmp_path / "models", "net", "galatea", "onnxruntime", identity_config(), {"1/model.onnx": ""})
    home = tmp_path / "home"
    with SilentIndex() as index:
        env = {**index.environment(), "GALATEA_HOME": str(home), "GALATEA_ONNXRUNTIME_LIB": "", "PIP_DEFAULT_TIMEOUT": "600"}
        server = servers.galatea(tmp_path / "models", env=env, wait=False)
        eventually("it is asked for", lambda: index.asked)
        ended_in_order(server, signal.SIGINT)
    assert [name for name in files(home) if not name.endswith((".part", ".lock"))] == []


class SilentHub(Hub):
    """Says what there is, and sends nothing of the large files."""

    def __init__(self):
        self.released = threading.Event()
        super().__init__()

    def respond_from_store(self, request):
        self.released.wait(120)

    def stop(self):
        self.released.set()
        super().stop()


def test_a_model_download_ends_at_the_first_signal(tmp_path):
    hub = SilentHub()
    try:
        config = 'backend: "identity"\n' + identity_config()
        hub.commit("org/models", {"net/config.pbtxt": config, "net/1/weights.bin": "x" * 4000})
        env = {"HF_ENDPOINT": hub.web.url, "NO_PROXY": "*", "no_proxy": "*"}
        server = servers.galatea("hf://org/models", f"--repository-cache-directory={tmp_path / 'cache'}", env=env, wait=False)
        eventually("the large file is asked for", lambda: hub.store.asked)
        ended_in_order(server, signal.SIGTERM)
    finally:
        hub.stop()


@pytest.fixture
def libtorch(tmp_path):
    """A folder that looks like a libtorch, and a compiler that never ends; its child's number is in the file `child`."""
    folder = tmp_path / "libtorch"
    for path, text in {"lib/libtorch_cpu.so": "", "include/torch/script.h": "", "include/torch/headeronly/version.h": VERSION}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    compiler = tmp_path / "compiler/c++"
    compiler.parent.mkdir()
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    return {"GALATEA_LIBTORCH": str(folder), "CXX": str(compiler), "GALATEA_HOME": str(tmp_path / "home")}, compiler.parent / "child"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_compilation_ends_at_the_first_signal(tmp_path, libtorch, how):
    env, child = libtorch
    write_model(tmp_path / "models", "net", "galatea", "pytorch", identity_config(), {"1/model.pt": ""})
    server = servers.galatea(tmp_path / "models", env=env, wait=False)
    pid = int(eventually("the compiler works", lambda: child.exists() and child.read_text()))
    ended_in_order(server, how)
    eventually("the compiler's child has ended", lambda: has_ended(pid))
    assert not (tmp_path / "home/shims/.new").exists()


def test_the_second_signal_ends_a_start_at_once(tmp_path):
    """The model takes an hour to load; the first signal waits for it, as the log says."""
    write_model(tmp_path, "slow", "galatea", "identity", identity_config(more=STUCK_START))
    for how in (signal.SIGINT, signal.SIGTERM):
        server = servers.galatea(tmp_path, "--exit-timeout-secs=3600", wait=False)
        server.wait_for_line("loading: slow")
        server.process.send_signal(how)
        server.wait_for_line("a further signal ends the server at once")
        server.process.send_signal(how)
        assert server.wait_for_exit() == 128 + how
        assert "Ending at once because of another signal" in server.text()


def test_the_second_signal_ends_a_model_process_that_does_not_start(tmp_path):
    write_model(tmp_path, "slow", "galatea", "python", identity_config(), {"1/model.py": SLOW_MODEL})
    server = servers.galatea(tmp_path, "--exit-timeout-secs=3600", wait=False)
    # The first child only tells its version, and a signal ends it in order.
    server.wait_for_line("the model begins")
    workers = servers.descendants(server.pid)
    assert workers
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("a further signal ends the server at once")
    workers += servers.descendants(server.pid)
    server.process.send_signal(signal.SIGINT)
    assert server.wait_for_exit() == 128 + signal.SIGINT
    eventually("the model's processes have ended", lambda: all(has_ended(pid) for pid in workers))


def test_the_second_signal_ends_draining_at_once(tmp_path):
    write_model(tmp_path, "stuck", "galatea", "identity", identity_config(more=STUCK_RUN))
    server = servers.galatea(tmp_path, "--exit-timeout-secs=3600")
    held = http.client.HTTPConnection(server.http, timeout=60)
    row = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]}
    held.request("POST", "/v2/models/stuck/infer", json.dumps(row))
    flight = ("galatea_inference_requests_in_flight", 'model="stuck",version="1"')
    eventually("a request is under way", lambda: clients.metrics(server)[flight] == 1)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("Waiting for in-flight requests")
    server.process.send_signal(signal.SIGTERM)
    assert server.wait_for_exit() == 128 + signal.SIGTERM
    held.close()


@pytest.mark.parametrize(
    "config, files, reason",
    [
        ("instance_group { kind: KIND_GPU gpus: [ 7 ] }\n", {"1/model.pt": ""}, "instance group"),
        ('parameters { key: "INFERENCE_MODE" value { string_value: "perhaps" } }\n', {"1/model.pt": ""}, "INFERENCE_MODE"),
        ("", {}, "unable to find"),
    ],
)
def test_a_pytorch_model_is_checked_before_the_shim_is_compiled(tmp_path, libtorch, config, files, reason):
    env, child = libtorch
    write_model(tmp_path / "models", "net", "galatea", "pytorch", identity_config(more=config), files)
    with servers.galatea(tmp_path / "models", env=env, wait=False) as server:
        # The compiler would work for an hour.
        server.wait_for_line("failed to load 'net'")
        assert server.wait_for_exit() == 1
    last = server.log[-1]
    assert last.startswith("error: creating server: ") and reason in last, server.text()
    assert not child.exists()
