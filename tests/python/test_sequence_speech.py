"""A stateful model end to end: streams of audio to silero's detector of speech, whose states the server keeps."""

import concurrent.futures
import shutil

import numpy as np
import pytest

import clients
import repositories
import servers
import speech_models
import tiers
from sequence_plays import step
from test_streams import play

STRATEGIES = {"direct": "direct { max_queue_delay_microseconds: 2000 minimum_slot_utilization: 1 }", "oldest": "oldest { max_candidate_sequences: 16 }"}
ONNX_NAMES = ("samples", "output", ("context", "context_out"), ("state_in", "state_out"))
TORCH_NAMES = ("INPUT__0", "OUTPUT__0", ("INPUT__1", "OUTPUT__1"), ("INPUT__2", "OUTPUT__2"))


def state(names, dims):
    return f'state {{ input_name: "{names[0]}" output_name: "{names[1]}" data_type: TYPE_FP32 dims: [ {dims} ] }}\n'


def batched(platform, names, strategy, rows, instances=1):
    samples, output, context, states = names
    leading = "" if rows else "-1, "
    return (f'platform: "{platform}"\nmax_batch_size: {rows}\n'
            + repositories.tensor("input", samples, "TYPE_FP32", leading + "512") + repositories.tensor("output", output, "TYPE_FP32", leading + "1")
            + f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n"
            + f"sequence_batching {{ max_sequence_idle_microseconds: 60000000\n{state(context, leading + '64')}{state(states, leading + '2, 128')}{strategy} }}\n")


def single(strategy, instances=1):
    return ('platform: "onnxruntime_onnx"\n'
            + repositories.tensor("input", "input", "TYPE_FP32", "1, 576") + repositories.tensor("output", "output", "TYPE_FP32", "1, 1")
            + f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n"
            + f"sequence_batching {{ max_sequence_idle_microseconds: 60000000\n{state(('state', 'stateN'), '2, 1, 128')}{strategy} }}\n")


def add(root, name, config, write):
    folder = repositories.write_model(root, name, "galatea", "python", None)
    (folder / "config.pbtxt").write_text(config)
    write(folder / "1" / ("model.pt" if "libtorch" in config else "model.onnx"))


def copy(path):
    shutil.copy(speech_models.SINGLE, path)


def write_models(root, _):
    for name, strategy in STRATEGIES.items():
        add(root, f"onnx_{name}", batched("onnxruntime_onnx", ONNX_NAMES, strategy, 8), speech_models.write_batched)
    add(root, "onnx_rows_within", batched("onnxruntime_onnx", ONNX_NAMES, STRATEGIES["oldest"], 0), speech_models.write_batched)
    add(root, "single_direct", single("direct { }", instances=3), copy)
    add(root, "single_oldest", single(STRATEGIES["oldest"]), copy)


def write_scripts(root, _):
    for name, strategy in STRATEGIES.items():
        add(root, f"torch_{name}", batched("pytorch_libtorch", TORCH_NAMES, strategy, 8), speech_models.write_script)


@pytest.fixture(scope="module")
def server(module_stage):
    return module_stage.get("galatea", write_models)


@pytest.fixture(scope="module")
def scripts(module_stage):
    """The same server with the models of PyTorch."""
    if not servers.has_libtorch():
        pytest.skip("libtorch is not installed: run `cargo xtask setup`")
    return module_stage.get("galatea", write_scripts)


SCRIPTS = [pytest.param(f"torch_{strategy}", marks=tiers.peers) for strategy in STRATEGIES]
MODELS = ["onnx_direct", "onnx_oldest", *SCRIPTS, "onnx_rows_within", "single_direct", "single_oldest"]


def asked(model, chunks):
    """Name of input and output, and the inputs of a stream."""
    if model.startswith("single"):
        return "input", "output", [frame[None] for frame in speech_models.frames(chunks)]
    names = TORCH_NAMES if model.startswith("torch") else ONNX_NAMES
    return names[0], names[1], [chunk[None] for chunk in chunks]


