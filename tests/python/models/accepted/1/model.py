"""What the functions of pb_utils take besides the types their documentation names: bytes for texts, numpy's numbers."""

import json
from collections import OrderedDict, deque
from decimal import Decimal

import c_python_backend_utils as c
import numpy as np
import triton_python_backend_utils as pb


def outcome(call, *args):
    try:
        return call(*args)
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def each(call, values):
    return {name: outcome(call, value) for name, value in values.items()}


class Whole:
    def __int__(self):
        return 3


class Index:
    def __index__(self):
        return 3


class Real:
    def __float__(self):
        return 3.0


class Truth:
    def __bool__(self):
        return True


def texts(text):
    raw = text.encode()
    return {
        "str": text, "bytes": raw, "bytearray": bytearray(raw), "numpy_str": np.str_(text), "numpy_bytes": np.bytes_(raw), "element": np.array([raw], dtype=object)[0],
        "number": 5, "none": None, "view": memoryview(raw), "array": np.array(raw), "list": [text], "half": "\ud800",
    }


NUMBERS = {
    "int": 3, "bool": True, "int32": np.int32(3), "int64": np.int64(3), "uint8": np.uint8(3), "numpy_bool": np.bool_(True), "float16": np.float16(3), "float32": np.float32(3.7),
    "decimal": Decimal("3.9"), "array": np.array(3), "whole": Whole(), "index": Index(), "float": 3.0, "float64": np.float64(3), "real": Real(), "text": "3", "bytes": b"3", "none": None,
    "two": np.array([3, 4]), "complex": 3j, "list": [3], "minus": -1, "2^32": 1 << 32, "2^63": 1 << 63, "2^64": 1 << 64, "-2^63": -(1 << 63), "below": -(1 << 63) - 1,
}
REALS = {
    "int": 3, "bool": True, "int32": np.int32(3), "float": 3.5, "float32": np.float32(3.5), "float64": np.float64(3.5), "decimal": Decimal("3.5"), "array": np.array(3.5), "real": Real(),
    "numpy_bool": np.bool_(True), "index": Index(), "whole": Whole(), "text": "3", "bytes": b"3", "bytearray": bytearray(b"3"), "none": None, "two": np.array([3, 4]), "complex": 3j, "list": [3],
    "huge": 1 << 2000, "infinite": float("inf"),
}


def request(**more):
    given = {"model_name": "add", "requested_output_names": ["OUT"], "inputs": [pb.Tensor("IN", np.array([3], np.int32))]}
    return pb.InferenceRequest(**{**given, **more})


def called(**more):
    response = request(**more).exec()
    return response.error().message() if response.has_error() else response.output_tensors()[0].as_numpy().tolist()


def case_element_as_model_name():
    """As upstream's first example of calls does it: an element of a TYPE_STRING input is bytes."""
    return each(lambda v: called(model_name=v), texts("add"))


def case_request_id():
    return each(lambda v: request(request_id=v).request_id(), texts("mine"))


def case_output_name():
    return each(lambda v: called(requested_output_names=[v]), texts("OUT"))


def case_output_names():
    values = {
        "tuple": ("OUT",), "objects": np.array([b"OUT"], dtype=object), "fixed": np.array(["OUT"]), "fixed_bytes": np.array([b"OUT"]), "deque": deque(["OUT"]), "twice": ["OUT", "OUT"], "set": {"OUT"},
        "dict": {"OUT": 1}, "keys": {"OUT": 1}.keys(), "generator": (n for n in ["OUT"]), "text": "OUT", "bytes": b"OUT", "none": None, "range": range(2),
    }
    return each(lambda v: sorted(request(requested_output_names=v).requested_output_names()), values)


def case_inputs():
    tensor = pb.Tensor("IN", np.array([3], np.int32))
    values = {
        "tuple": (tensor,), "objects": np.array([tensor], dtype=object), "deque": deque([tensor]), "set": {tensor}, "values": {1: tensor}.values(), "generator": (t for t in [tensor]), "alone": tensor,
        "with_none": [None], "wrong": [np.zeros(1)], "dict": {"IN": tensor}, "none": None, "text": "IN",
    }
    return each(lambda v: called(inputs=v), values)


def case_list_used_again():
    tensors = [pb.Tensor("IN", np.array([3], np.int32))]
    made, answered = request(inputs=tensors), pb.InferenceResponse(tensors)
    tensors.clear()
    return [len(made.inputs()), len(answered.output_tensors())]


def case_model_version():
    return each(lambda v: request(model_version=v).flags(), NUMBERS)


def case_version_of_a_call():
    return each(lambda v: called(model_version=v), {"one": np.int64(1), "any": np.int32(-1), "seven": np.int64(7)})


def case_flags():
    return each(lambda v: request(flags=v).flags(), NUMBERS)


def case_set_flags():
    def set_flags(value):
        made = request()
        made.set_flags(value)
        return made.flags()

    return each(set_flags, NUMBERS)


def case_timeout():
    return each(lambda v: request(timeout=v).timeout(), NUMBERS)


def case_correlation_id():
    values = {**NUMBERS, **texts("x")}
    return each(lambda v: request(correlation_id=v).correlation_id(), {name: values[name] for name in values if name not in ("half", "minus", "-2^63", "below", "2^64")})


