"""pb_utils.Tensor."""

import numpy as np

from .arguments import Unfit, text
from .byte_strings import deserialize, serialize
from .dtypes import BF16, BYTES, DTYPES, code_of
from .errors import TritonModelException, incompatible

_ndarray = np.ndarray


class Tensor:
    """A named tensor: either an array that a model made, or bytes that came from the server.

    `_array` is the numpy array (made on first use for tensors from the server), `_raw` the buffer of the wire
    form with the tensor at `_start`, `_size` bytes long. `_raw` is None when the array's own memory is it.
    """

    __slots__ = ("_name", "_code", "_shape", "_array", "_raw", "_start", "_size", "__weakref__")

    def __init__(self, name, array, /):
        try:
            if not isinstance(array, _ndarray):
                raise Unfit
            name = text(name)
        except Unfit:
            wanted = "c_python_backend_utils.Tensor(arg0: str, arg1: numpy.ndarray)"
            raise incompatible("__init__", wanted, (name, array)) from None
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        code = code_of(array.dtype)
        if code == 0:
            raise TritonModelException(
                "NumPy dtype is not supported. Tensor '%s' has dtype '%s'." % (name, array.dtype)
            )
        self._name = name
        self._code = code
        self._shape = array.shape
        self._raw = None
        self._start = 0
        if code == BYTES:
            self._array = array
            self._raw = serialize(array)
            self._size = len(self._raw)
        else:
            self._array = array if array.dtype is DTYPES[code] else _native(array, code)
            self._size = array.nbytes

    def name(self):
        return self._name

    def as_numpy(self):
        array = self._array
        if self._code == BF16:
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
            )
        if array is None:
            array = self._array = self._decode()
        return array

    def triton_dtype(self):
        return self._code

    def shape(self):
        return list(self._shape)

    def is_cpu(self):
        return True

    def to_dlpack(self):
        from .dlpack import export

        return export(self)

    def __dlpack__(self, stream=None, **_wishes):
        return self.to_dlpack()

    def __dlpack_device__(self):
        return (1, 0)

    @staticmethod
    def from_dlpack(name, tensor, /):
        from .dlpack import adopt

        try:
            name = text(name)
        except Unfit:
            raise incompatible("from_dlpack", "(arg0: str, arg1: object) -> Tensor", (name, tensor)) from None
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        return from_array(name, *adopt(name, tensor))

    def _decode(self):
        """The array of a tensor from the server."""
        if self._code != BYTES:
            return _ndarray(self._shape, DTYPES[self._code], buffer=self._raw, offset=self._start)
        raw = memoryview(self._raw)[self._start : self._start + self._size]
        return deserialize(raw).reshape(self._shape)

    def _bits(self):
        """The array of what lies in memory: that of as_numpy, or uint16 for BF16."""
        if self._array is None:
            self._array = self._decode()
        return self._array

    def _payload(self):
        """The wire form: something that has the buffer interface, contiguous."""
        raw = self._raw
        if raw is None:
            array = self._array
            return array if array.flags.c_contiguous else np.ascontiguousarray(array)
        if len(raw) == self._size:
            return raw
        return memoryview(raw)[self._start : self._start + self._size]


Tensor.__module__ = "c_python_backend_utils"


def _native(array, code):
    """The same values in the machine's byte order; the bits of a bfloat16 array as uint16."""
    if code == BF16:
        return array.view(np.uint16)
    return array.astype(DTYPES[code], copy=False)


def from_message(spec, raw, data):
    """A tensor that lies inline in a message: `spec` as codec reads it, `data` where the message's data start."""
    tensor = _new(Tensor)
    tensor._name, tensor._code, tensor._shape, offset, tensor._size = spec
    tensor._start = data + offset
    tensor._raw = raw
    tensor._array = None
    return tensor


def from_array(name, code, array):
    """A tensor over an array that has the bits of the data type `code`."""
    tensor = _new(Tensor)
    tensor._name = name
    tensor._code = code
    tensor._shape = array.shape
    tensor._array = array
    tensor._raw = None
    tensor._start = 0
    tensor._size = array.nbytes
    return tensor


_new = object.__new__
