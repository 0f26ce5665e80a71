"""States that the server keeps for a sequence: returned or not, of any size, and of every backend that has outputs."""

import concurrent.futures
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

import clients
import repositories
import servers
import tiers
from test_sequence_chaos import STRATEGIES, kept_config, write_kept

sys.path.append(str(servers.ROOT / "examples/seeds"))
from saved_model import Graph, a_type  # noqa: E402

# OpenVINO and TensorFlow come with these.
ENGINES = ("kept_openvino", "kept_tensorflow")
HAS_ENGINES = (servers.PEERS / "engines.installed").exists()
INTS, STRINGS = TensorProto.INT32, TensorProto.STRING
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }\n'
STATE = 'state {{ input_name: "STATE" output_name: "NEXT" data_type: {kind} dims: [ {dims} ] {more} }}'


def tensor_info(name, kind, *dims):
    return helper.make_tensor_value_info(name, kind, ["batch", *dims])


def save(path, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "model", inputs, outputs, list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)


def write_growing(path):
    """All that it has seen, one behind the other, behind what it began with; and how much that is."""
    nodes = [
        helper.make_node("Concat", ["STATE", "INPUT"], ["NEXT"], axis=1),
        helper.make_node("ReduceSum", ["NEXT", "axis"], ["OUTPUT"], keepdims=1),
    ]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    save(path, nodes, [tensor_info("INPUT", INTS, 1), tensor_info("STATE", INTS, "seen")],
         [tensor_info("OUTPUT", INTS, 1), tensor_info("NEXT", INTS, "next")], [axis])


def write_texts(path):
    """Answers with the text of the request before."""
    nodes = [helper.make_node("Identity", ["STATE"], ["OUTPUT"]), helper.make_node("Identity", ["INPUT"], ["NEXT"])]
    info = [tensor_info(name, STRINGS, 1) for name in ("INPUT", "STATE", "OUTPUT", "NEXT")]
    save(path, nodes, info[:2], info[2:])


KEPT_IN_PYTHON = '''
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [self.step(request) for request in requests]

    def step(self, request):
        value, state = (pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT", "STATE"))
        return pb.InferenceResponse([pb.Tensor(name, value + state) for name in ("OUTPUT", "NEXT")])
'''


# Each request is answered by a thread of its own, when `execute` may have returned.
ANSWERED_LATER = """
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(request,)).start()

    def answer(self, request):
        request.get_response_sender().send(self.step(request), flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def write_python(path):
    path.with_name("model.py").write_text(KEPT_IN_PYTHON)


def write_python_later(path):
    path.with_name("model.py").write_text("import threading\n" + KEPT_IN_PYTHON + ANSWERED_LATER)


def write_graph(path):
    """TensorFlow's twin of the model that adds."""
    graph = Graph()
    for name in ("INPUT", "STATE"):
        graph.placeholder(name, "int32", [-1, 1])
    graph.add("OUTPUT", "AddV2", ["INPUT", "STATE"], T=a_type("int32"))
    graph.add("NEXT", "Identity", ["OUTPUT"], T=a_type("int32"))
    graph.save_frozen(path.with_name("model.graphdef"))


def config(kind, dims, more="", outputs="", strategy="oldest { max_candidate_sequences: 8 }", rows=4):
    tensors = repositories.tensor("input", "INPUT", kind, "1") + repositories.tensor("output", "OUTPUT", kind, "1")
    state = STATE.format(kind=kind, dims=dims, more=more)
    return f"max_batch_size: {rows}\n{tensors}{outputs}sequence_batching {{ max_sequence_idle_microseconds: 60000000 {state} {strategy} }}\n"


def next_of(dims):
    return repositories.tensor("output", "NEXT", "TYPE_INT32", dims)


ZERO = 'initial_state { name: "three zeros" data_type: TYPE_INT32 dims: [ 3 ] zero_data: true }'
SAME = "use_same_buffer_for_input_output: true"
GROWABLE = SAME + " use_growable_memory: true"
MODELS = {
    "growing": (config("TYPE_INT32", "-1"), write_growing),
    "growing_direct": (config("TYPE_INT32", "-1", strategy="direct { }"), write_growing),
    "growing_returned": (config("TYPE_INT32", "-1", ZERO + GROWABLE, next_of("-1")), write_growing),
    "texts": (config("TYPE_STRING", "1"), write_texts),
    "kept_returned": (config("TYPE_INT32", "1", SAME, next_of("1")), write_kept),
    **{f"kept_isolated_{name}": (kept_config(strategy) + ISOLATED, write_kept) for name, strategy in STRATEGIES.items()},
    **{f"kept_{name}": (kept_config(strategy), write_kept) for name, strategy in STRATEGIES.items()},
    "kept_python": (kept_config(STRATEGIES["oldest"]), write_python),
    **{f"kept_later_{name}": (kept_config(strategy), write_python_later) for name, strategy in STRATEGIES.items()},
    "kept_tensorflow": ('platform: "tensorflow_graphdef"\n' + kept_config(STRATEGIES["direct"]), write_graph),
    "kept_openvino": ('default_model_filename: "model.onnx"\n' + kept_config(STRATEGIES["oldest"]), write_kept),
}


