"""A model that tells what it sees of sequences, and requests of sequences for it."""

import numpy as np

import repositories
from test_streams import message, play

# Answers each request with a line about it: the rows of its batch by READY, its own row, its controls, and the sum of the
# inputs that it has seen in this row since the last START.
RECORDER = '''
import json
import numpy as np
import triton_python_backend_utils as pb

def first(request, name):
    tensor = pb.get_input_tensor_by_name(request, name)
    if tensor is None:
        return None
    value = tensor.as_numpy().reshape(-1)[0]
    return value.decode() if isinstance(value, bytes) else value.item()

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}
        self.config = json.loads(args["model_config"])

    def execute(self, requests):
        ready = [first(request, "READY") for request in requests]
        responses = []
        for row, request in enumerate(requests):
            start, end, corrid = (first(request, name) for name in ("START", "END", "CORRID"))
            value = first(request, "INPUT")
            key = corrid if "oldest" in self.config["sequence_batching"] else row
            if start:
                self.sums[key] = 0
            self.sums[key] = self.sums.get(key, 0) + value
            line = (f"rows={ready} row={row} start={start} ready={ready[row]} end={end} corrid={corrid} sum={self.sums[key]} "
                    f"id={request.request_id()} correlation={request.correlation_id()} flags={request.flags()} "
                    f"shape={pb.get_input_tensor_by_name(request, 'START').as_numpy().shape}")
            output = pb.Tensor("OUTPUT", np.array([line.encode()], np.object_).reshape([1] * DIMS))
            responses.append(pb.InferenceResponse([output]))
        return responses
'''


def controls(data_type="int32", corrid="TYPE_UINT64"):
    flags = [("START", "CONTROL_SEQUENCE_START"), ("READY", "CONTROL_SEQUENCE_READY"), ("END", "CONTROL_SEQUENCE_END")]
    values = {"int32": "int32_false_true: [ 0, 1 ]", "fp32": "fp32_false_true: [ 0, 1 ]", "bool": "bool_false_true: [ false, true ]"}
    lines = [f'  control_input {{ name: "{name}" control {{ kind: {kind} {values[data_type]} }} }}\n' for name, kind in flags]
    if corrid:
        lines.append(f'  control_input {{ name: "CORRID" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: {corrid} }} }}\n')
    return "".join(lines)


def config(strategy="direct { }", max_batch_size=4, instances=1, idle=60_000_000, more="", **kinds):
    return (f"max_batch_size: {max_batch_size}\n"
            + repositories.tensor("input", "INPUT", "TYPE_INT32", "1")
            + repositories.tensor("output", "OUTPUT", "TYPE_STRING", "1")
            + f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n"
            + f"sequence_batching {{\n  max_sequence_idle_microseconds: {idle}\n{controls(**kinds)}  {strategy}\n}}\n" + more)


def write(repository, target, name="recorder", dies=False, **settings):
    """A repository with the model; one that `dies` ends its process when it reads 666."""
    dims = 2 if settings.get("max_batch_size", 4) else 1
    code = RECORDER.replace("DIMS", str(dims))
    if dies:
        code = code.replace("            if start:", "            if value == 666:\n                import os\n                os._exit(1)\n            if start:")
    code = {"1/model.py": code}
    repositories.write_model(repository, name, target, "python", config(**settings), code)


def step(sequence, value, flags="", model="recorder", batched=True, request_id=None, **fields):
    """A request of a sequence: `s` in `flags` begins it, `e` ends it."""
    shape = [1, 1] if batched else [1]
    name = request_id if request_id is not None else f"{sequence}:{value}"
    request = message(model, {"INPUT": np.full(shape, value, np.int32)}, name, **fields)
    if isinstance(sequence, int):
        request.parameters["sequence_id"].int64_param = sequence
    else:
        request.parameters["sequence_id"].string_param = sequence
    request.parameters["sequence_start"].bool_param = "s" in flags
    request.parameters["sequence_end"].bool_param = "e" in flags
    return request


def text(reply):
    """What a reply says: an error, or the line of the model."""
    error, outputs = reply[0], reply[-1]
    return f"error: {error}" if error else outputs[0][4:].decode()


def told(server, requests, in_order=True):
    """What the replies to a stream of requests say."""
    replies, code, details = play(server, requests)
    lines = [text(reply) for reply in replies] + ([] if code.name == "OK" else [f"{code.name}: {details}"])
    return lines if in_order else sorted(lines)


# Counts up to the input of each request, a number in each execution, and tells how many were counted there.
COUNTER = '''
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.left = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            start = pb.get_input_tensor_by_name(request, "START").as_numpy().reshape(-1)[0]
            corrid = pb.get_input_tensor_by_name(request, "CORRID").as_numpy().reshape(-1)[0]
            if pb.get_input_tensor_by_name(request, "READY").as_numpy().reshape(-1)[0] == 0:
                responses.append(None)
                continue
            if start:
                self.left[corrid] = pb.get_input_tensor_by_name(request, "INPUT").as_numpy().reshape(-1)[0]
            self.left[corrid] -= 1
            left = self.left[corrid]
            line = f"start={start} left={left}".encode()
            response = pb.InferenceResponse([pb.Tensor("OUTPUT", np.array([line], np.object_).reshape([1] * DIMS))])
            if left > 0:
                request.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            if DECOUPLED:
                request.get_response_sender().send(response, 0 if left > 0 else pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            responses.append(None if left > 0 else response)
        return None if DECOUPLED else responses
'''


def write_counter(repository, target, name="counter", decoupled=True, **settings):
    """A repository with the model, which is iterative unless `more` says something else of its sequences."""
    code = COUNTER.replace("DIMS", "2").replace("DECOUPLED", str(decoupled))
    more = "model_transaction_policy { decoupled: true }\n" if decoupled else ""
    settings.setdefault("strategy", "iterative_sequence: true oldest { max_candidate_sequences: 4 }")
    repositories.write_model(repository, name, target, "python", config(more=more, **settings), {"1/model.py": code})
