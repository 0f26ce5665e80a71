"""Models whose traces have every kind of row: an ensemble of a Python model, which calls an ONNX model, and of an ONNX model."""

import clients
import repositories

SIZE = 64

ROUTER = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(request)]) for request in requests]

    def answer(self, request):
        given = pb.Tensor("INPUT0", pb.get_input_tensor_by_name(request, "INPUT0").as_numpy())
        call = pb.InferenceRequest(model_name="encode", requested_output_names=["OUTPUT0"], inputs=[given], trace=request.trace())
        answer = call.exec()
        if answer.has_error():
            raise pb.TritonModelException(answer.error().message())
        return pb.Tensor("OUTPUT0", pb.get_output_tensor_by_name(answer, "OUTPUT0").as_numpy())
"""


def layers(path, count):
    """An ONNX model: products of matrices, one after the other."""
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper, save

    weights = np.eye(SIZE, dtype=np.float32)
    names = ["INPUT0", *(f"hidden{at}" for at in range(count - 1)), "OUTPUT0"]
    nodes = [helper.make_node("MatMul", [before, "weights"], [after]) for before, after in zip(names, names[1:])]
    shape = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, SIZE])
    graph = helper.make_graph(nodes, "layers", [shape("INPUT0")], [shape("OUTPUT0")], [numpy_helper.from_array(weights, "weights")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(made)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(made, path)


def config():
    put = '{} {{ name: "{}" data_type: TYPE_FP32 dims: [ 1, {} ] }}\n'.format
    return put("input", "INPUT0", SIZE) + put("output", "OUTPUT0", SIZE)


def write_pipeline(path):
    """The ensemble `summarize`: the Python model `route`, which calls the ONNX model `encode`, then the ONNX model `normalize`."""
    step = '{{ model_name: "{}" model_version: -1 input_map {{ key: "INPUT0" value: "{}" }} output_map {{ key: "OUTPUT0" value: "{}" }} }}'
    steps = [step.format(*names) for names in (("route", "INPUT0", "middle"), ("normalize", "middle", "OUTPUT0"))]
    repositories.write_model(path, "summarize", "galatea", "ensemble", config() + f"ensemble_scheduling {{ step [ {', '.join(steps)} ] }}\n")
    repositories.write_model(path, "route", "galatea", "python", config(), files={"1/model.py": ROUTER})
    for name, count in (("encode", 400), ("normalize", 60)):
        repositories.write_model(path, name, "galatea", "onnxruntime", config())
        layers(path / name / "1/model.onnx", count)


def infer(server, model, headers=None, **more):
    """The status of a request."""
    size = SIZE if model != "identity" else 2
    shape = [1, size] if model != "identity" else [size]
    body = {"inputs": [{"name": "INPUT0", "shape": shape, "datatype": "FP32", "data": [1.0] * size}], **more}
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body, headers)[0]