def add(path, name):
    text, write = MODELS[name]
    backend = name.removeprefix("kept_") if name in ("kept_python", *ENGINES) else "python" if "later" in name else "onnxruntime"
    write(repositories.write_model(path, name, "galatea", backend, text) / "1/model.onnx")


@pytest.fixture(scope="module")
def server(module_stage):
    def write(path, _):
        for name in set(MODELS) - set(ENGINES):
            add(path, name)

    return module_stage.get("galatea", write)


@pytest.fixture(scope="module")
def engines(module_stage):
    """The same server with models of the big engines."""
    if not HAS_ENGINES:
        pytest.skip("OpenVINO and TensorFlow are not installed: run `cargo xtask setup`")

    def write(path, _):
        for name in ENGINES:
            add(path, name)

    return module_stage.get("galatea", write)


def ask(stock, model, sequence, value, flags="", outputs=None):
    array = np.array([[value]], np.object_ if isinstance(value, bytes) else np.int32)
    return clients.infer(stock, "grpc", model, {"INPUT": array}, outputs, sequence_id=sequence, sequence_start="s" in flags, sequence_end="e" in flags)


@pytest.mark.parametrize("model", [
    pytest.param(name, marks=tiers.peers) if name in ENGINES else name for name in MODELS if name.startswith("kept")
])
def test_every_backend_keeps_the_state_of_a_sequence(server, model, request):
    if model in ENGINES:
        request.getfixturevalue("engines")

    def run(sequence):
        with clients.client(server, "grpc") as stock:
            return [int(ask(stock, model, sequence, sequence * 100 + n, flags, ["OUTPUT"])["OUTPUT"].item()) for n, flags in enumerate(["s", "", "", "e"])]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        found = dict(zip(range(1, 7), pool.map(run, range(1, 7))))
    assert found == {sequence: np.cumsum([sequence * 100 + n for n in range(4)]).tolist() for sequence in range(1, 7)}


@pytest.mark.parametrize("model", ["growing", "growing_direct"])
def test_states_of_different_sizes_join_one_batch(server, model):
    """Each sequence is at another step, so all states have different shapes."""
    def run(sequence):
        with clients.client(server, "grpc") as stock:
            steps = sequence + 3
            return [ask(stock, model, sequence, sequence + n, ("s" if n == 0 else "") + ("e" if n + 1 == steps else ""))["OUTPUT"].item() for n in range(steps)]

    # As many as have a place with the direct strategy.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = dict(zip(range(1, 5), pool.map(run, range(1, 5))))
    assert found == {sequence: np.cumsum([sequence + n for n in range(sequence + 3)]).tolist() for sequence in range(1, 5)}


def test_a_state_that_is_also_an_output_is_returned(server):
    with clients.client(server, "grpc") as stock:
        assert set(ask(stock, "kept_returned", 1, 5, "s")) == {"OUTPUT", "NEXT"}
        assert ask(stock, "kept_returned", 1, 6, "", ["NEXT"])["NEXT"].tolist() == [[11]]
        assert set(ask(stock, "kept_returned", 1, 7, "", ["OUTPUT"])) == {"OUTPUT"}
        assert ask(stock, "kept_returned", 1, 1, "e")["NEXT"].tolist() == [[19]], "whether it was asked for or not"
        assert set(ask(stock, "kept_oldest", 1, 5, "se")) == {"OUTPUT"}
        with pytest.raises(InferenceServerException, match="unexpected inference output 'NEXT' for model 'kept_oldest'"):
            ask(stock, "kept_oldest", 1, 5, "s", ["NEXT"])


def test_a_state_begins_with_its_configured_value(server):
    with clients.client(server, "grpc") as stock:
        assert ask(stock, "growing_returned", 1, 5, "s")["NEXT"].tolist() == [[0, 0, 0, 5]]
        assert ask(stock, "growing_returned", 1, 6, "e")["NEXT"].tolist() == [[0, 0, 0, 5, 6]]
        assert ask(stock, "growing_returned", 1, 7, "se")["NEXT"].tolist() == [[0, 0, 0, 7]]


def test_a_state_may_be_text(server):
    with clients.client(server, "grpc") as stock:
        said = [ask(stock, "texts", 1, text, flags)["OUTPUT"].item() for text, flags in [(b"one", "s"), (b"a longer one", ""), (b"", "e")]]
    assert said == [b"", b"one", b"a longer one"]


def test_clients_cannot_send_a_state(server):
    body = {"parameters": {"sequence_id": 1, "sequence_start": True},
            "inputs": [{"name": name, "datatype": "INT32", "shape": [1, 1], "data": [1]} for name in ("INPUT", "STATE")]}
    status, _, text = clients.ask(server.http, "POST", "/v2/models/kept_oldest/infer", body)
    assert status == 400 and b"unexpected inference input 'STATE' for model 'kept_oldest'" in text or b"expected 1 inputs but got 2" in text, text
    metadata = clients.json.loads(clients.ask(server.http, "GET", "/v2/models/kept_oldest")[2])
    assert [tensor["name"] for tensor in metadata["inputs"] + metadata["outputs"]] == ["INPUT", "OUTPUT"]
