"""Response senders, decoupled models, and calls to the server: other models, metrics, log, model control."""

import threading
import unittest

import numpy as np

from server import DECOUPLED, EMPTY, ERROR, FINAL, RAISED, Worker
from test_execute import HEAD, body

SENDING = "response = lambda n: pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([n]))])\n"


def results_of(results):
    """Answers CALL messages from a dict of op -> result, and records the fields of all in `calls`."""
    calls = []

    def answer(worker, message):
        fields = message.json if message.kind in (24, 25) else {"op": message.kind}
        calls.append(fields)
        if message.kind == 24:
            result = results[fields["op"]]
            worker.call_result(message.id, error=str(result)) if isinstance(result, Exception) else worker.call_result(
                message.id, result
            )

    return calls, answer


class Senders(unittest.TestCase):
    def test_decoupled_responses_after_execute_from_a_thread(self):
        source = body(SENDING + """
import threading
def work(sender):
    for n in range(3):
        sender.send(response(n))
    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
threads = [threading.Thread(target=work, args=(r.get_response_sender(),)) for r in requests]
[t.start() for t in threads]
return None""")
        with Worker(source, decoupled=True) as worker:
            self.assertEqual(worker.execute({"IN": [b""]}, {"IN": [b""]}).count, 0)
            got = {1: [], 2: []}
            for _ in range(8):
                message = worker.receive(worker.events)
                self.assertEqual(message.kind, 20)
                value = None if message.flags & EMPTY else int(message.response().outputs["OUT"].array[0])
                got[message.id].append((value, message.flags & FINAL))
            self.assertEqual(got[1], [(0, 0), (1, 0), (2, 0), (None, 1)])
            self.assertEqual(got[2], got[1])

    def test_rules_of_send(self):
        source = body(SENDING + """
def fails(kind, text, *args, **names):
    try:
        sender.send(*args, **names)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
E = pb_utils.TritonModelException
sender = requests[0].get_response_sender()
assert sender is requests[0].get_response_sender()
fails(TypeError, "incompatible function arguments", "text")
fails(E, "Unable to send response. Unsupported flag provided.", flags=7)
fails(E, "Inference Response object must be provided when the response flags is set to zero.")
if not self.decoupled:
    fails(E, "Non-decoupled model cannot send complete final before sending a response.", flags=1)
sender.send(response(1))
if not self.decoupled:
    fails(E, "Non-decoupled model cannot send more than one response.", response(2))
sender.send(flags=1)
fails(E, "Response sender has been closed." if self.decoupled else "more than one response.", response(3))
fails(E, "Unable to send response. Response sender has been closed.", flags=1)
""")
        for decoupled in (True, False):
            with Worker(source + "    decoupled = %s\n" % decoupled, decoupled=decoupled) as worker:
                message = worker.execute({"IN": [b""]})
                self.assertEqual((message.flags, message.count), (0, 0))
                self.assertEqual([worker.receive(worker.events).flags for _ in range(2)], [0, FINAL | EMPTY])

    def test_a_sent_response_takes_precedence_over_a_returned_one(self):
        source = body(SENDING + "requests[0].get_response_sender().send(response(1), 1)\nreturn [response(2), response(3)]")
        with Worker(source) as worker:
            (response,) = worker.execute({"IN": [b""]}, {"IN": [b""]}).responses()
            self.assertEqual((response.key, int(response.outputs["OUT"].array[0])), (2, 3))
            sent = worker.receive(worker.events)
            self.assertEqual((sent.id, sent.flags, int(sent.response().outputs["OUT"].array[0])), (1, FINAL, 1))

    def test_none_in_the_list_means_sent_elsewhere(self):
        source = body(SENDING + """
requests[0].get_response_sender().send(response(1), 1)
return [None, response(2)]""")
        with Worker(source) as worker:
            (response,) = worker.execute({"IN": [b""]}, {"IN": [b""]}).responses()
            self.assertEqual((response.key, worker.receive(worker.events).id), (2, 1))

    def test_dropped_senders_end_their_request(self):
        with Worker(body("return None"), decoupled=True) as worker:
            worker.execute({"IN": [b""]})
            message = worker.receive(worker.events)
            self.assertEqual((message.id, message.flags), (1, FINAL | EMPTY))
        with Worker(body("requests[0].get_response_sender()")) as worker:
            worker.execute({"IN": [b""]})
            message = worker.receive(worker.events)
            self.assertEqual(message.flags, FINAL)
            self.assertIn("dropped the request without a response", message.response().error)

    def test_decoupled_must_return_none(self):
        with Worker(body("return []"), decoupled=True) as worker:
            text = "Python model 'm_0' is using the decoupled mode and the execute function must return None."
            self.assertEqual(worker.execute({"IN": [b""]}).flags, RAISED)
            failed = worker.receive(worker.events)
            self.assertEqual((failed.id, failed.flags), (1, FINAL))
            self.assertTrue(failed.response().error.endswith(text))

    def test_an_error_follows_the_responses_before_it(self):
        source = body(SENDING + """
senders = [r.get_response_sender() for r in requests]
senders[0].send(response(0))
senders[1].send(response(1), 1)
raise ValueError("at last")""")
        with Worker(source, decoupled=True) as worker:
            executed = worker.execute({"IN": [b""]}, {"IN": [b""]})
            self.assertEqual((executed.flags, executed.count), (RAISED, 0))
            seen = [(m.id, m.flags, m.response()) for m in (worker.receive(worker.events) for _ in range(3))]
            self.assertEqual([(key, flags) for key, flags, _ in seen], [(1, 0), (2, FINAL), (1, FINAL)])
            self.assertIn("Failed to process the request(s) for model 'm_0', message: ValueError: at last", seen[2][2].error)

    def test_an_error_that_no_client_gets_is_logged(self):
        source = body(SENDING + "requests[0].get_response_sender().send(response(1), 1)\nraise ValueError('too late')")
        with Worker(source, decoupled=True) as worker:
            self.assertEqual(worker.execute({"IN": [b""]}).flags, RAISED)
            self.assertEqual(worker.receive(worker.events).flags, FINAL)
            line = worker.receive(worker.events)
            self.assertEqual((line.kind, line.id), (23, 2))
            self.assertIn("ValueError: too late", line.json["message"])
            self.assertIn("Traceback (most recent call last):", line.json["message"])

    def test_an_error_of_a_coroutine_that_no_client_gets_is_logged(self):
        source = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        requests[0].get_response_sender().send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        raise ValueError("too late")
