"""What processes that a model starts can ask of the server."""

import threading
import unittest

import numpy as np

from server import DECOUPLED, TIMEOUT, Worker

HEAD = """
import json, multiprocessing, os, sys, threading
import numpy as np
import triton_python_backend_utils as pb_utils

def call(n, decoupled=False, model="x"):
    inputs = [pb_utils.Tensor("IN", np.array([n])), pb_utils.Tensor("TEXT", np.array([b"a", "\\u00fc"], dtype=object))]
    request = pb_utils.InferenceRequest(model_name=model, requested_output_names=["O"], inputs=inputs, request_id=b"inner",
        correlation_id="chain", parameters={"a": 1})
    answer = request.exec(decoupled=decoupled)
    return [shown(r) for r in answer] if decoupled else shown(answer)

def shown(response):
    if response.has_error():
        return [response.error().message(), int(response.error().code())]
    return [t.as_numpy().tolist() for t in response.output_tensors()]

def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)

def in_child(function, *args, how="fork"):
    context = multiprocessing.get_context(how)
    queue = context.Queue()
    child = context.Process(target=put, args=(queue, function, args))
    child.start()
    got = queue.get(timeout=20)
    child.join()
    return got

def put(queue, function, args):
    queue.put(outcome(function, *args))

class TritonPythonModel:
    def execute(self, requests):
        answer = getattr(self, requests[0].request_id())(requests[0])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([json.dumps(answer).encode()], dtype=object))])]
"""


def answer(worker, message):
    """Plays the server: doubles IN, answers calls, and says what it was told."""
    if message.kind == 21:
        inputs = message.request()[3]
        number = inputs["IN"].array
        if number[0] < 0:
            worker.inferred(message.id, error="negative")
        elif message.flags & DECOUPLED:
            for n in range(int(number[0])):
                worker.inferred(message.id, {"O": np.array([n])}, flags=0)
            worker.inferred(message.id, {"O": np.array([99])})
        else:
            assert inputs["TEXT"].texts == [b"a", "\u00fc".encode()], inputs["TEXT"].texts
            worker.inferred(message.id, {"O": number * 2})
    elif message.kind == 24:
        fields = message.json
        worker.call_result(message.id, *((None, "no such metric") if fields.get("metric") == 5 else (True,)))


