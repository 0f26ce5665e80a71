"""Sequences: the same requests to our server and to the real Triton, with a Python model that tells what it sees."""

import json
import re

import numpy as np
import pytest

import clients
import sequence_plays
import servers
from test_lifecycle import until
from sequence_plays import step, text, told
from test_streams import message, play

RUNS = {
    "rows_that_are_not_ready": {
        "held": 7, "requests": [step(1, 1, "s"), step(2, 2, "s"), step(3, 3, "s"), step(3, 4), step(1, 5, "e"), step(2, 6, "e"), step(3, 7, "e")],
    },
    "fp32_controls": {
        "held": 3, "settings": {"data_type": "fp32", "corrid": "TYPE_INT32"}, "requests": [step(1, 1, "s"), step(2, 2, "s"), step(2, 3, "e")],
    },
    "bool_controls": {
        "held": 3, "settings": {"data_type": "bool", "corrid": "TYPE_INT64"}, "requests": [step(1, 1, "s"), step(2, 2, "s"), step(2, 3, "e")],
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
    "one_request_is_all": {"held": 2, "requests": [step(1, 1, "se"), step(1, 2, "se"), step(1, 3)]},
    "errors": {"requests": [step(0, 1, "s"), step(1, 1), step("", 1, "s"), step(1, 2, "s"), step(1, 3, "e"), step(1, 4)]},
    # Which requests meet in a batch depends on when they come.
    "oldest": {
        "any_batches": True, "settings": {"strategy": "oldest { max_candidate_sequences: 4 }"},
        "requests": [step(1, 1, "s"), step(1, 2), step(2, 3, "s"), step(2, 4), step(1, 5, "e"), step(2, 6, "e")],
    },
    "oldest_together": {
        "held": 3, "settings": {"strategy": "oldest { max_candidate_sequences: 4 }"},
        "requests": [step(1, 1, "s"), step(1, 2), step(2, 3, "s"), step(3, 4, "s"), step(3, 5, "e"), step(2, 6, "e"), step(1, 7, "e")],
    },
    "a_backlog": {
        "settings": {"max_batch_size": 1},
        "requests": [step(1, 1, "s"), step(2, 2, "s"), step(3, 3, "se"), step(2, 4, "e"), step(1, 5), step(1, 6, "e")],
    },
    "a_backlog_of_several_slots": {
        "held": 4, "backlogged": 3, "settings": {"max_batch_size": 2},
        "requests": [step(1, 1, "s"), step(2, 2, "s"), step(3, 3, "s"), step(4, 4, "se"), step(1, 5, "e"), step(3, 6, "e"), step(2, 7, "e")],
    },
}


def run(target, folder, case):
    sequence_plays.write(folder, target, **case.get("settings", {}))
    env = {}
    if "held" in case:
        env["TRITONSERVER_DELAY_SCHEDULER"] = str(case["held"])
    if "backlogged" in case:
        env["TRITONSERVER_BACKLOG_DELAY_SCHEDULER"] = str(case["backlogged"])
    with servers.TARGETS[target](folder, env=env) as server:
        lines = told(server, case["requests"], in_order=False)
        # A request that begins no sequence and has none is not counted.
        counts = statistics(server, sum("must specify" not in line for line in lines))
    if case.get("any_batches"):
        return sorted(re.sub(r"rows=.* row=\d+ ", "", line) for line in lines), counts[0]
    return lines, counts


def statistics(server, requests, model="recorder"):
    """Once all requests are counted: the real server counts them after it has answered."""
    until(lambda: sum(clients.statistics(server, model)["inference_stats"][name]["count"] for name in ["success", "fail"]) >= requests)
    told = clients.statistics(server, model)
    counts = {name: told["inference_stats"][name]["count"] for name in ["success", "fail", "queue", "compute_infer"]}
    batches = {batch["batch_size"]: batch["compute_infer"]["count"] for batch in told.get("batch_stats", [])}
    return told["inference_count"], told["execution_count"], counts, batches


@pytest.mark.parametrize("case", RUNS)
def test_real_server_tells_the_same(case, tmp_path):
    if not servers.has_triton():
        pytest.skip("the real Triton is not installed")
    ours = run("galatea", tmp_path / "galatea", RUNS[case])
    real = run("triton", tmp_path / "triton", RUNS[case])
    assert ours == real, json.dumps([ours, real], indent=1)


ITERATIVE = {
    "oldest": {},
    "direct": {"strategy": "iterative_sequence: true direct { }"},
    "one_response": {"decoupled": False},
}


def count(number, model="counter", **fields):
    """A request that belongs to no sequence of its client's."""
    return message(model, {"INPUT": np.full([1, 1], number, np.int32)}, str(number), **fields)


def run_counter(target, folder, settings):
    sequence_plays.write_counter(folder, target, **settings)
    with servers.TARGETS[target](folder) as server:
        lines = [f"{reply[1]} {text(reply)}" for reply in play(server, [count(3), count(1), count(2)])[0]]
        # An inference for each execution. The real server counts a success for each as well, and a failure at the end.
        return sorted(lines, key=lambda line: line[0]), statistics(server, 3, "counter")[0]


@pytest.mark.parametrize("case", ITERATIVE)
def test_requests_are_executed_again_as_by_the_real_server(case, tmp_path):
    ours = run_counter("galatea", tmp_path / "galatea", ITERATIVE[case])
    if not servers.has_triton():
        pytest.skip("the real Triton is not installed")
    real = run_counter("triton", tmp_path / "triton", ITERATIVE[case])
    assert ours == real, json.dumps([ours, real], indent=1)


def test_a_model_that_is_not_iterative_cannot_have_its_requests_again(tmp_path):
    """The real server leaves such a request open for ever."""
    text = "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag."
    plain = "oldest { max_candidate_sequences: 4 }"
    sequence_plays.write_counter(tmp_path, "galatea", "streams", strategy=plain)
    sequence_plays.write_counter(tmp_path, "galatea", "single", strategy=plain, decoupled=False)
    with servers.galatea(tmp_path) as server:
        for model in ["streams", "single"]:
            replies, *_ = play(server, [step(5, 2, "s", model=model)])
            assert replies[-1][0] == text, replies
