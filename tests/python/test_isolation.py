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
import torchscript
from repositories import EXAMPLES, add_sub_config, copy_example, tensor, write_model
from test_python_workers import is_ready, until

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


@pytest.fixture
def pair_of_models(tmp_path, serve):
    """`isolated` and `steady` are the same model; `simple` is ONNX, isolated too."""
    write_model(tmp_path, "isolated", "galatea", "add_sub", add_sub_config(more=isolation()))
    write_model(tmp_path, "steady", "galatea", "add_sub", add_sub_config(more=""))
    copy_example(tmp_path, "simple", (EXAMPLES / "simple/config.pbtxt").read_text() + isolation())
    return serve(tmp_path)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_isolated_models_answer_as_others_do(pair_of_models, pair, protocol):
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


def test_refusals_read_the_same(pair_of_models):
    wrong = clients.pair_json(width=3)
    answers = [clients.ask(pair_of_models.http, "POST", f"/v2/models/{m}/infer", wrong) for m in ("isolated", "steady")]
    assert answers[0][0] == answers[1][0] == 400
    assert answers[0][2].decode().replace("isolated", "steady") == answers[1][2].decode()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGFPE, signal.SIGABRT])
def test_a_crash_under_load_costs_one_request(pair_of_models, how):
    server, stop, answers, others = pair_of_models, [], [], []
    first = pid_of(server, "isolated")

    def call(model, kept):
        while not stop:
            kept.append(ask(server, model))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        callers = [pool.submit(call, *job) for job in 3 * [("isolated", answers), ("steady", others)]]
        try:
            until(lambda: len(answers) > 100 and len(others) > 100, 30)
            begin = time.monotonic()
            os.kill(first, how)
            until(lambda: pid_of(server, "isolated") not in (None, first), 20)
            until(lambda: is_ready(server, "isolated"), 20)
            restarted = time.monotonic() - begin
            seen = len(answers)
            until(lambda: len(answers) > seen + 100, 30)
        finally:
            stop.append(True)
        assert not [caller.exception() for caller in callers if caller.exception()]
    failed = [answer for status, answer in answers if status != 200]
    assert len(failed) <= 1, failed
    assert all("isolated process of model 'isolated'" in a["error"] and how.name in a["error"] for a in failed), failed
    assert all(status == 200 for status, _ in others)
    assert restarted < 2, restarted
    print(f"restarted after {how.name} in {restarted * 1000:.0f} ms")


def test_crashes_leave_nothing_behind(pair_of_models):
    server, counts = pair_of_models, []
    for _ in range(5):
        ended = pid_of(server, "simple")
        os.kill(ended, signal.SIGKILL)
        until(lambda: pid_of(server, "simple") not in (None, ended) and is_ready(server, "simple"), 60)
        assert ask(server, "simple")[0] == 200
        assert len(processes.children(server.pid)) == 2
        counts.append(processes.open_files(server.pid))
    assert max(counts) - min(counts) <= 2, counts


def test_a_model_that_keeps_crashing_is_not_ready(tmp_path, serve):
    """Its process cannot be started again: the file is gone. Readiness tells, and all else goes on."""
    write_model(tmp_path, "steady", "galatea", "add_sub", add_sub_config(more=""))
    copy_example(tmp_path, "simple", (EXAMPLES / "simple/config.pbtxt").read_text() + isolation())
    server = serve(tmp_path)
    (tmp_path / "simple/1/model.onnx").rename(tmp_path / "away")
    os.kill(pid_of(server, "simple"), signal.SIGKILL)
    until(lambda: not is_ready(server, "simple"), 10)
    assert ask(server, "simple")[0] == 503
    assert ask(server, "steady")[0] == 200
    (tmp_path / "away").rename(tmp_path / "simple/1/model.onnx")
    until(lambda: is_ready(server, "simple"), 60)
    assert ask(server, "simple")[0] == 200


def test_a_server_that_ends_leaves_no_process(pair_of_models):
    server, before = pair_of_models, processes.shared_memory()
    running = processes.descendants(server.pid)
    assert len(running) == 2
    server.process.kill()
    server.wait_for_exit()
    assert processes.wait_for_end(running, 10) == []
    assert processes.shared_memory() <= before


def test_an_orderly_exit_ends_the_processes(pair_of_models):
    running = processes.descendants(pair_of_models.pid)
    assert pair_of_models.stop() == 0
    assert processes.wait_for_end(running, 5) == []


def test_a_backend_can_isolate_all_its_models(tmp_path, serve):
    write_model(tmp_path, "isolated", "galatea", "add_sub", add_sub_config(more=""))
    write_model(tmp_path, "exempt", "galatea", "add_sub", add_sub_config(more=isolation("none")))
    server = serve(tmp_path, "--backend-config=add_sub,isolation=process")
    assert ask(server, "isolated")[0] == ask(server, "exempt")[0] == 200
    assert len(processes.children(server.pid)) == 1 and pid_of(server, "isolated")


def test_an_unknown_isolation_is_refused_by_name(tmp_path, serve):
    write_model(tmp_path, "wrong", "galatea", "add_sub", add_sub_config(more=isolation("thread")))
    write_model(tmp_path, "steady", "galatea", "add_sub", add_sub_config(more=""))
    server = serve(tmp_path, "--exit-on-error=false")
    index = json.loads(clients.ask(server.http, "POST", "/v2/repository/index")[2])
    reasons = {entry["name"]: entry.get("reason", "") for entry in index}
    assert "isolation must be 'process' or 'none', but is 'thread'" in reasons["wrong"]
    assert ask(server, "steady")[0] == 200


def test_a_process_that_hangs_is_replaced(tmp_path, serve):
    """Stopped in the middle: its request fails when the limit has passed, the others are answered by its successor."""
    slow = isolation(isolation_execution_timeout_seconds=2)
    write_model(tmp_path, "isolated", "galatea", "add_sub", add_sub_config(more=slow))
    write_model(tmp_path, "steady", "galatea", "add_sub", add_sub_config(more=""))
    server = serve(tmp_path)
    stopped = pid_of(server, "isolated")
    os.kill(stopped, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(ask, server, "isolated")
        until(lambda: pid_of(server, "isolated") not in (None, stopped) and is_ready(server, "isolated"), 30)
        assert ask(server, "steady")[0] == 200
        status, answer = stuck.result(30)
    assert status in (200, 503), answer
    assert ask(server, "isolated")[0] == 200


@pytest.mark.skipif(not servers.has_libtorch(), reason="no libtorch here: apt-get install libtorch-dev g++")
def test_an_isolated_torchscript_model(tmp_path, serve):
    """It answers, dies and answers again; its server never opens libtorch for a model."""
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
            until(lambda: pid_of(server, "torch") not in (None, ended) and is_ready(server, "torch"), 60)
    assert "libtorch" in open(f"/proc/{pid_of(server, 'torch')}/maps").read()
    assert "libtorch" not in open(f"/proc/{server.pid}/maps").read()
