"""What Tensor and the conversion functions do. CASE names a function of this file; ANSWER is its result as JSON."""

import json
import sys

import numpy as np
import triton_python_backend_utils as pb

TYPES = [
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "datetime64[s]", "S3", "U3", "object_", "longlong", "intc", "void",
]


def outcome(call, *args):
    try:
        return call(*args)
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def described(tensor):
    array = tensor.as_numpy()
    return {
        "name": tensor.name(), "shape": list(tensor.shape()), "shape_type": type(tensor.shape()).__name__,
        "is_cpu": tensor.is_cpu(), "dtype": str(array.dtype),
        "values": [str(v) for v in array.ravel()[:8]], "kinds": sorted({np.dtype(type(v)).name if isinstance(v, np.generic) else type(v).__name__ for v in array.ravel()[:8]}),
    }


def case_each_type():
    return {t: outcome(lambda: described(pb.Tensor("x", np.zeros((2, 1), dtype=t)))) for t in TYPES}


def case_triton_dtype():
    return outcome(lambda: str(pb.Tensor("x", np.zeros(1, np.int32)).triton_dtype()))


def case_big_endian():
    return described(pb.Tensor("x", np.array([1, 2], dtype=">i4")))


def case_same_memory():
    array = np.arange(4, dtype=np.int32)
    tensor = pb.Tensor("x", array)
    array[0] = 77
    return {"sees": int(tensor.as_numpy()[0]), "shared": bool(np.shares_memory(array, tensor.as_numpy()))}


def case_own_array_writable():
    array = pb.Tensor("x", np.zeros(3, np.float32)).as_numpy()
    return outcome(lambda: (array.__setitem__(0, 5.0), float(array[0]))[1])


def case_read_only_source():
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    return outcome(lambda: bool(pb.Tensor("x", array).as_numpy().flags.writeable))


def case_slice():
    return described(pb.Tensor("x", np.arange(12, dtype=np.int32)[::3]))


def case_reversed():
    return described(pb.Tensor("x", np.arange(4, dtype=np.int32)[::-1]))


def case_transposed():
    return described(pb.Tensor("x", np.arange(6, dtype=np.int32).reshape(2, 3).T))


def case_fortran():
    return described(pb.Tensor("x", np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))))


def case_broadcast():
    return described(pb.Tensor("x", np.broadcast_to(np.array([1, 2], np.int16), (3, 2))))


def case_empty():
    return described(pb.Tensor("x", np.zeros((0, 3), np.float32)))


def case_scalar():
    return described(pb.Tensor("x", np.array(7, np.int64)))


def case_numpy_scalar():
    return outcome(lambda: described(pb.Tensor("x", np.float32(1.5))))


def case_objects():
    values = [b"raw", "text", "\u00fc\u4f60", 5, 1.5, None, {"a": [1, "b"]}, [1, 2], (3,), True]
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return [described(pb.Tensor("x", array[i : i + 1])) for i in range(len(values))]


def case_fixed_width():
    return {
        "S": described(pb.Tensor("x", np.array([b"a", b"abc", b""]))),
        "U": outcome(lambda: described(pb.Tensor("x", np.array(["a", "\u00fcb", ""])))),
    }


def case_not_an_array():
    given = {"list": [1, 2], "int": 3, "none": None, "str": "abc", "bytes": b"abc"}
    return {kind: outcome(lambda: described(pb.Tensor("x", value))) for kind, value in given.items()}


def case_bad_name():
    array = np.zeros(1, np.int32)
    return {
        "int": outcome(lambda: pb.Tensor(5, array).name()), "none": outcome(lambda: pb.Tensor(None, array).name()),
        "bytes": outcome(lambda: pb.Tensor(b"x", array).name()), "empty": outcome(lambda: pb.Tensor("", array).name()),
        "too_few": outcome(lambda: pb.Tensor("x")), "keywords": outcome(lambda: pb.Tensor(name="x", numpy_array=array).name()),
    }


def case_dlpack_to_numpy():
    tensor = pb.Tensor("x", np.arange(6, dtype=np.float32).reshape(2, 3))
    return {"array": np.from_dlpack(tensor).tolist(), "device": [int(v) for v in tensor.__dlpack_device__()]}


