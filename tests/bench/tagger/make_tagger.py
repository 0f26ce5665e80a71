"""Builds the tagger of the ensemble benchmark: a BiLSTM over packed word vectors with CRF scores on top.

Shapes are those of the first seed document (2148 numbers a word, 20 tags); the weights are random, because only
its cost matters here. Outputs: features FP32 [B, T, 20, 20] (score of tag i after tag j), lengths as they came.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORD, HIDDEN, TAGS = 2148, 128, 20


def build():
    random = np.random.default_rng(11)

    def weights(name, *shape):
        return numpy_helper.from_array((random.standard_normal(shape) * 0.05).astype(np.float32), name)

    constants = [
        weights("W", 2, 4 * HIDDEN, WORD), weights("R", 2, 4 * HIDDEN, HIDDEN), weights("B", 2, 8 * HIDDEN),
        weights("P", 2 * HIDDEN, TAGS), weights("transitions", TAGS, TAGS),
        numpy_helper.from_array(np.array([0, 0, -1], np.int64), "joined"),
        numpy_helper.from_array(np.array([2], np.int64), "axis"),
    ]
    node = helper.make_node
    nodes = [
        node("Cast", ["sorted_lengths"], ["lengths32"], to=TensorProto.INT32),
        node("Transpose", ["sentence_tensor"], ["by_time"], perm=[1, 0, 2]),
        node("LSTM", ["by_time", "W", "R", "B", "lengths32"], ["states"], hidden_size=HIDDEN, direction="bidirectional"),
        node("Transpose", ["states"], ["by_word"], perm=[2, 0, 1, 3]),
        node("Reshape", ["by_word", "joined"], ["flat"]),
        node("MatMul", ["flat", "P"], ["emissions"]),
        node("Unsqueeze", ["emissions", "axis"], ["rows"]),
        node("Add", ["rows", "transitions"], ["features"]),
        node("Identity", ["sorted_lengths"], ["lengths"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "tagger",
        [value("sorted_lengths", TensorProto.INT64, ["B"]), value("sentence_tensor", TensorProto.FLOAT, ["B", "T", WORD])],
        [value("features", TensorProto.FLOAT, ["B", "T", TAGS, TAGS]), value("lengths", TensorProto.INT64, ["B"])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    onnx.save(build(), sys.argv[1])
