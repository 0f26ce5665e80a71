"""Makes the TensorFlow models of the tests, and what TensorFlow itself answers in this process.

Runs in the Python that has TensorFlow (target/peers/engines): `python tensorflow_models.py OUT [WHEELS]`. It writes
OUT/repository, a model repository, and for each model OUT/answers/NAME.npz with inputs (`in:NAME`) and outputs
(`out:NAME`). Of WHEELS, a folder of unpacked packages, it takes trained models.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

OUT = Path(sys.argv[1])
WHEELS = Path(sys.argv[2]) if len(sys.argv) > 2 else None
RANDOM = np.random.default_rng(16)
OPEN = [None, None]


def weights(*shape):
    return tf.Variable(RANDOM.normal(0, 1 / np.sqrt(shape[0]), shape).astype(np.float32))


def folder(name, config=None):
    path = OUT / "repository" / name
    (path / "1").mkdir(parents=True)
    if config:
        (path / "config.pbtxt").write_text(config)
    return path / "1"


def save_answers(name, inputs, outputs):
    (OUT / "answers").mkdir(exist_ok=True)
    entries = {f"in:{key}": value for key, value in inputs.items()}
    entries |= {f"out:{key}": np.asarray(value) for key, value in outputs.items()}
    # Texts as arrays of objects would be pickled.
    entries = {key: value.astype(bytes) if value.dtype == object else value for key, value in entries.items()}
    np.savez(OUT / "answers" / f"{name}.npz", **entries)


def call(path, signature, inputs):
    """What the saved model answers here."""
    function = tf.saved_model.load(str(path)).signatures[signature]
    answered = function(**{key: tf.constant(value) for key, value in inputs.items()})
    return {key: value.numpy() for key, value in answered.items()}


def save(name, module, signatures, inputs, config=None, served="serving_default"):
    path = folder(name, config) / "model.savedmodel"
    tf.saved_model.save(module, str(path), signatures=signatures)
    if inputs:
        save_answers(name, inputs, call(path, served, inputs))
    return path


def function(*specs):
    return tf.function(input_signature=[tf.TensorSpec(dims, kind, name=name) for name, kind, dims in specs])


def string(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


class Perceptron(tf.Module):
    def __init__(self):
        self.w0, self.w1 = weights(64, 256), weights(256, 10)

    @function(("x", tf.float32, [None, 64]))
    def __call__(self, x):
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, self.w0)), self.w1)
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}


class Convolutions(tf.Module):
    """Some milliseconds of convolutions for each image."""

    def __init__(self, width=32):
        self.filters = [weights(3, 3, 3 if layer == 0 else width, width) for layer in range(4)]
        self.w = weights(width, 10)

    @function(("image", tf.float32, [None, 96, 96, 3]))
    def __call__(self, image):
        x = image
        for layer, filters in enumerate(self.filters):
            x = tf.nn.relu(tf.nn.conv2d(x, filters, 1 if layer % 2 else 2, "SAME") * 0.2)
        return {"scores": tf.matmul(tf.reduce_mean(x, [1, 2]), self.w)}


class Texts(tf.Module):
    @function(("text", tf.string, [None, 1]))
    def __call__(self, text):
        return {
            "upper": tf.strings.upper(text, encoding="utf-8"),
            "length": tf.strings.length(text),
            "twice": tf.strings.join([text, text], separator="|"),
        }


class Table(tf.Module):
    """A vocabulary in a file of the model: it is an asset, and the table is filled when the model is loaded."""

    def __init__(self, file):
        initializer = tf.lookup.TextFileInitializer(
            file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(initializer, -1)

    @function(("word", tf.string, [None, 1]))
    def __call__(self, word):
        return {"id": self.table.lookup(word)}


class Several(tf.Module):
    def __init__(self):
        self.factor = tf.Variable(2.0)

    @function(("x", tf.float32, [None, 1]))
    def double(self, x):
        return {"y": x * self.factor}

    @function(("x", tf.float32, [None, 1]))
    def half(self, x):
        return {"y": x / self.factor}


class Counter(tf.Module):
    def __init__(self):
        self.total = tf.Variable(0.0)

    @function(("x", tf.float32, [1]))
    def add(self, x):
        return {"total": tf.reshape(self.total.assign_add(x[0]), [1])}


class Divide(tf.Module):
    @function(("a", tf.int32, [None, 1]), ("b", tf.int32, [None, 1]))
    def __call__(self, a, b):
        return {"quotient": a // b}


TYPES = {
    "bool": tf.bool, "uint8": tf.uint8, "uint16": tf.uint16, "uint32": tf.uint32, "uint64": tf.uint64, "int8": tf.int8,
    "int16": tf.int16, "int32": tf.int32, "int64": tf.int64, "fp16": tf.float16, "fp32": tf.float32, "fp64": tf.float64,
    "bf16": tf.bfloat16,
}


class Types(tf.Module):
    """An output for each input, of every type that is a number."""

    @tf.function(input_signature=[tf.TensorSpec([None, 2], kind, name=name) for name, kind in TYPES.items()])
    def __call__(self, *values):
        return {f"{name}_out": tf.identity(value) for name, value in zip(TYPES, values)}


class Precision(tf.Module):
    def __init__(self):
        self.w = weights(8, 4)

    @function(("half", tf.float16, [None, 8]), ("brain", tf.bfloat16, [None, 8]))
    def __call__(self, half, brain):
        return {
            "half_out": tf.matmul(half, tf.cast(self.w, tf.float16)),
            "brain_out": tf.matmul(brain, tf.cast(self.w, tf.bfloat16)),
        }


def halves():
    values = RANDOM.normal(size=(3, 8)).astype(np.float32)
    half, brain = tf.cast(values, tf.float16), tf.cast(values, tf.bfloat16)
    path = folder("precision") / "model.savedmodel"
    module = Precision()
    tf.saved_model.save(module, str(path), signatures=module.__call__)
    answered = tf.saved_model.load(str(path)).signatures["serving_default"](half=half, brain=brain)
    bits = {key: tf.bitcast(value, tf.uint16).numpy() for key, value in answered.items()}
    save_answers("precision", {"half": tf.bitcast(half, tf.uint16).numpy(), "brain": tf.bitcast(brain, tf.uint16).numpy()}, bits)


def frozen():
    """A graph of TensorFlow 1, its variables made constants."""
    module = Perceptron()
    concrete = module.__call__.get_concrete_function()
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    constant = convert_variables_to_constants_v2(concrete)
    given, wanted = constant.inputs[0].name, [tensor.name for tensor in constant.outputs]
    path = folder(
        "frozen",
        'platform: "tensorflow_graphdef" max_batch_size: 8 dynamic_batching {}\n'
        f'input {{ name: "{given}" data_type: TYPE_FP32 dims: 64 }}\n'
        + "".join(f'output {{ name: "{name}" data_type: TYPE_FP32 dims: 10 }}\n' for name in wanted),
    )
    (path / "model.graphdef").write_bytes(constant.graph.as_graph_def().SerializeToString())
    x = RANDOM.normal(size=(3, 64)).astype(np.float32)
    save_answers("frozen", {given: x}, {name: value.numpy() for name, value in zip(wanted, constant(tf.constant(x)))})


def with_init_operations():
    """A graph whose variable has no value until an operation is run."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        offset = v1.get_variable("offset", initializer=tf.constant([[40.0]]), use_resource=True)
        tf.identity(x + offset, name="y")
        first = offset.initializer.name
    path = folder(
        "init_ops",
        'platform: "tensorflow_graphdef" max_batch_size: 4\n'
        'input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }\n'
        + string("TF_INIT_OPS_FILE", "init_ops.json"),
    )
    (path / "model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())
    (path.parent / "init_ops.json").write_text(json.dumps({"init_ops": [first]}))
    save_answers("init_ops", {"x": np.float32([[2]])}, {"y": np.float32([[42]])})


def old_saved_model():
    """As TensorFlow 1 saved them, with variables and two graphs by their tags."""
    v1 = tf.compat.v1
    path = folder("old", string("TF_GRAPH_TAG", "large")) / "model.savedmodel"
    builder = v1.saved_model.Builder(str(path))
    for tag, factor in (("serve", 10.0), ("large", 1000.0)):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 2], name="x")
            v1.get_variable("w", shape=[2, 1], initializer=v1.ones_initializer())
            y = tf.matmul(x, v1.trainable_variables()[0]) * factor
            session.run(v1.global_variables_initializer())
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
            signatures = {"serving_default": signature}
            if tag == "serve":
                builder.add_meta_graph_and_variables(session, [tag], signatures)
            else:
                builder.add_meta_graph([tag], signatures)
    builder.save()
    save_answers("old", {"x": np.float32([[1, 2], [3, 4]])}, {"y": np.float32([[3000], [7000]])})


