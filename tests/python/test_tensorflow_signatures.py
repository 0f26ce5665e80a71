"""TensorFlow models as Triton's own tests have them: tags and signatures, init operators, tensors of any rank, scalars."""

import shutil
import sys

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

import clients
import servers
import tiers
from test_pytorch import port, write_model

sys.path.append(str(servers.ROOT / "examples/seeds"))

from saved_model import Graph, a_bool, a_text, a_type, field, dimensions, write_saved_model  # noqa: E402

pytestmark = [
    tiers.peers,
    pytest.mark.skipif(not (servers.PEERS / "engine-models.installed").exists(), reason="TensorFlow is offered for x86_64 alone"),
]
SAVED, FROZEN = 'platform: "tensorflow_savedmodel"', 'platform: "tensorflow_graphdef"'
VECTOR = ("float32", [16])
# Model, tag, signature, and the factor that tells which one answered.
SERVED = [
    ("sig_tag0", None, None, 1),
    ("sig_tag1", None, "testSigDef", 2),
    ("sig_tag2", "testTag", None, 3),
    ("sig_tag3", "testTag", "testSigDef", 4),
]


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def times(factors):
    """A graph that has the input times each factor, as OUTPUT0, OUTPUT1 and so on."""
    graph = Graph()
    graph.placeholder("INPUT", *VECTOR)
    for index, factor in enumerate(factors):
        graph.constant(f"factor{index}", np.float32(factor))
        graph.add(f"OUTPUT{index}", "Mul", ["INPUT", f"factor{index}"], T=a_type("float32"))
    return graph


def write_tags(root):
    """Four factors: one for each tag and signature of one file."""

    def tagged(tag, factors):
        signatures = {
            name: ({"INPUT": ("INPUT", *VECTOR)}, {"OUTPUT": (f"OUTPUT{index}", *VECTOR)})
            for index, name in enumerate(["serving_default", "testSigDef"])
        }
        return times(factors).tagged(tag, signatures)

    both = [tagged("serve", [1, 2]), tagged("testTag", [3, 4])]
    ports = f'input {port("INPUT", "FP32", "[ 16 ]")} output {port("OUTPUT", "FP32", "[ 16 ]")}'
    for name, tag, signature, _ in SERVED:
        chosen = [parameter("TF_GRAPH_TAG", tag)] if tag else []
        chosen += [parameter("TF_SIGNATURE_DEF", signature)] if signature else []
        write_saved_model(write_model(root, name, " ".join([SAVED, ports, *chosen]), "model.savedmodel"), both)
    for name, chosen in (
        ("no_such_tag", parameter("TF_GRAPH_TAG", "testtag")),
        ("no_such_signature", parameter("TF_SIGNATURE_DEF", "predict")),
    ):
        write_saved_model(write_model(root, name, f"{SAVED} {ports} {chosen}", "model.savedmodel"), both)


def variable_graph():
    """INPUT plus a variable, which only the operator `init` sets."""
    graph, shape = Graph(), field(7, dimensions([1]))
    graph.placeholder("INPUT", "int32", [1])
    kept = {"container": a_text(""), "shared_name": a_text("VARIABLE")}
    graph.add("VARIABLE", "VarHandleOp", dtype=a_type("int32"), shape=shape, **kept)
    graph.constant("zero", np.int32([0]))
    graph.add("assign", "AssignVariableOp", ["VARIABLE", "zero"], dtype=a_type("int32"), validate_shape=a_bool(False))
    graph.add("init", "NoOp", ["^assign"])
    graph.add("value", "ReadVariableOp", ["VARIABLE"], dtype=a_type("int32"))
    graph.add("OUTPUT", "AddV2", ["INPUT", "value"], T=a_type("int32"))
    return graph


def write_variables(root):
    ports = f'input {port("INPUT", "INT32", 1)} output {port("OUTPUT", "INT32", 1)}'
    init = parameter("TF_INIT_OPS_FILE", "init_ops.json")
    for name, where in (("not_initialized", None), ("init_of_model", "."), ("init_of_version", "1"), ("no_init", "?")):
        config = f"{FROZEN} {ports} {init if where else ''}"
        variable_graph().save_frozen(write_model(root, name, config, "model.graphdef"))
        if where in (".", "1"):
            (root / name / where / "init_ops.json").write_text('{"init_ops": ["init"]}')
    wrong = write_model(root, "wrong_init", f"{FROZEN} {ports} {init}", "model.graphdef")
    variable_graph().save_frozen(wrong)
    (wrong.parent / "init_ops.json").write_text('{"init_ops": "init"}')


