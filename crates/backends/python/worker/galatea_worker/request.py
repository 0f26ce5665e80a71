"""pb_utils.InferenceRequest and what belongs to it."""

import enum

from . import server
from .arguments import Unfit, integer, items, text, truth
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
        try:
            if not isinstance(preferred_memory_type, MemoryType):
                raise Unfit
            self.preferred_device_id = integer(preferred_device_id, -(1 << 63), 1 << 63)
        except Unfit:
            wanted = "PreferredMemory(preferred_memory_type: MemoryType, preferred_device_id: int = 0)"
            raise incompatible("__init__", wanted, (preferred_memory_type, preferred_device_id)) from None
        self.preferred_memory_type = preferred_memory_type


class InferenceTrace:
    """The trace a request belongs to; give it to a request for another model to make that its child."""

    __slots__ = ("_context", "_cause")

    def __init__(self, context=""):
        self._context = context
        self._cause = 0

    def get_context(self):
        return self._context or None


_ANY_MEMORY = PreferredMemory(MemoryType.TRITONSERVER_MEMORY_CPU)
_NO_TRACE = InferenceTrace()


class InferenceRequest:
    """A request: one that came to this model, or one that the model makes for another."""

    __slots__ = (
        "_key", "_id", "_correlation", "_inputs", "_outputs", "_model", "_version", "_flags", "_timeout", "_trace",
        "_cause", "_parameters", "_release_flags", "_sender", "_senders", "__weakref__",
    )

    def __init__(
        self, request_id="", correlation_id=0, inputs=None, requested_output_names=None, model_name=None,
        model_version=-1, flags=0, timeout=0, preferred_memory=_ANY_MEMORY, trace=_NO_TRACE, parameters=None,
    ):
        try:
            self._id = text(request_id)
            self._model = text(model_name)
            self._inputs = _tensors(inputs)
            self._outputs = frozenset([text(name) for name in items(requested_output_names)])
            self._version = integer(model_version, -(1 << 63), 1 << 63)
            self._flags = integer(flags, 0, 1 << 32)
            self._timeout = integer(timeout, 0, 1 << 64)
            if correlation_id is None or not isinstance(preferred_memory, PreferredMemory):
                raise Unfit
            if not isinstance(trace, InferenceTrace):
                raise Unfit
        except Unfit:
            given = (request_id, correlation_id, inputs, requested_output_names, model_name, model_version, flags)
            raise incompatible("__init__", _SIGNATURE, (*given, timeout, preferred_memory, trace)) from None
        self._correlation = _checked_correlation(correlation_id)
        self._check_complete()
        self._key = 0
        self._trace = trace._context
        self._cause = trace._cause
        self._parameters = parameters_json(parameters)
        self._release_flags = RELEASE_ALL
        self._sender = None
        self._senders = None

    def _check_complete(self):
        named = "for request with id '%s' and model name '%s' should not be empty." % (self._id, self._model)
        if None in self._inputs:
            raise TritonModelException("Input tensor " + named)
        if "" in self._outputs:
            raise TritonModelException("Requested output name " + named)

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
        self._flags = _flags("set_flags", flags)

    def timeout(self):
        return self._timeout

    def parameters(self):
        return self._parameters

    def trace(self):
        trace = InferenceTrace(self._trace)
        trace._cause = self._key
        return trace

    def set_release_flags(self, flags):
        self._release_flags = _flags("set_release_flags", flags)

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
        return server.bls().infer(self, _decoupled("exec", decoupled))

    def async_exec(self, decoupled=False):
        return server.bls().infer_async(self, _decoupled("async_exec", decoupled))


for _class in (MemoryType, PreferredMemory, InferenceTrace, InferenceRequest):
    _class.__module__ = "c_python_backend_utils"


def _tensors(inputs):
    inputs = list(items(inputs))
    for tensor in inputs:
        if tensor is not None and not isinstance(tensor, Tensor):
            raise Unfit
    return inputs


def _flags(call, flags):
    try:
        return integer(flags, 0, 1 << 32)
    except Unfit:
        raise incompatible(call, "(self: InferenceRequest, arg0: int) -> None", (flags,)) from None


def _decoupled(call, decoupled):
    try:
        return truth(decoupled)
    except Unfit:
        raise incompatible(call, "(self: InferenceRequest, decoupled: bool = False) -> object", (decoupled,)) from None


def _checked_correlation(correlation):
    if isinstance(correlation, (str, int)):
        try:
            return text(correlation) if isinstance(correlation, str) else integer(correlation, 0, 1 << 64)
        except Unfit:
            raise TritonModelException("Correlation ID must be between 0 and 2^64 - 1") from None
    raise TritonModelException("Correlation ID must be integer or string")


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
