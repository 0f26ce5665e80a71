"""pb_utils.MetricFamily and its metrics."""

import enum
import os

from . import server
from .arguments import Unfit, number, text
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
    """One series of a family, found by its labels. It lives as long as the family, whether this object does or not."""

    __slots__ = ("_family", "_number", "__weakref__")

    def __init__(self, family, number):
        self._family = family
        self._number = number

    def increment(self, value, /):
        self._operate("increment", value)

    def set(self, value, /):
        self._operate("set", value)

    def observe(self, value, /):
        self._operate("observe", value)

    def value(self):
        what = "Failed to get metric value"
        self._check(what)
        return float(server.call_for(what, "metric_value", metric=self._number))

    def _operate(self, operation, value):
        try:
            value = number(value)
        except Unfit:
            raise incompatible(operation, "(self: Metric, arg0: float) -> None", (value,)) from None
        what = "Failed to %s metric value" % operation
        self._check(what)
        server.call_for(what, "metric_" + operation, metric=self._number, value=repr(value))

    def _check(self, what):
        if self._family.deleted:
            raise TritonModelException("%s: %s" % (what, _DELETED))


class _Registered:
    """A family in the server. Shared by the family and its metrics, so that these do not keep the family alive."""

    __slots__ = ("number", "deleted", "process")

    def __init__(self, number):
        self.number = number
        self.deleted = False
        # A forked child has copies of these objects, whose end means nothing.
        self.process = os.getpid()


class MetricFamily:
    """A family of metrics. With this object go the family in the server and all of its series."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name, description, kind):
        try:
            name, description = text(name), text(description)
            if not isinstance(kind, MetricKind):
                raise Unfit
        except Unfit:
            wanted = "MetricFamily(name: str, description: str, kind: MetricKind)"
            raise incompatible("__init__", wanted, (name, description, kind)) from None
        self._kind = kind
        what = "Error when creating MetricFamily"
        number = server.call_for(what, "metric_family", name=name, description=description, kind=kind.name.lower())
        self._registered = _Registered(number)

    def Metric(self, labels=None, buckets=None):
        """The series with these labels, a new one when there is none; histograms need their bucket bounds."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        self._check_buckets(buckets)
        bounds = None if buckets is None else [_bound(bound) for bound in buckets]
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
        if registered is not None and not registered.deleted and registered.process == os.getpid():
            registered.deleted = True
            server.notify("drop_family", family=registered.number)


def _bound(bound):
    try:
        return repr(number(bound))
    except Unfit:
        raise TypeError("the bounds of buckets must be numbers, found %r" % (bound,)) from None


for _class in (MetricKind, Metric, MetricFamily):
    _class.__module__ = "c_python_backend_utils"
