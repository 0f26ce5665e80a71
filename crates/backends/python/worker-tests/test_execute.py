"""Models in default mode: tensors both ways, checks of what execute returns, errors."""

import resource
import sys
import unittest

import numpy as np

import server
from server import EMPTY, ERROR, Tensor, Worker, of

HEAD = "import numpy as np\nimport triton_python_backend_utils as pb_utils\n\nclass TritonPythonModel:\n"
IDENTITY = HEAD + """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
"""


def body(text, head=HEAD):
    """A model whose `execute` is the given lines."""
    lines = "\n".join("        " + line for line in text.strip("\n").split("\n"))
    return head + "    def execute(self, requests):\n" + lines + "\n"


def answering(expression):
    return body('return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", %s)]) for r in requests]' % expression)


class Tensors(unittest.TestCase):
    def test_every_type_comes_back_inline_and_through_the_arenas(self):
        with Worker(IDENTITY, inline=4096) as worker:
            for kind in server.TYPES.values():
                for shape, stored in (((3, 5), False), ((0,), False), ((), False), ((1, 1 << 17), True)):
                    array = (np.arange(int(np.prod(shape))) % 100).reshape(shape).astype(kind)
                    got = worker.one({"IN": array}, stored=stored).outputs["OUT"]
                    self.assertEqual((got.code, got.shape), (server.CODES[array.dtype], shape))
                    np.testing.assert_array_equal(got.array, array)

    def test_bytes(self):
        with Worker(IDENTITY) as worker:
            texts = [b"", b"abc", "\u00e9\u4e2d".encode(), b"\xff\x00", b"x" * 70000]
            self.assertEqual(worker.one({"IN": texts}).outputs["OUT"].texts, texts)
            self.assertEqual(worker.one({"IN": texts}, stored=True).outputs["OUT"].texts, texts)

    def test_objects_become_text(self):
        values = 'np.array([b"raw", "caf\\u00e9", {"a": [1, 2]}, 3, 2.5, None], dtype=object)'
        with Worker(answering(values)) as worker:
            texts = worker.one({"IN": [b""]}).outputs["OUT"].texts
            self.assertEqual(texts, [b"raw", "caf\u00e9".encode(), b"{'a': [1, 2]}", b"3", b"2.5", b"None"])

    def test_numpy_text_arrays(self):
        source = body("""
return [pb_utils.InferenceResponse([
    pb_utils.Tensor("A", np.array(["a", "\\u00fc"])), pb_utils.Tensor("B", np.array([b"x", b"yz"])),
    pb_utils.Tensor("C", np.array([["1", 2]], dtype=object)),
])]""")
        with Worker(source) as worker:
            outputs = worker.one({"IN": [b""]}, outputs=("A", "B", "C")).outputs
            self.assertEqual(outputs["A"].texts, [b"a", "\u00fc".encode()])
            self.assertEqual(outputs["B"].texts, [b"x", b"yz"])
            self.assertEqual((outputs["C"].texts, outputs["C"].shape), ([b"1", b"2"], (1, 2)))

    def test_unusual_arrays(self):
        cases = {
            "np.arange(12, dtype=np.int32).reshape(3, 4).T": np.arange(12, dtype=np.int32).reshape(3, 4).T,
            "np.arange(9, dtype=np.float32)[::-2]": np.arange(9, dtype=np.float32)[::-2],
            "np.arange(4, dtype='>i4')": np.arange(4, dtype=np.int32),
            "np.arange(40000, dtype=np.int64).reshape(200, 200)[:, ::2]": np.arange(40000).reshape(200, 200)[:, ::2],
        }
        for expression, expected in cases.items():
            with Worker(answering(expression)) as worker:
                np.testing.assert_array_equal(worker.one({"IN": [b""]}).outputs["OUT"].array, expected)

    def test_inputs_are_writable_and_survive(self):
        source = body("""
self.kept = getattr(self, "kept", []) + [requests[0].inputs()[0].as_numpy()]
self.kept[-1][0] += 100
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.concatenate(self.kept))])]""")
        with Worker(source) as worker:
            for stored in (False, True):
                worker.one({"IN": np.array([1, 2])}, stored=stored)
            got = worker.one({"IN": np.array([5, 6])}).outputs["OUT"].array
            np.testing.assert_array_equal(got, [101, 2, 101, 2, 105, 6])

    def test_unsupported_types_name_the_tensor(self):
        for expression in ("np.zeros(2, np.complex64)", "np.zeros(2, 'datetime64[s]')"):
            with Worker(answering(expression)) as worker:
                message = worker.execute({"IN": [b""]})
                self.assertTrue(message.flags & ERROR)
                self.assertIn("NumPy dtype is not supported. Tensor 'OUT' has dtype", message.failure[0])

    def test_bf16(self):
        source = body("""
tensor = requests[0].inputs()[0]
try:
    tensor.as_numpy()
except pb_utils.TritonModelException as error:
    assert "BF16" in str(error)
again = pb_utils.Tensor.from_dlpack("OUT", tensor.to_dlpack())
return [pb_utils.InferenceResponse([again])]""")
        bits = np.array([0x3F80, 0x4000], np.uint16)
        with Worker(source) as worker:
            for stored in (False, True):
                got = worker.one({"IN": of(bits, 14)}, stored=stored).outputs["OUT"]
                self.assertEqual((got.code, got.raw), (14, bits.tobytes()))

    def test_dlpack_both_ways(self):
        source = body("""
tensor = requests[0].inputs()[0]
assert tensor.__dlpack_device__() == (1, 0)
class Torch:
    def __dlpack__(self, stream=None):
        return tensor.__dlpack__(stream=stream)
out = pb_utils.Tensor.from_dlpack("OUT", Torch() if self.wrapped else tensor.to_dlpack())
self.wrapped = not self.wrapped
assert out.triton_dtype() == tensor.triton_dtype()
return [pb_utils.InferenceResponse([out])]""") + "    wrapped = False\n"
        with Worker(source) as worker:
            for kind in ("f4", "f2", "i8", "u1", "?", "f8", "?"):
                array = np.arange(6).reshape(2, 3).astype(kind)
                np.testing.assert_array_equal(worker.one({"IN": array}).outputs["OUT"].array, array)
            self.assertIn("DLPack does not have support for string tensors.", worker.execute({"IN": [b"a"]}).failure[0])

    def test_batches(self):
        with Worker(IDENTITY) as worker:
            for _ in range(3):
                arrays = [{"IN": np.full((1, n), n, np.float32)} for n in range(1, 9)]
                responses = worker.execute(*arrays).responses()
                self.assertEqual([r.key for r in responses], list(range(1, 9)))
                for response, sent in zip(responses, arrays):
                    np.testing.assert_array_equal(response.outputs["OUT"].array, sent["IN"])

    def test_large_messages_spill(self):
        source = body("""
names = ["OUTPUT_NUMBER_%d" % n for n in range(3000)]
return [pb_utils.InferenceResponse([pb_utils.Tensor(n, np.array([i])) for i, n in enumerate(names)])]""")
        with Worker(source) as worker:
            response = worker.one({"IN": [b""]}, outputs=())
            self.assertEqual(len(response.outputs), 3000)
            self.assertEqual(response.outputs["OUTPUT_NUMBER_2999"].array[0], 2999)


