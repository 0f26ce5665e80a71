"""pb_utils.MetricFamily and its metrics."""

import enum

from . import server
from .errors import TritonModelException, incompatible

_DELETED = (
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should "
    "be deleted AFTER its corresponding 'Metric' objects have been deleted."
)


class MetricKind(enum.IntEnum):
    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2

    __str__ = enum.Enum.__str__


class Metric:
    """One series of a family. It leaves the server's metrics when this object is deleted."""

    __slots__ = ("_family", "_number", "__weakref__")

    def __init__(self, family, number):
        self._family = family
        self._number = number

    def increment(self, value):
        self._operate("Failed to increment metric value", "metric_increment", value)

    def set(self, value):
        self._operate("Failed to set metric value", "metric_set", value)

    def observe(self, value):
        self._operate("Failed to observe metric value", "metric_observe", value)

    def value(self):
        what = "Failed to get metric value"
        self._check(what)
        return float(server.call_for(what, "metric_value", metric=self._number))

    def _operate(self, what, op, value):
        if isinstance(value, (str, bytes)):
            raise incompatible(op.split("_")[1], "(self: Metric, value: float) -> None", (value,))
        self._check(what)
        server.call_for(what, op, metric=self._number, value=float(value))

    def _check(self, what):
        if self._family.deleted:
            raise TritonModelException("%s: %s" % (what, _DELETED))

    def __del__(self):
        if not self._family.deleted:
            server.notify("drop_metric", metric=self._number)


class _Registered:
    """A family in the server. Shared by the family and its metrics, so that neither keeps the other alive."""

    __slots__ = ("number", "deleted")

    def __init__(self, number):
        self.number = number
        self.deleted = False


class MetricFamily:
    """A family of metrics, deleted in the server with this object."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name, description, kind):
        if not isinstance(name, str) or not isinstance(description, str) or not isinstance(kind, MetricKind):
            wanted = "MetricFamily(name: str, description: str, kind: MetricKind)"
            raise incompatible("__init__", wanted, (name, description, kind))
        self._kind = kind
        what = "Error when creating MetricFamily"
        number = server.call_for(what, "metric_family", name=name, description=description, kind=kind.name.lower())
        self._registered = _Registered(number)

    def Metric(self, labels=None, buckets=None):
        """A new series; histograms need their bucket bounds."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        self._check_buckets(buckets)
        bounds = None if buckets is None else [float(bound) for bound in buckets]
        family = self._registered
        what = "Error when creating Metric"
        return Metric(family, server.call_for(what, "metric", family=family.number, labels=labels or {}, buckets=bounds))

    def _check_buckets(self, buckets):
        if buckets is None:
            if self._kind == MetricKind.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
        elif not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        elif self._kind != MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")

    def __del__(self):
        registered = getattr(self, "_registered", None)
        if registered is not None and not registered.deleted:
            registered.deleted = True
            server.notify("drop_family", family=registered.number)


for _class in (MetricKind, Metric, MetricFamily):
    _class.__module__ = "c_python_backend_utils"
