"""Writes the example model `temperature` as OpenVINO's IR: degrees Celsius in, Fahrenheit and Kelvin out. IR is a text of layers
and edges, `model.xml`, beside the numbers that they use, `model.bin`; `openvino.save_model` writes the same of any model."""

import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "openvino/temperature/1"
FACTORS = [9 / 5, 1.0]
OFFSETS = [32.0, 273.15]
LAYOUT = '<rt_info><attribute name="layout" version="0" layout="[N,C]" /></rt_info>'


def port(number, dims, names="", layout=""):
    names = f' names="{names}"' if names else ""
    dims = "".join(f"<dim>{dim}</dim>" for dim in dims)
    return f'<port id="{number}" precision="FP32"{names}>{dims}{layout}</port>'


def layer(number, name, kind, data, inputs, outputs):
    parts = [data] if data else []
    parts += [f"<input>{''.join(inputs)}</input>"] if inputs else []
    parts += [f"<output>{''.join(outputs)}</output>"] if outputs else []
    inner = "".join(f"\n      {part}" for part in parts)
    more = f' output_names="{name}"' if kind == "Result" else ""
    return f'    <layer id="{number}" name="{name}" type="{kind}" version="opset1"{more}>{inner}\n    </layer>'


def constant(number, name, dims, offset):
    size = 4 * dims[0] * dims[1]
    data = f'<data element_type="f32" shape="{dims[0]},{dims[1]}" offset="{offset}" size="{size}" />'
    return layer(number, name, "Const", data, [], [port(0, dims)])


def main():
    one, two = [-1, 1], [-1, 2]
    layers = [
        layer(0, "CELSIUS", "Parameter", '<data shape="?,1" element_type="f32" />', [], [port(0, one, "CELSIUS", LAYOUT)]),
        constant(1, "factors", [1, 2], 0),
        layer(2, "scaled", "MatMul", '<data transpose_a="false" transpose_b="false" />', [port(0, one), port(1, [1, 2])], [port(2, two)]),
        constant(3, "offsets", [1, 2], 8),
        layer(4, "moved", "Add", '<data auto_broadcast="numpy" />', [port(0, two), port(1, [1, 2])], [port(2, two, "FAHRENHEIT_KELVIN", LAYOUT)]),
        layer(5, "FAHRENHEIT_KELVIN", "Result", "", [port(0, two)], []),
    ]
    edges = [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 4, 0), (3, 0, 4, 1), (4, 2, 5, 0)]
    edges = [f'    <edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}" />' for a, b, c, d in edges]
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = ['<?xml version="1.0"?>', '<net name="temperature" version="11">', "  <layers>", *layers, "  </layers>", "  <edges>", *edges]
    (FOLDER / "model.xml").write_text("\n".join([*lines, "  </edges>", "</net>", ""]))
    (FOLDER / "model.bin").write_bytes(struct.pack("<4f", *FACTORS, *OFFSETS))


if __name__ == "__main__":
    main()