def case_not_none():
    names = ("request_id", "correlation_id", "inputs", "requested_output_names", "model_name", "model_version", "flags", "timeout", "preferred_memory", "trace")
    return {name: outcome(lambda: request(**{name: None})) for name in names}


def case_preferred_memory():
    return [
        each(lambda v: type(pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU, v)).__name__, NUMBERS),
        each(lambda v: type(pb.PreferredMemory(v)).__name__, {"number": 1, "none": None, "made": c.MemoryType(1)}),
    ]


def case_decoupled():
    values = {"one": 1, "zero": 0, "float": 0.0, "numpy": np.bool_(True), "int64": np.int64(0), "truth": Truth(), "none": None, "text": "x", "list": [1], "dict": {1: 1}, "bytes": b"x", "object": object()}
    return each(lambda v: type(request().exec(decoupled=v)).__name__, values)


def case_parameters():
    values = {"numpy_text": {"a": np.str_("x")}, "key": {np.str_("k"): 1}, "ordered": OrderedDict(a=1), "bytes": {"a": b"x"}, "int64": {"a": np.int64(3)}, "float": {"a": 1.5}, "minus": {"a": -5}, "text": {"\u00fc": "\u00fc"}}
    return each(lambda v: request(parameters=v).parameters(), {k: v for k, v in values.items() if k != "int64"})


def case_response():
    tensor, error = pb.Tensor("OUT", np.zeros(1)), pb.TritonError("wrong")
    values = {"tuple": (tensor,), "objects": np.array([tensor], dtype=object), "none": None, "with_none": [None], "alone": tensor, "dict": {}, "set": {tensor}, "generator": (t for t in [tensor])}
    return [
        each(lambda v: len(pb.InferenceResponse(v).output_tensors()), values),
        each(lambda v: pb.InferenceResponse(error=v).has_error(), {"error": error, "text": "wrong", "bytes": b"wrong", "exception": ValueError("wrong")}),
    ]


def case_error():
    return [each(lambda v: pb.TritonError(v).message(), texts("wrong")), each(lambda v: str(pb.TritonError("x", v).code()), {"code": pb.TritonError.INTERNAL, "number": 1, "text": "INTERNAL"})]


def case_tensor_name():
    return [
        each(lambda v: pb.Tensor(v, np.zeros(1)).name(), texts("x")),
        each(lambda v: pb.Tensor.from_dlpack(v, pb.Tensor("y", np.zeros(1)).to_dlpack()).name(), texts("x")),
        outcome(lambda: pb.Tensor(name="x", array=np.zeros(1))),
    ]


def case_log():
    return [each(pb.Logger.log_info, texts("accepted")), each(lambda v: pb.Logger.log("accepted", v), {"level": pb.Logger.INFO, "number": 0, "text": "INFO", "none": None})]


def case_ready():
    return [each(pb.is_model_ready, texts("add")), each(lambda v: pb.is_model_ready("add", v), {"bytes": b"1", "number": 1, "none": None, "any": ""})]


def case_control():
    """Only what is refused before the server is asked: the real one hangs in every third call that it takes."""
    return [
        each(lambda v: pb.load_model(v), {"number": 5, "none": None}), each(lambda v: pb.load_model("spare", v), {"none": None, "dict": {}}),
        each(lambda v: pb.load_model("spare", "{}", v), {"list": [], "text": {"file:1/model.py": "x"}, "bytearray": {"file:1/model.py": bytearray(b"x")}, "number": {"file:1/model.py": 5}}),
        each(lambda v: pb.unload_model(v), {"number": 5, "none": None}), each(lambda v: pb.unload_model("spare", v), {"none": None, "text": "x"}),
    ]


def case_family():
    return [
        each(lambda v: type(pb.MetricFamily(v, "x", pb.MetricFamily.COUNTER)).__name__, {k: v for k, v in texts("own_accepted").items()}),
        each(lambda v: type(pb.MetricFamily("own_accepted", v, pb.MetricFamily.COUNTER)).__name__, {"bytes": b"x", "none": None, "number": 5}),
        each(lambda v: type(pb.MetricFamily("own_accepted", "x", v)).__name__, {"number": 0, "none": None, "kind": c.MetricKind(0)}),
    ]


def case_metric_values():
    family = pb.MetricFamily("own_values", "x", pb.MetricFamily.GAUGE)
    metric = family.Metric()

    def set_to(value):
        metric.set(value)
        return str(metric.value())

    return [each(set_to, REALS), outcome(lambda: metric.set(value=3))]


def case_buckets():
    values = {"ints": [1, 2], "numpy": [np.float32(1), np.int64(2)], "decimal": [Decimal(1)], "bools": [True], "infinite": [1.0, float("inf")], "tuple": (1.0,), "array": np.array([1.0]), "none": None, "same": [1, 1]}
    family = pb.MetricFamily("own_buckets", "x", pb.MetricFamily.HISTOGRAM)
    return {name: outcome(lambda: type(family.Metric({"bounds": name}, buckets)).__name__) for name, buckets in values.items()}


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    @staticmethod
    def answer(request):
        case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
        text = json.dumps(outcome(globals()["case_" + case]), default=repr)
        return pb.InferenceResponse([pb.Tensor("ANSWER", np.frombuffer(text.encode(), dtype=np.uint8))])
