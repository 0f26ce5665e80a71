"""pb_utils.InferenceResponse, TritonError and the iterator over the responses of another model."""

import enum

from .arguments import Unfit, items, text
from .errors import TritonModelException, incompatible
from .parameters import parameters_json
from .tensor import Tensor

_SIGNATURE = (
    "c_python_backend_utils.InferenceResponse(output_tensors: List[Tensor] = [], error: TritonError = None, "
    "parameters: object = None)"
)

_ERROR_SIGNATURE = (
    "c_python_backend_utils.TritonError(message: str, code: c_python_backend_utils.TritonError.__ErrorCode = "
    "<__ErrorCode.INTERNAL: 1>)"
)


class ErrorCode(enum.IntEnum):
    """Codes that errors can have; they show themselves as Triton's do."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7

    def __str__(self):
        return "__ErrorCode." + self.name


class TritonError:
    """An error that a model answers with."""

    __slots__ = ("_message", "_code", "__weakref__")

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message, code=ErrorCode.INTERNAL):
        try:
            if not isinstance(code, ErrorCode):
                raise Unfit
            self._message = text(message)
        except Unfit:
            raise incompatible("__init__", _ERROR_SIGNATURE, (message, code)) from None
        self._code = code

    def code(self):
        return self._code

    def message(self):
        return self._message

    def __str__(self):
        return self._message


class InferenceResponse:
    """Output tensors, or an error."""

    __slots__ = ("_outputs", "_error", "_parameters", "__weakref__")

    def __init__(self, output_tensors=(), error=None, parameters=None):
        # A copy: the caller may use its list again.
        output_tensors = output_tensors[:] if output_tensors.__class__ is list else _as_list(output_tensors)
        for tensor in output_tensors:
            if tensor.__class__ is not Tensor and not isinstance(tensor, Tensor):
                raise _bad_output(tensor, output_tensors)
        if error is not None and not isinstance(error, TritonError):
            raise incompatible("__init__", _SIGNATURE, (error,))
        self._outputs = output_tensors
        self._error = error
        self._parameters = "{}" if parameters is None else parameters_json(parameters)

    def output_tensors(self):
        return self._outputs

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return self._parameters


def _as_list(tensors):
    try:
        return list(items(tensors))
    except Unfit:
        raise incompatible("__init__", _SIGNATURE, (tensors,)) from None


def _bad_output(tensor, tensors):
    if tensor is None:
        return TritonModelException("Output tensor for inference response should not be empty.")
    return incompatible("__init__", _SIGNATURE, (tensors,))


class ResponseIterator:
    """The responses of another model's stream, as they arrive. The finished stream can be walked again."""

    __slots__ = ("_take", "_stop", "_seen", "_next", "_finished", "__weakref__")

    def __init__(self, take, stop):
        self._take = take
        self._stop = stop
        self._seen = []
        self._next = 0
        self._finished = False

    def __iter__(self):
        if self._finished and self._next >= len(self._seen):
            self._next = 0
        return self

    def __next__(self):
        if self._next < len(self._seen):
            response = self._seen[self._next]
        elif self._finished:
            raise StopIteration("Iteration is done for the responses.")
        else:
            response, self._finished = self._take()
            self._seen.append(response)
        self._next += 1
        return response

    def cancel(self):
        if not self._finished:
            self._stop()


for _class in (ErrorCode, TritonError, InferenceResponse, ResponseIterator):
    _class.__module__ = "c_python_backend_utils"