class Arenas(unittest.TestCase):
    def test_blocks_come_back_when_no_array_uses_them(self):
        source = body("""
array = requests[0].inputs()[0].as_numpy()
self.kept = array[5:7] if array[0] else None
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array[:1].copy())])]""")
        big = np.zeros(10000, np.float64)
        with Worker(source) as worker:
            first = worker.execute({"IN": big}, stored=True)
            self.assertEqual(first.released, (0,))
            kept = worker.inbox_used + -worker.inbox_used % 64
            self.assertEqual(worker.execute({"IN": big + 1}, stored=True).released, ())
            last = worker.execute({"IN": big}, stored=True)
            self.assertIn(kept, last.released)

    def test_idle_worker_gives_blocks_back(self):
        with Worker(IDENTITY) as worker:
            message = worker.execute({"IN": np.zeros(10000)}, stored=True)
            release = worker.receive(worker.events)
            self.assertEqual((message.released, release.kind, release.released), ((), 26, (0,)))

    def test_outbox_blocks_are_used_again_and_trimmed(self):
        with Worker(IDENTITY) as worker:
            blocks = set()
            for _ in range(20):
                message = worker.execute({"IN": np.ones(100000)}, stored=True)
                message.responses()
                blocks.update(message.blocks)
                worker.to_release += message.blocks
            self.assertLessEqual(len(blocks), 2)
            size = server.os.fstat(worker.outbox).st_size
            worker.send(worker.events, 42)
            worker.send(worker.events, 44)
            while worker.receive(worker.events).kind != 28:
                pass
            self.assertEqual(server.os.fstat(worker.outbox).st_blocks, 0)
            self.assertEqual(server.os.fstat(worker.outbox).st_size, size)
            got = worker.one({"IN": np.arange(100000)}, stored=True).outputs["OUT"].array
            np.testing.assert_array_equal(got, np.arange(100000))

    def test_full_outbox_fails_only_the_response(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 22, 1 << 22))

        source = answering("np.zeros(int(r.inputs()[0].as_numpy()[0]), np.uint8)")
        with Worker(source, preexec=limit) as worker:
            good, bad, also = worker.execute(*({"IN": np.array([n])} for n in (10, 1 << 23, 1 << 20))).responses()
            self.assertEqual((good.code, bad.code, also.code), (0, 2, 0))
            self.assertIn("cannot send the response: shared memory of the outputs", bad.error)
            self.assertEqual(len(also.outputs["OUT"].raw), 1 << 20)

    def test_the_arena_grows_to_its_limit_and_no_further(self):
        source = answering("np.zeros(int(r.inputs()[0].as_numpy()[0]), np.uint8)")
        limit = 5 << 20
        with Worker(source, arena_limit=limit) as worker:
            small, fits, bad, also = worker.execute(*({"IN": np.array([n])} for n in (1 << 20, 4 << 20, 64, 10))).responses()
            self.assertEqual([r.code for r in (small, fits, bad, also)], [0, 0, 0, 0])
            self.assertEqual(server.os.fstat(worker.outbox).st_size, limit)
            bad, also = worker.execute(*({"IN": np.array([n])} for n in (1 << 20, 10))).responses()
            self.assertEqual((bad.code, also.code), (2, 0))
            self.assertIn("may not have more than %d (shm-max-byte-size)" % limit, bad.error)
            self.assertEqual(server.os.fstat(worker.outbox).st_size, limit)


