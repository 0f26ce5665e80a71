"""Writes TorchScript files without PyTorch: an archive of code as text and of a pickled object with its tensors."""

import struct
import zipfile

import numpy as np

STORAGES = {"float32": "FloatStorage", "float64": "DoubleStorage", "int64": "LongStorage"}


def write_script(path, forward, tensors=None):
    """A module whose `forward` begins with its arguments, self left out: `x: Tensor) -> Tensor:\\n    return x`."""
    tensors = {name: np.ascontiguousarray(array) for name, array in (tensors or {}).items()}
    names = "".join(f'"{name}", ' for name in tensors)
    held = "".join(f"  {name} : Tensor\n" for name in tensors)
    code = (
        f"class M(Module):\n  __parameters__ = []\n  __buffers__ = [{names}]\n{held}  training : bool\n"
        f"  def forward(self: __torch__.M,\n    {forward}\n"
    )
    pickled = b"\x80\x02c__torch__\nM\n)\x81}(" + text("training") + b"\x89"
    for index, (name, array) in enumerate(tensors.items()):
        pickled += text(name) + tensor(index, array)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/version", "3\n")
        archive.writestr("m/byteorder", "little")
        archive.writestr("m/code/__torch__.py", code)
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/data.pkl", pickled + b"ub.")
        for index, array in enumerate(tensors.values()):
            archive.writestr(f"m/data/{index}", array.tobytes())


def wrap(path, source, kind, forward):
    """A module around the one in `source`, of class `kind`, which `forward` finds as `self.model`."""
    code = (
        f"class Served(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n  model : {kind}\n"
        f"  def forward(self: __torch__.Served,\n    {forward}\n"
    )
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        root = old.namelist()[0].split("/")[0]
        for name in old.namelist():
            content = old.read(name)
            if name == f"{root}/data.pkl":
                inner = content.removeprefix(b"\x80\x02").removesuffix(b".")
                head = b"\x80\x02c__torch__\nServed\n)\x81}(" + text("training") + b"\x89"
                content = head + text("model") + inner + b"ub."
            new.writestr(name, content)
        new.writestr(f"{root}/code/__torch__.py", code)


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def numbers(values):
    return b"(" + b"".join(b"J" + struct.pack("<i", n) for n in values) + b"t"


def tensor(index, array):
    storage = STORAGES[array.dtype.name]
    strides = [stride // array.itemsize for stride in array.strides]
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + f"ctorch\n{storage}\n".encode()
        + text(str(index)) + text("cpu") + b"J" + struct.pack("<i", array.size) + b"tQJ\0\0\0\0"
        + numbers(array.shape) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtR"
    )
