"""The classes and functions that Triton's Python backend defines in its compiled part."""

from galatea_worker.errors import TritonModelException
from galatea_worker.log import Logger, LogLevel
from galatea_worker.metrics import Metric, MetricFamily, MetricKind
from galatea_worker.model_control import is_model_ready, load_model, unload_model
from galatea_worker.request import InferenceRequest, InferenceTrace, MemoryType, PreferredMemory
from galatea_worker.response import InferenceResponse, ResponseIterator, TritonError
from galatea_worker.senders import InferenceResponseSender
from galatea_worker.tensor import Tensor

TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
COUNTER, GAUGE, HISTOGRAM = MetricKind

__all__ = [
    "InferenceRequest", "InferenceResponse", "InferenceResponseSender", "InferenceTrace", "LogLevel", "Logger",
    "MemoryType", "Metric", "MetricFamily", "MetricKind", "PreferredMemory", "ResponseIterator", "Tensor",
    "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "TritonError", "TritonModelException", "is_model_ready",
    "load_model", "unload_model", "COUNTER", "GAUGE", "HISTOGRAM",
]
