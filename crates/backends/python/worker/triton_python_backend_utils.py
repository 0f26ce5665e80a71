"""What model code imports as `pb_utils`: Triton's Python backend API."""

import json  # noqa: F401
import struct  # noqa: F401

import numpy as np

from c_python_backend_utils import *  # noqa: F401,F403
from galatea_worker.byte_strings import deserialize, serialize
from galatea_worker.dtypes import BYTES, NAMES, SCALARS
from galatea_worker.model_config import ModelConfig  # noqa: F401
from galatea_worker.model_control import get_model_dir  # noqa: F401

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

TRITON_STRING_TO_NUMPY = {
    "TYPE_" + ("STRING" if code == BYTES else NAMES[code]): bool if scalar is np.bool_ else scalar
    for code, scalar in enumerate(SCALARS)
    if scalar is not None
}

_TRITON_TYPES = {scalar: code for code, scalar in enumerate(SCALARS) if scalar is not None}


def serialize_byte_tensor(input_tensor):
    """The elements of an array of bytes or objects, each with its length in front; None for other arrays."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype != np.object_ and input_tensor.dtype.type != np.bytes_:
        return None
    return serialize(input_tensor)


def deserialize_bytes_tensor(encoded_tensor):
    """The 1-D array of bytes objects that serialize_byte_tensor wrote."""
    return deserialize(encoded_tensor)


def _by_name(tensors, name):
    for tensor in tensors:
        if tensor._name == name:
            return tensor
    return None


def get_input_tensor_by_name(inference_request, name):
    """The input with this name, or None."""
    return _by_name(inference_request._inputs, name)


def get_output_tensor_by_name(inference_response, name):
    """The output with this name, or None."""
    return _by_name(inference_response._outputs, name)


def _properties(model_config, kind, name):
    return next((entry for entry in model_config.get(kind, ()) if entry["name"] == name), None)


def get_input_config_by_name(model_config, name):
    """The properties of an input in a configuration (a dict), or None."""
    return _properties(model_config, "input", name)


def get_output_config_by_name(model_config, name):
    """The properties of an output in a configuration (a dict), or None."""
    return _properties(model_config, "output", name)


def using_decoupled_model_transaction_policy(model_config):
    """Whether a configuration (a dict) makes the model decoupled."""
    return model_config.get("model_transaction_policy", {}).get("decoupled", False)


def triton_to_numpy_type(data_type):
    """numpy's scalar type of Triton's type number, or None."""
    return SCALARS[data_type] if 0 < data_type < len(SCALARS) else None


def numpy_to_triton_type(data_type):
    """Triton's type number of a numpy type or dtype, or None."""
    scalar = np.dtype(data_type).type
    return BYTES if scalar is np.bytes_ else _TRITON_TYPES.get(scalar)


def triton_string_to_numpy(triton_type_string):
    """numpy's type of a configuration's data type, such as TYPE_FP32; KeyError when there is none."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]