def case_dlpack_capsule():
    return {t: outcome(lambda: type(pb.Tensor("x", np.zeros(2, t)).to_dlpack()).__name__) for t in TYPES[:12] + ["object_"]}


def case_dlpack_holds_the_tensor():
    """What holds a tensor, when a capsule is made and when it is gone."""

    def counts(tensor):
        before = sys.getrefcount(tensor)
        capsule = tensor.to_dlpack()
        lent = sys.getrefcount(tensor) - before
        del capsule
        return [lent, sys.getrefcount(tensor) - before]

    return {t: counts(pb.Tensor("x", np.zeros(2, t))) for t in ("float32", "int64", "bool_", "float16")}


def case_from_dlpack_numpy():
    sources = {t: np.arange(3).astype(t) for t in TYPES[1:12]}
    return {t: outcome(lambda: described(pb.Tensor.from_dlpack("y", source))) for t, source in sources.items()}


def case_from_dlpack_numpy_bool():
    return described(pb.Tensor.from_dlpack("y", np.array([True, False])))


def case_from_dlpack_capsule():
    source = pb.Tensor("x", np.arange(3, dtype=np.int64))
    again = pb.Tensor.from_dlpack("y", source.to_dlpack())
    return described(again)


def case_from_dlpack_tensor():
    return described(pb.Tensor.from_dlpack("y", pb.Tensor("x", np.arange(3, dtype=np.uint8))))


def case_from_dlpack_not_contiguous():
    return outcome(lambda: described(pb.Tensor.from_dlpack("y", np.arange(12, dtype=np.int32).reshape(3, 4).T)))


def case_from_dlpack_something_else():
    return {k: outcome(lambda: pb.Tensor.from_dlpack("y", v)) for k, v in {"list": [1], "none": None, "int": 5}.items()}


def case_from_dlpack_shares():
    array = np.arange(4, dtype=np.int32)
    tensor = pb.Tensor.from_dlpack("y", array)
    array[0] = 9
    return int(tensor.as_numpy()[0])


def case_torch():
    if "torch" not in sys.modules:
        try:
            import torch
        except ImportError:
            return "no torch"
    torch = sys.modules["torch"]
    there = torch.from_dlpack(pb.Tensor("x", np.arange(3, dtype=np.float32)))
    return described(pb.Tensor.from_dlpack("y", there * 2))


def named(kind):
    return kind and np.dtype(kind).name


