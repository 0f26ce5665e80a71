"""The smallest models that tell which version of them answers: softmax(factor * x) over four classes, as ONNX and as
TorchScript.

The TorchScript file is written by hand, so that no PyTorch is needed: a zip archive with the code as text and a
pickle of a module that holds nothing.
"""

import zipfile

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

CODE = """\
class Softmax(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.Softmax,
    x: Tensor) -> Tensor:
    return torch.softmax(torch.mul(x, {factor}), -1)
"""
# Pickle, protocol 2: an object of that class with the one attribute training = False.
MODULE = b"\x80\x02c__torch__\nSoftmax\n)\x81}(X\x08\x00\x00\x00training\x89ub."
NOTHING = b"\x80\x02)."


def expected(factor, rows):
    powers = np.exp(factor * rows - (factor * rows).max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def write_onnx(file, factor, size=4):
    """INPUT FP32 [batch, size] to OUTPUT of the same shape."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size]) for name in ("INPUT", "OUTPUT")]
    nodes = [
        helper.make_node("Mul", ["INPUT", "factor"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["OUTPUT"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes, "softmax", tensors[:1], tensors[1:], [numpy_helper.from_array(np.float32(factor), "factor")]
    )
    model = helper.make_model(
        graph, producer_name="galatea-examples", opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    checker.check_model(model)
    file.parent.mkdir(parents=True, exist_ok=True)
    save(model, file)


def write_torchscript(file, factor):
    """INPUT__0 FP32 [batch, classes] to OUTPUT__0 of the same shape."""
    file.parent.mkdir(parents=True, exist_ok=True)
    files = {
        "version": b"3\n",
        "byteorder": b"little",
        "code/__torch__.py": CODE.format(factor=float(factor)).encode(),
        "constants.pkl": NOTHING,
        "data.pkl": MODULE,
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(f"{file.stem}/{name}", content)
