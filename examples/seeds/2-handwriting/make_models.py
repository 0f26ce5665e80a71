"""Makes the models of this repository; they replace what the document trains and exports elsewhere.

- `handwriting`: letters A to Z in an image [128, 128, 3] to 26 probabilities, names as a Keras export has them. Trained
  here in seconds on letters drawn with wobbly strokes.
- `handwriting_tensorflow`: the same network as a SavedModel of TensorFlow.
- `wav2vec_trt`: 100000 samples to the scores of 40 sounds every 20 ms, through the strides of wav2vec 2.0. Its weights
  are random, so it hears nothing; requests and answers have the size of the real one's.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(Path(__file__).resolve().parents[1]))

from saved_model import Graph, a_bool, a_text, a_type, ints  # noqa: E402

SIDE, GRID = 128, 32
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Strokes as points on a grid 5 wide and 7 high: "06 20 46" goes from the lower left to the top and down again.
STROKES = dict(
    zip(
        LETTERS,
        [
            "06 20 46, 13 33",
            "03 33 42 41 30 00 06 36 45 44 33",
            "41 30 10 01 05 16 36 45",
            "00 06 26 44 42 20 00",
            "40 00 06 46, 03 33",
            "40 00 06, 03 33",
            "41 30 10 01 05 16 36 45 43 23",
            "00 06, 40 46, 03 43",
            "20 26",
            "40 45 36 16 05",
            "00 06, 40 03 46",
            "00 06 46",
            "06 00 23 40 46",
            "06 00 46 40",
            "10 01 05 16 36 45 41 30 10",
            "06 00 30 41 42 33 03",
            "10 01 05 16 36 45 41 30 10, 34 46",
            "06 00 30 41 42 33 03, 23 46",
            "41 30 10 01 02 13 33 44 45 36 16 05",
            "00 40, 20 26",
            "00 05 16 36 45 40",
            "00 26 40",
            "00 16 23 36 40",
            "00 46, 40 06",
            "00 23 40, 23 26",
            "00 40 06 46",
        ],
    )
)


def draw(letter, random):
    """FP32 [128, 128, 3], dark ink on white paper."""
    turn, slant = random.uniform(-0.15, 0.15), random.uniform(-0.2, 0.2)
    bend = np.array([[np.cos(turn), -np.sin(turn) + slant], [np.sin(turn), np.cos(turn)]])
    bend *= random.uniform(0.8, 1.05) * np.array([4.6, 3.4])[:, None]
    centre, thickness = GRID / 2 + random.uniform(-2, 2, 2), random.uniform(0.9, 1.6)
    down, across = np.mgrid[:GRID, :GRID] + 0.5
    ink = np.zeros((GRID, GRID))
    for stroke in STROKES[letter].split(", "):
        points = np.array([[int(pair[0]) - 2, int(pair[1]) - 3] for pair in stroke.split()])
        points = (points + random.normal(0, 0.12, points.shape)) @ bend.T + centre
        for start, end in zip(points, points[1:]):
            along = end - start
            share = np.clip(
                ((across - start[0]) * along[0] + (down - start[1]) * along[1]) / (along @ along + 1e-9), 0, 1
            )
            away = np.hypot(across - start[0] - share * along[0], down - start[1] - share * along[1])
            ink = np.maximum(ink, np.clip(thickness + 0.5 - away, 0, 1))
    paper = 1 - 0.9 * ink + random.normal(0, 0.02, ink.shape)
    paper = paper.repeat(SIDE // GRID, 0).repeat(SIDE // GRID, 1)
    return np.repeat(paper[:, :, None], 3, 2).astype(np.float32)


def pooled(images):
    """What the network's fixed part makes of images: [images, 256] means of 8 by 8 points."""
    grey = np.asarray(images).mean(-1)
    return 1 - grey.reshape(len(grey), 16, 8, 16, 8).mean((2, 4)).reshape(len(grey), 256)


def train(random, each=45, hidden=500, steps=250):
    """A layer of random weights and a softmax regression on it: (weights in, weights out)."""
    letters = LETTERS * each
    seen = pooled([draw(letter, random) for letter in letters])
    first = random.normal(0, 1, (257, hidden)) * np.r_[np.full(256, 0.35), 0.5][:, None]
    inner = np.maximum(np.c_[seen, np.ones(len(seen))] @ first, 0)
    inner = np.c_[inner, np.ones(len(inner))]
    wanted = np.eye(26)[[LETTERS.index(letter) for letter in letters]]
    last, speed = np.zeros((hidden + 1, 26)), 0
    for _ in range(steps):
        scores = inner @ last
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        speed = 0.9 * speed - 0.06 * (inner.T @ (shares - wanted) / len(inner) + 1e-4 * last)
        last = last + speed
    return first.astype(np.float32), last.astype(np.float32)


