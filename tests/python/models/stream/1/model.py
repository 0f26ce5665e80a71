"""Decoupled: CASE names what is sent. SAID carries what the model itself saw."""

import json
import threading

import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL
THREADS = []


def said(value):
    return pb.InferenceResponse([pb.Tensor("SAID", np.frombuffer(json.dumps(value).encode(), np.uint8))])


def outcome(call, *args, **more):
    try:
        return call(*args, **more)
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def case_one_final(request, sender):
    sender.send(said("only"), flags=FINAL)


def case_three(request, sender):
    for i in range(3):
        sender.send(said(i))
    sender.send(flags=FINAL)


def case_three_final_with_last(request, sender):
    for i in range(3):
        sender.send(said(i), FINAL if i == 2 else 0)


def case_none(request, sender):
    sender.send(flags=FINAL)


def case_hundred(request, sender):
    for i in range(100):
        sender.send(said(i))
    sender.send(flags=FINAL)


def case_big(request, sender):
    for i in range(3):
        sender.send(pb.InferenceResponse([pb.Tensor("SAID", np.full(3_000_000, ord("0") + i, np.uint8))]))
    sender.send(flags=FINAL)


def case_thread(request, sender):
    def later():
        for i in range(5):
            sender.send(said(i))
        sender.send(flags=FINAL)

    THREADS.append(threading.Thread(target=later))
    return "start"


def case_after_execute(request, sender):
    def later():
        while not RETURNED.wait(5):
            pass
        sender.send(said(request.request_id()))
        sender.send(said(request.inputs()[0].name()))
        sender.send(flags=FINAL)

    RETURNED.clear()
    THREADS.append(threading.Thread(target=later))
    return "start"


def case_error(request, sender):
    sender.send(pb.InferenceResponse(error=pb.TritonError("only an error")), flags=FINAL)


def case_error_between(request, sender):
    sender.send(said(1))
    sender.send(pb.InferenceResponse(error=pb.TritonError("between", pb.TritonError.NOT_FOUND)))
    sender.send(said(2))
    sender.send(flags=FINAL)


def case_error_then_final(request, sender):
    sender.send(pb.InferenceResponse(error=pb.TritonError("first")))
    sender.send(flags=FINAL)


def case_after_final(request, sender):
    sender.send(said("good"), flags=FINAL)
    LEFT["after_final"] = [outcome(sender.send, said("late")), outcome(sender.send, flags=FINAL)]


def case_wrong_calls(request, sender):
    seen = {
        "nothing": outcome(sender.send), "none": outcome(sender.send, None), "none_0": outcome(sender.send, None, 0),
        "text": outcome(sender.send, "text"), "flag": outcome(sender.send, said(1), 8), "tensor": outcome(sender.send, pb.Tensor("SAID", np.zeros(1, np.uint8))),
        "list": outcome(sender.send, [said(1)]),
    }
    sender.send(said(seen), flags=FINAL)


def case_keywords(request, sender):
    sender.send(response=said("by name"), flags=FINAL)


def case_two_senders(request, sender):
    other = request.get_response_sender()
    sender.send(said(other is sender))
    other.send(said("by the other"))
    sender.send(flags=FINAL)


def case_cancelled(request, sender):
    sender.send(said([sender.is_cancelled(), request.is_cancelled()]), flags=FINAL)


def case_until_cancelled(request, sender):
    def later():
        sender.send(said("waiting"))
        while not sender.is_cancelled():
            pass
        LEFT["until_cancelled"] = [sender.is_cancelled(), request.is_cancelled()]
        sender.send(flags=FINAL)

    THREADS.append(threading.Thread(target=later))
    return "start"


def case_left(request, sender):
    sender.send(said(LEFT), flags=FINAL)


def case_wrong_name(request, sender):
    sender.send(pb.InferenceResponse([pb.Tensor("OTHER", np.zeros(1, np.uint8))]), flags=FINAL)


def case_wrong_type(request, sender):
    sender.send(pb.InferenceResponse([pb.Tensor("SAID", np.zeros(1, np.float32))]), flags=FINAL)


def case_no_outputs(request, sender):
    sender.send(pb.InferenceResponse([]))
    sender.send(pb.InferenceResponse([]), flags=FINAL)


def case_raises_before(request, sender):
    raise ValueError("before anything was sent")


def case_raises_after_one(request, sender):
    sender.send(said("sent"))
    raise ValueError("after one")


def case_raises_after_final(request, sender):
    sender.send(said("sent"), flags=FINAL)
    raise ValueError("after the end")


def case_returns_something(request, sender):
    sender.send(said("sent"), flags=FINAL)
    return "return"


def case_send_from_many_threads(request, sender):
    def later():
        workers = [threading.Thread(target=lambda i=i: sender.send(said(i))) for i in range(10)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        sender.send(flags=FINAL)

    THREADS.append(threading.Thread(target=later))
    return "start"


def case_calls_while_streaming(request, sender):
    for i in range(3):
        inner = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[pb.Tensor("IN", np.array([i], np.int32))]).exec()
        sender.send(said(pb.get_output_tensor_by_name(inner, "OUT").as_numpy().tolist()))
    sender.send(flags=FINAL)


LEFT = {}
RETURNED = threading.Event()


class TritonPythonModel:
    def execute(self, requests):
        result = None
        for request in requests:
            case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
            answer = globals()["case_" + case](request, request.get_response_sender())
            if answer == "start":
                THREADS[-1].start()
            if answer == "return":
                result = [said("returned")]
        RETURNED.set()
        return result

    def finalize(self):
        for thread in THREADS:
            thread.join()
