"""Which arguments the functions of pb_utils take: what Triton's compiled ones convert, and nothing else."""

import json
import unittest

from server import Worker
from test_execute import body

# Tries a call with each value; what came of it, or the kind of the exception and the start of its text.
TRY = """
import json
from decimal import Decimal
import c_python_backend_utils as c

def tried(call, values):
    said = {}
    for name, value in values.items():
        try:
            said[name] = call(value)
        except BaseException as error:
            said[name] = "%s: %s" % (type(error).__name__, str(error).split("arguments.")[0])
    return said

class Whole:
    def __int__(self):
        return 3

class Index:
    def __index__(self):
        return 3

def request(**more):
    given = dict(model_name="m", requested_output_names=["O"], inputs=[pb_utils.Tensor("I", np.zeros(1))])
    given.update(more)
    return pb_utils.InferenceRequest(**given)
"""


def said(lines):
    """What a model says that ends with `said = ...`."""
    with Worker(TRY + body(lines + "\nraise RuntimeError(json.dumps(said))", head="import numpy as np\nimport triton_python_backend_utils as pb_utils\nclass TritonPythonModel:\n")) as worker:
        text, _ = worker.execute({"IN": [b"a"]}).failure
    return json.loads(text.split("RuntimeError: ")[1].split("\n\nAt:")[0])


TEXTS = """dict(text="x", numpy=np.str_("x"), bytes=b"x", bytearray=bytearray(b"x"), numpy_bytes=np.bytes_(b"x"), number=5,
    nothing=None, view=memoryview(b"x"), array=np.array(b"x"), half="\\ud800", list=["x"])"""
NO_TEXT = ("number", "nothing", "view", "array", "half", "list")
NUMBERS = """dict(int=3, bool=True, int32=np.int32(3), uint8=np.uint8(3), numpy_bool=np.bool_(True), float32=np.float32(3.7),
    decimal=Decimal("3.9"), array=np.array(3), whole=Whole(), index=Index(), float=3.0, float64=np.float64(3), text="3", bytes=b"3",
    nothing=None, two=np.array([3, 4]), complex=3j, list=[3], huge=1 << 64)"""
NO_NUMBER = ("float", "float64", "text", "bytes", "nothing", "two", "complex", "list", "huge")


