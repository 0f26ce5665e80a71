"""Native models in processes of their own: the same answers, and what becomes of a process that ends or hangs."""

import concurrent.futures
import json
import os
import signal
import time

import numpy as np
import pytest

import clients
import processes
import servers
import shared_flags
import tiers
import torchscript
from repositories import EXAMPLES, add_sub_config, copy_example, tensor, write_model
from test_python_workers import is_ready
from waiting import eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("without_gpus")
ONE_INSTANCE = "instance_group [ { count: 1 kind: KIND_CPU } ]\n"


def isolation(value="process", **more):
    parameters = {"isolation": value, **more}
    return "".join(f'parameters {{ key: "{k}" value {{ string_value: "{v}" }} }}\n' for k, v in parameters.items())


def pid_of(server, model):
    """The process of the only instance of an isolated model."""
    running = [pid for pid in processes.children(server.pid) if not processes.is_zombie(pid) and model in arguments(pid)]
    return running[0] if running else None


def arguments(pid):
    try:
        return open(f"/proc/{pid}/cmdline").read().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def ask(server, model):
    """(status, answer) of one request to a model that adds and subtracts."""
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", clients.pair_json())
    return status, json.loads(text)


def place_simple(server):
    """The ONNX example, isolated."""
    copy_example(server.repository, "simple", (EXAMPLES / "simple/config.pbtxt").read_text() + isolation())
    server.load("simple")


@pytest.fixture
def pair_of_models(shared):
    """`isolated` and `steady` are the same model; `simple` is ONNX, isolated too."""
    server = shared()
    server.place("isolated", "add_sub", add_sub_config(more=isolation()))
    server.place("steady", "add_sub", add_sub_config(more=""))
    place_simple(server)
    return server


def wait_for_another(server, model, ended):
    """Until the model is ready in a process that is not `ended`."""
    eventually(f"{model} has another process", lambda: pid_of(server, model) not in (None, ended) and is_ready(server, model))


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_isolated_models_answer_like_others(pair_of_models, pair, protocol):
    server, (a, b) = pair_of_models, pair
    with clients.client(server, protocol) as stock:
        for model in ("isolated", "simple"):
            for size in (1, 4):
                arrays = {"INPUT0": np.repeat(a, size, axis=0), "INPUT1": np.repeat(b, size, axis=0)}
                outputs = clients.infer(stock, protocol, model, arrays)
                steady = clients.infer(stock, protocol, "steady", arrays)
                for name, value in steady.items():
                    np.testing.assert_array_equal(outputs[name], value)
            only = clients.infer(stock, protocol, model, {"INPUT0": a, "INPUT1": b}, outputs=["OUTPUT1"])
            assert list(only) == ["OUTPUT1"]
            assert clients.counts(server, model)["inferences"] >= 6
    config = json.loads(clients.ask(server.http, "GET", "/v2/models/isolated/config")[2])
    steady = json.loads(clients.ask(server.http, "GET", "/v2/models/steady/config")[2])
    assert config.pop("parameters") == {"isolation": {"string_value": "process"}}
    assert config.pop("name") == "isolated" and steady.pop("name") == "steady"
    for group in config["instance_group"] + steady["instance_group"]:
        group.pop("name")
    steady.pop("parameters")
    assert config == steady
    assert pid_of(server, "isolated") and pid_of(server, "simple") and not pid_of(server, "steady")


def test_errors_are_the_same_with_and_without_isolation(pair_of_models):
    wrong = clients.pair_json(width=3)
    answers = [clients.ask(pair_of_models.http, "POST", f"/v2/models/{m}/infer", wrong) for m in ("isolated", "steady")]
    assert answers[0][0] == answers[1][0] == 400
    assert answers[0][2].decode().replace("isolated", "steady") == answers[1][2].decode()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGFPE, signal.SIGABRT])
def test_a_crash_under_load_fails_one_request(pair_of_models, how):
    server, stop, answers, others = pair_of_models, [], [], []
    first = pid_of(server, "isolated")

    def call(model, kept):
        while not stop:
            kept.append(ask(server, model))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        callers = [pool.submit(call, *job) for job in 3 * [("isolated", answers), ("steady", others)]]
        try:
            eventually("100 requests of both are answered", lambda: len(answers) > 100 and len(others) > 100)
            os.kill(first, how)
            wait_for_another(server, "isolated", first)
            seen = len(answers)
            eventually("100 more are answered", lambda: len(answers) > seen + 100)
        finally:
            stop.append(True)
        assert not [caller.exception() for caller in callers if caller.exception()]
    failed = [answer for status, answer in answers if status != 200]
    assert len(failed) <= 1, failed
    assert all("isolated process of model 'isolated'" in a["error"] and how.name in a["error"] for a in failed), failed
    assert all(status == 200 for status, _ in others)


