"""What a client sees of what a model returns. CASE names a function of this file; its value is what execute returns."""

import json
import sys

import numpy as np
import triton_python_backend_utils as pb

NUMBER = np.array([1.5, 2.5], np.float32)


def text(array):
    return [pb.InferenceResponse([pb.Tensor("TEXT", array), pb.Tensor("NUMBER", NUMBER)])]


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return text(array)


def numbers(array):
    return [pb.InferenceResponse([pb.Tensor("TEXT", np.array([b"t"], object)), pb.Tensor("NUMBER", array)])]


def failed(*error):
    return [pb.InferenceResponse(error=pb.TritonError(*error))]


def case_bytes():
    return objects(b"raw \xff\x00", b"")


def case_str():
    return objects("text", "", "\u00fc\u4f60\U0001f600")


def case_int():
    return objects(5, -1)


def case_float():
    return objects(1.5, float("nan"))


def case_dict():
    return objects({"a": [1, "b"], "c": None})


def case_none():
    return objects(None)


def case_bool():
    return objects(True, False)


def case_nested():
    return objects([1, (2, "x")], {"k": {"l": b"m"}})


def case_class():
    class Thing:
        def __str__(self):
            return "a thing"

    return objects(Thing())


def case_no_str():
    class Thing:
        def __str__(self):
            raise ValueError("has no text")

    return objects(Thing())


def case_lone_surrogate():
    return objects("\ud800")


def case_numpy_in_objects():
    return objects(np.str_("s"), np.bytes_(b"b"), np.int32(4), np.arange(2), bytearray(b"array"))


def case_memoryview():
    return objects(memoryview(b"view"))


def case_mixed():
    return objects(b"b", "s", 5)


def case_fixed_bytes():
    return text(np.array([b"a", b"abc", b""]))


def case_fixed_bytes_trailing_zero():
    return text(np.array([b"a\x00", b"abc"]))


def case_fixed_str():
    return text(np.array(["a", "\u00fcb", ""]))


def case_objects_two_dimensions():
    return text(np.array([["a", "b"], ["c", "d"]], dtype=object))


def case_objects_transposed():
    return text(np.array([["a", "b"], ["c", "d"]], dtype=object).T.reshape(-1))


def case_objects_sliced():
    return text(np.array(["a", "b", "c", "d"], dtype=object)[::2])


def case_no_objects():
    return text(np.zeros(0, dtype=object))


def case_int_for_text():
    return text(np.arange(2, dtype=np.int32))


def case_text_for_number():
    return numbers(np.array(["a"], dtype=object))


def case_slice():
    return numbers(np.arange(6, dtype=np.float32)[::2])


def case_fortran():
    return numbers(np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)))


def case_transposed():
    return numbers(np.arange(6, dtype=np.float32).reshape(2, 3).T)


def case_reversed():
    return numbers(np.arange(3, dtype=np.float32)[::-1])


def case_broadcast():
    return numbers(np.broadcast_to(np.float32(3), (4,)))


def case_size_0():
    return numbers(np.zeros(0, np.float32))


def case_scalar():
    return numbers(np.array(4, np.float32))


def case_other_type():
    return numbers(np.arange(2, dtype=np.float64))


def case_other_type_int():
    return numbers(np.arange(2, dtype=np.int64))


def case_half():
    return numbers(np.arange(2, dtype=np.float16))


def case_big_endian():
    return numbers(np.array([1.0, 2.0], dtype=">f4"))


def case_other_rank():
    return numbers(np.zeros((2, 2), np.float32))


def case_wrong_name():
    return [pb.InferenceResponse([pb.Tensor("OTHER", NUMBER)])]


def case_one_missing():
    return [pb.InferenceResponse([pb.Tensor("NUMBER", NUMBER)])]


def case_none_of_them():
    return [pb.InferenceResponse([])]


def case_one_more():
    return [pb.InferenceResponse([pb.Tensor("TEXT", np.array([b"t"], object)), pb.Tensor("NUMBER", NUMBER), pb.Tensor("MORE", NUMBER)])]


def case_twice():
    return [pb.InferenceResponse([pb.Tensor("TEXT", np.array([b"t"], object)), pb.Tensor("NUMBER", NUMBER), pb.Tensor("NUMBER", NUMBER * 2)])]


def case_other_order():
    return [pb.InferenceResponse([pb.Tensor("NUMBER", NUMBER), pb.Tensor("TEXT", np.array([b"t"], object))])]


def case_returns_none():
    return None


def case_empty_list():
    return []


def case_too_many():
    return text(np.array([b"a"], object)) * 2


def case_list_with_none():
    return [None]


def case_tuple():
    return tuple(text(np.array([b"a"], object)))


def case_generator():
    return (r for r in text(np.array([b"a"], object)))


def case_one_response():
    return text(np.array([b"a"], object))[0]


def case_tensors_instead():
    return [pb.Tensor("NUMBER", NUMBER)]


def case_dict_instead():
    return {"NUMBER": NUMBER}


def case_string_instead():
    return "hello"


def case_arrays_instead():
    return [NUMBER]


def case_error():
    return failed("a text of the model")


def case_error_no_text():
    return failed("")


def case_error_unicode():
    return failed("\u00fcber \"quoted\"\nsecond line")


def case_error_unknown():
    return failed("t", pb.TritonError.UNKNOWN)


def case_error_internal():
    return failed("t", pb.TritonError.INTERNAL)


def case_error_not_found():
    return failed("t", pb.TritonError.NOT_FOUND)


def case_error_invalid_arg():
    return failed("t", pb.TritonError.INVALID_ARG)


def case_error_unavailable():
    return failed("t", pb.TritonError.UNAVAILABLE)


def case_error_unsupported():
    return failed("t", pb.TritonError.UNSUPPORTED)


def case_error_already_exists():
    return failed("t", pb.TritonError.ALREADY_EXISTS)


def case_error_cancelled():
    return failed("t", pb.TritonError.CANCELLED)


def case_error_and_outputs():
    return [pb.InferenceResponse([pb.Tensor("NUMBER", NUMBER)], pb.TritonError("both"))]


def case_raises_error():
    raise ValueError("the reason")


def case_raises_model_exception():
    raise pb.TritonModelException("the reason")


def case_raises_key_error():
    return {}["missing"]


def case_raises_without_text():
    raise RuntimeError


def case_raises_with_cause():
    try:
        return 1 / 0
    except ZeroDivisionError as error:
        raise RuntimeError("outer") from error


def case_raises_unicode():
    raise ValueError("\u00fcber \"quoted\"\nsecond line")


def case_asserts():
    assert 1 == 2, "not equal"


def case_stop_iteration():
    return [next(iter([]))]


class OwnError(Exception):
    pass


def case_raises_own():
    raise OwnError("own", 5)


def case_big_text():
    return objects(b"x" * 2_000_000)


def case_many_texts():
    return text(np.array([str(i) for i in range(20000)], dtype=object))


class TritonPythonModel:
    def execute(self, requests):
        case = bytes(pb.get_input_tensor_by_name(requests[0], "CASE").as_numpy()).decode()
        return globals()["case_" + case]()
