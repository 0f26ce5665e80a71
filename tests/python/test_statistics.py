"""Counting is exact: the load tool subtracts two of these and divides."""

import concurrent.futures
import json
import queue

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

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


def test_a_request_of_eight_rows_is_one_execution(repository, stage):
    """One request of 8 rows."""
    repository.add("simple", "add_sub", add_sub_config())
    server = stage.serves(repository.path)
    assert counters(server, "simple") == (0, 0, 0, NO_FAILURES)
    assert post(server, "simple", clients.pair_json(rows=8))[0] == 200
    assert counters(server, "simple") == (1, 8, 1, NO_FAILURES)
    counted = clients.statistics(server, "simple")
    assert [(b["batch_size"], b["compute_infer"]["count"]) for b in counted["batch_stats"]] == [(8, 1)]


def test_four_batched_requests_are_one_execution(repository, stage):
    """Four requests in one execution."""
    repository.add("simple", "add_sub", add_sub_config())
    server = stage.serves(repository.path, env={"TRITONSERVER_DELAY_SCHEDULER": "4"})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda rows: post(server, "simple", clients.pair_json(rows)), (1, 3, 2, 1)))
    assert [status for status, _ in answers] == [200] * 4
    assert [json.loads(body)["outputs"][0]["shape"] for _, body in answers] == [[1, 16], [3, 16], [2, 16], [1, 16]]
    assert counters(server, "simple") == (4, 7, 1, NO_FAILURES)
    counted = clients.statistics(server, "simple")
    assert counted["inference_stats"]["success"]["count"] == 4
    assert [b["batch_size"] for b in counted["batch_stats"]] == [7]


@pytest.mark.parametrize("how", ["execute", "panic"])
def test_a_failed_execution_counts_as_failure_and_execution(repository, stage, how):
    """A failure counts as a backend failure and an execution, not as an inference; the next request succeeds."""
    repository.add("failing", "failing", identity_config())
    server = stage.serves(repository.path)
    body = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
    status, answer = post(server, "failing", {**body, "parameters": {"fail": how}})
    assert status == 500 and json.loads(answer)["error"]
    assert counters(server, "failing") == (0, 0, 1, {**NO_FAILURES, "BACKEND": 1})
    assert post(server, "failing", body)[0] == 200
    assert counters(server, "failing") == (1, 1, 2, {**NO_FAILURES, "BACKEND": 1})
    assert clients.statistics(server, "failing")["inference_stats"]["fail"]["count"] == 1


def test_times_of_the_parts_fit_within_the_total(repository, stage):
    """The parts are inside the whole, and waiting behind another request is queue time."""
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "50" } }\n'
    repository.add("slow", "identity", identity_config(more=delay))
    server = stage.serves(repository.path)
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


def test_counts_are_exact_under_load(repository, stage):
    """Two thousand requests from 8 threads over both protocols: not one too few or too many."""
    repository.add("simple", "add_sub", add_sub_config())
    server = stage.serves(repository.path)

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


def test_refused_requests_are_not_counted_as_executions(repository, stage):
    repository.add("simple", "add_sub", add_sub_config())
    server = stage.serves(repository.path)
    assert post(server, "simple", {"inputs": []})[0] == 400
    assert counters(server, "simple")[:3] == (0, 0, 0)
    assert clients.statistics(server, "simple")["last_inference"] == 0


SQUARE = """
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
parameters { key: "CUSTOM_INFER_DELAY_NS" value { string_value: "2000000" } }
parameters { key: "CUSTOM_OUTPUT_DELAY_NS" value { string_value: "1000000" } }
parameters { key: "CUSTOM_FAIL_COUNT" value { string_value: "2" } }
parameters { key: "CUSTOM_EMPTY_COUNT" value { string_value: "1" } }
"""
ENTRY = ["compute_infer", "compute_output", "success", "fail", "empty_response", "cancel"]


def ask_square(server, *numbers):
    """Sends a request for each, and waits for all of their responses."""
    answered = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answered.put((result, error)))
        for number in numbers:
            inputs = clients.inputs(tritonclient.grpc, {"IN": np.array([number], np.int32)})
            client.async_stream_infer("square", inputs, enable_empty_final_response=True)
            while True:
                result, _ = answered.get(timeout=60)
                if result and result.get_response().parameters["triton_final_response"].bool_param:
                    break
        client.stop_stream()


def response_statistics(server):
    """By HTTP and by gRPC, which must say the same."""
    (of_http,) = tritonclient.http.InferenceServerClient(server.http).get_inference_statistics("square")["model_stats"]
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        (of_grpc,) = client.get_inference_statistics("square").model_stats
    told = {
        place: {name: {"count": getattr(entry, name).count, "ns": getattr(entry, name).ns} for name in ENTRY}
        for place, entry in of_grpc.response_stats.items()
    }
    assert told == of_http["response_stats"]
    return told


def test_response_statistics_of_square_equal_tritons(repository, stage):
    """Triton's test of `square` expects this: the last response of each request is empty, the two before it fail."""
    repository.add("square", "square", SQUARE)
    server = stage.serves(repository.path)
    assert response_statistics(server) == {}
    kinds = []
    for number in (4, 6, 3):
        ask_square(server, number)
        kinds.append(["success"] * (number - 3) + ["fail"] * 2 + ["empty_response"])
        counted = response_statistics(server)
        assert set(counted) == {str(place) for place in range(max(map(len, kinds)))}
        for place, entry in counted.items():
            here = [kind[int(place)] for kind in kinds if int(place) < len(kind)]
            wanted = {name: here.count(name) for name in ENTRY[2:]}
            wanted |= {"compute_infer": len(here), "compute_output": len(here) - here.count("empty_response")}
            assert {name: entry[name]["count"] for name in ENTRY} == wanted, place
            assert entry["compute_infer"]["ns"] >= 2_000_000 * len(here)
            assert entry["compute_output"]["ns"] >= 1_000_000 * wanted["compute_output"]
            assert sum(entry[name]["ns"] for name in ENTRY[2:]) == sum(entry[name]["ns"] for name in ENTRY[:2])


def test_only_the_first_responses_of_a_stream_are_counted_separately(repository, stage):
    """Triton has an entry for every response position without a limit."""
    config = "\n".join(line for line in SQUARE.splitlines() if "CUSTOM" not in line)
    repository.add("square", "square", config)
    server = stage.serves(repository.path)
    ask_square(server, 1100)
    counted = response_statistics(server)
    assert set(counted) == {str(place) for place in range(1024)}
    assert all(entry["success"]["count"] == 1 for entry in counted.values())