def listen(server, protocol, model, sequence, chunks):
    """The probabilities for a stream, whose client sends no state."""
    name, output, arrays = asked(model, chunks)
    found = []
    with clients.client(server, protocol) as stock:
        for index, array in enumerate(arrays):
            ends = {"sequence_start": index == 0, "sequence_end": index + 1 == len(arrays)}
            answer = clients.infer(stock, protocol, model, {name: array}, sequence_id=sequence, **ends)
            assert set(answer) == {output}, "a state is no output"
            found.append(float(answer[output].ravel()[0]))
    return np.array(found, np.float32)


def agree(model, found, wanted):
    if model.startswith("single"):
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, atol=1e-4)


def check_libtorch(model, request):
    if model.startswith("torch"):
        request.getfixturevalue("scripts")


@pytest.mark.parametrize("model", MODELS)
def test_a_long_speech_stream_equals_the_library(server, model, request):
    check_libtorch(model, request)
    chunks = speech_models.speech(7, 400)
    wanted = speech_models.probabilities(chunks)
    assert wanted.max() > 0.3 and wanted.min() < 0.05, "there is something to hear"
    agree(model, listen(server, "http", model, 1, chunks), wanted)


@pytest.mark.parametrize("model", MODELS)
def test_many_concurrent_speech_streams_stay_separate(server, model, request):
    check_libtorch(model, request)
    streams = {100 + seed: speech_models.speech(seed, 30 + 5 * (seed % 3)) for seed in range(12)}
    before = clients.counts(server, model)
    protocols = list(clients.MODULES)
    with concurrent.futures.ThreadPoolExecutor(len(streams)) as pool:
        found = dict(zip(streams, pool.map(lambda s: listen(server, protocols[s % 2], model, s, streams[s]), streams)))
    for sequence, chunks in streams.items():
        agree(model, found[sequence], speech_models.probabilities(chunks))
    after = clients.counts(server, model)
    requests = after["success"] - before["success"]
    assert requests == sum(map(len, streams.values())) and after["fail"] == before["fail"]
    if model in ("onnx_direct", "onnx_oldest", "torch_direct", "torch_oldest"):
        assert after["executions"] - before["executions"] < requests, "streams shared executions"


@pytest.mark.parametrize("model", ["onnx_direct", "onnx_oldest", "single_oldest"])
def test_speech_streams_share_one_grpc_stream(server, model):
    """All chunks are sent without waiting for responses."""
    streams = {200 + seed: speech_models.speech(seed, 20) for seed in range(4)}
    inputs = {sequence: asked(model, chunks) for sequence, chunks in streams.items()}
    requests = []
    for index in range(20):
        for sequence, (name, _, arrays) in inputs.items():
            flags = "s" * (index == 0) + "e" * (index == 19)
            request = step(sequence, index, flags, model)
            request.inputs[0].name, request.inputs[0].datatype = name, "FP32"
            request.inputs[0].shape[:] = arrays[index].shape
            request.raw_input_contents[0] = arrays[index].tobytes()
            requests.append(request)
    replies, code, details = play(server, requests)
    assert code.name == "OK" and not any(reply[0] for reply in replies), (details, replies[:3])
    found = {reply[1]: np.frombuffer(reply[-1][0], np.float32)[0] for reply in replies}
    for sequence, chunks in streams.items():
        agree(model, np.array([found[f"{sequence}:{index}"] for index in range(20)]), speech_models.probabilities(chunks))


def test_a_restarted_sequence_forgets_its_state(server):
    chunks = speech_models.speech(3, 30)
    wanted = speech_models.probabilities(chunks)
    name, output, arrays = asked("onnx_oldest", chunks)
    with clients.client(server, "grpc") as stock:
        for _ in range(2):
            found = [
                float(clients.infer(stock, "grpc", "onnx_oldest", {name: array}, sequence_id=5, sequence_start=index == 0)[output].ravel()[0])
                for index, array in enumerate(arrays)
            ]
            agree("onnx_oldest", np.array(found, np.float32), wanted)
