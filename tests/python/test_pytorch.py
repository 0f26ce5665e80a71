"""TorchScript models through the server: equal to their ONNX twins, with texts, dictionaries and state."""

import concurrent.futures
import zipfile

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import clients
import servers
import tiers
import torchscript

pytestmark = [
    tiers.peers,
    pytest.mark.skipif(
        not servers.has_libtorch(),
        reason="no libtorch here: on Debian apt-get install libtorch-dev g++, or galatea runtime install pytorch",
    ),
]
WHEELS = servers.PEERS / "unpacked/model-wheels"
DIGITS = """\
x: Tensor) -> Tensor:
    a = torch.relu(torch.conv2d(x, self.w0, self.b0, [1, 1], [1, 1], [1, 1], 1))
    b = torch.max_pool2d(a, [2, 2], [2, 2], [0, 0], [1, 1], False)
    c = torch.relu(torch.conv2d(b, self.w1, self.b1, [1, 1], [1, 1], [1, 1], 1))
    d = torch.max_pool2d(c, [2, 2], [2, 2], [0, 0], [1, 1], False)
    e = torch.relu(torch.conv2d(d, self.w2, self.b2, [1, 1], [1, 1], [1, 1], 1))
    f = torch.flatten(torch.max_pool2d(e, [2, 2], [2, 2], [0, 0], [1, 1], False), 1, -1)
    g = torch.relu(torch.linear(f, self.w3, self.b3))
    return torch.linear(g, self.w4, self.b4)"""
SHAPES = [(32, 1, 3, 3), (64, 32, 3, 3), (128, 64, 3, 3), (256, 1152), (10, 256)]
SILERO = """\
x: Tensor,
    sr: Tensor) -> Tensor:
    model = self.model
    return (model).forward(x, int(sr), )"""


def port(name, data_type, dims, more=""):
    return f'{{ name: "{name}" data_type: TYPE_{data_type} dims: {dims} {more} }}'


def write_model(root, name, config, file="model.pt"):
    """Folder and configuration of a model; where its file goes."""
    folder = root / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    return folder / "1" / file


def digit_weights():
    """A trained network, from the package of its author."""
    path = WHEELS / "digit_recognizer/models/handwriting_model.pth"
    weights = {}
    with zipfile.ZipFile(path) as archive:
        for index, shape in enumerate(SHAPES):
            for number, name, dims in ((2 * index, f"w{index}", shape), (2 * index + 1, f"b{index}", shape[:1])):
                data = archive.read(f"handwriting_model/data/{number}")
                weights[name] = np.frombuffer(data, np.float32).reshape(dims)
    return weights


def digits_onnx(weights):
    nodes, last = [], "image"
    for i in range(3):
        nodes += [
            helper.make_node("Conv", [last, f"w{i}", f"b{i}"], [f"c{i}"], kernel_shape=[3, 3], pads=[1] * 4),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("MaxPool", [f"r{i}"], [f"p{i}"], kernel_shape=[2, 2], strides=[2, 2]),
        ]
        last = f"p{i}"
    nodes += [
        helper.make_node("Flatten", [last], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["g"], transB=1),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("Gemm", ["h", "w4", "b4"], ["logits"], transB=1),
    ]
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["n", 1, 28, 28])
    logits = helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", 10])
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "digits", [image], [logits], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("torch")
    batching = "max_batch_size: 64 dynamic_batching { max_queue_delay_microseconds: 2000 }\n"
    weights = digit_weights()
    image, logits = "[ 1, 28, 28 ]", "[ 10 ]"
    config = batching + f'platform: "pytorch_libtorch" input {port("INPUT__0", "FP32", image)} '
    config += f'output {port("OUTPUT__0", "FP32", logits)} instance_group {{ count: 2 kind: KIND_CPU }}'
    torchscript.write_script(write_model(root, "digits_pt", config), DIGITS, weights)
    config = batching + f'platform: "onnxruntime_onnx" input {port("image", "FP32", image)} '
    config += f'output {port("logits", "FP32", logits)}'
    onnx.save(digits_onnx(weights), write_model(root, "digits_onnx", config, "model.onnx"))

    config = f'platform: "pytorch_libtorch" input {port("INPUT__0", "FP32", "[ -1, 512 ]")} '
    config += f'input {port("INPUT__1", "INT64", 1)} output {port("OUTPUT__0", "FP32", "[ -1, 1 ]")}'
    path = write_model(root, "silero_vad_pt", config + " instance_group { kind: KIND_CPU }")
    source = WHEELS / "silero_vad/data/silero_vad.jit"
    torchscript.wrap(path, source, "__torch__.vad.model.vad_annotator.VADRNNJITMerge", SILERO)

    scalar = "reshape { shape: [] }"
    config = f'platform: "libtorch" max_batch_size: 8 input {port("words", "STRING", 1, scalar)} '
    config += f'output {port("shouted", "STRING", 1, scalar)}'
    shout = "words: List[str]) -> List[str]:\n    out = annotate(List[str], [])\n"
    shout += "    for i in range(torch.len(words)):\n      _0 = torch.append(out, torch.upper(words[i]))\n    return out"
    torchscript.write_script(write_model(root, "shout", config), shout)

    config = f'backend: "pytorch" input [ {port("b", "FP32", -1)}, {port("a", "FP32", -1)} ] '
    config += f'output {port("difference", "FP32", -1)}'
    minus = 'd: Dict[str, Tensor]) -> Tensor:\n    return torch.sub(d["a"], d["b"])'
    torchscript.write_script(write_model(root, "minus", config), minus)
    return root


