"""DLPack, both ways, for numpy of any version from 1.22 and for bfloat16, which numpy has not.

numpy exchanges the capsules; only the type code inside a capsule is rewritten where numpy and DLPack differ
(bfloat16 travels through numpy as uint16, bool as uint8). Layout: DLPack's dlpack.h, unversioned structure.
"""

import ctypes
import sys

import numpy as np

from .dtypes import BF16, BYTES, code_of
from .errors import TritonModelException

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
_CPU, _CUDA, _CUDA_HOST = 1, 2, 3


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# numpy 1.22 has it under its first name; older ones not at all.
_from_dlpack = getattr(np, "from_dlpack", None) or np._from_dlpack

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Carrier:
    """An object that gives numpy a capsule: numpy takes objects only."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_wishes):
        return self._capsule

    def __dlpack_device__(self):
        return (_CPU, 0)


class _Lent:
    """The memory of an array that a tensor lends to a capsule, which holds the tensor as long: sys.getrefcount shows it."""

    def __init__(self, tensor, array):
        self._tensor, self._array = tensor, array
        self.__array_interface__ = array.__array_interface__


def _inside(capsule):
    """The structure a capsule holds; it starts with the tensor."""
    return _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))


def export(tensor):
    """A capsule over the tensor's memory."""
    if tensor._code == BYTES:
        raise TritonModelException("DLPack does not have support for string tensors.")
    array = tensor._bits()
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.array(array, order="C")
    is_bool = array.dtype == np.bool_
    lent = np.asarray(_Lent(tensor, array.view(np.uint8) if is_bool else array))
    capsule = lent.__dlpack__()
    if tensor._code == BF16:
        _inside(capsule).code = _BFLOAT
    elif is_bool:
        _inside(capsule).code = _BOOL
    return capsule


def adopt(name, tensor):
    """(data type, array) over the memory of a capsule or of an object with `__dlpack__`; BF16 as uint16."""
    if hasattr(tensor, "__dlpack__"):
        if hasattr(tensor, "__dlpack_device__") and int(tensor.__dlpack_device__()[0]) == _CUDA:
            tensor = _to_host(tensor)
        capsule = _capsule_of(tensor)
    elif type(tensor).__name__ == "PyCapsule":
        capsule = tensor
    else:
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule "
            "        or have `__dlpack__` and `__dlpack_device__` attributes"
        )
    inner = _inside(capsule)
    if inner.device_type == _CUDA:
        return adopt(name, _to_host(capsule))
    _check_device(inner)
    code = _rewrite(inner)
    array = _from_dlpack(_Carrier(capsule))
    _check_order(array)
    return _typed(name, array, code)


def _capsule_of(tensor):
    """The capsule of an object; bfloat16 that numpy would refuse stays with the producer's own code."""
    try:
        return tensor.__dlpack__()
    except TypeError:  # older signatures require the argument
        return tensor.__dlpack__(stream=None)


def _to_host(tensor):
    """A tensor on the GPU, copied to main memory by the library it comes from."""
    torch = sys.modules.get("torch")
    if hasattr(tensor, "cpu"):
        return tensor.cpu()
    if torch is None:
        raise TritonModelException("DLPack tensors on a GPU need PyTorch to be copied to main memory.")
    return torch.from_dlpack(tensor).cpu()


def _check_device(inner):
    if inner.device_type not in (_CPU, _CUDA_HOST):
        raise TritonModelException("DLDevice type %d is not support by Python backend." % inner.device_type)
    # numpy takes pinned memory only when it is declared as main memory.
    inner.device_type = _CPU


def _rewrite(inner):
    """Makes the type one that every numpy takes; what it was."""
    code = inner.code
    if code == _BFLOAT:
        if inner.bits != 16:
            raise TritonModelException("Expected BF16 tensor to have 16 bits, but had: %d" % inner.bits)
        inner.code = _UINT
    elif code == _BOOL:
        inner.code = _UINT
    elif code not in (_INT, _UINT, _FLOAT):
        raise TritonModelException('DType code "%d" is not supported.' % code)
    return code


def _check_order(array):
    if not array.flags.c_contiguous:
        raise TritonModelException(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
        )


def _typed(name, array, code):
    if code == _BFLOAT:
        return BF16, array
    if code == _BOOL:
        array = array.view(np.bool_)
    triton = code_of(array.dtype)
    if triton == 0:
        raise TritonModelException("Dtype is invalid. Tensor '%s' has dtype '%s'." % (name, array.dtype))
    return triton, array