class Arguments(unittest.TestCase):
    def refused(self, answers, names, call):
        for name in names:
            self.assertRegex(str(answers[name]), r"^TypeError: %s\(\): incompatible (constructor|function) $" % call, name)
        return {name: answer for name, answer in answers.items() if name not in names}

    def test_texts(self):
        calls = {
            "__init__ ": "lambda v: request(request_id=v).request_id()",
            "__init__  ": "lambda v: list(request(requested_output_names=[v]).requested_output_names())[0]",
            "__init__   ": "lambda v: request(model_name=v)._model",
            "__init__    ": "lambda v: pb_utils.TritonError(v).message()",
            "__init__": "lambda v: pb_utils.Tensor(v, np.zeros(1)).name()",
            "from_dlpack": "lambda v: pb_utils.Tensor.from_dlpack(v, np.zeros(1)).name()",
            "log": "lambda v: pb_utils.Logger.log_info(v) or 'x'",
        }
        for call, code in calls.items():
            answers = said("said = tried(%s, %s)" % (code, TEXTS))
            taken = self.refused(answers, NO_TEXT, call.strip())
            self.assertEqual(taken, dict.fromkeys(("text", "numpy", "bytes", "bytearray", "numpy_bytes"), "x"), code)

    def test_whole_numbers(self):
        calls = {
            "__init__ ": "lambda v: request(flags=v).flags()",
            "__init__": "lambda v: request(timeout=v).timeout()",
            "__init__  ": "lambda v: request(model_version=v)._version",
            "__init__   ": "lambda v: pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, v).preferred_device_id",
            "set_flags": "lambda v: (lambda r: r.set_flags(v) or r.flags())(request())",
        }
        for call, code in calls.items():
            answers = said("said = tried(%s, %s)" % (code, NUMBERS))
            taken = self.refused(answers, NO_NUMBER, call.strip())
            self.assertEqual(set(taken.values()), {1, 3}, code)
            self.assertTrue(all(type(number) is int for number in taken.values()), code)

    def test_bounds_of_whole_numbers(self):
        answers = said("""said = {
    "flags": tried(lambda v: request(flags=v).flags(), {"-1": -1, "2^32": 1 << 32}),
    "timeout": tried(lambda v: request(timeout=v).timeout(), {"-1": -1, "2^64": 1 << 64, "2^63": 1 << 63}),
    "version": tried(lambda v: request(model_version=v)._version, {"2^63": 1 << 63, "-2^63": -(1 << 63)}),
}""")
        refused = "TypeError: __init__(): incompatible constructor "
        self.assertEqual(answers["flags"], {"-1": refused, "2^32": refused})
        self.assertEqual(answers["timeout"], {"-1": refused, "2^64": refused, "2^63": 1 << 63})
        self.assertEqual(answers["version"], {"2^63": refused, "-2^63": -(1 << 63)})

    def test_sequences(self):
        answers = said("""
values = dict(list=["O"], tuple=("O",), objects=np.array([b"O"], dtype=object), fixed=np.array(["O"]), bytes_=np.array([b"O"]),
    set={"O"}, dict={"O": 1}, generator=(x for x in "O"), text="O", nothing=None, keys={"O": 1}.keys())
said = tried(lambda v: sorted(request(requested_output_names=v).requested_output_names()), values)""")
        taken = self.refused(answers, ("set", "dict", "generator", "text", "nothing", "keys"), "__init__")
        self.assertEqual(taken, dict.fromkeys(("list", "tuple", "objects", "fixed", "bytes_"), ["O"]))

    def test_a_list_that_is_used_again_changes_nothing(self):
        answers = said("""
tensors = [pb_utils.Tensor("I", np.zeros(1))]
made, answered = request(inputs=tensors), pb_utils.InferenceResponse(tensors)
tensors.clear()
said = [len(made.inputs()), len(answered.output_tensors())]""")
        self.assertEqual(answers, [1, 1])

    def test_correlation_ids(self):
        answers = said("""
values = dict(int=5, text="x", bool=True, nothing=None, bytes=b"x", int64=np.int64(5), float=5.0, negative=-1, huge=1 << 64)
said = tried(lambda v: request(correlation_id=v).correlation_id(), values)""")
        taken = self.refused(answers, ("nothing",), "__init__")
        wrong = "TritonModelException: Correlation ID must be integer or string"
        outside = "TritonModelException: Correlation ID must be between 0 and 2^64 - 1"
        self.assertEqual(taken, {"int": 5, "text": "x", "bool": 1, "bytes": wrong, "int64": wrong, "float": wrong, "negative": outside, "huge": outside})

    def test_truth_values(self):
        answers = said("""
class Channel:
    def infer(self, request, decoupled):
        return decoupled
from galatea_worker import server
server.session.bls = Channel()
values = dict(true=True, one=1, zero=0, float=0.5, numpy=np.bool_(True), nothing=None, text="x", list=[1], dict={1: 1})
said = tried(lambda v: request().exec(decoupled=v), values)""")
        taken = self.refused(answers, ("nothing", "text", "list", "dict"), "exec")
        self.assertEqual(taken, {"true": True, "one": True, "zero": False, "float": True, "numpy": True})

    def test_default_values_are_not_none(self):
        answers = said("""said = [tried(lambda v: request(**{v: None}).timeout(), {v: v})[v] for v in
    ("preferred_memory", "trace", "timeout", "flags", "model_version", "request_id")]""")
        self.assertEqual(set(answers), {"TypeError: __init__(): incompatible constructor "})

    def test_what_no_message_can_carry_is_an_exception(self):
        """JSON has no NaN and UTF-8 no halves of pairs: sent all the same, they would end the worker."""
        answers = said("""
family = object.__new__(pb_utils.MetricFamily)
family._kind, family._registered = pb_utils.MetricFamily.GAUGE, __import__("galatea_worker.metrics").metrics._Registered(1)
said = [tried(v, {"": 0})[""] for v in (lambda _: family.Metric({"a": "\\ud800"}), lambda _: family.Metric({"a": float("nan")}),
    lambda _: request(parameters={"a": "\\ud800"}), lambda _: pb_utils.is_model_ready("\\ud800"))]""")
        self.assertEqual([answer.split(":")[0] for answer in answers], ["UnicodeEncodeError", "ValueError", "UnicodeEncodeError", "TypeError"])


if __name__ == "__main__":
    unittest.main()
