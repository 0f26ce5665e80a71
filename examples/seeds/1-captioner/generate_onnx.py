"""Makes the ONNX models of the captioner, opset 11 as in the document.

- `model.onnx` has the inputs, outputs and shapes of BLIP's captioner and a small network of the same kind: patches of
  the image, one decoder layer with causal and cross attention, a vocabulary of 30524. Its weights are random, so
  its captions are nonsense; what it costs the server around the network is the same.
- `shapes_captioner.onnx` has the same inputs and a vocabulary of 18 words, and is trained here in seconds on drawn
  images. It says sensible things about them, which is what a test of answers needs.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

IMAGE, VOCABULARY, WIDTH, LONGEST = 384, 30524, 32, 512


class Graph:
    """Nodes one after another; `node` returns the name of what comes out of each."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind, *inputs, named=None, **attributes):
        named = named or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [named], **attributes))
        return named

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    def model(self, vocabulary):
        def info(name, kind, shape):
            return helper.make_tensor_value_info(name, kind, shape)

        tokens = ["batch", "tokens"]
        inputs = [
            info("pixel_values", TensorProto.FLOAT, ["batch", 3, IMAGE, IMAGE]),
            info("input_ids", TensorProto.INT64, tokens),
            info("attention_mask", TensorProto.INT64, tokens),
        ]
        graph = helper.make_graph(
            self.nodes, "captioner", inputs, [info("logits", TensorProto.FLOAT, [*tokens, vocabulary])], self.weights
        )
        model = helper.make_model(
            graph, producer_name="galatea-examples", opset_imports=[helper.make_opsetid("", 11)], ir_version=6
        )
        onnx.checker.check_model(model, full_check=True)
        return model


# ---- BLIP's shapes, random weights


def attention(graph, queries, keys, values, mask=None):
    scores = graph.node("MatMul", queries, graph.node("Transpose", keys, perm=[0, 2, 1]))
    scores = graph.node("Mul", scores, graph.weight(np.float32(WIDTH**-0.5)))
    if mask:
        scores = graph.node("Add", scores, mask)
    return graph.node("MatMul", graph.node("Softmax", scores, axis=2), values)


def hidden_tokens(graph, count):
    """What a token must not look at, as a large negative number: what comes after it, and padding."""
    ahead = graph.node("Less", graph.node("Unsqueeze", count, axes=[1]), graph.node("Unsqueeze", count, axes=[0]))
    ahead = graph.node("Unsqueeze", graph.node("Cast", ahead, to=TensorProto.FLOAT), axes=[0])
    given = graph.node("Cast", "attention_mask", to=TensorProto.BOOL)
    padding = graph.node("Cast", graph.node("Not", given), to=TensorProto.FLOAT)
    both = graph.node("Add", ahead, graph.node("Unsqueeze", padding, axes=[1]))
    return graph.node("Mul", both, graph.weight(np.float32(-1e4)))


def random_captioner(seed=1):
    graph, random = Graph(), np.random.default_rng(seed)

    def weights(*shape):
        return graph.weight(random.normal(0, shape[0] ** -0.5, shape).astype(np.float32))

    def project(source):
        return graph.node("MatMul", source, weights(WIDTH, WIDTH))

    patches = graph.node(
        "Conv",
        "pixel_values",
        graph.weight(random.normal(0, 0.05, (WIDTH, 3, 32, 32)).astype(np.float32)),
        strides=[32, 32],
    )
    image = graph.node("Transpose", graph.node("Reshape", patches, graph.ints(0, WIDTH, -1)), perm=[0, 2, 1])
    words = graph.weight(random.normal(0, 1, (VOCABULARY, WIDTH)).astype(np.float32))
    length = graph.node("Gather", graph.node("Shape", "input_ids"), graph.weight(np.int64(1)), axis=0)
    count = graph.node("Range", graph.weight(np.int64(0)), length, graph.weight(np.int64(1)))
    # The load tool sends random bytes where no data is given, which are no ids of words.
    ids = graph.node("Mod", "input_ids", graph.weight(np.int64(VOCABULARY)))
    tokens = graph.node("Add", graph.node("Gather", words, ids), graph.node("Gather", weights(LONGEST, WIDTH), count))
    heard = attention(graph, project(tokens), project(tokens), project(tokens), hidden_tokens(graph, count))
    tokens = graph.node("Add", tokens, heard)
    tokens = graph.node("Add", tokens, attention(graph, project(tokens), project(image), project(image)))
    tokens = graph.node(
        "Add",
        tokens,
        graph.node("MatMul", graph.node("Relu", graph.node("MatMul", tokens, weights(WIDTH, 64))), weights(64, WIDTH)),
    )
    graph.node("MatMul", tokens, graph.node("Transpose", words, perm=[1, 0]), named="logits")
    return graph.model(VOCABULARY)


# ---- drawn images, trained weights

WORDS = [
    "[start]",
    "[end]",
    "a",
    "small",
    "large",
    "red",
    "green",
    "blue",
    "yellow",
    "circle",
    "square",
    "triangle",
    "on",
    "the",
    "left",
    "right",
    "side",
    ".",
]
SIZES, COLOURS, SHAPES, SIDES = WORDS[3:5], WORDS[5:9], WORDS[9:12], WORDS[14:16]
PAINT = {"red": (1, 0.1, 0.1), "green": (0.1, 0.9, 0.2), "blue": (0.1, 0.2, 1), "yellow": (0.95, 0.9, 0.1)}
DRAWN = 96