"""
        with Worker(source, decoupled=True) as worker:
            self.assertEqual(worker.execute({"IN": [b""]}).flags, 0)
            self.assertEqual(worker.receive(worker.events).flags, FINAL | EMPTY)
            line = worker.receive(worker.events)
            self.assertEqual((line.kind, line.id), (23, 2))
            self.assertIn("ValueError: too late", line.json["message"])

    def test_an_error_of_a_plain_model_with_senders(self):
        source = body(SENDING + """
requests[0].get_response_sender().send(response(1))
self.kept = requests[1].get_response_sender()
raise ValueError("no more")""")
        with Worker(source) as worker:
            (left,) = worker.execute({"IN": [b""]}, {"IN": [b""]}, {"IN": [b""]}).responses()
            self.assertEqual(left.key, 3)
            first, end, second = (worker.receive(worker.events) for _ in range(3))
            self.assertEqual([(m.id, m.flags) for m in (first, end, second)], [(1, 0), (1, FINAL | EMPTY), (2, FINAL)])
            failed = second.response()
            for error in (left.error, failed.error):
                self.assertIn("Failed to process the request(s) for model 'm_0', message: ValueError: no more", error)
            # One of them has the traceback, so that it is logged once.
            self.assertIn("ValueError: no more", failed.traceback)
            self.assertEqual(left.traceback, "")

    def test_coroutines_run_concurrently_and_fail_separately(self):
        source = """
