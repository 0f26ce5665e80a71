"""BYTES tensors: elements with a length in front, to and from arrays of objects."""

import struct

import numpy as np

_LENGTH = struct.Struct("<I")


def serialize(array):
    """The elements of `array` in C order, each with its length in front.

    `bytes` stay as they are, `str` becomes UTF-8, anything else the UTF-8 of its `str()`.
    """
    pack = _LENGTH.pack
    parts = []
    for value in array.ravel().tolist():
        if type(value) is not bytes and not isinstance(value, bytes):
            value = str(value).encode()
        parts.append(pack(len(value)))
        parts.append(value)
    return b"".join(parts)


def deserialize(raw):
    """A 1-D array of `bytes` objects. ValueError when a length runs past the end."""
    unpack = _LENGTH.unpack_from
    raw = bytes(raw)
    end = len(raw)
    values = []
    at = 0
    while at < end:
        if at + 4 > end:
            raise ValueError("BYTES tensor ends inside a length")
        stop = at + 4 + unpack(raw, at)[0]
        if stop > end:
            raise ValueError("BYTES tensor ends inside an element")
        values.append(raw[at + 4 : stop])
        at = stop
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array
