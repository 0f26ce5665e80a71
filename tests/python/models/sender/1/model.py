"""Not decoupled, answers with response senders."""

import json

import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def said(value):
    return pb.InferenceResponse([pb.Tensor("SAID", np.frombuffer(json.dumps(value).encode(), np.uint8))])


def outcome(call, *args, **more):
    try:
        return call(*args, **more)
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def case_one(sender):
    sender.send(said("sent"), flags=FINAL)


def case_one_then_final(sender):
    sender.send(said("sent"))
    sender.send(flags=FINAL)


def case_only_final(sender):
    sender.send(flags=FINAL)


def case_two(sender):
    first = outcome(sender.send, said("first"))
    second = outcome(sender.send, said("second"))
    LEFT["two"] = [first, second, outcome(sender.send, flags=FINAL)]


def case_error(sender):
    sender.send(pb.InferenceResponse(error=pb.TritonError("told by the sender")), flags=FINAL)


def case_sent_and_returned(sender):
    sender.send(said("sent"), flags=FINAL)
    return [said("returned")]


def case_left(sender):
    return [said(LEFT)]


LEFT = {}


class TritonPythonModel:
    def execute(self, requests):
        assert len(requests) == 1
        case = bytes(pb.get_input_tensor_by_name(requests[0], "CASE").as_numpy()).decode()
        return globals()["case_" + case](requests[0].get_response_sender())