def case_conversions():
    names = ["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "FP32", "FP64", "STRING", "BYTES", "BF16", "INVALID"]
    strings = {n: outcome(lambda: named(pb.triton_string_to_numpy("TYPE_" + n))) for n in names}
    numbers = {n: outcome(lambda: named(pb.triton_to_numpy_type(n))) for n in range(0, 16)}
    back = {t: outcome(lambda: pb.numpy_to_triton_type(np.dtype(t).type)) for t in TYPES}
    return {"triton_string_to_numpy": strings, "triton_to_numpy_type": numbers, "numpy_to_triton_type": back}


def case_byte_tensors():
    array = np.array([b"ab", "c\u00fc", b"", "5"], dtype=object)
    packed = pb.serialize_byte_tensor(array)
    return {
        "packed": bytes(packed).hex(),
        "type": type(packed).__name__,
        "back": [repr(v) for v in pb.deserialize_bytes_tensor(packed)],
        "empty": outcome(lambda: repr(pb.serialize_byte_tensor(np.zeros(0, object)))),
        "numbers": outcome(lambda: repr(pb.serialize_byte_tensor(np.zeros(2, np.int32)))),
        "objects": outcome(lambda: pb.serialize_byte_tensor(np.array([5, None, {"a": 1}], dtype=object)).hex()),
        "two_dimensions": outcome(lambda: pb.serialize_byte_tensor(np.array([["a"], ["b"]], dtype=object)).hex()),
    }


def case_surface():
    """Names the package shows, and what the other module of that name has in common with it."""
    import c_python_backend_utils as c

    wanted = "Tensor InferenceRequest InferenceResponse InferenceResponseSender TritonError TritonModelException Logger LogLevel \
        MetricFamily Metric PreferredMemory MemoryType InferenceTrace ModelConfig load_model unload_model is_model_ready \
        get_input_tensor_by_name get_output_tensor_by_name get_input_config_by_name get_output_config_by_name \
        using_decoupled_model_transaction_policy triton_to_numpy_type numpy_to_triton_type triton_string_to_numpy \
        serialize_byte_tensor deserialize_bytes_tensor TRITONSERVER_REQUEST_FLAG_SEQUENCE_START \
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_END TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITONSERVER_REQUEST_RELEASE_RESCHEDULE \
        TRITONSERVER_REQUEST_RELEASE_ALL TRITONSERVER_MEMORY_CPU TRITONSERVER_MEMORY_GPU TRITON_STRING_TO_NUMPY \
        TRITON_TO_NUMPY_TYPE NUMPY_TO_TRITON_TYPE ResponseIterator ModelMetadata".split()
    return {n: [hasattr(pb, n), hasattr(c, n)] for n in wanted}


def case_same_classes():
    import c_python_backend_utils as c

    return {n: getattr(pb, n) is getattr(c, n) for n in ("Tensor", "InferenceResponse", "InferenceRequest", "TritonError")}


def case_constants():
    return {n: int(getattr(pb, n)) for n in dir(pb) if n.startswith("TRITONSERVER_") and not n.startswith("TRITONSERVER_MEMORY")}


def case_constant_types():
    return {n: type(getattr(pb, n)).__name__ for n in dir(pb) if n.startswith("TRITONSERVER_")}


def case_memory():
    kinds = {n: outcome(lambda: int(getattr(pb, n))) for n in ("TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU")}
    return {
        "kinds": kinds, "default": outcome(lambda: type(pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU)).__name__),
        "device": outcome(lambda: type(pb.PreferredMemory(pb.TRITONSERVER_MEMORY_GPU, 1)).__name__),
        "nothing": outcome(lambda: type(pb.PreferredMemory()).__name__),
        "names": sorted(getattr(pb, "MemoryType").__members__) if hasattr(pb, "MemoryType") else None,
    }


def case_error_codes():
    names = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"]
    return {n: outcome(lambda: [int(getattr(pb.TritonError, n)), int(pb.TritonError("t", getattr(pb.TritonError, n)).code())]) for n in names}


def case_error():
    error = pb.TritonError("a text")
    return {
        "code": int(error.code()), "message": error.message(),
        "nothing": outcome(lambda: pb.TritonError().message()), "number": outcome(lambda: pb.TritonError(5).message()),
        "wrong_code": outcome(lambda: int(pb.TritonError("x", 99).code())),
        "is_exception": issubclass(pb.TritonError, BaseException),
        "raised": outcome(lambda: raise_(pb.TritonModelException("why"))),
    }


def raise_(error):
    raise error


def case_response():
    tensor = pb.Tensor("x", np.zeros(1, np.int32))
    ok, failed = pb.InferenceResponse([tensor]), pb.InferenceResponse(error=pb.TritonError("no"))
    both = outcome(lambda: pb.InferenceResponse([tensor], pb.TritonError("both")))
    return {
        "outputs": [t.name() for t in ok.output_tensors()], "has_error": [ok.has_error(), failed.has_error()],
        "error": [ok.error(), failed.error().message()], "both": [both.has_error(), len(both.output_tensors())],
        "failed_outputs": outcome(lambda: len(failed.output_tensors())),
        "same_object": ok.output_tensors()[0] is tensor,
        "empty": outcome(lambda: len(pb.InferenceResponse().output_tensors())),
        "none": outcome(lambda: len(pb.InferenceResponse(None).output_tensors())),
        "text_error": outcome(lambda: pb.InferenceResponse(error="plain text")),
        "array": outcome(lambda: pb.InferenceResponse([np.zeros(1)])),
        "tuple": outcome(lambda: len(pb.InferenceResponse((tensor,)).output_tensors())),
        "one_tensor": outcome(lambda: pb.InferenceResponse(tensor)),
        "keywords": outcome(lambda: len(pb.InferenceResponse(output_tensors=[tensor], error=None).output_tensors())),
        "by_name": pb.get_output_tensor_by_name(ok, "x").name(),
        "by_wrong_name": outcome(lambda: pb.get_output_tensor_by_name(ok, "y")),
    }