def call_session(path, inputs):
    """What a model answers whose Python objects a newer TensorFlow cannot make again: by its graph. `inputs` in the order
    of the names in its signature."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(path)).signature_def["serving_default"]
        named = dict(zip(sorted(signature.inputs), inputs))
        fed = {signature.inputs[name].name: value for name, value in named.items()}
        wanted = {name: info.name for name, info in signature.outputs.items()}
        return named, session.run(wanted, fed)


def trained():
    """Models that people have published, as they are in their packages."""
    pitch = WHEELS / "basic_pitch/saved_models/icassp_2022/nmp"
    sound = (0.1 * np.sin(np.arange(43844) * 0.06)).astype(np.float32).reshape(1, 43844, 1)
    programs = [b"import os\nprint(os.environ)\n", b"fn main() { println!(\"x\"); }\n", b"#include <stdio.h>\nint main(void) {}\n"]
    for name, path, given in (
        ("basic_pitch", pitch, np.concatenate([sound, 0.5 * sound])),
        ("guesslang", WHEELS / "guesslang/data/model", np.array([program * 4 for program in programs])),
    ):
        shutil.copytree(path, folder(name) / "model.savedmodel")
        inputs, outputs = call_session(path, [given])
        # A batch of single values has a dimension of its own for clients.
        save_answers(name, {key: x.reshape(len(x), -1) if x.ndim == 1 else x for key, x in inputs.items()}, outputs)


def keras():
    """As Keras 3 exports them."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input([16, 16, 1]), layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(),
        layers.GlobalAveragePooling2D(), layers.Dense(3, activation="softmax"),
    ])
    path = folder("keras") / "model.savedmodel"
    model.export(str(path), verbose=False)
    loaded = tf.saved_model.load(str(path)).signatures["serving_default"]
    inputs = {next(iter(loaded.structured_input_signature[1])): RANDOM.normal(size=(2, 16, 16, 1)).astype(np.float32)}
    save_answers("keras", inputs, call(path, "serving_default", inputs))