@tiers.measure
def test_a_crashed_process_is_restarted_quickly(pair_of_models):
    first, begin = pid_of(pair_of_models, "isolated"), time.monotonic()
    os.kill(first, signal.SIGKILL)
    wait_for_another(pair_of_models, "isolated", first)
    took = time.monotonic() - begin
    print(f"restarted in {took * 1000:.0f} ms")
    assert took < 2, took


def test_crashes_leave_no_processes_or_memory(pair_of_models):
    server, files = pair_of_models, None
    for _ in range(5):
        ended = pid_of(server, "simple")
        os.kill(ended, signal.SIGKILL)
        wait_for_another(server, "simple", ended)
        assert ask(server, "simple")[0] == 200
        eventually("only the two processes are left", lambda: len(processes.children(server.pid)) == 2)
        files = files or processes.open_files(server.pid)
    eventually("files are closed", lambda: processes.open_files(server.pid) <= files + 2)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "in order"])
def test_a_stopped_server_leaves_no_process(repository, serve, how):
    repository.add("isolated", "add_sub", add_sub_config(more=isolation()))
    server, before = serve(repository.path), processes.shared_memory()
    running = processes.descendants(server.pid)
    assert len(running) == 1
    server.process.send_signal(how)
    assert server.wait_for_exit() == (-how if how == signal.SIGKILL else 0)
    assert processes.wait_for_end(running, 60) == []
    assert processes.shared_memory() <= before


def test_a_model_that_keeps_crashing_is_not_ready(pair_of_models, tmp_path):
    """The model file is deleted, so its process cannot restart. Readiness reports it; other models continue."""
    server = pair_of_models
    file = server.repository / "simple/1/model.onnx"
    file.rename(tmp_path / "away")
    os.kill(pid_of(server, "simple"), signal.SIGKILL)
    eventually("readiness tells", lambda: not is_ready(server, "simple"))
    assert ask(server, "simple")[0] == 503
    assert ask(server, "steady")[0] == 200
    (tmp_path / "away").rename(file)
    eventually("the model is ready again", lambda: is_ready(server, "simple"))
    assert ask(server, "simple")[0] == 200


def test_a_backend_can_isolate_all_its_models(shared):
    server = shared(*shared_flags.WITHOUT_GPUS, env=shared_flags.NO_GPU)
    server.place("isolated", "add_sub", add_sub_config(more=""))
    server.place("exempt", "add_sub", add_sub_config(more=isolation("none")))
    assert ask(server, "isolated")[0] == ask(server, "exempt")[0] == 200
    eventually("one process is left", lambda: len(processes.children(server.pid)) == 1)
    assert pid_of(server, "isolated")


def test_an_unknown_isolation_is_refused_by_name(shared):
    server = shared()
    server.place("wrong", "add_sub", add_sub_config(more=isolation("thread")), load=False)
    server.place("steady", "add_sub", add_sub_config(more=""))
    status, _, text = clients.ask(server.http, "POST", "/v2/repository/models/wrong/load", {})
    assert status >= 400 and "isolation must be 'process' or 'none', but is 'thread'" in text.decode(), text
    assert ask(server, "steady")[0] == 200


def test_a_hanging_process_is_replaced(shared):
    """The process is stopped: its request fails at the limit, and its successor answers the others."""
    server = shared()
    server.place("isolated", "add_sub", add_sub_config(more=isolation(isolation_execution_timeout_seconds=2)))
    server.place("steady", "add_sub", add_sub_config(more=""))
    stopped = pid_of(server, "isolated")
    os.kill(stopped, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(ask, server, "isolated")
        wait_for_another(server, "isolated", stopped)
        assert ask(server, "steady")[0] == 200
        status, answer = stuck.result(60)
    assert status in (200, 503), answer
    assert ask(server, "isolated")[0] == 200


@tiers.peers
@pytest.mark.skipif(not servers.has_libtorch(), reason="no libtorch here: apt-get install libtorch-dev g++")
def test_an_isolated_torchscript_model_survives_a_crash(tmp_path, serve):
    """The model answers, crashes and answers again; the server itself never opens libtorch for a model."""
    tensors = tensor("input", "x", "TYPE_FP32", "2") + tensor("output", "y", "TYPE_FP32", "2")
    folder = write_model(tmp_path, "torch", "galatea", "pytorch", tensors + ONE_INSTANCE)
    torchscript.write_script(folder / "1/model.pt", "x: Tensor) -> Tensor:\n    return torch.add(x, x)")
    server = serve(tmp_path, "--backend-config=pytorch,isolation=process")
    value = np.array([1.5, -2], np.float32)
    with clients.client(server, "grpc") as stock:
        for _ in range(2):
            np.testing.assert_array_equal(clients.infer(stock, "grpc", "torch", {"x": value})["y"], value + value)
            ended = pid_of(server, "torch")
            os.kill(ended, signal.SIGABRT)
            wait_for_another(server, "torch", ended)
    assert "libtorch" in open(f"/proc/{pid_of(server, 'torch')}/maps").read()
    assert "libtorch" not in open(f"/proc/{server.pid}/maps").read()