def write_ranks(root):
    def identity(kind, shape):
        graph = Graph()
        graph.placeholder("x", kind, shape)
        graph.add("y", "Identity", ["x"], T=a_type(kind))
        return graph, {"INPUT": ("x", kind, shape)}, {"OUTPUT": ("y", kind, shape)}

    ports = f'input {port("INPUT", "FP32", "[ 1 ]")} output {port("OUTPUT", "FP32", "[ 1 ]")}'
    for name, config in (("any_rank", f"{SAVED} {ports}"), ("any_rank_not_configured", SAVED)):
        graph, given, wanted = identity("float32", None)
        graph.save(write_model(root, name, config, "model.savedmodel"), given, wanted)
    graph, given, wanted = identity("float32", [])
    graph.save(write_model(root, "scalar", SAVED, "model.savedmodel"), given, wanted)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("signatures")
    write_tags(root)
    write_variables(root)
    write_ranks(root)
    with servers.galatea(root, "--exit-on-error=false") as running:
        yield running


@pytest.mark.parametrize("model, tag, signature, factor", SERVED)
def test_the_configured_tag_and_signature_are_used(server, model, tag, signature, factor):
    ones = np.ones(16, np.float32)
    with clients.client(server, "http") as stock:
        got = clients.infer(stock, "http", model, {"INPUT": ones})["OUTPUT"]
    np.testing.assert_array_equal(got, factor * ones)


def reason(server, model):
    with clients.client(server, "http") as stock:
        states = {entry["name"]: entry for entry in stock.get_model_repository_index()}
    assert states[model]["state"] == "UNAVAILABLE"
    return states[model]["reason"]


@pytest.mark.parametrize("model, there", [("no_such_tag", "testTag"), ("no_such_signature", "testSigDef")])
def test_unknown_tags_and_signatures_are_refused_with_the_known_ones(server, model, there):
    assert there in reason(server, model)


@pytest.mark.parametrize("model", ["init_of_model", "init_of_version"])
def test_init_operations_run_once_at_load(server, model):
    with clients.client(server, "http") as stock:
        for value in (10, -3):
            got = clients.infer(stock, "http", model, {"INPUT": np.array([value], np.int32)})["OUTPUT"]
            assert got.tolist() == [value]


def test_without_init_operations_the_variable_is_missing(server):
    with clients.client(server, "http") as stock, pytest.raises(InferenceServerException) as error:
        clients.infer(stock, "http", "not_initialized", {"INPUT": np.array([1], np.int32)})
    wanted = "Could not find variable VARIABLE. This could mean that the variable has been deleted. In TF1, it can also mean"
    assert wanted in error.value.message()


@pytest.mark.parametrize("model", ["no_init", "wrong_init"])
def test_an_unusable_init_operations_file_is_refused(server, model):
    assert "init_ops.json" in reason(server, model)


def test_a_tensor_of_unknown_rank_has_the_configured_shape(server):
    with clients.client(server, "http") as stock:
        one = np.random.default_rng(1).random(1, np.float32)
        assert clients.infer(stock, "http", "any_rank", {"INPUT": one})["OUTPUT"] == one
        with pytest.raises(InferenceServerException) as error:
            clients.infer(stock, "http", "any_rank", {"INPUT": np.ones((1, 2), np.float32)})
    assert "unexpected shape for input 'INPUT' for model 'any_rank'. Expected [1], got [1,2]" in error.value.message()


def test_a_shape_of_unknown_rank_cannot_be_completed(server):
    told = reason(server, "any_rank_not_configured")
    assert "unable to autofill for 'any_rank_not_configured': the rank of model tensor 'INPUT' is unknown" in told, told


def test_a_scalar_is_one_number_to_clients(server):
    """Triton refuses to complete its configuration."""
    with clients.client(server, "http") as stock:
        assert stock.get_model_metadata("scalar")["inputs"][0]["shape"] == [1]
        got = clients.infer(stock, "http", "scalar", {"INPUT": np.array([2.5], np.float32)})["OUTPUT"]
    assert got.tolist() == [2.5]


def test_a_model_without_its_weights_is_refused(tmp_path):
    """A SavedModel that was copied without its folder of variables."""
    pitch = servers.PEERS / "unpacked/engine-models/basic_pitch/saved_models/icassp_2022/nmp"
    target = write_model(tmp_path, "pitch", "", "model.savedmodel")
    shutil.copytree(pitch, target, ignore=shutil.ignore_patterns("variables*"))
    with servers.galatea(tmp_path, "--exit-on-error=false") as running:
        assert "variables" in reason(running, "pitch")


def test_a_keras_file_is_refused_with_export_advice(tmp_path):
    keras = servers.PEERS / "unpacked/engine-models/deepcut/weight/cnn_without_ne_ab.h5"
    shutil.copy(keras, write_model(tmp_path, "deepcut", SAVED, "model.h5"))
    with servers.galatea(tmp_path, "--exit-on-error=false") as running:
        assert "model.export('model.savedmodel')" in reason(running, "deepcut")
