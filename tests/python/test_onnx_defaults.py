"""Models as the newest onnx package writes them by default: the pinned ONNX Runtime takes its IR version and its opset."""

import numpy as np
import onnx
from onnx import TensorProto, helper

import clients
import repositories


def write(folder, _):
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 3]) for name in ("X", "Y")]
    graph = helper.make_graph([helper.make_node("Neg", ["X"], ["Y"])], "defaults", tensors[:1], tensors[1:])
    made = helper.make_model(graph)
    newest = onnx.defs.onnx_opset_version()
    assert (made.ir_version, [o.version for o in made.opset_import]) == (onnx.IR_VERSION, [newest])
    path = repositories.write_model(folder, "defaults", "galatea", "onnxruntime", "") / "1" / "model.onnx"
    path.write_bytes(made.SerializeToString())


def test_a_model_with_default_conversion_options_is_served(stage):
    server = stage.get("galatea", write)
    body = {"inputs": [clients.tensor_json("X", np.array([[1, 2, 3]], np.float32))]}
    status, _, text = clients.ask(server.http, "POST", "/v2/models/defaults/infer", body)
    assert (status, b'"data":[-1,-2,-3]' in text.replace(b".0", b"")) == (200, True), text


def write_classifier(folder, _):
    """As skl2onnx writes a classifier by default: the label, and the probabilities as a list of maps by class."""
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3])
    label = helper.make_tensor_value_info("label", TensorProto.FLOAT, [None, 3])
    of_classes = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    probabilities = helper.make_value_info("probabilities", helper.make_sequence_type_proto(of_classes))
    zipped = helper.make_node("ZipMap", ["X"], ["probabilities"], domain="ai.onnx.ml", classlabels_strings=["c", "a", "b"])
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["label"]), zipped], "classifier", [x], [label, probabilities])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path = repositories.write_model(folder, "classifier", "galatea", "onnxruntime", "") / "1" / "model.onnx"
    path.write_bytes(made.SerializeToString())


def test_class_probabilities_are_one_tensor(stage):
    """Columns are in the order of the classes' names, which the log says."""
    server = stage.get("galatea", write_classifier)
    rows = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], np.float32)
    for count in (1, 2):
        with clients.client(server, "grpc") as stock:
            found = clients.infer(stock, "grpc", "classifier", {"X": rows[:count]})
        np.testing.assert_array_equal(found["probabilities"], rows[:count, [1, 2, 0]])
        np.testing.assert_array_equal(found["label"], rows[:count])
    server.wait_for_line("output 'probabilities' is a list of maps")


def test_a_missing_language_locale_is_named(shared):
    """Text pipelines of scikit-learn have such a node."""
    server = shared()
    name = server.write("texts", "onnxruntime", "")
    tensors = [helper.make_tensor_value_info(name, TensorProto.STRING, [None]) for name in ("X", "Y")]
    node = helper.make_node("StringNormalizer", ["X"], ["Y"], locale="xx_YY.UTF-8", case_change_action="LOWER")
    made = helper.make_model(helper.make_graph([node], "texts", tensors[:1], tensors[1:]), ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    (server.repository / name / "1" / "model.onnx").write_bytes(made.SerializeToString())
    status, _, text = clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})
    assert status == 400 and b"has the attribute 'locale'" in text and b"C.UTF-8" in text, text