import asyncio
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    waiting = []
    async def execute(self, requests):
        sender = requests[0].get_response_sender()
        if requests[0].request_id() == "bad":
            raise ValueError("alone")
        self.waiting.append(requests[0].request_id())
        while len(self.waiting) < 2:
            await asyncio.sleep(0.001)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([1]))]), 1)
"""
        with Worker(source, decoupled=True) as worker:
            worker.execute({"IN": [b""]}, id="a")
            worker.execute({"IN": [b""]}, id="bad")
            failed = worker.receive(worker.events).response()
            self.assertIn("Failed to process the request(s) for model 'm_0', message: ValueError: alone", failed.error)
            self.assertIn("ValueError: alone", failed.traceback)
            worker.execute({"IN": [b""]}, id="b")
            self.assertEqual([worker.receive(worker.events).flags for _ in range(2)], [FINAL, FINAL])

    def test_failed_execution_closes_senders(self):
        source = body("""
self.sender = requests[0].get_response_sender()
raise RuntimeError("first")""")
        with Worker(source, decoupled=True) as worker:
            self.assertEqual(worker.execute({"IN": [b""]}).flags, RAISED)
            self.assertIn("RuntimeError: first", worker.receive(worker.events).response().error)
            worker.events.setblocking(False)
            self.assertRaises(BlockingIOError, worker.receive, worker.events)


class OtherModels(unittest.TestCase):
    CALL = """
call = pb_utils.InferenceRequest(request_id="r", model_name="other", inputs=[requests[0].inputs()[0]],
    requested_output_names=["O"], correlation_id="seq", flags=1, timeout=5, parameters={"p": 1})
"""

    def test_exec(self):
        source = body(self.CALL + """
answer = call.exec()
if answer.has_error():
    raise pb_utils.TritonModelException(answer.error().message())
if answer.parameters() != "{}":
    raise ValueError("no JSON: " + answer.parameters())
out = pb_utils.get_output_tensor_by_name(answer, "O").as_numpy()
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)])]""")
        seen = []

        def answer(worker, message):
            fields, texts, names, inputs = message.request()
            seen.append((message.flags, texts, names, fields[1:6], inputs["IN"].array.sum()))
            worker.inferred(message.id, {"O": inputs["IN"].array * 2}, stored=len(seen) == 2)

        with Worker(source) as worker:
            worker.answering(answer)
            for stored in (False, True):
                array = np.arange(20000 if stored else 3)
                got = worker.one({"IN": array}, stored=stored).outputs["OUT"].array
                np.testing.assert_array_equal(got, array * 2)
            self.assertEqual(seen[0], (0, ["r", "seq", "other", "", '{"p": 1}'], ["O"], (0, 5, -1, 0, 1), 3))

    def test_errors_of_other_models(self):
        source = body(self.CALL + "answer = call.exec()\nraise RuntimeError(str(answer.error().code()) + answer.error().message())")
        with Worker(source) as worker:
            worker.answering(lambda w, m: w.inferred(m.id, error="no such model"))
            self.assertIn("no such model", worker.execute({"IN": [b"a"]}).failure[0])

    def test_not_in_initialize(self):
        source = HEAD + """
    def initialize(self, args):
        t = pb_utils.Tensor("IN", np.zeros(1))
        pb_utils.InferenceRequest(model_name="x", inputs=[t], requested_output_names=[]).exec()
"""
        with Worker(source) as worker:
            self.assertTrue(worker.ready.flags & ERROR)
            text = "TritonModelException: BLS is only supported during the 'execute' function.\n\nAt:\n"
            self.assertTrue(worker.ready.failure[0].startswith(text), worker.ready.failure)

    def test_streams(self):
        source = body(self.CALL + """
