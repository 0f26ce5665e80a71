"""Writes a sentence encoder in FP32 of MiniLM's shape: six layers of 384 numbers, twelve heads. The weights are random,
because only its cost matters here.

    python bert.py FILE
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, INNER, WORDS, LONGEST = 6, 384, 12, 1536, 30522, 512
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph:
    """Nodes and weights as they are added; every method returns the name of what it computes."""

    def __init__(self):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(5)

    def add(self, operator, *inputs, **attributes):
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values, kind=np.float32):
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape) * 0.02)

    def linear(self, value, rows, columns):
        return self.add("Add", self.add("MatMul", value, self.weight(rows, columns)), self.weight(columns))

    def normalized(self, value):
        return self.add("LayerNormalization", value, self.constant(np.ones(WIDTH)), self.weight(WIDTH), axis=-1, epsilon=1e-12)

    def heads(self, value, order):
        shape = self.constant([0, 0, HEADS, WIDTH // HEADS], np.int64)
        return self.add("Transpose", self.add("Reshape", self.linear(value, WIDTH, WIDTH), shape), perm=order)

    def attended(self, value, mask):
        query, key = self.heads(value, [0, 2, 1, 3]), self.heads(value, [0, 2, 3, 1])
        scores = self.add("Div", self.add("MatMul", query, key), self.constant((WIDTH / HEADS) ** 0.5))
        shares = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        mixed = self.add("MatMul", shares, self.heads(value, [0, 2, 1, 3]))
        joined = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.linear(self.add("Reshape", joined, self.constant([0, 0, WIDTH], np.int64)), WIDTH, WIDTH)

    def activated(self, value):
        error = self.add("Erf", self.add("Div", value, self.constant(2**0.5)))
        gate = self.add("Add", error, self.constant(1))
        return self.add("Mul", self.add("Mul", value, gate), self.constant(0.5))

    def layer(self, value, mask):
        value = self.normalized(self.add("Add", value, self.attended(value, mask)))
        inner = self.activated(self.linear(value, WIDTH, INNER))
        return self.normalized(self.add("Add", value, self.linear(inner, INNER, WIDTH)))

    def embedded(self):
        words = self.add("Gather", self.weight(WORDS, WIDTH), "input_ids")
        kinds = self.add("Gather", self.weight(2, WIDTH), "token_type_ids")
        length = self.add("Gather", self.add("Shape", "input_ids"), self.constant([1], np.int64))
        start, axis = self.constant([0], np.int64), self.constant([0], np.int64)
        places = self.add("Slice", self.weight(LONGEST, WIDTH), start, length, axis)
        return self.normalized(self.add("Add", self.add("Add", words, kinds), places))

    def mask(self):
        mask = self.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self.add("Unsqueeze", mask, self.constant([1, 2], np.int64))
        return self.add("Mul", self.add("Sub", self.constant(1), mask), self.constant(-10000))


def build():
    graph = Graph()
    value, mask = graph.embedded(), graph.mask()
    for _ in range(LAYERS):
        value = graph.layer(value, mask)
    graph.nodes.append(helper.make_node("Identity", [value], ["last_hidden_state"]))
    described = helper.make_tensor_value_info
    inputs = [described(name, TensorProto.INT64, ["batch", "sequence"]) for name in INPUTS]
    outputs = [described("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])]
    made = helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    onnx.save(build(), sys.argv[1])
