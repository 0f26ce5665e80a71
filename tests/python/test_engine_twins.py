"""One network in ONNX, TorchScript, TensorFlow and OpenVINO: the same answers through one server."""

import concurrent.futures
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import clients
import servers
import tiers
import torchscript
from test_pytorch import DIGITS, digit_weights, digits_onnx, images, port, write_model

sys.path.append(str(servers.ROOT / "examples/seeds"))

from saved_model import Graph, a_bool, a_text, a_type, ints  # noqa: E402

ENGINES = servers.PEERS / "engines/bin/python"
PITCH = servers.PEERS / "unpacked/engine-models/basic_pitch/saved_models/icassp_2022"
pytestmark = [
    tiers.peers,
    pytest.mark.skipif(
        not (servers.PEERS / "engine-models.installed").exists() or not servers.has_libtorch(),
        reason="TensorFlow and OpenVINO are offered for x86_64 alone",
    ),
]
IMAGE, LOGITS = "[ 1, 28, 28 ]", "[ 10 ]"
BATCHING = "max_batch_size: 64 dynamic_batching { max_queue_delay_microseconds: 2000 }\n"
TWINS = ("onnx", "pytorch", "savedmodel", "graphdef", "openvino_onnx", "openvino_ir")
IR = """\
import sys
import openvino
openvino.save_model(openvino.convert_model(sys.argv[1]), sys.argv[2], compress_to_fp16=False)
"""


def digits_graph(weights):
    """The network of the ONNX twin; TensorFlow's convolutions take the channels last."""
    graph, of_float = Graph(), {"T": a_type("float32")}
    graph.placeholder("image", "float32", [-1, 1, 28, 28])
    graph.constant("last", np.int32([0, 2, 3, 1]))
    graph.constant("first", np.int32([0, 3, 1, 2]))
    tensor = graph.add("nhwc", "Transpose", ["image", "last"], **of_float, Tperm=a_type("int32"))
    for i in range(3):
        graph.constant(f"w{i}", weights[f"w{i}"].transpose(2, 3, 1, 0))
        graph.constant(f"b{i}", weights[f"b{i}"])
        places = {"data_format": a_text("NHWC")}
        step = {"strides": ints([1, 1, 1, 1]), "padding": a_text("SAME"), "dilations": ints([1, 1, 1, 1])}
        graph.add(f"conv{i}", "Conv2D", [tensor, f"w{i}"], **of_float, **step, **places)
        graph.add(f"sum{i}", "BiasAdd", [f"conv{i}", f"b{i}"], **of_float, **places)
        graph.add(f"relu{i}", "Relu", [f"sum{i}"], **of_float)
        step = {"ksize": ints([1, 2, 2, 1]), "strides": ints([1, 2, 2, 1]), "padding": a_text("VALID")}
        tensor = graph.add(f"pool{i}", "MaxPool", [f"relu{i}"], **of_float, **step, **places)
    graph.add("nchw", "Transpose", [tensor, "first"], **of_float, Tperm=a_type("int32"))
    graph.constant("row", np.int32([-1, 1152]))
    flat = graph.add("flat", "Reshape", ["nchw", "row"], **of_float, Tshape=a_type("int32"))
    graph.add("hidden", "Relu", [linear(graph, "3", flat, weights)], **of_float)
    graph.add("logits", "Identity", [linear(graph, "4", "hidden", weights)], **of_float)
    return graph


def linear(graph, which, given, weights):
    of_float = {"T": a_type("float32")}
    graph.constant(f"w{which}", weights[f"w{which}"].T)
    graph.constant(f"b{which}", weights[f"b{which}"])
    flags = {"transpose_a": a_bool(False), "transpose_b": a_bool(False)}
    graph.add(f"product{which}", "MatMul", [given, f"w{which}"], **of_float, **flags)
    return graph.add(f"sum{which}", "AddV2", [f"product{which}", f"b{which}"], **of_float)


def configured(runs, given="image", wanted="logits", more=""):
    ports = f'input {port(given, "FP32", IMAGE)} output {port(wanted, "FP32", LOGITS)}'
    return f"{BATCHING}{runs} {ports} {more}"


