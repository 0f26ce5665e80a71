"""Everything goes wrong with one Python model; another, and one of a built-in backend, answer as before.

What happens is drawn from a fixed seed: workers killed and stopped, clients gone half way, tensors larger than the
shared memory may grow, environments that cannot be built.
"""

import concurrent.futures
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import clients
import processes
import tiers
from repositories import add_sub_config, tensor, write_model
from shared_flags import LIMITED, SHARED_MEMORY
from test_python_workers import IN_OUT, RUNNER, open_identity, write
from waiting import eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("limited")
SEED = 20
ACTIONS = 30
# How much slower the others may get while the machine's two cores also start interpreters.
FACTOR, GRACE = 10, 0.08
IDENTITY = tensor("input", "IN", "TYPE_FP32", "-1") + tensor("output", "OUT", "TYPE_FP32", "-1")
EXPLICIT = ["--model-control-mode=explicit", "--load-model=steady", "--load-model=simple", "--load-model=victim", "--load-model=large"]

GROWS = '''
import os

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        pid = pb.Tensor("PID", np.array([os.getpid()], np.int32))
        sizes = [int(r.inputs()[0].as_numpy()[0]) for r in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros(size, np.uint8)), pid]) for size in sizes]
'''
GROWS_CONFIG = tensor("input", "IN", "TYPE_INT32", "1") + tensor("output", "OUT", "TYPE_UINT8", "-1") + tensor("output", "PID", "TYPE_INT32", "1")


class Asker(threading.Thread):
    """Asks one model without pause and keeps how long each answer took, and what failed."""

    def __init__(self, server, model, body):
        super().__init__(daemon=True)
        self.server, self.model, self.body = server, model, body
        self.times, self.failed, self.done = [], [], threading.Event()

    def run(self):
        while not self.done.is_set():
            begin = time.monotonic()
            status, _, answer = clients.ask(self.server.http, "POST", f"/v2/models/{self.model}/infer", self.body)
            self.times.append(time.monotonic() - begin)
            if status != 200:
                self.failed.append(answer)

    def p99(self, start, end=None):
        times = sorted(self.times[start:end])
        return times[int(len(times) * 0.99)]


def number(value):
    return {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [value]}]}


def victims(server, names=("victim", "large")):
    """Pids of the workers of the models that suffer: the steady one's is known."""
    return [pid for pid in processes.children(server.pid) if pid != server.steady and not processes.is_zombie(pid)]


def kill_worker(server, chance):
    pids = victims(server)
    if pids:
        processes.signal_if_there(chance.choice(pids), signal.SIGKILL)


def stop_worker(server, chance):
    """Stopped, not ended: whoever waits for it waits, until it is killed by a later action or by the server's watchdog."""
    pids = victims(server)
    if pids:
        pid = chance.choice(pids)
        if processes.signal_if_there(pid, signal.SIGSTOP):
            server.stopped.append(pid)
            server.ever_stopped.append(pid)


def kill_stopped(server, chance):
    while server.stopped:
        pid = server.stopped.pop()
        if processes.status(pid).get("PPid") == str(server.pid):
            processes.signal_if_there(pid, signal.SIGKILL)


def client_gone(server, chance):
    """A client that is killed while it sends, or while it waits: its socket is reset."""
    host, port = server.http.split(":")
    body = b"x" * 4096
    head = b"POST /v2/models/victim/infer HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if chance.random() < 0.5:
        connection.sendall(head % 8192 + body)
    else:
        whole = b'{"inputs":[{"name":"IN","shape":[1],"datatype":"INT32","data":[1]}]}'
        connection.sendall(head % len(whole) + whole)
    connection.close()


