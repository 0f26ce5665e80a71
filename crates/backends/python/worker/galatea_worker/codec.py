"""Requests and responses, from and to the bytes of a message."""

import struct

from .dtypes import BYTES, DTYPES
from .request import incoming_request
from .response import ErrorCode, InferenceResponse, TritonError
from .tensor import from_array, from_message
from .wire import ALIGNMENT, NO_BODY, OUTPUTS, REQUEST, RESCHEDULED, RESPONSE_HEAD, SHORT, TENSOR

_unpack_request = REQUEST.unpack_from
_pack_response = RESPONSE_HEAD.pack
_REQUEST_SIZE = REQUEST.size
_RESPONSE_SIZE = RESPONSE_HEAD.size
_TENSOR_SIZE = TENSOR.size
_CACHE_LIMIT = 1024

# A cache: the bytes that list outputs and inputs -> the layout they describe. A model's requests differ in ids and
# values far more often than in shapes.
_layouts = {}


class _Layout:
    """The end of a request: names of the requested outputs, headers of the inputs, and the length of both in bytes."""

    __slots__ = ("outputs", "inputs", "length", "shared")


def _read_names(buffer, at, count):
    names = []
    for _ in range(count):
        (length,) = SHORT.unpack_from(buffer, at)
        names.append(bytes(buffer[at + 2 : at + 2 + length]).decode())
        at += 2 + length
    return frozenset(names), at


def _read_tensor(buffer, at):
    """((name, data type, shape, offset, length), place, end) of a tensor's header."""
    name_len, code, place, ndim, offset, length = TENSOR.unpack_from(buffer, at)
    at += _TENSOR_SIZE
    shape = struct.unpack_from("<%dq" % ndim, buffer, at)
    at += 8 * ndim
    name = bytes(buffer[at : at + name_len]).decode()
    return (name, code, shape, offset, length), place, at + name_len


def _read_layout(buffer, at, n_outputs, n_inputs):
    layout = _Layout()
    start = at
    layout.outputs, at = _read_names(buffer, at, n_outputs)
    inputs = []
    layout.shared = False
    for _ in range(n_inputs):
        spec, place, at = _read_tensor(buffer, at)
        layout.shared = layout.shared or place == 1
        inputs.append((spec, place))
    layout.inputs = inputs
    layout.length = at - start
    return layout


def _layout(buffer, at, length, n_outputs, n_inputs):
    """The layout that starts at `at`; `length` is a guess of how long it is."""
    key = (bytes(buffer[at : at + length]), n_outputs, n_inputs)
    layout = _layouts.get(key)
    if layout is None:
        layout = _read_layout(buffer, at, n_outputs, n_inputs)
        if not layout.shared:
            if len(_layouts) > _CACHE_LIMIT:
                _layouts.clear()
            _layouts[(bytes(buffer[at : at + layout.length]), n_outputs, n_inputs)] = layout
            if 0 < length - layout.length < ALIGNMENT:  # the padding behind the last request
                _layouts[key] = layout
    return layout


def tensor_at(connection, spec, place, buffer, data):
    """The tensor of a header, inline or in the inbox."""
    if place == 0:
        return from_message(spec, buffer, data)
    name, code, shape, offset, length = spec
    if code == BYTES:
        raw = connection.inbox.block(offset, length)
        return from_message((name, code, shape, 0, length), raw, 0)
    return from_array(name, code, connection.inbox.array(offset, shape, DTYPES[code], length))


def read_requests(connection, buffer, at, data, count, senders):
    """The requests of an EXECUTE message."""
    requests = []
    guess = 0
    for left in range(count, 0, -1):
        (key, correlation, timeout, version, priority, flags, n_inputs, n_outputs, id_len, correlation_len, model_len,
         trace_len, params_len) = _unpack_request(buffer, at)
        at += _REQUEST_SIZE
        request = incoming_request(key, correlation, timeout, version, flags, senders)
        if id_len or correlation_len or model_len or trace_len or params_len:
            at = _read_texts(request, buffer, at, (id_len, correlation_len, model_len, trace_len, params_len))
        layout = _layout(buffer, at, data - at if left == 1 else guess, n_outputs, n_inputs)
        guess = layout.length
        at += guess
        request._outputs = layout.outputs
        if layout.shared:
            request._inputs = [tensor_at(connection, spec, place, buffer, data) for spec, place in layout.inputs]
        else:
            request._inputs = [from_message(spec, buffer, data) for spec, _ in layout.inputs]
        requests.append(request)
    return requests


def _read_texts(request, buffer, at, lengths):
    """The texts of a request; where they end."""
    texts = []
    for length in lengths:
        texts.append(bytes(buffer[at : at + length]).decode() if length else "")
        at += length
    request._id, correlation, request._model, request._trace, parameters = texts
    if correlation:
        request._correlation = correlation
    if parameters:
        request._parameters = parameters
    return at


def read_response(connection, buffer, at, data):
    """The response of an INFERRED message."""
    key, code, has_body, n_outputs, error_len, params_len, traceback_len = RESPONSE_HEAD.unpack_from(buffer, at)
    at += _RESPONSE_SIZE
    error = None
    if code:
        error = TritonError(bytes(buffer[at : at + error_len]).decode("utf-8", "replace"), ErrorCode(code - 1))
    at += error_len + traceback_len
    parameters = bytes(buffer[at : at + params_len]).decode() or "{}"
    at += params_len
    outputs = []
    for _ in range(n_outputs):
        spec, place, at = _read_tensor(buffer, at)
        outputs.append(tensor_at(connection, spec, place, buffer, data))
    response = InferenceResponse(outputs, error)
    response._parameters = parameters
    return response


def write_response(body, key, response, wanted):
    """The pieces of meta of one response; outputs that were not requested are left out."""
    parameters = response._parameters
    raw = b"" if parameters == "" or parameters == "{}" else parameters.encode()
    error = response._error
    if error is not None:
        return write_error(key, error._message, error._code + 1, raw)
    tensors = [body.add(t) for t in response._outputs if not wanted or t._name in wanted]
    return [_pack_response(key, 0, OUTPUTS, len(tensors), 0, len(raw), 0), raw, *tensors]


def write_error(key, message, code, parameters=b"", traceback=""):
    text = message.encode("utf-8", "replace")
    trace = traceback.encode("utf-8", "replace")
    return [_pack_response(key, code, NO_BODY, 0, len(text), len(parameters), len(trace)), text, trace, parameters]


def write_rescheduled(key):
    return [_pack_response(key, 0, RESCHEDULED, 0, 0, 0, 0)]


def write_request(body, request):
    """The pieces of meta of a request to another model."""
    correlation = request._correlation
    number = correlation if isinstance(correlation, int) else 0
    text = b"" if isinstance(correlation, int) else correlation.encode()
    texts = [request._id.encode(), text, request._model.encode(), request._trace.encode()]
    parameters = b"" if request._parameters in ("", "{}") else request._parameters.encode()
    names = [part for name in request._outputs for part in _name(name)]
    inputs = [body.add(tensor) for tensor in request._inputs]
    ident, text, model, trace = map(len, texts)
    head = REQUEST.pack(
        request._cause, number, request._timeout, request._version, 0, request._flags, len(inputs), len(request._outputs),
        ident, text, model, trace, len(parameters),
    )
    return [head, *texts, parameters, *names, *inputs]


def _name(name):
    raw = name.encode()
    return SHORT.pack(len(raw)), raw
