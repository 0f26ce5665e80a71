#!/bin/sh
# OpenVINO computes integers of 64 bits, and UINT32 in some operations, as INT32 on the CPU, and FP64 as FP32. A value that does
# not fit is changed without an error or a warning, although inputs and outputs keep their 64-bit types.
#
# openvino 2026.4.1, numpy 2.4.6, CPython 3.11 or later, x86-64. Seen with a graph that adds zero:
#   INT64  2^40   becomes 0
#   INT64  2^31   becomes -2147483648
#   UINT64 2^63   becomes 0
#   FP64   1e300  becomes 3.4028234663852886e+38
#   FP64   0.1    becomes 0.10000000149011612
# A graph that hands its input through keeps all of them. A server that promises TYPE_INT64 has to look at what comes in.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openvino==2026.4.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import openvino as ov
import openvino.opset13 as ops


def through(values, dtype, adds_zero):
    x = ops.parameter([-1], dtype, name="X")
    y = ops.add(x, ops.constant(np.zeros(1, dtype))) if adds_zero else x
    compiled = ov.Core().compile_model(ov.Model([ops.result(y)], [x], "m"), "CPU")
    found = compiled(np.array(values, dtype))[0]
    assert found.dtype == dtype
    return found.tolist()


for dtype, values, expected in [
    (np.int64, [2**40, 2**31, 5], [0, -(2**31), 5]),
    (np.uint64, [2**63, 5], [0, 5]),
    (np.float64, [1e300, 0.1], [3.4028234663852886e38, 0.10000000149011612]),
]:
    assert through(values, dtype, False) == values, dtype
    found = through(values, dtype, True)
    print(dtype.__name__, values, "->", found)
    assert found == expected, (found, expected)
PYTHON