class Children(unittest.TestCase):
    def ask(self, source, *names, answering=answer):
        """What the model's methods answer, one after the other."""
        import json

        with Worker(HEAD + source) as worker:
            worker.answering(answering)
            return [json.loads(worker.one({"IN": [b"a"]}, id=name).outputs["OUT"].texts[0]) for name in names]

    def test_calls_from_a_forked_process(self):
        source = """
    def plain(self, request):
        return [in_child(call, n) for n in (1, 2, -1)]
    def stream(self, request):
        return in_child(call, 3, True)
    def after(self, request):
        return call(7)
"""
        said = self.ask(source, "plain", "stream", "after", "plain")
        self.assertEqual(said[0], [[[2]], [[4]], ["negative", 1]])
        self.assertEqual(said[1], [[[0]], [[1]], [[2]], [[99]]])
        self.assertEqual(said[2:], [[[14]], said[0]])

    def test_calls_of_many_processes_and_threads_at_once(self):
        source = """
    def pool(self, request):
        with multiprocessing.get_context("fork").Pool(4) as pool:
            return pool.map(call, range(40))
    def threads(self, request):
        return in_child(in_threads, 8)

def in_threads(count):
    got = [None] * count
    def work(n):
        got[n] = [call(n) for _ in range(10)][-1]
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return got
"""
        said = self.ask(source, "pool", "threads")
        self.assertEqual(said[0], [[[2 * n]] for n in range(40)])
        self.assertEqual(said[1], [[[2 * n]] for n in range(8)])

    def test_coroutines_of_a_forked_process(self):
        source = """
    def gather(self, request):
        return in_child(gathered)

def gathered():
    import asyncio
    async def all():
        make = lambda n: pb_utils.InferenceRequest(model_name="x", requested_output_names=["O"], inputs=[
            pb_utils.Tensor("IN", np.array([n])), pb_utils.Tensor("TEXT", np.array([b"a", "\\u00fc"], dtype=object))])
        return [shown(r) for r in await asyncio.gather(*(make(n).async_exec() for n in range(5)))]
    return asyncio.run(all())
"""
        self.assertEqual(self.ask(source, "gather")[0], [[[2 * n]] for n in range(5)])

    def test_what_else_a_forked_process_can_ask(self):
        source = """
    def ask(self, request):
        return in_child(asked, request)
    def grandchild(self, request):
        return in_child(lambda: (pid := os.fork()) and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or
                        (pid or os._exit(41 if call(2) == [[4]] else 42)))

def asked(request):
    pb_utils.Logger.log_info("said by a child")
    family = pb_utils.MetricFamily("own", "x", pb_utils.MetricFamily.COUNTER)
    return [pb_utils.is_model_ready("y"), request.is_cancelled(), outcome(family.Metric().increment, 1)]
"""
        told = []

        def answer_and_record(worker, message):
            told.append(message.json if message.kind in (23, 24, 25) else message.kind)
            answer(worker, message)

        said = self.ask(source, "ask", "grandchild", answering=answer_and_record)
        self.assertEqual(said, [[True, True, None], 41])
        self.assertIn("said by a child", [fields["message"] for fields in told if isinstance(fields, dict) and "message" in fields])

    def test_the_end_of_a_child_ends_nothing_of_the_model(self):
        """It has copies of the model's objects, and drops them as it ends."""
        source = """
    def drop(self, request):
        self.family = pb_utils.MetricFamily("own", "x", pb_utils.MetricFamily.COUNTER)
        def end():
            del self.family
            import gc
            gc.collect()
            return pb_utils.is_model_ready("y")
        return in_child(end)
"""
        told = []

        def answer_and_record(worker, message):
            told.append(message.json["op"] if message.kind in (24, 25) else message.kind)
            answer(worker, message)

        self.assertEqual(self.ask(source, "drop", answering=answer_and_record), [True])
        self.assertEqual(told[:2], ["metric_family", "is_model_ready"])

    def test_what_a_child_cannot_do_is_an_exception(self):
        source = """
    def send(self, request):
        sender = request.get_response_sender()
        return in_child(lambda: sender.send(pb_utils.InferenceResponse([])))
    def spawn(self, request):
        return in_child(call, 1, how="spawn")
    def forkserver(self, request):
        return in_child(pb_utils.is_model_ready, "x", how="forkserver")
"""
        sent, spawned, served = self.ask(source, "send", "spawn", "forkserver")
        self.assertEqual(sent, "TritonModelException: Unable to send response. The process that executes the model sends its responses.")
        text = "TritonModelException: Cannot communicate with parent service: this process is neither that of a model instance"
        self.assertTrue(spawned.startswith(text), spawned)
        self.assertIn("Cannot communicate with parent service: this process is neither", served)

    def test_a_child_that_outlives_its_question_holds_nothing_up(self):
        source = """
    def leave(self, request):
        read, write = os.pipe()
        if os.fork() == 0:
            iterator = pb_utils.InferenceRequest(model_name="x", requested_output_names=[], inputs=[
                pb_utils.Tensor("IN", np.array([3]))]).exec(decoupled=True)
            next(iterator)
            os.write(write, b"x")
            os._exit(0)
        os.read(read, 1)
        os.wait()
        return call(4)
"""
        cancelled = threading.Event()

        def answer_in_part(worker, message):
            if message.kind == 22:
                cancelled.set()
            elif message.kind == 21 and message.flags & DECOUPLED:
                worker.inferred(message.id, {"O": np.array([0])}, flags=0)
            else:
                answer(worker, message)

        self.assertEqual(self.ask(source, "leave", "leave", answering=answer_in_part), [[[8]], [[8]]])
        self.assertTrue(cancelled.wait(TIMEOUT), "the stream goes on for nobody")

    def test_too_many_threads_of_children(self):
        source = """
    def crowd(self, request):
        return in_child(crowded)

def crowded():
    import galatea_worker.server as server
    links = []
    def connect():
        links.append(server.session.worker._link())
        return links[-1].ask("call", "is_model_ready", {"name": "y", "version": ""})
    told = []
    for _ in range(300):
        thread = threading.Thread(target=lambda: told.append(outcome(connect)))
        thread.start()
        thread.join()
    return [sum(t is True for t in told), [t for t in told if t is not True][0], outcome(links[0].ask, "call", "is_model_ready", {"name": "y", "version": ""})]
"""
        taken, refused, still = self.ask(source, "crowd")[0]
        self.assertEqual((taken, still), (256, True))
        self.assertIn("or serves 256 threads of such processes already", refused)


if __name__ == "__main__":
    unittest.main()
