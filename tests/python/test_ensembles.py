"""Ensembles with decoupled steps, and what the load tool makes of composing models: our server and the real Triton."""

import os
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
import yaml

import clients
import repositories
import scenarios
import servers
import tiers
import waiting
from test_streams import message, play, repeat_arrays

ENSEMBLE_OUTPUT = 'output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
INPUTS = ["IN", "DELAY", "WAIT"]


def mapping(kind, pairs):
    return " ".join(f'{kind} {{ key: "{key}" value: "{value}" }}' for key, value in pairs.items())


def step(model, inputs, outputs):
    return (f'step {{ model_name: "{model}" model_version: -1 {mapping("input_map", inputs)} '
            f'{mapping("output_map", outputs)} }}\n')


def ensemble(*steps):
    inputs = [line for line in repositories.REPEAT_CONFIG.splitlines(True) if line.startswith("input")]
    return "".join(inputs) + ENSEMBLE_OUTPUT + "ensemble_scheduling {\n" + "".join(steps) + "}\n"


def write(path, target):
    repositories.write_model(path, "repeat", target, "repeat", repositories.REPEAT_CONFIG)
    repositories.write_model(path, "copy", target, "identity", repositories.identity_config("TYPE_INT32"))
    told = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    failing = repositories.identity_config("TYPE_INT32", more=told)
    repositories.write_model(path, "failing", target, "failing", failing)
    start = step("repeat", {name: name for name in INPUTS}, {"OUT": "one"})
    end = {"INPUT0": "one"}, {"OUTPUT0": "OUT"}
    repositories.write_model(path, "streams", target, "ensemble", ensemble(start, step("copy", *end)))
    repositories.write_model(path, "fails", target, "ensemble", ensemble(start, step("failing", *end)))
    nested = step("streams", {name: name for name in INPUTS}, {"OUT": "one"})
    repositories.write_model(path, "nested", target, "ensemble", ensemble(nested, step("copy", *end)))
    chain = yaml.safe_load((scenarios.TESTS / "scenarios/ensemble.yaml").read_text())["models"]
    for name in ["one", "two", "chain", "nested_chain"]:
        model = chain["nested" if name == "nested_chain" else name]
        repositories.write_model(path, name, target, model["backend"], model["config"])


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, module_stage):
    return module_stage.get(request.param, write)


def ask(model, values):
    request = message(model, repeat_arrays(values), "r")
    request.parameters["triton_enable_empty_final_response"].bool_param = True
    return request


@pytest.mark.parametrize("model", ["streams", "nested"])
def test_every_response_of_a_decoupled_step_becomes_a_response(server, model):
    for values in ([4, 5, 6], [7], []):
        replies, code, _ = play(server, [ask(model, values)])
        assert code == grpc.StatusCode.OK
        assert [r[0] for r in replies] == [""] * len(replies)
        assert [r[5] for r in replies if r[5]] == [[np.int32(value).tobytes()] for value in values]
        assert [r[4] for r in replies][-1] is True and all(r[4] is False for r in replies[:-1])


def test_an_error_behind_a_decoupled_step_names_the_ensemble(server):
    replies, _, _ = play(server, [ask("fails", [4])])
    errors = [r[0] for r in replies if r[0]]
    assert errors == ["in ensemble 'fails', model 'failing' was told to fail"], replies


@pytest.mark.skipif(not servers.has_perf_analyzer(), reason="perf_analyzer could not be installed here")
def test_the_load_tool_reports_the_composing_models(server):
    report = servers.perf_analyzer(
        "-m", "nested_chain", "-u", server.http, "--shape", "IN:4", "--request-count", 60,
        "--concurrency-range", 2)
    lines = [line.strip() for line in report.splitlines()]
    composing = [line for line in lines if line.endswith(", version: 1")]
    assert composing == ["chain, version: 1", "one, version: 1", "two, version: 1", "two, version: 1"], report
    counts = [int(line.split()[-1]) for line in lines if line.startswith("Inference count:")]
    # It reads the server's counts when its requests are on their way already: those of a third of a millisecond each that
    # were answered until then are missing.
    per_request = [1, 1, 1, 2, 2]
    assert len(counts) == 5 and all(45 * n <= count <= 60 * n for count, n in zip(counts, per_request)), report


SLOW = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        open({begun!r}, "w").close()
        # Opening a pipe waits until somebody writes to it.
        open({hold!r}).close()

    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
"""
ONE_STEP = 'ensemble_scheduling { step [ { model_name: "held" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } ] }\n'


@tiers.both
def test_an_unload_of_a_step_waits_for_the_load_of_the_ensemble(tmp_path, target):
    """The ensemble becomes ready first and loses its step afterwards."""
    begun, hold, models = tmp_path / "begun", tmp_path / "hold", tmp_path / "models"
    models.mkdir()
    sides = repositories.tensor("input", "IN", "TYPE_INT32", "-1") + repositories.tensor("output", "OUT", "TYPE_INT32", "-1")
    code = SLOW.format(begun=str(begun), hold=str(hold))
    repositories.write_model(models, "held", target, "python", sides, {"1/model.py": code})
    repositories.write_model(models, "ensemble", target, "ensemble", sides + ONE_STEP)
    os.mkfifo(hold)
    with servers.TARGETS[target](models, "--model-control-mode=explicit") as server, ThreadPoolExecutor(2) as pool:
        ask = lambda model, what: clients.ask(server.http, "POST", f"/v2/repository/models/{model}/{what}", {})  # noqa: E731
        load = pool.submit(ask, "ensemble", "load")
        waiting.eventually("the step is being loaded", begun.exists)
        unload = pool.submit(ask, "held", "unload")
        open(hold, "w").close()
        assert load.result()[0] == 200, load.result()
        assert unload.result()[0] == 200, unload.result()