def draw(random):
    """(image FP32 [3, 384, 384], its caption)."""
    size, colour, shape, side = (str(random.choice(kinds)) for kinds in (SIZES, COLOURS, SHAPES, SIDES))
    radius = random.uniform(8, 11) if size == "small" else random.uniform(17, 21)
    x = random.uniform(22, 30) if side == "left" else random.uniform(66, 74)
    y = random.uniform(24, 72)
    down, across = np.mgrid[:DRAWN, :DRAWN]
    dx, dy = (across - x) / radius, (down - y) / radius
    inside = {
        "circle": dx**2 + dy**2 < 1,
        "square": np.maximum(abs(dx), abs(dy)) < 0.88,
        "triangle": (dy < 0.8) & (dy > 2 * abs(dx) - 1.1),
    }[shape]
    image = np.where(inside, np.array(PAINT[colour])[:, None, None], 0.5) + random.normal(0, 0.02, (3, DRAWN, DRAWN))
    image = image.repeat(IMAGE // DRAWN, 1).repeat(IMAGE // DRAWN, 2)
    return image.astype(np.float32), f"a {size} {colour} {shape} on the {side} side ."


def seeing(graph):
    """Features of an image [batch, features], without a trained weight: edges by direction and colours by side."""
    small = graph.node("AveragePool", "pixel_values", kernel_shape=[8, 8], strides=[8, 8])
    filters = np.zeros((14, 3, 5, 5), np.float32)
    down, across = np.mgrid[-2:3, -2:3]
    for index in range(8):
        angle = index * np.pi / 4
        filters[index] = (across * np.cos(angle) + down * np.sin(angle)) * np.array([1, -0.6, 0.8])[:, None, None] / 10
    for index in range(3):
        filters[8 + index, index], filters[11 + index, index] = 0.04, -0.04
    sign = np.array([0] * 8 + [-0.56] * 3 + [0.44] * 3, np.float32)
    seen = graph.node("Relu", graph.node("Conv", small, graph.weight(filters), graph.weight(sign)))
    squared = graph.node("Mul", seen, seen)
    halves = [graph.node("AveragePool", part, kernel_shape=[44, 22], strides=[44, 22]) for part in (seen, squared)]
    flat = graph.node("Flatten", graph.node("Concat", *halves, axis=1))
    both = graph.node("Flatten", graph.node("GlobalAveragePool", graph.node("Concat", seen, squared, axis=1)))
    total = graph.node("Add", graph.node("ReduceSum", both, axes=[1], keepdims=1), graph.weight(np.float32(1e-6)))
    return graph.node(
        "Concat",
        flat,
        graph.node("Div", both, total),
        graph.node("Log", graph.node("Add", both, graph.weight(np.float32(1e-4)))),
        axis=1,
    )


def features_of(images):
    graph = Graph()
    graph.node("Identity", seeing(graph), named="features")
    outputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, None)]
    inputs = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, IMAGE, IMAGE])]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "seeing", inputs, outputs, graph.weights),
        opset_imports=[helper.make_opsetid("", 11)],
        ir_version=6,
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"pixel_values": image[None]})[0] for image in images])


def regression(features, classes, count, steps=400):
    """Weights [features, count] of a softmax regression, by gradient descent with momentum."""
    weights = np.zeros((features.shape[1], count))
    speed, wanted = np.zeros_like(weights), np.eye(count)[classes]
    for _ in range(steps):
        scores = features @ weights
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        speed = 0.9 * speed - 0.3 * (features.T @ (shares - wanted) / len(features) + 1e-4 * weights)
        weights += speed
    return weights


def trained_captioner(images=500, seed=2):
    """For every word a regression that tells from the image which word comes next."""
    random = np.random.default_rng(seed)
    drawn = [draw(random) for _ in range(images)]
    features = features_of(image for image, _ in drawn)
    mean, spread = features.mean(0), features.std(0) + 1e-6
    seen = np.hstack([(features - mean) / spread, np.ones((images, 1))])
    captions = np.array([[0, *(WORDS.index(word) for word in caption.split()), 1] for _, caption in drawn])
    table = np.zeros((len(WORDS), seen.shape[1], len(WORDS)), np.float32)
    for word in range(len(WORDS)):
        rows, places = np.nonzero(captions[:, :-1] == word)
        if len(rows):
            table[word] = regression(seen[rows], captions[rows, places + 1], len(WORDS))
    graph = Graph()
    image = graph.node(
        "Div",
        graph.node("Sub", seeing(graph), graph.weight(mean.astype(np.float32))),
        graph.weight(spread.astype(np.float32)),
    )
    image = graph.node("Pad", image, graph.ints(0, 0, 0, 1), graph.weight(np.float32(1)))
    image = graph.node("Unsqueeze", image, axes=[1, 2])
    scores = graph.node("MatMul", image, graph.node("Gather", graph.weight(table), "input_ids"))
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=TensorProto.FLOAT), axes=[2])
    graph.node("Mul", graph.node("Squeeze", scores, axes=[2]), mask, named="logits")
    return graph.model(len(WORDS))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."))
    folder = parser.parse_args().folder
    for name, make in (("model.onnx", random_captioner), ("shapes_captioner.onnx", trained_captioner)):
        onnx.save(make(), folder / name)
        print(f"{name}: {(folder / name).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