class Checks(unittest.TestCase):
    def failing(self, source, **options):
        with Worker(source, **options) as worker:
            message = worker.execute({"IN": [b"a"]})
            self.assertTrue(message.flags & ERROR)
            return message.failure[0]

    def test_texts(self):
        cases = {
            "return None": "Expected a list in the execute return, found type '<class 'NoneType'>'.",
            "return 5": "Expected a list in the execute return, found type '<class 'int'>'.",
            "return []": "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
            "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n",
        }
        for line, text in cases.items():
            self.assertEqual(self.failing(body(line)), text)
        self.assertIn("does not implement `execute` method.", self.failing(HEAD + "    pass\n"))

    def test_one_bad_response_fails_only_its_request(self):
        source = body("""
good = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([1]))])
return [good, "text", None, pb_utils.InferenceResponse(error=pb_utils.TritonError("no", pb_utils.TritonError.NOT_FOUND)),
        pb_utils.InferenceResponse(error=pb_utils.TritonError("plain"))]""")
        with Worker(source) as worker:
            good, bad, none, error, plain = worker.execute(*[{"IN": [b"a"]}] * 5).responses()
            prefix = "Failed to process the request(s) for model 'm_0', message: "
            kind = "Expected an 'InferenceResponse' object in the execute function return list, found type '<class '%s'>'."
            self.assertEqual(good.outputs["OUT"].array[0], 1)
            self.assertEqual((bad.code, bad.error), (2, prefix + kind.replace("%s", "str")))
            self.assertEqual((none.code, none.error), (2, prefix + kind.replace("%s", "NoneType")))
            self.assertEqual((error.code, error.error, plain.code, plain.error), (3, "no", 2, "plain"))

    def test_exceptions_show_where_they_came_from(self):
        text = self.failing(body("self.inner()") + "\n    def inner(self):\n        raise ValueError('bad')\n")
        self.assertRegex(
            text, r"^ValueError: bad\n\nAt:\n  m/1/model.py\(9\): inner\n  m/1/model.py\(6\): execute\n$"
        )
        self.assertTrue(self.failing(body("import sys; sys.exit(3)")).startswith("SystemExit: 3\n\nAt:\n"))
        self.assertTrue(self.failing(body("raise KeyError()")).startswith("KeyError: <EMPTY MESSAGE>"))
        text = self.failing(body("pb_utils.Tensor('', np.zeros(1))"))
        self.assertTrue(text.startswith("TritonModelException: Tensor name cannot be an empty string.\n\nAt:\n  "))
        self.assertNotIn("galatea_worker", text)

    def test_the_traceback_is_beside_the_message(self):
        source = body("""
try:
    self.inner()
except ValueError as error:
    raise RuntimeError("outer") from error""") + "\n    def inner(self):\n        raise ValueError('cause')\n"
        with Worker(source) as worker:
            message, traceback = worker.execute({"IN": [b"a"]}).failure
            self.assertTrue(message.startswith("RuntimeError: outer\n\nAt:\n"), message)
            self.assertNotIn("cause", message)
            self.assertTrue(traceback.startswith("Traceback (most recent call last):\n"), traceback)
            self.assertIn("ValueError: cause\n\nThe above exception was the direct cause", traceback)
            self.assertRegex(traceback, r'File "\S+/m/1/model.py", line \d+, in execute')
            self.assertTrue(traceback.endswith("RuntimeError: outer\n"), traceback)
            self.assertNotIn("galatea_worker", traceback)

    def test_errors_of_the_worker_itself_have_no_traceback(self):
        with Worker(body("return 5")) as worker:
            self.assertEqual(worker.execute({"IN": [b"a"]}).failure[1], "")

    def test_a_long_traceback_is_shortened(self):
        with Worker(body("raise ValueError('x' * 100000)")) as worker:
            message, traceback = worker.execute({"IN": [b"a"]}).failure
            self.assertGreater(len(message), 100000)
            self.assertTrue(1000 < len(traceback) < 20000, len(traceback))
            self.assertIn("in execute", traceback)

    def test_the_worker_continues_after_an_error(self):
        with Worker(body("raise RuntimeError(requests[0].request_id())")) as worker:
            for name in ("a", "b"):
                self.assertIn("RuntimeError: %s" % name, worker.execute({"IN": [b"a"]}, id=name).failure[0])

    def test_outputs_nobody_asked_for_are_left_out(self):
        source = body("""
names = sorted(requests[0].requested_output_names())
return [pb_utils.InferenceResponse([pb_utils.Tensor(n, np.array([1])) for n in ("A", "B", "C")] , parameters={"n": str(names)})]""")
        with Worker(source) as worker:
            response = worker.one({"IN": [b""]}, outputs=("B", "X"))
            self.assertEqual((list(response.outputs), response.params), (["B"], '{"n": "[\'B\', \'X\']"}'))

    def test_properties_of_a_request(self):
        source = answering(
            "np.array([str((r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters(), "
            "r.trace().get_context(), r.inputs()[0].name(), r.inputs()[0].shape(), r.inputs()[0].is_cpu()))], dtype=object)"
        )
        with Worker(source) as worker:
            got = worker.one({"IN": np.zeros((2, 1))}, id="me", corr=7, flags=3, timeout=9, params='{"a":1}', trace="t")
            self.assertEqual(got.outputs["OUT"].texts[0].decode(), str(("me", 7, 3, 9, '{"a":1}', "t", "IN", [2, 1], True)))
            got = worker.one({"IN": np.zeros((2, 1))}, corr_text="word")
            self.assertEqual(got.outputs["OUT"].texts[0].decode(), str(("", "word", 0, 0, "{}", None, "IN", [2, 1], True)))

    def test_rescheduled_requests(self):
        source = body("""
requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
return [None]""")
        with Worker(source) as worker:
            self.assertEqual(worker.one({"IN": [b"a"]}).body, 2)
        source = source.replace("return [None]", "return None")
        for decoupled in (True, False):
            with Worker(source, decoupled=decoupled) as worker:
                self.assertEqual(worker.one({"IN": [b"a"]}).body, 2)
                if decoupled:
                    # Behind all that was sent for it, the request is given back.
                    given_back = worker.receive(worker.events)
                    self.assertEqual(given_back.flags, EMPTY)
                worker.events.setblocking(False)
                self.assertRaises(BlockingIOError, worker.receive, worker.events)

    def test_async_execute(self):
        source = """
import asyncio
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        await asyncio.sleep(0)
        if requests[0].request_id():
            raise ValueError("late")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([4]))])]
"""
        with Worker(source) as worker:
            self.assertEqual(worker.one({"IN": [b""]}).outputs["OUT"].array[0], 4)
            text, _ = worker.execute({"IN": [b""]}, id="x").failure
            self.assertRegex(text, r"^ValueError: late\n\nAt:\n  m/1/model.py\(10\): execute\n$")


