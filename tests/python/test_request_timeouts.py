"""The parameter `timeout` of a request acts where the policy of a queue lets it act, and nowhere else."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import clients
import repositories
import tiers

MODEL = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
"""
BATCHING = "dynamic_batching { max_queue_delay_microseconds: 1000 }\n"
OVERRIDE = """dynamic_batching {
  preferred_batch_size: 64
  max_queue_delay_microseconds: 60000000
  default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 60000000 }
}
"""
STEP = 'ensemble_scheduling { step [ { model_name: "plain" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } ] }\n'
REQUESTS = 48
# Microseconds that every request outlives.
SHORTEST = 1


def tensors(dims="-1"):
    return repositories.tensor("input", "IN", "TYPE_INT32", dims) + repositories.tensor("output", "OUT", "TYPE_INT32", dims)


def write(folder, target):
    for name, more in (("plain", ""), ("batched", BATCHING), ("overriding", OVERRIDE)):
        config = tensors() + (f"max_batch_size: 64\n{more}" if more else "")
        repositories.write_model(folder, name, target, "python", config, {"1/model.py": MODEL})
    repositories.write_model(folder, "ensemble", target, "ensemble", tensors() + STEP)


def answer(server, model, shape):
    body = {"inputs": [clients.tensor_json("IN", np.ones(shape, np.int32))], "parameters": {"timeout": SHORTEST}}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, text


@tiers.both
@pytest.mark.parametrize("model, shape", [("plain", [4]), ("ensemble", [4]), ("batched", [1, 4])])
def test_an_executing_request_is_not_ended_by_its_timeout(stage, target, model, shape):
    server = stage.get(target, write)
    with ThreadPoolExecutor(16) as callers:
        answers = list(callers.map(lambda _: answer(server, model, shape), range(REQUESTS)))
    assert [status for status, _ in answers] == [200] * REQUESTS, answers


@tiers.both
def test_a_timeout_acts_if_the_queue_policy_allows_it(stage, target):
    status, text = answer(stage.get(target, write), "overriding", [1, 4])
    assert (status, b"Request timeout expired" in text) == (503, True), text
