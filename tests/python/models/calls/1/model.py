"""A model that calls models."""

import json

import numpy as np
import triton_python_backend_utils as pb


def outcome(call, *args):
    try:
        return call(*args)
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def ask(model, values, outputs=("OUT",), decoupled=False, **more):
    tensor = pb.Tensor("IN", np.array(values, np.int32))
    request = pb.InferenceRequest(model_name=model, requested_output_names=list(outputs), inputs=[tensor], **more)
    return request.exec(decoupled=True) if decoupled else request.exec()


def told(response):
    if response.has_error():
        return {"error": response.error().message(), "code": int(response.error().code())}
    return {t.name(): [v.decode() if isinstance(v, bytes) else v for v in t.as_numpy().ravel().tolist()] for t in response.output_tensors()}


def seen(**more):
    return json.loads(pb.get_output_tensor_by_name(ask("add", [1], ("SEEN",), **more), "SEEN").as_numpy()[0])


def case_exec():
    return told(ask("add", [1, 2, 3]))


def case_all_outputs_when_none_are_named():
    return sorted(told(ask("add", [1], ())))


def case_outputs_in_order():
    return [t.name() for t in ask("add", [1], ("SEEN", "OUT")).output_tensors()]


def case_many():
    return [told(ask("add", [i]))["OUT"][0] for i in range(50)]


def case_big():
    values = np.arange(1_000_000, dtype=np.int32)
    tensor = pb.Tensor("IN", values)
    response = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[tensor]).exec()
    return bool((pb.get_output_tensor_by_name(response, "OUT").as_numpy() == values + 1).all())


def case_size_0():
    return told(ask("add", []))


def case_output_writable():
    array = pb.get_output_tensor_by_name(ask("add", [1, 2]), "OUT").as_numpy()
    return outcome(lambda: (array.__setitem__(0, 9), array.tolist())[1])


def case_output_after_response_is_gone():
    array = pb.get_output_tensor_by_name(ask("add", [41]), "OUT").as_numpy()
    for i in range(20):
        ask("add", [i])
    return array.tolist()


def case_model_error():
    return told(ask("add", [-1]))


def case_unknown_model():
    return told(ask("nobody", [1]))


def case_unknown_version():
    return told(ask("add", [1], model_version=7))


def case_version():
    return told(ask("add", [1], model_version=1))


def case_wrong_input():
    request = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[pb.Tensor("X", np.zeros(1, np.int32))])
    return told(request.exec())


def case_wrong_type():
    request = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[pb.Tensor("IN", np.zeros(1, np.float32))])
    return told(request.exec())


def case_wrong_shape():
    request = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[pb.Tensor("IN", np.zeros((1, 2), np.int32))])
    return told(request.exec())


def case_no_input():
    return told(pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[]).exec())


def case_wrong_output():
    return told(ask("add", [1], ("NOTHING",)))


def case_model_raises():
    tensor = pb.Tensor("CASE", np.frombuffer(b"raises_error", np.uint8))
    return told(pb.InferenceRequest(model_name="outputs", requested_output_names=["TEXT"], inputs=[tensor]).exec())


def case_failed_response():
    response = ask("add", [-1])
    return [response.has_error(), outcome(lambda: len(response.output_tensors())), outcome(lambda: pb.get_output_tensor_by_name(response, "OUT"))]


def case_good_response():
    response = ask("add", [1])
    return [response.has_error(), response.error(), type(response.output_tensors()).__name__, response.output_tensors()[0].is_cpu()]


def case_seen_defaults():
    return seen()


def case_seen_all():
    flags = pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
    return seen(request_id="inner", correlation_id=17, flags=flags, timeout=10_000_000, parameters={"a": 1, "b": "x", "c": True})


def case_seen_parameters_in_order():
    return list(seen(parameters={"z": 1, "a": "x", "m": True, "b": 2})["parameters"])


def case_seen_text_correlation():
    return seen(correlation_id="abc")


def case_seen_preferred_memory():
    return seen(preferred_memory=pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU, 0))


def case_seen_trace():
    import c_python_backend_utils as c

    return seen(trace=c.InferenceTrace())


def case_same_request_twice():
    request = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[pb.Tensor("IN", np.array([3], np.int32))])
    return [told(request.exec()), told(request.exec())]


def case_tensor_of_a_response_as_input():
    out = pb.get_output_tensor_by_name(ask("add", [1, 2]), "OUT")
    tensor = pb.Tensor.from_dlpack("IN", out)
    return told(pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[tensor]).exec())


