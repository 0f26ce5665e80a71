"""Sequences: the same requests to our server and to the real Triton, with a Python model that tells what it sees."""

import re

import numpy as np
import pytest

import clients
import sequence_plays
import tiers
import waiting
from sequence_plays import step, text, told
from test_streams import message, play

RUNS = {
    "rows_that_are_not_ready": {
        "held": 8, "requests": [
            step(1, 1, "s"), step(2, 2, "s"), step(3, 3, "s"), step(3, 4), step(1, 5, "e"), step(2, 6, "e"), step(3, 7), step(3, 8, "e")],
    },
    "fp32_controls": {
        "held": 4, "settings": {"data_type": "fp32", "corrid": "TYPE_INT32"},
        "requests": [step(1, 1, "s"), step(2, 2, "s"), step(2, 3), step(2, 4, "e")],
    },
    "bool_controls": {
        "held": 4, "settings": {"data_type": "bool", "corrid": "TYPE_INT64"},
        "requests": [step(1, 1, "s"), step(2, 2, "s"), step(2, 3), step(2, 4, "e")],
    },
    "text_ids": {
        "settings": {"corrid": None}, "requests": [step("first", 1, "s"), step("first", 2), step("first", 3, "e"), step("first", 4)],
    },
    "without_a_batch_dimension": {
        "settings": {"max_batch_size": 0},
        "requests": [step(7, 1, "s", batched=False), step(7, 2, batched=False), step(8, 3, "s", batched=False), step(7, 4, "e", batched=False),
                     step(8, 5, "e", batched=False)],
    },
    "a_start_within_a_sequence": {"requests": [step(1, 1, "s"), step(1, 2), step(1, 3, "s"), step(1, 4, "e")]},
    "one_request_is_all": {"held": 4, "requests": [step(1, 1, "se"), step(1, 2, "se"), step(2, 3, "se"), step(2, 4, "se"), step(1, 5)]},
    "errors": {"requests": [step(0, 1, "s"), step(1, 1), step("", 1, "s"), step(1, 2, "s"), step(1, 3, "e"), step(1, 4)]},
    # Which requests meet in a batch depends on when they come.
    "oldest": {
        "any_batches": True, "settings": {"strategy": "oldest { max_candidate_sequences: 4 }"},
        "requests": [step(1, 1, "s"), step(1, 2), step(2, 3, "s"), step(2, 4), step(1, 5, "e"), step(2, 6, "e")],
    },
    # The last request releases those that are held, so that all others are there by then. One sequence goes on: where two do, the
    # real server executes their next requests together or apart, as its threads meet. One ends, with the last request: the real
    # server gives the place of a sequence away with its END, while that waits, and would not count who comes there.
    "oldest_together": {
        "held": 4, "settings": {"strategy": "oldest { max_candidate_sequences: 4 }"},
        "requests": [step(1, 1, "s"), step(1, 2), step(1, 7, "e"), step(2, 3, "s"), step(4, 5, "s"), step(3, 4, "se")],
    },
    "a_backlog": {
        "settings": {"max_batch_size": 1},
        "requests": [step(1, 1, "s"), step(2, 2, "s"), step(3, 3, "se"), step(2, 4, "e"), step(1, 5), step(1, 6, "e")],
    },
    "a_backlog_of_several_slots": {
        "held": 8, "backlogged": 2, "settings": {"max_batch_size": 2},
        "requests": [
            step(1, 1, "s"), step(2, 2, "s"), step(3, 3, "se"), step(4, 4, "se"), step(1, 5), step(1, 6), step(1, 7, "e"),
            step(2, 8), step(2, 9), step(2, 10, "e")],
    },
}


def run(target, stage, case):
    env = {}
    if "held" in case:
        env["TRITONSERVER_DELAY_SCHEDULER"] = str(case["held"])
    if "backlogged" in case:
        env["TRITONSERVER_BACKLOG_DELAY_SCHEDULER"] = str(case["backlogged"])
    server = stage.get(target, lambda folder, target: sequence_plays.write(folder, target, **case.get("settings", {})), env=env)
    lines = told(server, case["requests"], in_order=False)
    # A request that begins no sequence and has none is not counted.
    counts = statistics(server, sum("must specify" not in line for line in lines))
    if case.get("any_batches"):
        return sorted(re.sub(r"rows=.* row=\d+ ", "", line) for line in lines), counts[0]
    return lines, counts


