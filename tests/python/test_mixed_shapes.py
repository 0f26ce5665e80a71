"""Requests of different shapes in one batch: concatenated (ragged) as Triton's own tests have it, and padded (`pad_batches`)."""

import concurrent.futures
import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import clients
import doc_pages
import repositories
import tiers

SIZES = [2, 4, 1, 3]
LENGTHS = [10, 12, 11, 10]
# A batch leaves when it has four requests.
FOUR = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 20000000 }\n"


def save(root, name, config, nodes, inputs, outputs, constants=()):
    folder = root / name
    (folder / "1").mkdir(parents=True)
    info = lambda tensor: helper.make_tensor_value_info(tensor[0], tensor[1], tensor[2])
    weights = [numpy_helper.from_array(array, named) for named, array in constants]
    graph = helper.make_graph(nodes, name, list(map(info, inputs)), list(map(info, outputs)), weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "1/model.onnx")
    (folder / "config.pbtxt").write_text(config)


def batch_input(kind, name):
    return f'batch_input {{ kind: {kind} target_name: "{name}" data_type: TYPE_FP32 source_input: "RAGGED_INPUT" }}\n'


def ragged_model(root, name, size_kind, batch_kind, dims="-1"):
    """As the models of upstream's L0_batch_input: each output is what the model was given, once for each request."""
    outputs = {"RAGGED_OUTPUT": "RAGGED_INPUT", "BATCH_AND_SIZE_OUTPUT": "BATCH_AND_SIZE_INPUT", "BATCH_OUTPUT": "BATCH_INPUT"}
    nodes = [
        helper.make_node("Mul", ["BATCH_AND_SIZE_INPUT", "zero"], ["zeros"]),
        helper.make_node("Add", ["zeros", "one"], ["ones"]),
        helper.make_node("Unsqueeze", ["ones", "second"], ["column"]),
    ]
    for output, given in outputs.items():
        nodes += [helper.make_node("Unsqueeze", [given, "first"], [f"row_{given}"]), helper.make_node("MatMul", ["column", f"row_{given}"], [output])]
    constants = [("zero", np.zeros(1, np.float32)), ("one", np.ones(1, np.float32)), ("first", np.array([0])), ("second", np.array([1]))]
    config = "max_batch_size: 4\n" + FOUR
    config += f'input {{ name: "RAGGED_INPUT" data_type: TYPE_FP32 dims: [ {dims} ] allow_ragged_batch: true }}\n'
    config += batch_input(size_kind, "BATCH_AND_SIZE_INPUT") + batch_input(batch_kind, "BATCH_INPUT")
    config += "".join(f'output {{ name: "{output}" data_type: TYPE_FP32 dims: [ -1 ] }}\n' for output in outputs)
    tensors = lambda names, shape: [(tensor, TensorProto.FLOAT, shape) for tensor in names]
    save(root, name, config, nodes, tensors(outputs.values(), [None]), tensors(outputs, [None, None]), constants)


def minilm(parameters, mask="", name="minilm"):
    text = (repositories.EXAMPLES / "minilm_int8/config.pbtxt").read_text()
    text = text.replace('name: "minilm_int8"', f'name: "{name}"')
    head, _, _ = text.partition("dynamic_batching")
    if mask:
        head = head.replace('name: "attention_mask"', f'name: "attention_mask"\n    {mask}')
    settings = {"pad_batches": "true", **parameters}
    lines = [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in settings.items()]
    return head + FOUR + "".join(lines)


@pytest.fixture(scope="module")
def server(module_stage):
    return module_stage.get("galatea", write_mixed)


def write_mixed(root, _):
    ragged_model(root, "counts", "BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO")
    ragged_model(root, "ends", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE")
    ragged_model(root, "shapes", "BATCH_ELEMENT_COUNT", "BATCH_ITEM_SHAPE_FLATTEN", dims="-1, -1")
    config = "max_batch_size: 4\n" + FOUR + 'input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }\n'
    config += 'output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }\n'
    config += 'batch_output { target_name: "OUTPUT0" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "INPUT0" }\n'
    same = [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])]
    save(root, "ragged_io", config, same, [("INPUT0", TensorProto.FLOAT, [None])], [("OUTPUT0", TensorProto.FLOAT, [None])])
    repositories.copy_example(root, "minilm_int8", minilm({}), "minilm")
    mask = {"pad_batches.mask": "attention_mask"}
    repositories.copy_example(root, "minilm_int8", minilm(mask, "optional: true", "masked"), "masked")
    buckets = {**mask, "pad_batches.buckets": "16, 32"}
    repositories.copy_example(root, "minilm_int8", minilm(buckets, "optional: true", "bucketed"), "bucketed")
    apart = {**mask, "isolation": "process"}
    repositories.copy_example(root, "minilm_int8", minilm(apart, "optional: true", "isolated"), "isolated")


