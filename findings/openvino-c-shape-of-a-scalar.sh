#!/bin/sh
# OpenVINO's C interface gives no shape for a tensor without dimensions: ov_tensor_get_shape answers -14 (invalid parameters) for
# a tensor that is fine, and whose size and data can be read. The C++ and Python interfaces give an empty shape.
#
# openvino 2026.4.1, CPython 3.11 or later, x86-64. A program that reads the shape of each output fails at a model whose output is
# one number; it has to take -14 together with a size of one element for a scalar.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openvino==2026.4.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import ctypes
import glob
import os

import numpy as np
import openvino
import openvino.opset13 as ops

folder = os.path.join(os.path.dirname(openvino.__file__), "libs")
(library,) = glob.glob(os.path.join(folder, "libopenvino_c.so.*"))
c = ctypes.CDLL(library)


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]


def status_of_shape(dims, work):
    """Makes a model whose output has these dims, runs it by the C interface, and asks the output for its shape and size."""
    x = ops.parameter([3], np.float32, name="X")
    y = ops.matmul(x, x, False, False) if not dims else ops.add(x, x)
    path = os.path.join(work, f"model{len(dims)}.xml")
    openvino.save_model(openvino.Model([ops.result(y)], [x], "m"), path, compress_to_fp16=False)
    core, compiled, request, tensor = (ctypes.c_void_p() for _ in range(4))
    assert c.ov_core_create(ctypes.byref(core)) == 0
    assert c.ov_core_compile_model_from_file(core, path.encode(), b"CPU", ctypes.c_size_t(0), ctypes.byref(compiled)) == 0
    assert c.ov_compiled_model_create_infer_request(compiled, ctypes.byref(request)) == 0
    assert c.ov_infer_request_infer(request) == 0
    assert c.ov_infer_request_get_output_tensor_by_index(request, ctypes.c_size_t(0), ctypes.byref(tensor)) == 0
    size, shape = ctypes.c_size_t(), Shape()
    assert c.ov_tensor_get_size(tensor, ctypes.byref(size)) == 0
    return c.ov_tensor_get_shape(tensor, ctypes.byref(shape)), size.value


import tempfile

with tempfile.TemporaryDirectory() as work:
    vector, scalar = status_of_shape([3], work), status_of_shape([], work)
print("status and elements of [3]:", vector, " of []:", scalar)
assert vector == (0, 3) and scalar == (-14, 1)
PYTHON