def statistics(server, requests, model="recorder"):
    """Once all requests are counted: the real server counts them after it has answered."""
    def is_counted():
        counted = clients.statistics(server, model)["inference_stats"]
        return sum(counted[name]["count"] for name in ["success", "fail"]) >= requests

    waiting.eventually("all requests are counted", is_counted)
    told = clients.statistics(server, model)
    counts = {name: told["inference_stats"][name]["count"] for name in ["success", "fail", "queue", "compute_infer"]}
    batches = {batch["batch_size"]: batch["compute_infer"]["count"] for batch in told.get("batch_stats", [])}
    return told["inference_count"], told["execution_count"], counts, batches


@tiers.both
@pytest.mark.parametrize("case", RUNS)
def test_sequences_equal_tritons(case, target, stage, recorded):
    recorded.holds(target, run(target, stage, RUNS[case]))


ITERATIVE = {
    "oldest": {},
    "direct": {"strategy": "iterative_sequence: true direct { }"},
    "one_response": {"decoupled": False},
}


def count(number, model="counter", **fields):
    """A request that belongs to no sequence of its client's."""
    return message(model, {"INPUT": np.full([1, 1], number, np.int32)}, str(number), **fields)


@tiers.both
@pytest.mark.parametrize("case", ITERATIVE)
def test_rescheduled_requests_equal_tritons(case, target, stage, recorded):
    server = stage.get(target, lambda folder, target: sequence_plays.write_counter(folder, target, **ITERATIVE[case]))
    lines = [f"{reply[1]} {text(reply)}" for reply in play(server, [count(3), count(1), count(2)])[0]]
    # An inference for each execution, counted by the real server after it has answered. It counts a success for each as
    # well, and a failure at the end.
    waiting.eventually("each execution is counted", lambda: clients.statistics(server, "counter")["inference_count"] >= 3 + 1 + 2)
    recorded.holds(target, [sorted(lines, key=lambda line: line[0]), clients.statistics(server, "counter")["inference_count"]])


def test_a_model_that_is_not_iterative_cannot_reschedule_requests(stage):
    """Triton leaves such a request open for ever."""
    text = "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag."
    plain = "oldest { max_candidate_sequences: 4 }"

    def write(folder, target):
        sequence_plays.write_counter(folder, target, "streams", strategy=plain)
        sequence_plays.write_counter(folder, target, "single_response", strategy=plain, decoupled=False)

    server = stage.get("galatea", write)
    for model in ["streams", "single_response"]:
        replies, *_ = play(server, [step(5, 2, "s", model=model)])
        assert replies[-1][0] == text, replies


def write(folder, target):
    """Models of one slot, of several instances, and one that dies when it is told to."""
    sequence_plays.write(folder, target, "single", max_batch_size=1, idle=400_000)
    sequence_plays.write(folder, target, "waiting", max_batch_size=1)
    sequence_plays.write(folder, target, "instances", max_batch_size=2, instances=2)
    sequence_plays.write(folder, target, "numbers", corrid="TYPE_UINT32")
    sequence_plays.write(folder, target, "texts", corrid="TYPE_STRING")
    sequence_plays.write(folder, target, "mortal", instances=2, dies=True)


@pytest.fixture(scope="module")
def server(module_stage):
    return module_stage.get("galatea", write)


def ask(server, *requests):
    """Each request by itself, when the one before it is answered."""
    return [line for request in requests for line in told(server, [request])]


def sums(lines):
    """What the model has summed up, or the error."""
    return [int(re.search(r"sum=(-?\d+)", line)[1]) if "sum=" in line else line for line in lines]


def test_an_idle_sequence_frees_its_slot_for_a_waiting_one(server):
    """The idle sequence is over: its later requests have no start."""
    assert sums(ask(server, step(1, 1, "s", model="single"))) == [1]
    # It waits until the first is idle for 0.4 s, which nothing else ends.
    assert sums(ask(server, step(2, 5, "se", model="single"))) == [5]
    assert "must specify the START flag" in ask(server, step(1, 2, model="single"))[0]