def ask_all(server, model, protocol, requests):
    """The answers to requests that are all under way at the same time."""
    def one(arrays):
        with clients.client(server, protocol) as stock:
            return clients.infer(stock, protocol, model, arrays)

    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(one, requests))


def executions(server, model):
    found = json.loads(clients.ask(server.http, "GET", f"/v2/models/{model}/stats")[2])
    stats = found["model_stats"][0]
    return stats["execution_count"], stats["inference_count"]


def ragged_requests():
    return [{"RAGGED_INPUT": np.full((1, size), size, np.float32)} for size in SIZES]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_ragged_requests_are_batched(server, protocol):
    answers = ask_all(server, "counts", protocol, ragged_requests())
    counts = answers[0]["BATCH_AND_SIZE_OUTPUT"][0]
    assert sorted(counts) == sorted(SIZES), "of one batch, in the order in which the requests came"
    given = np.concatenate([np.full(int(n), n, np.float32) for n in counts])
    for answer in answers:
        np.testing.assert_array_equal(answer["RAGGED_OUTPUT"], [given])
        np.testing.assert_array_equal(answer["BATCH_AND_SIZE_OUTPUT"], [counts])
        np.testing.assert_array_equal(answer["BATCH_OUTPUT"], [np.concatenate([[0], np.cumsum(counts)])])
    answers = ask_all(server, "ends", protocol, ragged_requests())
    for answer in answers:
        ends = answer["BATCH_AND_SIZE_OUTPUT"][0]
        assert sorted(np.diff(ends, prepend=0)) == sorted(SIZES) and ends[-1] == sum(SIZES)
        assert answer["BATCH_OUTPUT"].shape == (1, max(SIZES))


def test_batch_inputs_hold_the_shapes_of_items(server):
    shapes = [(1, 4, 1), (1, 1, 2), (1, 1, 2), (1, 2, 2)]
    answers = ask_all(server, "shapes", "http", [{"RAGGED_INPUT": np.zeros(shape, np.float32)} for shape in shapes])
    told = answers[0]["BATCH_OUTPUT"].reshape(4, 2)
    assert sorted(map(tuple, told)) == sorted(shape[1:] for shape in shapes)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_outputs_are_split_by_the_shapes_of_an_input(server, protocol):
    before = executions(server, "ragged_io")
    requests = [{"INPUT0": np.full((1, size), size, np.float32)} for size in SIZES]
    for request, answer in zip(requests, ask_all(server, "ragged_io", protocol, requests)):
        np.testing.assert_array_equal(answer["OUTPUT0"], request["INPUT0"])
    after = executions(server, "ragged_io")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 4)


