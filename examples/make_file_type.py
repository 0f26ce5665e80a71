"""Writes the steps of the example that `galatea up` serves: what magika needs of a file, and what its answer says.

`file_bytes` takes the bytes of a file, as many as there are, and gives the 2048 numbers that magika takes: 1024 from the head,
blanks before it left out, 1024 from the tail, blanks behind it left out, 256 where there is none. `kind_of_file` takes magika's
214 probabilities and gives the kind of the highest one, by its name.
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

HERE = Path(__file__).parent
PLACE = HERE.parent / "crates/program/server/src/up/examples/magika"
BLOCK, PART, NONE = 4096, 1024, 256


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs, [output], **attributes)


def write(name, nodes, inputs, outputs, constants):
    """Small graphs: constants are initializers, and each is checked with its shapes."""
    values = [numpy_helper.from_array(np.array(value), key) for key, value in constants.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, values)
    model = helper.make_model(graph, producer_name="galatea-examples", opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model, full_check=True)
    file = PLACE / name / "1/model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    save(model, file)


def is_text(part):
    """No blank of ASCII, as bytes.strip() has them: 9 to 13, and 32."""
    return [
        node("Greater", [part, "eight"], f"{part}_above"),
        node("Less", [part, "fourteen"], f"{part}_below"),
        node("And", [f"{part}_above", f"{part}_below"], f"{part}_control"),
        node("Equal", [part, "space"], f"{part}_space"),
        node("Or", [f"{part}_control", f"{part}_space"], f"{part}_blank"),
        node("Not", [f"{part}_blank"], f"{part}_text"),
    ]


def file_bytes():
    nodes = [
        node("Cast", ["file"], "numbers", to=TensorProto.INT32),
        node("Slice", ["numbers", "zero", "block"], "first"),
        node("Slice", ["numbers", "minus_block", "far"], "last"),
        # A place beyond the last byte counts as text, so that one is found in a file of blanks too.
        *is_text("first"),
        node("Concat", ["first_text", "true"], "first_marks", axis=0),
        node("Cast", ["first_marks"], "first_number", to=TensorProto.INT32),
        node("ArgMax", ["first_number"], "begin", axis=0, keepdims=1),
        node("Slice", ["first", "begin", "far"], "stripped_head"),
        node("Concat", ["stripped_head", "filler"], "filled_head", axis=0),
        node("Slice", ["filled_head", "zero", "part"], "head"),
        *is_text("last"),
        node("Concat", ["true", "last_text"], "last_marks", axis=0),
        node("Cast", ["last_marks"], "last_number", to=TensorProto.INT32),
        node("ArgMax", ["last_number"], "end", axis=0, keepdims=1, select_last_index=1),
        node("Slice", ["last", "zero", "end"], "stripped_tail"),
        node("Concat", ["filler", "stripped_tail"], "filled_tail", axis=0),
        node("Slice", ["filled_tail", "minus_part", "far"], "tail"),
        node("Concat", ["head", "tail"], "both", axis=0),
        node("Unsqueeze", ["both", "zero"], "bytes"),
    ]
    one = lambda value, kind=np.int64: np.array([value], dtype=kind)
    constants = {
        "zero": one(0), "block": one(BLOCK), "minus_block": one(-BLOCK), "part": one(PART), "minus_part": one(-PART),
        "far": one(2**62), "true": one(True, np.bool_), "filler": np.full(PART, NONE, np.int32),
        "eight": one(8, np.int32), "fourteen": one(14, np.int32), "space": one(32, np.int32),
    }
    file = helper.make_tensor_value_info("file", TensorProto.UINT8, ["size"])
    row = helper.make_tensor_value_info("bytes", TensorProto.INT32, [1, 2 * PART])
    write("file_bytes", nodes, [file], [row], constants)


def kind_of_file():
    labels = (HERE / "models/magika/labels.txt").read_text().split()
    nodes = [
        node("ArgMax", ["target_label"], "best", axis=1, keepdims=0),
        node("Gather", ["labels", "best"], "kind"),
        node("ReduceMax", ["target_label"], "probability", axes=[1], keepdims=0),
    ]
    row = helper.make_tensor_value_info("target_label", TensorProto.FLOAT, [1, len(labels)])
    outputs = [
        helper.make_tensor_value_info("kind", TensorProto.STRING, [1]),
        helper.make_tensor_value_info("probability", TensorProto.FLOAT, [1]),
    ]
    write("kind_of_file", nodes, [row], outputs, {"labels": np.array(labels, dtype=object)})


file_bytes()
kind_of_file()