def test_a_sequence_waits_for_a_slot_only_until_its_requests_expire(server):
    assert sums(ask(server, step(1, 1, "s", model="waiting"))) == [1]
    hasty = step(2, 5, "s", model="waiting")
    hasty.parameters["timeout"].int64_param = 50_000
    # Both are told, although nothing is executed meanwhile, and the slot is as it was.
    lines = told(server, [step(2, 4, "s", model="waiting"), hasty])
    assert lines == ["error: timeout of the corresponding sequence has been expired"] * 2
    assert sums(ask(server, step(1, 2, "e", model="waiting"))) == [3]


def pending(server):
    return clients.metrics(server)["nv_inference_pending_request_count", 'model="waiting",version="1"']


def test_a_disconnected_client_ends_its_sequence(server):
    """Its request waits behind another sequence: it is never executed, and the id is free."""
    assert sums(ask(server, step(1, 1, "s", model="waiting"))) == [1]
    with clients.client(server, "grpc") as stock:
        arrays = {"INPUT": np.full([1, 1], 7, np.int32)}
        call = stock.async_infer("waiting", clients.inputs(clients.MODULES["grpc"], arrays), lambda result, error: None, sequence_id=2,
                                 sequence_start=True)
        waiting.eventually("the request waits", lambda: pending(server) == 1)
        call.cancel()
        waiting.eventually("the request is gone", lambda: pending(server) == 0)
    assert "must specify the START flag" in ask(server, step(2, 1, model="waiting"))[0]
    assert sums(ask(server, step(1, 2, "e", model="waiting"), step(2, 3, "se", model="waiting"))) == [3, 3]


def test_sequences_stay_on_their_instance(server):
    requests = [step(sequence, value, flags, model="instances") for value, flags in [(1, "s"), (10, ""), (100, "e")] for sequence in range(1, 9)]
    found = {}
    for line in told(server, requests):
        found.setdefault(re.search(r"corrid=(\d+)", line)[1], []).extend(sums([line]))
    assert found == {str(sequence): [1, 11, 111] for sequence in range(1, 9)}


def test_correlation_ids_out_of_range_are_refused(server):
    """Triton truncates such numbers, so that two sequences look like one, and writes texts over other memory."""
    assert ask(server, step(1 << 32, 1, "s", model="numbers")) == [
        "error: correlation ID '4294967296' of the request to model 'numbers' is not of type UINT32, which the model takes as CONTROL_SEQUENCE_CORRID"]
    assert "correlation ID 'name' of the request to model 'numbers' is not of type UINT32" in ask(server, step("name", 1, "s", model="numbers"))[0]
    assert "corrid=77 " in ask(server, step(77, 1, "se", model="texts"))[0]
    assert "corrid=a name " in ask(server, step("a name", 1, "se", model="texts"))[0]


def test_a_dead_worker_is_reported_once_per_sequence_and_others_continue(server):
    """Sequences 1 and 2 are on different instances; that of 1 dies."""
    assert sums(ask(server, step(1, 1, "s", model="mortal"), step(2, 1, "s", model="mortal"))) == [1, 1]
    assert "mortal" in ask(server, step(1, 666, model="mortal"))[0]
    lost = ask(server, step(1, 1, model="mortal"))[0]
    assert lost.startswith("error: inference request for sequence 1 to model 'mortal': the instance that had the sequence stopped working")
    assert "must specify the START flag" in ask(server, step(1, 1, model="mortal"))[0]
    assert sums(ask(server, step(2, 2, "e", model="mortal"), step(1, 5, "se", model="mortal"))) == [3, 5]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("name", [31, "by text"])
def test_stock_clients_run_sequences(server, protocol, name):
    model = "texts"
    with clients.client(server, protocol) as stock:
        module = clients.MODULES[protocol]

        def send(value, **flags):
            arrays = {"INPUT": np.full([1, 1], value, np.int32)}
            answer = stock.infer(model, clients.inputs(module, arrays), sequence_id=name, **flags)
            return sums([answer.as_numpy("OUTPUT").reshape(-1)[0].decode()])[0]

        assert [send(1, sequence_start=True), send(2), send(3, sequence_end=True)] == [1, 3, 6]
        with pytest.raises(Exception, match="must specify the START flag"):
            send(4)
