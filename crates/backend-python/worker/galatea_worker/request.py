"""pb_utils.InferenceRequest and what belongs to it."""

import enum

from . import server
from .errors import TritonModelException, incompatible
from .parameters import parameters_json
from .tensor import Tensor

RELEASE_ALL = 1
RELEASE_RESCHEDULE = 2

_SIGNATURE = (
    "c_python_backend_utils.InferenceRequest(request_id: str = '', correlation_id: object = 0, inputs: List[Tensor], "
    "requested_output_names: List[str], model_name: str, model_version: int = -1, flags: int = 0, timeout: int = 0, "
    "preferred_memory: PreferredMemory, trace: InferenceTrace, parameters: object = None)"
)


class MemoryType(enum.IntEnum):
    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1

    __str__ = enum.Enum.__str__


class PreferredMemory:
    """Where a model wants the outputs of another model. Here they always come in main memory."""

    __slots__ = ("preferred_memory_type", "preferred_device_id")

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        if not isinstance(preferred_memory_type, MemoryType):
            raise incompatible(
                "__init__",
                "PreferredMemory(preferred_memory_type: MemoryType, preferred_device_id: int = 0)",
                (preferred_memory_type, preferred_device_id),
            )
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class InferenceTrace:
    """The trace a request belongs to; give it to a request for another model to make that its child."""

    __slots__ = ("_context",)

    def __init__(self, context=""):
        self._context = context

    def get_context(self):
        return self._context or None


class InferenceRequest:
    """A request: one that came to this model, or one that the model makes for another."""

    __slots__ = (
        "_key", "_id", "_correlation", "_inputs", "_outputs", "_model", "_version", "_flags", "_timeout", "_trace",
        "_parameters", "_release_flags", "_sender", "_senders", "__weakref__",
    )

    def __init__(
        self, request_id="", correlation_id=0, inputs=None, requested_output_names=None, model_name=None,
        model_version=-1, flags=0, timeout=0, preferred_memory=None, trace=None, parameters=None,
    ):
        given = (request_id, correlation_id, inputs, requested_output_names, model_name, model_version, flags, timeout)
        if not _well_typed(*given):
            raise incompatible("__init__", _SIGNATURE, given)
        self._key = 0
        self._id = request_id
        self._correlation = _checked_correlation(correlation_id)
        self._inputs = _checked_inputs(inputs, request_id, model_name)
        self._outputs = _checked_names(requested_output_names, request_id, model_name)
        self._model = model_name
        self._version = model_version
        self._flags = flags
        self._timeout = timeout
        self._trace = "" if trace is None else trace._context
        self._parameters = parameters_json(parameters)
        self._release_flags = RELEASE_ALL
        self._sender = None
        self._senders = None

    def inputs(self):
        return self._inputs

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation

    def requested_output_names(self):
        return set(self._outputs)

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        if not _within(flags, 0, 1 << 32):
            raise incompatible("set_flags", "(self: InferenceRequest, flags: int) -> None", (flags,))
        self._flags = flags

    def timeout(self):
        return self._timeout

    def parameters(self):
        return self._parameters

    def trace(self):
        return InferenceTrace(self._trace)

    def set_release_flags(self, flags):
        self._release_flags = int(flags)

    def get_response_sender(self):
        sender = self._sender
        if sender is None:
            if self._senders is None:
                raise TritonModelException(
                    "Unable to send response. Response sender has no reference to the decoupled state of the model."
                )
            sender = self._sender = self._senders.make(self._key, self._outputs)
        return sender

    def is_cancelled(self):
        return bool(self._key) and server.call("is_cancelled", key=self._key)

    def exec(self, decoupled=False):
        return server.bls().infer(self, decoupled)

    def async_exec(self, decoupled=False):
        return server.bls().infer_async(self, decoupled)


for _class in (MemoryType, PreferredMemory, InferenceTrace, InferenceRequest):
    _class.__module__ = "c_python_backend_utils"


def _well_typed(request_id, correlation_id, inputs, names, model_name, version, flags, timeout):
    texts = isinstance(request_id, str) and isinstance(model_name, str)
    lists = inputs is not None and names is not None and not isinstance(names, str)
    numbers = _within(version, -(1 << 63), 1 << 63) and _within(flags, 0, 1 << 32) and _within(timeout, 0, 1 << 64)
    return texts and lists and numbers


def _within(number, low, end):
    return isinstance(number, int) and low <= number < end


def _checked_correlation(correlation):
    if isinstance(correlation, str) or isinstance(correlation, int) and 0 <= correlation < 1 << 64:
        return correlation
    if isinstance(correlation, int):
        raise TritonModelException("Correlation ID must be between 0 and 2^64 - 1")
    raise TritonModelException("Correlation ID must be integer or string")


def _checked_inputs(inputs, request_id, model_name):
    inputs = list(inputs)
    for tensor in inputs:
        if tensor is None:
            raise TritonModelException(
                "Input tensor for request with id '%s' and model name '%s' should not be empty."
                % (request_id, model_name)
            )
        if not isinstance(tensor, Tensor):
            raise incompatible("__init__", _SIGNATURE, (request_id, inputs, model_name))
    return inputs


def _checked_names(names, request_id, model_name):
    names = list(names)
    if not all(isinstance(name, str) for name in names):
        raise incompatible("__init__", _SIGNATURE, (request_id, names, model_name))
    if "" in names:
        raise TritonModelException(
            "Requested output name for request with id '%s' and model name '%s' should not be empty."
            % (request_id, model_name)
        )
    return frozenset(names)


def incoming_request(key, correlation, timeout, version, flags, senders):
    """A request that came to this model; the reader of the message fills in the rest."""
    request = _new(InferenceRequest)
    request._key = key
    request._id = ""
    request._correlation = correlation
    request._model = ""
    request._version = version
    request._flags = flags
    request._timeout = timeout
    request._trace = ""
    request._parameters = "{}"
    request._release_flags = RELEASE_ALL
    request._sender = None
    request._senders = senders
    return request


_new = object.__new__