def sentence(length, seed):
    ids = np.random.default_rng(seed).integers(1000, 20000, (1, length), dtype=np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


@pytest.fixture(scope="module")
def direct():
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(repositories.EXAMPLES / "minilm_int8/1/model.onnx", options)


def check_together(server, direct, model, lengths, runs, without=()):
    """Requests under way at the same time are executed together, and answered as alone."""
    sentences = [sentence(length, seed) for seed, length in enumerate(lengths)]
    asked = [{name: array for name, array in one.items() if name not in without} for one in sentences]
    before = executions(server, model)
    answers = ask_all(server, model, "grpc", asked)
    after = executions(server, model)
    for one, answer in zip(sentences, answers):
        wanted = direct.run(["last_hidden_state"], one)[0]
        assert answer["last_hidden_state"].shape == wanted.shape
        np.testing.assert_allclose(answer["last_hidden_state"], wanted, rtol=0, atol=1e-5)
    assert (after[0] - before[0], after[1] - before[1]) == (runs, len(lengths))


def test_padded_batches_equal_single_requests(server, direct):
    check_together(server, direct, "minilm", LENGTHS, 1)


@pytest.mark.parametrize("model", ["masked", "isolated"])
def test_the_server_generates_the_mask(server, direct, model):
    check_together(server, direct, model, LENGTHS, 1, without=("attention_mask",))


def test_fitting_requests_are_found_among_others(server, direct):
    """Sentences of ten and of thirty words, mixed: each kind is one batch."""
    check_together(server, direct, "minilm", [10, 30, 11, 29, 12, 31, 10, 28], 2)


def test_buckets_pad_to_their_sizes(server, direct):
    check_together(server, direct, "bucketed", [3, 16, 7, 12, 17, 32, 20, 25], 2, without=("attention_mask",))


# Says of each request with how many others it is executed, and the shape it came in.
TOGETHER = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        shapes = [pb.get_input_tensor_by_name(request, "IN").as_numpy().shape for request in requests]
        told = [np.array([[len(requests), shape[1]]], np.int32) for shape in shapes]
        return [pb.InferenceResponse([pb.Tensor("OUT", array)]) for array in told]
"""


@tiers.both
def test_python_models_receive_ragged_requests_separately(target, stage):
    tensors = 'output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 2 ] } ]\ninput [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] '
    made = 'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "SIZE" data_type: TYPE_INT32 source_input: "IN" } ]\n'

    def write(folder, _):
        for name, more in {"ragged": "allow_ragged_batch: true } ]\n" + made, "plain": "} ]\n"}.items():
            # The last one that fits no other waits until the delay is over.
            batching = FOUR if name == "ragged" else FOUR.replace("20000000", "300000")
            config = f"max_batch_size: 4\n{batching}{tensors}{more}"
            repositories.write_model(folder, name, target, "python", config, {"1/model.py": TOGETHER})

    requests = [{"IN": np.zeros((1, size), np.float32)} for size in SIZES]
    running = stage.get(target, write)
    told = {name: [answer["OUT"][0].tolist() for answer in ask_all(running, name, "grpc", requests)] for name in ("ragged", "plain")}
    assert told["ragged"] == [[4, size] for size in SIZES]
    assert told["plain"] == [[1, size] for size in SIZES]


def documented(text):
    """The configurations of the page, in order."""
    page = [block.text for block in doc_pages.blocks("docs/mixed-shapes.md") if block.kind == "pbtxt"]
    (found,) = [block for block in page if text in block]
    return found


@pytest.fixture(scope="module")
def documented_server(module_stage):
    return module_stage.get("galatea", write_documented)


def write_documented(root, _):
    repositories.copy_example(root, "minilm_int8", documented('dims: [ -1 ] },\n  { name: "token_type_ids"'), "documented_padded")
    repositories.copy_example(root, "minilm_int8", documented("pad_batches.mask"), "documented_masked")
    node = helper.make_node("Unsqueeze", ["INDEX", "second"], ["OUTPUT"])
    given = [(name, TensorProto.FLOAT, [None]) for name in ("INPUT", "INDEX")]
    save(root, "documented_ragged", documented("batch_input"), [node], given, [("OUTPUT", TensorProto.FLOAT, [None, 1])], [("second", np.array([1]))])


def test_the_configurations_of_the_page_work(documented_server, direct):
    """Checks only that each configuration of the page loads and answers."""
    one = sentence(9, 1)
    wanted = direct.run(["last_hidden_state"], one)[0]
    unmasked = {name: array for name, array in one.items() if name != "attention_mask"}
    for model, asked in {"documented_padded": one, "documented_masked": unmasked}.items():
        (answer,) = ask_all(documented_server, model, "http", [asked])
        np.testing.assert_allclose(answer["last_hidden_state"], wanted, rtol=0, atol=1e-5)
    (answer,) = ask_all(documented_server, "documented_ragged", "http", [{"INPUT": np.zeros((1, 3), np.float32)}])
    assert answer["OUTPUT"].tolist() == [[3.0]]


def test_a_mistake_is_reported_with_the_right_spelling(shared):
    running = shared()
    running.owns("mistaken")
    repositories.copy_example(running.repository, "minilm_int8", minilm({"pad_batches.bucket": "16"}, name="mistaken"), "mistaken")
    status, _, text = clients.ask(running.http, "POST", "/v2/repository/models/mistaken/load", {})
    told = text.decode() if status != 200 else running.text()
    assert "unknown parameter 'pad_batches.bucket'" in told and "write one of inputs, value, " in told, told