def case_response_parameters():
    """Newer than 2.51, where the argument is unknown."""
    return outcome(lambda: pb.InferenceResponse([], parameters={"a": 1, "b": "x", "c": True}).parameters())


def case_request():
    tensor = pb.Tensor("x", np.zeros(1, np.int32))
    request = pb.InferenceRequest(
        request_id="r1", correlation_id=5, requested_output_names=["o", "o", "p"], model_name="m", model_version=2,
        inputs=[tensor], flags=1, timeout=1000,
    )
    return {
        "id": request.request_id(), "correlation": request.correlation_id(), "outputs": sorted(request.requested_output_names()),
        "outputs_type": type(request.requested_output_names()).__name__, "inputs": [t.name() for t in request.inputs()],
        "flags": request.flags(), "timeout": request.timeout(), "parameters": request.parameters(),
        "input": pb.get_input_tensor_by_name(request, "x").name(), "no_input": outcome(lambda: pb.get_input_tensor_by_name(request, "y")),
    }


def case_own_request_cancelled():
    return outcome(lambda: pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m").is_cancelled())


def case_own_request_sender():
    return outcome(lambda: type(pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m").get_response_sender()).__name__)


def case_own_request_trace():
    return outcome(lambda: pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m").trace().get_context())


def case_release_flags():
    request = pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m")
    return outcome(lambda: request.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_ALL))


def case_request_defaults():
    request = pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m")
    return {
        "id": request.request_id(), "correlation": request.correlation_id(), "outputs": sorted(request.requested_output_names()),
        "flags": request.flags(), "timeout": request.timeout(), "parameters": request.parameters(),
    }


def case_request_flags():
    request = pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m")
    start, end = pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
    return [outcome(lambda: (request.set_flags(f), request.flags())[1]) for f in (start, end, start | end, 0, 64, -1)]


def case_request_parameters():
    make = lambda p: outcome(
        lambda: json.loads(pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m", parameters=p).parameters())
    )
    return [make({"a": 1, "b": "x", "c": True, "d": -5}), make({}), make(None), make({"f": 1.5}), make({"l": [1]}), make({5: 1}), make("{}")]


def case_request_wrong():
    make = lambda **more: outcome(lambda: type(pb.InferenceRequest(**more)).__name__)
    good = {"requested_output_names": ["o"], "inputs": [], "model_name": "m"}
    return {
        "nothing": make(), "no_model": make(requested_output_names=[], inputs=[]), "no_inputs": make(requested_output_names=[], model_name="m"),
        "no_outputs": make(inputs=[], model_name="m"), "bad_input": make(**{**good, "inputs": [5]}), "text_correlation": make(**good, correlation_id="abc"),
        "float_correlation": make(**good, correlation_id=1.5), "negative_correlation": make(**good, correlation_id=-1),
        "positional": outcome(lambda: type(pb.InferenceRequest("id", 1, [], ["o"], "m")).__name__),
        "preferred": make(**good, preferred_memory=pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU, 0)),
        "bad_version": make(**good, model_version="1"),
    }


def case_text_correlation():
    request = pb.InferenceRequest(requested_output_names=[], inputs=[], model_name="m", correlation_id="abc")
    return request.correlation_id()


def case_two_tensors_of_one_name():
    request = pb.InferenceRequest(
        requested_output_names=[], model_name="m", inputs=[pb.Tensor("x", np.zeros(1, np.int32)), pb.Tensor("x", np.ones(1, np.int32))]
    )
    return [len(request.inputs()), int(pb.get_input_tensor_by_name(request, "x").as_numpy()[0])]


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    @staticmethod
    def answer(request):
        case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
        text = json.dumps(outcome(globals()["case_" + case]), default=repr)
        return pb.InferenceResponse([pb.Tensor("ANSWER", np.frombuffer(text.encode(), dtype=np.uint8))])