def client_killed(server, chance):
    """A whole client process, killed as soon as it has printed that its request is sent."""
    code = (
        "import sys, numpy as np, tritonclient.grpc as g\n"
        "c = g.InferenceServerClient(sys.argv[1]); i = g.InferInput('IN', [1], 'INT32'); i.set_data_from_numpy(np.array([1], np.int32))\n"
        "c.async_infer('victim', [i], lambda result, error: None); print('asked', flush=True); sys.stdin.read()"
    )
    client = subprocess.Popen([sys.executable, "-c", code, server.grpc], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with client:
        client.stdout.readline()
        client.kill()


def full_memory(server, chance):
    """More than the shared memory may hold: an error with that reason, in time."""
    array = np.zeros(SHARED_MEMORY // 4 + 1024, np.float32)
    with clients.client(server, "http", network_timeout=10) as stock:
        with pytest.raises(Exception) as caught:
            clients.infer(stock, "http", "large", {"IN": array})
        server.texts.append(str(caught.value))


def failing_environment(server, chance):
    status, _, answer = clients.ask(server.http, "POST", "/v2/repository/models/unbuildable/load", {})
    assert status != 200
    server.texts.append(answer.decode())


COMMON = [kill_worker] * 5 + [client_gone] * 4 + [stop_worker, kill_stopped, kill_stopped]
# Building an environment takes seconds even if it fails: once is enough.
RARE = [full_memory, client_killed] * 2 + [failing_environment]


def plan(chance):
    """All rare actions, among the common ones."""
    actions = RARE + [chance.choice(COMMON) for _ in range(ACTIONS - len(RARE))]
    chance.shuffle(actions)
    # The last word is the watchdog's.
    return [*actions, stop_worker]


@pytest.fixture
def server(tmp_path, serve):
    write(tmp_path, "steady", RUNNER, IN_OUT)
    write(tmp_path, "victim", RUNNER, IN_OUT + "instance_group [ { count: 2 kind: KIND_CPU } ]\n")
    write(tmp_path, "large", open_identity(), IDENTITY)
    write(tmp_path, "unbuildable", RUNNER, IN_OUT)
    (tmp_path / "unbuildable/requirements.txt").write_text("no-such-package-as-this==1.0\n")
    write_model(tmp_path, "simple", "galatea", "add_sub", add_sub_config())
    started = serve(
        tmp_path, *EXPLICIT, f"--backend-config=python,shm-max-byte-size={SHARED_MEMORY}",
        "--backend-config=python,execution-timeout-secs=4",
        env={**processes.offline(), "GALATEA_HOME": str(tmp_path.parent / "home")},
    )
    _, _, answer = clients.ask(started.http, "POST", "/v2/models/steady/infer", number(0))
    started.steady = int(answer.split(b'"data":[')[1].split(b"]")[0])
    started.stopped, started.ever_stopped, started.texts = [], [], []
    return started


@tiers.measure
def test_faults_of_one_model_do_not_affect_others(server, capsys):
    chance = random.Random(SEED)
    steady, simple = Asker(server, "steady", number(0)), Asker(server, "simple", clients.pair_json())
    victim = Asker(server, "victim", number(1))
    for asker in (steady, simple, victim):
        asker.start()
    eventually("both models have answered 400 times", lambda: min(len(steady.times), len(simple.times)) > 400)
    marks = {asker: len(asker.times) for asker in (steady, simple)}
    for action in plan(chance):
        action(server, chance)
        seen = len(steady.times)
        eventually("the steady model goes on", lambda: len(steady.times) > seen + 40)
    during = {asker: asker.p99(mark) for asker, mark in marks.items()}
    eventually("workers that were stopped are gone", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in server.ever_stopped))
    eventually("the victim is ready", lambda: clients.ask(server.http, "GET", "/v2/models/victim/ready")[0] == 200)
    for asker in (steady, simple, victim):
        asker.done.set()
        asker.join(30)
    with capsys.disabled():
        for asker, name in ((steady, "Python"), (simple, "built-in")):
            print(f"\n{name}: p99 {asker.p99(0, marks[asker]) * 1e3:.1f} ms before, {during[asker] * 1e3:.1f} ms during", end="")
        print()
    for asker, mark in marks.items():
        assert asker.failed == []
        assert during[asker] < FACTOR * asker.p99(0, mark) + GRACE
    assert clients.ask(server.http, "POST", "/v2/models/victim/infer", number(0))[0] == 200
    assert clients.ask(server.http, "GET", "/v2/health/live")[0] == 200
    assert len(server.texts) == 3
    assert sum("no-such-package-as-this" in text for text in server.texts) == 1, server.texts
    assert sum("memory" in text for text in server.texts) == 2, server.texts
    assert not [pid for pid in processes.children(server.pid) if processes.is_zombie(pid)]


def test_outputs_over_the_memory_limit_fail_alone(shared):
    """An output exceeds the shared memory limit: its request fails, the worker and other requests continue."""
    server = shared(*LIMITED)
    server.place("grows", "python", GROWS_CONFIG, files={"1/model.py": GROWS})
    before = ask_size(server, 8)
    with pytest.raises(Exception, match="shm-max-byte-size"):
        ask_size(server, SHARED_MEMORY + 1)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sizes = [SHARED_MEMORY + 1 if i % 4 == 0 else 1 << 20 for i in range(24)]
        asked = [(size, pool.submit(ask_size, server, size)) for size in sizes]
        for size, answer in asked:
            assert answer.exception() is not None if size > SHARED_MEMORY else answer.result() == before
    assert ask_size(server, 8) == before


def ask_size(server, size):
    """Has the model answer so many bytes; which process did."""
    with clients.client(server, "grpc") as stock:
        answer = clients.infer(stock, "grpc", "grows", {"IN": np.array([size], np.int32)})
    assert answer["OUT"].size == size
    return int(answer["PID"][0])


def test_the_same_seed_gives_the_same_plan():
    assert plan(random.Random(SEED)) == plan(random.Random(SEED)) != plan(random.Random(SEED + 1))
