"""Triton's data types and numpy's, both ways."""

import numpy as np

BYTES = 13
BF16 = 14

NAMES = (
    "INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "FP32", "FP64", "BYTES", "BF16",
)

SCALARS = (
    None, np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64,
    np.float16, np.float32, np.float64, np.object_,
)

# Indexed by data type: what lies in memory. numpy has no bfloat16: its bits travel as uint16.
DTYPES = tuple(None if scalar is None else np.dtype(scalar) for scalar in SCALARS) + (np.dtype(np.uint16),)

_CODES = {dtype: code for code, dtype in enumerate(DTYPES) if dtype is not None and code != BF16}


def code_of(dtype):
    """Triton's number of a numpy dtype, 0 when it has none (byte order other than the machine's included)."""
    code = _CODES.get(dtype)
    if code is not None:
        return code
    if dtype.kind in "SU":
        return BYTES
    if dtype.name == "bfloat16":
        return BF16
    return _CODES.get(dtype.newbyteorder("="), 0)