def case_text():
    tensor = pb.Tensor("IN_STRING", np.array([b"a", "\u00fc", b""], dtype=object))
    response = pb.InferenceRequest(model_name="types", requested_output_names=["OUT_STRING"], inputs=[tensor]).exec()
    if response.has_error():
        return told(response)
    values = pb.get_output_tensor_by_name(response, "OUT_STRING").as_numpy()
    return [repr(v) for v in values], str(values.dtype)


def case_three_deep():
    return told(ask("middle", [2, 10]))


def case_three_deep_error():
    return told(ask("middle", [2, -10]))


def case_itself_through_another():
    return told(ask("middle", [0, 10]))


def case_decoupled():
    return [told(r) for r in ask("count", [3, 0], decoupled=True)]


def case_decoupled_final_with_last():
    return [told(r) for r in ask("count", [2, 1], decoupled=True)]


def case_decoupled_none():
    return [told(r) for r in ask("count", [0, 0], decoupled=True)]


def case_decoupled_error():
    return [told(r) for r in ask("count", [1, 2], decoupled=True)]


def case_decoupled_types():
    responses = ask("count", [2, 0], decoupled=True)
    kinds = [type(responses).__name__, hasattr(responses, "cancel"), hasattr(responses, "__next__")]
    return kinds + [len(list(responses)), len(list(responses))]


def case_decoupled_next():
    responses = ask("count", [1, 1], decoupled=True)
    first = told(next(responses))
    return [first, outcome(lambda: [told(r) for r in responses]), outcome(lambda: next(responses))]


def case_decoupled_left_behind():
    next(iter(ask("count", [50, 0], decoupled=True)))
    return told(ask("add", [1]))


def case_decoupled_two_at_once():
    a, b = ask("count", [3, 0], decoupled=True), ask("count", [3, 0], decoupled=True)
    return [[told(x), told(y)] for x, y in zip(a, b)]


def case_decoupled_of_a_plain_model():
    return [told(r) for r in ask("add", [1], decoupled=True)]


def case_plain_of_a_decoupled_model():
    return told(ask("count", [1, 0]))


def case_decoupled_unknown_model():
    return [told(r) for r in ask("nobody", [1], decoupled=True)]


def case_async_exec_outside():
    request = pb.InferenceRequest(model_name="add", requested_output_names=["OUT"], inputs=[pb.Tensor("IN", np.array([3], np.int32))])
    answer = request.async_exec()
    kind = type(answer).__name__
    import asyncio

    return [kind, told(asyncio.run(await_it(answer)))]


async def await_it(awaitable):
    return await awaitable


def case_from_a_thread():
    import threading

    found = []
    thread = threading.Thread(target=lambda: found.append(told(ask("add", [7]))))
    thread.start()
    thread.join()
    return found


def case_from_threads():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        return sorted(pool.map(lambda i: told(ask("add", [i]))["OUT"][0], range(40)))


def in_process(how, call, *args):
    """What a call gives in a process of its own, and how that ended."""
    import multiprocessing
    import queue

    context = multiprocessing.get_context(how)
    answers = context.Queue()
    child = context.Process(target=put, args=(answers, call, args))
    child.start()
    child.join(20)
    try:
        return [answers.get(timeout=1), child.exitcode]
    except queue.Empty:
        return ["nothing", child.exitcode]


def put(answers, call, args):
    answers.put(outcome(call, *args))


def told_of(*args):
    return told(ask(*args))


def case_from_a_forked_process():
    return in_process("fork", told_of, "add", [7])


def case_from_forked_processes_in_turn():
    return [in_process("fork", told_of, "add", [i]) for i in range(4)] + [told(ask("add", [7]))]


def case_failed_response_in_a_forked_process():
    return [in_process("fork", told_of, "add", [-1]), in_process("fork", told_of, "nobody", [1])]


def case_ready_in_a_forked_process():
    return in_process("fork", pb.is_model_ready, "add")


def case_log_in_a_forked_process():
    return in_process("fork", pb.Logger.log_info, "from a forked process")


def case_from_a_spawned_process():
    return in_process("spawn", told_of, "add", [7])


def case_ready():
    return {
        "ready": pb.is_model_ready("add"), "version": pb.is_model_ready("add", "1"), "keyword": pb.is_model_ready(model_name="add", model_version=""),
        "unknown": outcome(lambda: pb.is_model_ready("nobody")), "no_such_version": outcome(lambda: pb.is_model_ready("add", "9")),
        "bad_version": outcome(lambda: pb.is_model_ready("add", "x")),
    }


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    @staticmethod
    def answer(request):
        case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
        text = json.dumps(outcome(globals()["case_" + case]), default=repr)
        return pb.InferenceResponse([pb.Tensor("ANSWER", np.frombuffer(text.encode(), dtype=np.uint8))])
