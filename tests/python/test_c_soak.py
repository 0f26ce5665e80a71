"""Backends in C for long: loads, unloads and requests without end, and nothing that the server or a stub holds grows; and the
process of Triton's Python backend is killed."""

import concurrent.futures
import json
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

import clients
import perf_tool
import processes
import servers
import tiers
from repositories import identity_config, write_model
from test_c_backends import EXAMPLE, compile_backend
from waiting import eventually

# They are loaded at the same time, because the end of a stub takes seconds.
MODELS = [f"m{number}" for number in range(8)]
FLAGS = ["--model-control-mode=explicit", "--strict-readiness=false"]
BATCHING = identity_config(max_batch_size=8, more="dynamic_batching { max_queue_delay_microseconds: 200 }\n")
IDENTITY = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""
# KiB that the allocator may keep more after the work than before: it gives memory back when it has time for it. A long run
# finds 8 KiB of each load, and 170 bytes of each request.
AFTER_CYCLES, AFTER_REQUESTS = 8 << 10, 32 << 10


@dataclass
class Work:
    """How often a model is loaded and unloaded, and how many requests are sent to one."""

    cycles: int
    requests: int


LONG = pytest.param(Work(1000, 200_000), id="long", marks=tiers.measure)
PYTHON = [pytest.param(Work(16, 8000), id="short", marks=tiers.peers), LONG]
EXAMPLES = [pytest.param(Work(96, 8000), id="short"), LONG]


def python_library(models, _):
    """Triton's own Python backend, and the beginning of the names of its shared memory."""
    for model in MODELS:
        write_model(models, model, "galatea", "python", BATCHING, {"1/model.py": IDENTITY})
    prefix = f"galatea_test_soak_{os.getpid()}_"
    server = servers.library(models, *FLAGS, f"--backend-config=python,shm-region-prefix-name={prefix}")
    server.region_prefix = prefix
    return server


def example(models, backends):
    compile_backend(backends / "mirror", "mirror", EXAMPLE / "mirror.c")
    for model in MODELS:
        write_model(models, model, "galatea", "mirror", BATCHING)
    server = servers.galatea(models, *FLAGS, f"--backend-directory={backends}")
    server.region_prefix = "galatea_test_none_"
    return server


@pytest.fixture
def start(tmp_path):
    """Starts a server over models that are not loaded; ends it after the test."""
    started = []

    def begin(make):
        started.append(make(tmp_path / "models", tmp_path / "backends"))
        return started[0]

    yield begin
    for server in started:
        assert server.stop() == 0, server.text()
        # The library leaves the name of a stub that was killed.
        for name in Path("/dev/shm").glob(f"{server.region_prefix}*"):
            name.unlink()


def control(server, model, action):
    status, _, text = clients.ask(server.http, "POST", f"/v2/repository/models/{model}/{action}", {})
    assert status == 200, text


def answer(server, model):
    body = {"inputs": [{"name": "INPUT0", "shape": [1, 2], "datatype": "FP32", "data": [1.0, 2.0]}]}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, json.loads(text).get("error")


def infer(server, model):
    assert answer(server, model) == (200, None)


def are_unloaded(server):
    rows = json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])
    return all(row.get("state", "UNAVAILABLE") == "UNAVAILABLE" for row in rows) and not processes.children(server.pid)


def load_and_unload(server, model):
    control(server, model, "load")
    infer(server, model)
    control(server, model, "unload")


def cycle(server, count):
    """So many loads and unloads, those of all models at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(MODELS)) as pool:
        for _ in range(count // len(MODELS)):
            list(pool.map(lambda model: load_and_unload(server, model), MODELS))
            eventually("the models are unloaded and their stubs have ended", lambda: are_unloaded(server))


def counted(server):
    """What is counted in whole pieces: descriptors, threads, processes, names of shared memory."""
    names = [name for name in os.listdir("/dev/shm") if name.startswith(server.region_prefix)]
    return {
        "descriptors": processes.open_files(server.pid),
        "threads": int(processes.status(server.pid)["Threads"]),
        "processes": len(processes.children(server.pid)),
        "names": len(names),
    }


def memory(server):
    """KiB of the server and of each process of it."""
    pids = [server.pid, *processes.running(server.pid)]
    return [processes.rss_mb(pid) * 1024 for pid in pids]


def holds_no_more(server, before):
    """Ends once the counts are not above those before. Connections and threads of a pool end a while after their work."""

    def look():
        now = counted(server)
        assert all(now[name] <= before[name] for name in before), (before, now)
        return True

    eventually("the server holds no more than before", look)


def send(server, folder, count):
    args = ["-m", MODELS[0], "-u", server.grpc, "-i", "grpc", "-a", "--concurrency-range", 16, "-b", 2, "--shape", "INPUT0:16"]
    run = perf_tool.run("galatea", [*args, "--request-count", count], folder, timeout=1800)
    assert run.code == 0, run.out + run.err


@pytest.mark.parametrize(("make", "work"), [
    *[pytest.param(python_library, *w.values, id=f"python-{w.id}", marks=w.marks) for w in PYTHON],
    *[pytest.param(example, *w.values, id=f"example-{w.id}", marks=w.marks) for w in EXAMPLES],
])
class TestForLong:
    def test_loads_and_unloads_leave_nothing_behind(self, start, make, work):
        server = start(make)
        cycle(server, max(work.cycles // 10, len(MODELS)))
        before, [size] = counted(server), memory(server)
        cycle(server, work.cycles)
        holds_no_more(server, before)
        [grown] = memory(server)
        print(f"{work.cycles} cycles: {before}, {counted(server)}, {size:.0f} KiB became {grown:.0f} KiB")
        assert grown - size < AFTER_CYCLES

    def test_requests_leave_nothing_behind(self, start, tmp_path, make, work):
        server = start(make)
        control(server, MODELS[0], "load")
        send(server, tmp_path / "first", work.requests // 4)
        before, sizes = counted(server), memory(server)
        send(server, tmp_path / "second", work.requests)
        holds_no_more(server, before)
        grown = memory(server)
        statistics = clients.counts(server, MODELS[0])
        assert statistics["fail"] == 0 and statistics["executions"] < statistics["success"], statistics
        print(f"{work.requests} requests: {statistics}, {before}, {counted(server)}, KiB {sizes} became {grown}")
        for size, after in zip(sizes, grown, strict=True):
            assert after - size < AFTER_REQUESTS


@tiers.peers
def test_a_killed_stub_fails_requests_until_its_model_is_loaded_again(start):
    server = start(python_library)
    model = MODELS[0]
    control(server, model, "load")
    [stub] = processes.running(server.pid)
    ended, answers = threading.Event(), []

    def ask():
        while not ended.is_set():
            answers.append(answer(server, model))

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for thread in askers:
        thread.start()
    try:
        eventually("requests are answered", lambda: len(answers) > 100)
        os.kill(stub, signal.SIGKILL)
        failed = (500, f"Stub process '{model}_0' is not healthy.")
        eventually("each asker meets the dead stub", lambda: answers.count(failed) > len(askers))
    finally:
        ended.set()
        for thread in askers:
            thread.join()
    assert set(answers) == {(200, None), failed}
    # A load alone finds the model loaded.
    control(server, model, "load")
    assert answer(server, model) == failed
    control(server, model, "unload")
    eventually("the model is unloaded", lambda: are_unloaded(server))
    control(server, model, "load")
    infer(server, model)
