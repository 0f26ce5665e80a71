"""Counting is exact: the load tool subtracts two of these and divides."""

import concurrent.futures
import json

import numpy as np
import pytest

import clients
from repositories import add_sub_config, identity_config

PHASES = ("queue", "compute_input", "compute_infer", "compute_output")


def post(server, model, body):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, answer


def counters(server, model):
    """success, failures by reason, inferences, executions as on the metrics page."""
    found = clients.metrics(server)
    series = f'model="{model}",version="1"'
    failures = {
        reason: found["nv_inference_request_failure", f'model="{model}",reason="{reason}",version="1"']
        for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER")
    }
    names = ("nv_inference_request_success", "nv_inference_count", "nv_inference_exec_count")
    return (*(found[name, series] for name in names), failures)


NO_FAILURES = dict.fromkeys(("REJECTED", "CANCELED", "BACKEND", "OTHER"), 0)


def test_a_batch_of_eight(repository, serve):
    """One request of 8 rows."""
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path)
    assert counters(server, "simple") == (0, 0, 0, NO_FAILURES)
    assert post(server, "simple", clients.pair_json(rows=8))[0] == 200
    assert counters(server, "simple") == (1, 8, 1, NO_FAILURES)
    counted = clients.statistics(server, "simple")
    assert [(b["batch_size"], b["compute_infer"]["count"]) for b in counted["batch_stats"]] == [(8, 1)]


def test_two_joined(repository, serve):
    """Two requests in one execution."""
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, env={"TRITONSERVER_DELAY_SCHEDULER": "2"})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda rows: post(server, "simple", clients.pair_json(rows)), (1, 3)))
    assert [status for status, _ in answers] == [200, 200]
    assert [json.loads(body)["outputs"][0]["shape"] for _, body in answers] == [[1, 16], [3, 16]]
    assert counters(server, "simple") == (2, 4, 1, NO_FAILURES)
    counted = clients.statistics(server, "simple")
    assert counted["inference_stats"]["success"]["count"] == 2
    assert [b["batch_size"] for b in counted["batch_stats"]] == [4]


@pytest.mark.parametrize("how", ["execute", "panic"])
def test_failed_execution(repository, serve, how):
    """A failure counts as one of the backend and as an execution, and as no inference; the next request is fine."""
    repository.add("failing", "failing", identity_config())
    server = serve(repository.path)
    body = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
    status, answer = post(server, "failing", {**body, "parameters": {"fail": how}})
    assert status == 500 and json.loads(answer)["error"]
    assert counters(server, "failing") == (0, 0, 1, {**NO_FAILURES, "BACKEND": 1})
    assert post(server, "failing", body)[0] == 200
    assert counters(server, "failing") == (1, 1, 2, {**NO_FAILURES, "BACKEND": 1})
    assert clients.statistics(server, "failing")["inference_stats"]["fail"]["count"] == 1


def test_times(repository, serve):
    """The parts are inside the whole, and waiting behind another request is queue time."""
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "50" } }\n'
    repository.add("slow", "identity", identity_config(more=delay))
    server = serve(repository.path)
    body = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert [s for s, _ in pool.map(lambda _: post(server, "slow", body), range(4))] == [200] * 4
    counted = clients.statistics(server, "slow")["inference_stats"]
    assert all(counted[phase]["count"] == 4 for phase in (*PHASES, "success"))
    assert counted["compute_infer"]["ns"] >= 4 * 50e6
    # One instance: the second waits one delay, the third two, the fourth three.
    assert counted["queue"]["ns"] >= 6 * 45e6
    assert sum(counted[phase]["ns"] for phase in PHASES) <= counted["success"]["ns"]
    samples = clients.metrics(server)
    microseconds = samples["nv_inference_queue_duration_us", 'model="slow",version="1"']
    assert abs(microseconds - counted["queue"]["ns"] / 1000) <= 4


def test_exact_under_load(repository, serve):
    """Two thousand requests from 8 threads over both protocols: not one too few or too many."""
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path)

    def worker(k):
        protocol = ("http", "grpc")[k % 2]
        pair = {name: np.full((1 + k % 3, 16), k, np.int32) for name in ("INPUT0", "INPUT1")}
        with clients.client(server, protocol) as stock:
            for _ in range(250):
                clients.infer(stock, protocol, "simple", pair)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(worker, range(8)))
    rows = sum(250 * (1 + k % 3) for k in range(8))
    success, inferences, executions, failures = counters(server, "simple")
    assert (success, inferences, failures) == (2000, rows, NO_FAILURES)
    counted = clients.statistics(server, "simple")
    assert counted["inference_count"] == rows and counted["execution_count"] == executions
    batches = counted["batch_stats"]
    assert sum(b["compute_infer"]["count"] for b in batches) == executions
    assert sum(b["batch_size"] * b["compute_infer"]["count"] for b in batches) == rows
    assert [b["batch_size"] for b in batches] == sorted(b["batch_size"] for b in batches)


def test_refused_requests_are_no_executions(repository, serve):
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path)
    assert post(server, "simple", {"inputs": []})[0] == 400
    assert counters(server, "simple")[:3] == (0, 0, 0)
    assert clients.statistics(server, "simple")["last_inference"] == 0