def main():
    module = Perceptron()
    x = RANDOM.normal(size=(4, 64)).astype(np.float32)
    batching = "max_batch_size: 64 dynamic_batching { max_queue_delay_microseconds: 2000 } instance_group { count: 2 kind: KIND_CPU }\n"
    save("perceptron", module, module.__call__, {"x": x})
    save("perceptron_batched", module, module.__call__, {"x": x}, batching)
    module = Convolutions()
    save("convolutions", module, module.__call__, {"image": RANDOM.normal(size=(2, 96, 96, 3)).astype(np.float32)})
    module = Texts()
    save("texts", module, module.__call__, {"text": np.array([[b"a"], ["grün und länger als dreiundzwanzig Byte".encode()], [b""]])})
    words = OUT / "words.txt"
    words.write_text("zero\none\ntwo\n")
    module = Table(str(words))
    save("table", module, module.__call__, {"word": np.array([[b"two"], [b"none"], [b"zero"]])})
    words.unlink()
    module = Several()
    both = {"serving_default": module.double, "half": module.half}
    values = {"x": np.float32([[1], [3]])}
    save("double", module, both, values)
    save("half", module, both, values, string("TF_SIGNATURE_DEF", "half"), "half")
    module = Counter()
    save("counter", module, module.add, None, "instance_group { count: 3 kind: KIND_CPU }\n")
    module = Divide()
    save("divide", module, module.__call__, {"a": np.int32([[7], [-7]]), "b": np.int32([[2], [2]])})
    module = Types()
    tf.saved_model.save(module, str(folder("types") / "model.savedmodel"), signatures=module.__call__)
    halves()
    frozen()
    with_init_operations()
    old_saved_model()
    keras()
    if WHEELS:
        trained()


if __name__ == "__main__":
    main()
