"""Writes examples/models/simple/1/model.onnx: the sum and the difference of two INT32[16] rows."""

from pathlib import Path

from onnx import TensorProto, checker, helper, save

HERE = Path(__file__).parent


def row(name):
    return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])


graph = helper.make_graph(
    [
        helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
        helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
    ],
    "simple",
    [row("INPUT0"), row("INPUT1")],
    [row("OUTPUT0"), row("OUTPUT1")],
)
model = helper.make_model(
    graph, producer_name="galatea-examples", opset_imports=[helper.make_opsetid("", 13)], ir_version=8
)
checker.check_model(model)
save(model, HERE / "models/simple/1/model.onnx")
