"""Tensors as they are put into a message."""

import struct

from .dtypes import BYTES
from .wire import ALIGNMENT, TENSOR, padding

_CACHE_LIMIT = 2048


class MessageBody:
    """The tensors of a message: their headers, and what travels inline behind them."""

    __slots__ = ("_connection", "_limit", "_used", "data", "stored")

    def __init__(self, connection):
        self._connection = connection
        self._limit = connection.inline_limit
        self._used = 0
        self.data = []
        self.stored = []

    def mark(self):
        """What was added so far, for `rewind`."""
        return self._used, len(self.data), len(self.stored)

    def rewind(self, mark):
        """Removes what was added since `mark`: a response that cannot be written must not affect the others."""
        self._used, data, stored = mark
        del self.data[data:]
        self._connection.outbox.free(self.stored[stored:])
        del self.stored[stored:]

    def add(self, tensor):
        """Puts a tensor into the message; its header."""
        size = tensor._size
        start = self._used
        misfit = -start % ALIGNMENT
        if start + misfit + size > self._limit and size:
            return self._add_stored(tensor, size)
        if misfit:
            self.data.append(padding(start))
            start += misfit
        if size:
            self.data.append(tensor._payload())
        self._used = start + size
        if tensor._code == BYTES:
            return _header(tensor, 0, start)
        key = (tensor._name, tensor._code, tensor._shape, start)
        header = _headers.get(key)
        if header is None:
            if len(_headers) > _CACHE_LIMIT:
                _headers.clear()
            header = _headers[key] = _header(tensor, 0, start)
        return header

    def _add_stored(self, tensor, size):
        payload = tensor._array if tensor._raw is None else tensor._payload()
        offset = self._connection.outbox.store(payload, size)
        self.stored.append(offset)
        return _header(tensor, 1, offset)


_headers = {}


def _header(tensor, place, offset):
    name = tensor._name.encode()
    shape = tensor._shape
    fixed = TENSOR.pack(len(name), tensor._code, place, len(shape), offset, tensor._size)
    return b"".join((fixed, struct.pack("<%dq" % len(shape), *shape), name))
