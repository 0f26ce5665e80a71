"""Writes TensorFlow's SavedModels and GraphDefs without TensorFlow: a graph of nodes, its weights as constants in it.

Both are messages of Protocol Buffers, whose fields (graph.proto, saved_model.proto, meta_graph.proto) are few enough to
write by hand.
"""

import numpy as np

TYPES = {"float32": 1, "int32": 3, "string": 7, "int64": 9}
# The oldest TensorFlow that has all of the operators used here made graphs of this version.
GRAPH_VERSION = 1087


class Graph:
    """Nodes in the order they were added. A tensor is named as the node that makes it."""

    def __init__(self):
        self.nodes = []

    def add(self, name, operator, inputs=(), **attributes):
        node = text(1, name) + text(2, operator) + b"".join(text(3, given) for given in inputs)
        self.nodes.append(node + b"".join(field(5, entry(key, value)) for key, value in attributes.items()))
        return name

    def placeholder(self, name, kind, shape):
        """An input; -1 is a variable dimension."""
        return self.add(name, "Placeholder", dtype=a_type(kind), shape=field(7, dimensions(shape)))

    def constant(self, name, array):
        array = np.ascontiguousarray(array)
        kind = str(array.dtype)
        value = number(1, TYPES[kind]) + field(2, dimensions(array.shape)) + field(4, array.tobytes())
        return self.add(name, "Const", dtype=a_type(kind), value=field(8, value))

    def definition(self):
        return b"".join(field(1, node) for node in self.nodes) + field(4, number(1, GRAPH_VERSION))

    def save(self, folder, inputs, outputs):
        """A SavedModel with the usual tag and signature; both are {key of the signature: (node, type, shape)}."""
        write_saved_model(folder, [self.tagged("serve", {"serving_default": (inputs, outputs)})])

    def tagged(self, tag, signatures):
        """What a SavedModel has under a tag, with its {signature: (inputs, outputs)}."""
        served = {
            name: tensors(1, inputs) + tensors(2, outputs) + text(3, "tensorflow/serving/predict")
            for name, (inputs, outputs) in signatures.items()
        }
        named = b"".join(field(5, entry(name, signature)) for name, signature in served.items())
        return field(1, text(4, tag)) + field(2, self.definition()) + named

    def save_frozen(self, file):
        """A GraphDef, which says nothing of inputs and outputs."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.definition())


def write_saved_model(folder, tagged):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(number(1, 1) + b"".join(field(2, graph) for graph in tagged))


def tensors(tag, named):
    described = {
        key: text(1, f"{node}:0") + number(2, TYPES[kind]) + field(3, dimensions(shape))
        for key, (node, kind, shape) in named.items()
    }
    return b"".join(field(tag, entry(key, value)) for key, value in described.items())


def a_type(kind):
    return number(6, TYPES[kind])


def an_int(value):
    return number(3, value)


def a_bool(value):
    return number(5, int(value))


def a_text(value):
    return text(2, value)


def ints(values):
    return field(1, field(3, b"".join(varint(value) for value in values)))


def dimensions(shape):
    """`None` for a tensor of any rank."""
    if shape is None:
        return number(3, 1)
    return b"".join(field(2, number(1, size)) for size in shape)


def entry(key, value):
    return text(1, key) + field(2, value)


def text(tag, value):
    return field(tag, value.encode())


def field(tag, content):
    return varint(tag << 3 | 2) + varint(len(content)) + content


def number(tag, value):
    return varint(tag << 3) + varint(value)


def varint(value):
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)