@pytest.fixture(scope="module")
def server(repository):
    with servers.galatea(repository) as running:
        yield running


def images(seed, count):
    return np.random.default_rng(seed).random((count, 1, 28, 28), dtype=np.float32)


def twin(repository):
    return onnxruntime.InferenceSession(repository / "digits_onnx/1/model.onnx")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_outputs_equal_those_of_the_onnx_twin(server, repository, protocol):
    direct = twin(repository)
    with clients.client(server, protocol) as stock:
        for count in (1, 3, 64):
            x = images(count, count)
            wanted = direct.run(None, {"image": x})[0]
            torch = clients.infer(stock, protocol, "digits_pt", {"INPUT__0": x})["OUTPUT__0"]
            onnx_ = clients.infer(stock, protocol, "digits_onnx", {"image": x})["logits"]
            assert torch.shape == (count, 10)
            np.testing.assert_allclose(torch, wanted, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(onnx_, torch, rtol=1e-5, atol=1e-5)


def test_outputs_of_batched_requests_equal_those_of_the_onnx_twin(server, repository):
    direct = twin(repository)
    before = clients.counts(server, "digits_pt")

    def ask(worker):
        with clients.client(server, "grpc") as stock:
            for n in range(20):
                x = images(worker * 100 + n, 1 + n % 3)
                got = clients.infer(stock, "grpc", "digits_pt", {"INPUT__0": x})["OUTPUT__0"]
                np.testing.assert_allclose(got, direct.run(None, {"image": x})[0], rtol=1e-5, atol=1e-5)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    after = clients.counts(server, "digits_pt")
    grown = {key: after[key] - before[key] for key in after}
    assert grown["inferences"] == 8 * sum(1 + n % 3 for n in range(20))
    assert grown["executions"] < grown["success"] == 160, "requests were joined"


def test_silero_equals_its_onnx_twin(server):
    """The module keeps its state between frames; the test passes it to the twin."""
    session = onnxruntime.InferenceSession(WHEELS / "silero_vad/data/silero_vad.onnx")
    time = np.arange(512 * 60) / 16000
    tone = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 12)) * (np.sin(2 * np.pi * 3 * time) > 0)
    frames = (0.2 * tone).astype(np.float32).reshape(-1, 1, 512)
    state, context = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32)
    rate = np.array([16000], np.int64)
    with clients.client(server, "http") as stock:
        for frame in frames:
            got = clients.infer(stock, "http", "silero_vad_pt", {"INPUT__0": frame, "INPUT__1": rate})["OUTPUT__0"]
            x = np.concatenate([context, frame], axis=1)
            wanted, state = session.run(None, {"input": x, "state": state, "sr": np.array(16000)})
            context = frame[:, -64:]
            np.testing.assert_allclose(got, wanted, atol=1e-4)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_texts_and_dictionaries_are_answered(server, protocol):
    with clients.client(server, protocol) as stock:
        words = np.array([["one"], ["two"], [""]], dtype=object)
        got = clients.infer(stock, protocol, "shout", {"words": words})["shouted"]
        assert got.tolist() == [[b"ONE"], [b"TWO"], [b""]]
        pair = {"a": np.array([5, 6], np.float32), "b": np.array([1, 2], np.float32)}
        assert clients.infer(stock, protocol, "minus", pair)["difference"].tolist() == [4, 4]


def test_metadata_and_configuration_are_answered(server):
    status, _, body = clients.ask(server.http, "GET", "/v2/models/digits_pt")
    assert status == 200 and b'"platform":"pytorch_libtorch"' in body.replace(b" ", b"")


def test_the_log_mentions_the_skipped_auto_complete(server):
    assert "skipping model configuration auto-complete for 'digits_pt': not supported for pytorch backend" in server.text()


def test_a_broken_model_does_not_affect_others(tmp_path):
    config = f'platform: "pytorch_libtorch" input {port("x", "FP32", 1)} output {port("y", "FP32", 1)}'
    write_model(tmp_path, "broken", config).write_bytes(b"PK no archive")
    torchscript.write_script(write_model(tmp_path, "sound", config), "x: Tensor) -> Tensor:\n    return x")
    with servers.galatea(tmp_path, "--exit-on-error=false", "--strict-readiness=false") as running:
        with clients.client(running, "http") as stock:
            x = np.ones(1, np.float32)
            assert clients.infer(stock, "http", "sound", {"x": x})["y"].tolist() == [1]
        _, _, body = clients.ask(running.http, "POST", "/v2/repository/index")
        assert b"failed to load model 'broken': " in body