stream = call.exec(decoupled=True)
sizes = [len(r.output_tensors()) for r in stream]
again = [len(r.output_tensors()) for r in stream]
assert sizes == again, (sizes, again)
stream.cancel()
other = call.exec(decoupled=True)
other.cancel()
assert next(other).error().message() == "stopped"
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(sizes))])]""")
        calls = []

        def answer(worker, message):
            if message.kind == 22:
                self.assertEqual(message.id, calls[1])
                worker.inferred(message.id, error="stopped")
                return
            self.assertEqual(message.flags, DECOUPLED)
            calls.append(message.id)
            if len(calls) == 1:
                for flags in (0, 0):
                    worker.inferred(message.id, {"O": np.zeros(2)}, flags=flags)
                worker.inferred(message.id)

        with Worker(source) as worker:
            worker.answering(answer)
            np.testing.assert_array_equal(worker.one({"IN": [b"a"]}).outputs["OUT"].array, [1, 1, 0])

    def test_many_threads_and_coroutines_wait_at_once(self):
        source = """
import asyncio
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

def call(n):
    return pb_utils.InferenceRequest(model_name="x", requested_output_names=["O"],
        inputs=[pb_utils.Tensor("IN", np.array([n]))])

class TritonPythonModel:
    def execute(self, requests):
        if not requests[0].request_id():
            return self.several(requests)
        got = [0] * 32
        def work(n):
            for _ in range(20):
                got[n] += int(call(n).exec().output_tensors()[0].as_numpy()[0])
        threads = [threading.Thread(target=work, args=(n,)) for n in range(32)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(got))])]

    async def several(self, requests):
        answers = await asyncio.gather(*(call(n).async_exec() for n in range(100)))
        streams = await asyncio.gather(*(call(n).async_exec(decoupled=True) for n in range(3)))
        assert [len(list(s)) for s in streams] == [1] * 3
        got = [int(a.output_tensors()[0].as_numpy()[0]) for a in answers]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(got))])]
"""
        with Worker(source) as worker:
            worker.answering(lambda w, m: w.inferred(m.id, {"O": m.request()[3]["IN"].array + 1}))
            for _ in range(2):
                got = worker.one({"IN": [b"a"]}, id="threads").outputs["OUT"].array
                np.testing.assert_array_equal(got, [20 * (n + 1) for n in range(32)])
                got = worker.one({"IN": [b"a"]}).outputs["OUT"].array
                np.testing.assert_array_equal(got, np.arange(1, 101))


class Server(unittest.TestCase):
    def test_metrics(self):
        source = body("""
family = pb_utils.MetricFamily("name", "text", pb_utils.MetricFamily.COUNTER)
metric = family.Metric({"a": "b"})
metric.increment(np.float32(2))
metric.increment(np.array(0.5))
metric.increment(float("inf"))
assert metric.value() == float("inf")
for bad in ("2", b"2", None, [2], 2j):
    try:
        metric.increment(bad)
    except TypeError as error:
        assert str(error).startswith("increment(): incompatible function arguments."), error
    else:
        raise AssertionError(bad)
del metric
histogram = pb_utils.MetricFamily(name="h", description="", kind=pb_utils.MetricFamily.HISTOGRAM)
for bad, text in ((lambda: histogram.Metric(), "Missing required buckets."),
                  (lambda: histogram.Metric(buckets=(1,)), "Buckets must be a list."),
                  (lambda: family.Metric(buckets=[1]), "Unexpected buckets found."),
                  (lambda: family.Metric(labels=[1]), "Labels must be a dictionary.")):
    try:
        bad()
    except pb_utils.TritonModelException as error:
        assert str(error) == "Failed to create metric. " + text
observed = histogram.Metric(buckets=[1, 2.5])
observed.observe(1.5)
del histogram
try:
    observed.observe(1)
except pb_utils.TritonModelException as error:
    assert str(error).startswith("Failed to observe metric value: Invalid metric operation"), error