def write_digits(root):
    weights = digit_weights()
    path = write_model(root, "onnx", configured('platform: "onnxruntime_onnx"'), "model.onnx")
    onnx.save(digits_onnx(weights), path)
    config = configured('platform: "pytorch_libtorch"', "INPUT__0", "OUTPUT__0")
    torchscript.write_script(write_model(root, "pytorch", config), DIGITS, weights)
    graph = digits_graph(weights)
    ports = {"image": ("image", "float32", [-1, 1, 28, 28])}, {"logits": ("logits", "float32", [-1, 10])}
    config = configured('platform: "tensorflow_savedmodel"')
    graph.save(write_model(root, "savedmodel", config, "model.savedmodel"), *ports)
    graph.save_frozen(write_model(root, "graphdef", configured('platform: "tensorflow_graphdef"'), "model.graphdef"))
    config = configured('backend: "openvino"', more='default_model_filename: "model.onnx"')
    shutil.copy(path, write_model(root, "openvino_onnx", config, "model.onnx"))
    converted = write_model(root, "openvino_ir", configured('backend: "openvino"'), "model.xml")
    subprocess.run([ENGINES, "-c", IR, path, converted], check=True, capture_output=True)


def write_pitch(root):
    """A trained network that its package has in ONNX and as a SavedModel; nothing of it is configured."""
    shutil.copy(PITCH / "nmp.onnx", write_model(root, "pitch_onnx", "", "model.onnx"))
    shutil.copytree(PITCH / "nmp", write_model(root, "pitch_savedmodel", "", "model.savedmodel"))
    config = 'backend: "openvino" default_model_filename: "model.onnx"'
    shutil.copy(PITCH / "nmp.onnx", write_model(root, "pitch_openvino", config, "model.onnx"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("twins")
    write_digits(root)
    write_pitch(root)
    return root


@pytest.fixture(scope="module")
def server(repository):
    with servers.galatea(repository) as running:
        yield running


def names(twin):
    return ("INPUT__0", "OUTPUT__0") if twin == "pytorch" else ("image", "logits")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_one_network_gives_equal_outputs_in_six_formats(server, repository, protocol):
    direct = onnxruntime.InferenceSession(repository / "onnx/1/model.onnx")
    with clients.client(server, protocol) as stock:
        for count in (1, 3, 64):
            x = images(count, count)
            wanted = direct.run(None, {"image": x})[0]
            for twin in TWINS:
                given, output = names(twin)
                got = clients.infer(stock, protocol, twin, {given: x})[output]
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, err_msg=twin)


@pytest.mark.parametrize("twin", TWINS[2:])
def test_batched_requests_get_their_own_outputs(server, repository, twin):
    direct = onnxruntime.InferenceSession(repository / "onnx/1/model.onnx")
    before = clients.counts(server, twin)

    def ask(worker):
        with clients.client(server, "grpc") as stock:
            for n in range(20):
                x = images(worker * 100 + n, 1 + n % 3)
                got = clients.infer(stock, "grpc", twin, {"image": x})["logits"]
                np.testing.assert_allclose(got, direct.run(None, {"image": x})[0], rtol=1e-5, atol=1e-5)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    after = clients.counts(server, twin)
    assert after["success"] - before["success"] == 160
    assert after["executions"] - before["executions"] < 160, "requests were joined"


def test_a_trained_network_equals_its_package(server):
    """basic-pitch turns two seconds of sound into notes."""
    time = np.arange(43844, dtype=np.float32) / 22050
    sound = (0.4 * np.sin(2 * np.pi * 440 * time) + 0.2 * np.sin(2 * np.pi * 660 * time)).reshape(1, -1, 1)
    with clients.client(server, "http") as stock:
        answers = {}
        for twin in ("pitch_onnx", "pitch_savedmodel", "pitch_openvino"):
            given = stock.get_model_metadata(twin)["inputs"][0]["name"]
            got = clients.infer(stock, "http", twin, {given: sound.astype(np.float32)})
            # The exporter of the ONNX file named them otherwise; sizes and order tell which is which.
            answers[twin] = [got[name] for name in sorted(got)]
        for twin in ("pitch_savedmodel", "pitch_openvino"):
            for ours, wanted in zip(answers[twin], answers["pitch_onnx"], strict=True):
                assert ours.shape == wanted.shape
                # TensorFlow in Python is as far from ONNX Runtime: the network takes logarithms of small numbers.
                np.testing.assert_allclose(ours, wanted, atol=5e-3, err_msg=twin)