def save(folder, name, nodes, weights, given, wanted):
    """`given` and `wanted` are (name, shape) of the only input and the only output, both FP32."""
    tensors = [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, shape) for tensor, shape in (given, wanted)]
    initializers = [numpy_helper.from_array(array, tensor) for tensor, array in weights.items()]
    graph = helper.make_graph(nodes, name, tensors[:1], tensors[1:], initializers)
    model = helper.make_model(
        graph, producer_name="galatea-examples", opset_imports=[helper.make_opsetid("", 14)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    target = folder / name / "1/model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, target)
    print(f"{name}/1/model.onnx: {target.stat().st_size / 1e6:.1f} MB")


def handwriting(folder, first, last):
    node = helper.make_node
    nodes = [
        node("Transpose", ["input_1"], ["planes"], perm=[0, 3, 1, 2]),
        node("ReduceMean", ["planes"], ["grey"], axes=[1], keepdims=1),
        node("AveragePool", ["grey"], ["small"], kernel_shape=[8, 8], strides=[8, 8]),
        node("Flatten", ["small"], ["flat"]),
        node("Sub", ["one", "flat"], ["ink"]),
        node("Gemm", ["ink", "w1", "b1"], ["sums"]),
        node("Relu", ["sums"], ["inner"]),
        node("Gemm", ["inner", "w2", "b2"], ["scores"]),
        node("Softmax", ["scores"], ["dense_1"], axis=-1),
    ]
    weights = {"one": np.float32(1), "w1": first[:-1], "b1": first[-1], "w2": last[:-1], "b2": last[-1]}
    save(folder, "handwriting", nodes, weights, ("input_1", ["batch", SIDE, SIDE, 3]), ("dense_1", ["batch", 26]))


def handwriting_tensorflow(folder, first, last):
    graph, of_float = Graph(), {"T": a_type("float32")}
    graph.placeholder("input_1", "float32", [-1, SIDE, SIDE, 3])
    graph.constant("planes", np.int32([3]))
    graph.add("grey", "Mean", ["input_1", "planes"], **of_float, Tidx=a_type("int32"), keep_dims=a_bool(True))
    window = {"ksize": ints([1, 8, 8, 1]), "strides": ints([1, 8, 8, 1])}
    graph.add("small", "AvgPool", ["grey"], **of_float, **window, padding=a_text("VALID"), data_format=a_text("NHWC"))
    graph.constant("row", np.int32([-1, 256]))
    graph.add("flat", "Reshape", ["small", "row"], **of_float, Tshape=a_type("int32"))
    graph.constant("one", np.float32(1))
    graph.add("ink", "Sub", ["one", "flat"], **of_float)
    layer = dense(graph, "dense", "ink", first)
    graph.add("inner", "Relu", [layer], **of_float)
    graph.add("shares", "Softmax", [dense(graph, "dense_1", "inner", last)], **of_float)
    target = folder / "handwriting_tensorflow/1/model.savedmodel"
    given, wanted = ("input_1", "float32", [-1, SIDE, SIDE, 3]), ("shares", "float32", [-1, 26])
    graph.save(target, {"input_1": given}, {"dense_1": wanted})
    print("handwriting_tensorflow/1/model.savedmodel")


def dense(graph, name, given, weights):
    """Weights with the bias as their last row."""
    of_float = {"T": a_type("float32")}
    graph.constant(f"{name}/kernel", weights[:-1])
    graph.constant(f"{name}/bias", weights[-1])
    flags = {"transpose_a": a_bool(False), "transpose_b": a_bool(False)}
    graph.add(f"{name}/MatMul", "MatMul", [given, f"{name}/kernel"], **of_float, **flags)
    return graph.add(f"{name}/BiasAdd", "AddV2", [f"{name}/MatMul", f"{name}/bias"], **of_float)


# Width and step of wav2vec 2.0's seven convolutions: 320 samples, 20 ms, to one frame.
CONVOLUTIONS = [(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]


def wav2vec(folder, channels=8, sounds=40):
    random = np.random.default_rng(4)
    weights = {"middle": np.array([1], np.int64), "head": random.normal(0, 0.3, (channels, sounds)).astype(np.float32)}
    nodes = [helper.make_node("Unsqueeze", ["input", "middle"], ["x0"])]
    for index, (width, step) in enumerate(CONVOLUTIONS):
        shape = (channels, channels if index else 1, width)
        weights[f"w{index}"] = random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        nodes += [
            helper.make_node("Conv", [f"x{index}", f"w{index}"], [f"c{index}"], strides=[step]),
            helper.make_node("Relu", [f"c{index}"], [f"x{index + 1}"]),
        ]
    nodes += [
        helper.make_node("Transpose", [f"x{len(CONVOLUTIONS)}"], ["frames"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["frames", "head"], ["output"]),
    ]
    save(
        folder, "wav2vec_trt", nodes, weights, ("input", ["batch", "samples"]), ("output", ["batch", "frames", sounds])
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("model_repository"))
    folder = parser.parse_args().folder
    weights = train(np.random.default_rng(3))
    handwriting(folder, *weights)
    handwriting_tensorflow(folder, *weights)
    wav2vec(folder)


if __name__ == "__main__":
    main()