return [pb_utils.InferenceResponse([])]""")
        results = {"metric_family": 1, "metric": 2, "metric_increment": None, "metric_value": "inf", "metric_observe": None}
        calls, answer = results_of(results)
        dropped = threading.Event()

        def answer_and_record(worker, message):
            answer(worker, message)
            if calls[-1]["op"] == "drop_family":
                dropped.set()

        with Worker(source) as worker:
            worker.answering(answer_and_record)
            worker.one({"IN": [b"a"]})
            self.assertTrue(dropped.wait(30))
            self.assertEqual(
                [fields["op"] for fields in calls[:10]],
                ["metric_family", "metric", "metric_increment", "metric_increment", "metric_increment", "metric_value",
                 "metric_family", "metric", "metric_observe", "drop_family"],
            )
            self.assertEqual(calls[0], {"op": "metric_family", "name": "name", "description": "text", "kind": "counter"})
            self.assertEqual([calls[n]["value"] for n in (2, 3, 4)], ["2.0", "0.5", "inf"])
            self.assertEqual(calls[7], {"op": "metric", "family": 1, "labels": {}, "buckets": ["1.0", "2.5"]})

    def test_control_and_cancellation(self):
        source = body("""
assert pb_utils.is_model_ready("a") is True
assert requests[0].is_cancelled() and not requests[0].get_response_sender().is_cancelled() is None
pb_utils.unload_model("a", unload_dependents=True)
try:
    pb_utils.load_model("a", config="{}", files={"file:1/model.onnx": b"\\xff"})
except pb_utils.TritonModelException as error:
    return [pb_utils.InferenceResponse([], pb_utils.TritonError(str(error)))]""")
        calls, answer = results_of(
            {"is_model_ready": True, "is_cancelled": True, "unload_model": None, "load_model": ValueError("cannot")}
        )
        with Worker(source) as worker:
            worker.answering(answer)
            text = "Failed to load model: Failed to process the request for model 'm_0', message: cannot"
            self.assertEqual(worker.one({"IN": [b"a"]}).error, text)
            self.assertEqual(calls[0], {"op": "is_model_ready", "name": "a", "version": ""})
            self.assertEqual(calls[1], {"op": "is_cancelled", "key": 1})
            self.assertEqual(calls[-1]["files"], {"file:1/model.onnx": "/w=="})

    def test_log_and_levels(self):
        source = body("""
log = pb_utils.Logger
log.log("one")
log.log("two", log.WARNING)
log.log_error("three")
log.log_verbose("not asked for")
log.log_info("four")
return [pb_utils.InferenceResponse([])]""")
        with Worker(source) as worker:
            worker.one({"IN": [b"a"]})
            got = [worker.receive(worker.events) for _ in range(4)]
            self.assertEqual([m.id for m in got], [0, 1, 2, 0])
            self.assertEqual([m.json["message"] for m in got], ["one", "two", "three", "four"])
            self.assertTrue(got[0].json["file"].endswith("model.py"))
            self.assertEqual(got[0].json["line"], 7)

    def test_is_ready_while_executing(self):
        source = HEAD + """
    import threading
    event = threading.Event()
    def is_ready(self):
        self.event.set()
        return False
    def execute(self, requests):
        assert self.event.wait(20)
        return [pb_utils.InferenceResponse([])]
"""
        with Worker(source) as worker:
            self.assertEqual(worker.ready.json, {"has_is_ready": True})
            worker.start({"IN": [b"a"]})
            worker.send(worker.events, 43, ident=9)
            answer = worker.receive(worker.events)
            self.assertEqual((answer.kind, answer.id, answer.count, answer.flags), (27, 9, 0, 0))
            self.assertEqual(worker.receive().flags, 0)

    def test_is_ready_of_other_kinds(self):
        for line, flags, count in (("async def is_ready(self): return True", 0, 1), ("def is_ready(self): return 1", ERROR, 0),
                                   ("def is_ready(self): raise ValueError('x')", ERROR, 0), ("pass", 0, 1)):
            with Worker(HEAD + "    %s\n" % line) as worker:
                worker.send(worker.events, 43, ident=9)
                answer = worker.receive(worker.events)
                self.assertEqual((answer.flags, answer.count), (flags, count))


if __name__ == "__main__":
    unittest.main()