class Arguments(unittest.TestCase):
    def test_wrong_arguments(self):
        source = body("""
def fails(kind, text, make):
    try:
        make()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
R, P, M = pb_utils.InferenceRequest, pb_utils.InferenceResponse, pb_utils.TritonModelException
t = pb_utils.Tensor("T", np.zeros(1))
fails(TypeError, "incompatible constructor arguments", lambda: P([1]))
fails(M, "Output tensor for inference response should not be empty.", lambda: P([None]))
fails(TypeError, "incompatible", lambda: P(error=3))
fails(M, "Expect parameters keys to have type str, found type <class 'int'>", lambda: P(parameters={1: "a"}))
fails(M, "Expect parameters values to have type bool/int/str, found type <class 'float'>", lambda: P(parameters={"a": 1.5}))
fails(M, ", got <class 'list'>", lambda: P(parameters=[]))
fails(M, "Correlation ID must be integer or string", lambda: R(correlation_id=1.5, inputs=[t], requested_output_names=["O"], model_name="x"))
fails(M, "Requested output name for request with id 'i' and model name 'x' should not be empty.", lambda: R("i", inputs=[t], requested_output_names=[""], model_name="x"))
fails(M, "Input tensor for request with id '' and model name 'x' should not be empty.", lambda: R(inputs=[None], requested_output_names=["O"], model_name="x"))
fails(TypeError, "incompatible", lambda: R(inputs=[t], requested_output_names=["O"]))
fails(TypeError, "1. c_python_backend_utils.Tensor(arg0: str, arg1: numpy.ndarray)\\n\\nInvoked with: 'A', list of 1 (float)", lambda: pb_utils.Tensor("A", [1.0]))
assert str(pb_utils.TritonError("a").code()) == "__ErrorCode.INTERNAL"
assert pb_utils.TritonError("a").code() == pb_utils.TritonError.INTERNAL
assert pb_utils.get_input_tensor_by_name(requests[0], "none") is None
return [P([pb_utils.Tensor("OUT", np.zeros(1))])]""")
        with Worker(source) as worker:
            worker.one({"IN": [b"a"]})


if __name__ == "__main__":
    print(sys.version.split()[0], np.__version__)
    unittest.main()
