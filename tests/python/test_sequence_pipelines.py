"""Sequences through ensembles and through calls of Python models, beside the real Triton."""

import pytest

import repositories
import sequence_plays
import tiers
from sequence_plays import step, told

# Answers with the sum of what it has seen of a sequence, by its id. 13 fails.
ADDER = '''
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.step(request) for request in requests]

    def step(self, request):
        start, corrid, value = (
            pb.get_input_tensor_by_name(request, name).as_numpy().item() for name in ("START", "CORRID", "INPUT"))
        if value == 13:
            return pb.InferenceResponse(error=pb.TritonError("unlucky"))
        self.sums[corrid] = value if start else self.sums[corrid] + value
        return pb.InferenceResponse([pb.Tensor("OUTPUT", np.array([[self.sums[corrid]]], np.int32))])
'''

# Asks a model of sequences with the id and the flags of its own request.
CALLER = '''
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [self.call(request) for request in requests]

    def call(self, request):
        call = pb.InferenceRequest(
            model_name="recorder", requested_output_names=["OUTPUT"], inputs=[pb.get_input_tensor_by_name(request, "INPUT")],
            correlation_id=request.correlation_id(), flags=request.flags(), request_id=request.request_id())
        response = call.exec()
        if response.has_error():
            return pb.InferenceResponse(error=response.error())
        return pb.InferenceResponse(response.output_tensors())
'''


def ensemble(output, *steps):
    text = "max_batch_size: 4\n" + repositories.tensor("input", "INPUT", "TYPE_INT32", "1") + repositories.tensor("output", "OUTPUT", output, "1")
    parts = "".join(
        f'step {{ model_name: "{model}" model_version: -1 input_map {{ key: "INPUT" value: "{taken}" }} '
        f'output_map {{ key: "OUTPUT" value: "{given}" }} }}\n' for model, taken, given in steps)
    return text + f"ensemble_scheduling {{\n{parts}}}\n"


def write(repository, target):
    sequence_plays.write(repository, target, strategy="oldest { max_candidate_sequences: 4 }")
    adder = sequence_plays.config("oldest { max_candidate_sequences: 4 }").replace("TYPE_STRING", "TYPE_INT32")
    for name in ("first", "second"):
        repositories.write_model(repository, name, target, "python", adder, {"1/model.py": ADDER})
    repositories.write_model(repository, "simple_pipeline", target, "ensemble", ensemble("TYPE_STRING", ("recorder", "INPUT", "OUTPUT")))
    sequence_plays.write(repository, target, "texts", strategy="oldest { max_candidate_sequences: 4 }", corrid=None)
    repositories.write_model(repository, "text_pipeline", target, "ensemble", ensemble("TYPE_STRING", ("texts", "INPUT", "OUTPUT")))
    two = ensemble("TYPE_STRING", ("first", "INPUT", "sum"), ("recorder", "sum", "OUTPUT"))
    repositories.write_model(repository, "two_steps", target, "ensemble", two)
    beside = ("max_batch_size: 4\n" + repositories.tensor("input", "INPUT", "TYPE_INT32", "1") + repositories.tensor("output", "OUTPUT", "TYPE_STRING", "1"))
    repositories.write_model(repository, "caller", target, "python", beside, {"1/model.py": CALLER})


RUNS = {
    "a_pipeline": ("simple_pipeline", [(1, 1, "s"), (1, 2, ""), (2, 3, "s"), (1, 4, "e"), (2, 5, "e")]),
    "two_steps_with_states": ("two_steps", [(1, 1, "s"), (1, 2, ""), (2, 30, "s"), (1, 4, "e"), (2, 50, "e")]),
    "a_pipeline_without_a_start": ("simple_pipeline", [(7, 1, "")]),
    "a_pipeline_without_a_sequence": ("simple_pipeline", [(0, 1, "")]),
    "a_pipeline_that_fails_within_a_sequence": ("two_steps", [(3, 1, "s"), (3, 13, ""), (3, 2, ""), (3, 3, "e")]),
    "a_pipeline_with_text_ids": ("text_pipeline", [("a", 1, "s"), ("a", 2, ""), ("a", 3, "e")]),
    "calls": ("caller", [(1, 1, "s"), (1, 2, ""), (2, 3, "s"), (1, 4, "e"), (2, 5, "e")]),
    "calls_without_a_start": ("caller", [(9, 1, "")]),
}


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, module_stage):
    return module_stage.get(request.param, write)


@pytest.mark.parametrize("case", RUNS)
def test_sequence_pipelines_equal_tritons(case, server, recorded):
    model, requests = RUNS[case]
    # One after the other, as their order is what is asked about.
    recorded.holds(server.target, [told(server, [step(*request, model)])[0] for request in requests])


def test_sums_pass_from_step_to_step(server):
    """The second model adds up the sums of the first."""
    lines = [told(server, [step(21, value, flags, "two_steps")])[0] for value, flags in ((1, "s"), (2, ""), (3, "e"))]
    assert [line.split("sum=")[1].split()[0] for line in lines] == ["1", "4", "10"], lines
