"""1,000 sequences while requests are cancelled, workers of Python models die and models are loaded again.

Every sequence ends with its right answer or with one clear error, and none ever sees a number of another one.
"""

import collections
import random
import re
import signal
import threading

import grpc
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2_grpc

import clients
import processes
import repositories
import sequence_plays
import servers
import tiers
import waiting
from sequence_plays import step
from test_sequence_backends import config as builtin_config
from test_sequence_pipelines import ADDER

SEED = 17
SEQUENCES = 1000
CLIENTS = 24
CANCELLED = 0.03
KILL_EVERY, LOAD_EVERY = 40, 75
LIMIT = 60

# Every error that a step may end with.
CLEAR = re.compile("|".join([
    "must specify the START flag on the first request of the sequence",
    "the instance that had the sequence stopped working, and its state is lost",
    "the sequence of the request was cancelled",
    "[Cc]ancelled",
    "worker process .* ended|the process of .* ended|stub process|worker .*(ended|killed)",
    "no working instance|no instance of",
    "is not ready|is unloading|no longer|not available",
]))


def write_kept(path):
    """Adds INPUT to a state that the server keeps."""
    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 1])

    nodes = [helper.make_node("Add", ["INPUT", "STATE"], ["OUTPUT"]), helper.make_node("Identity", ["OUTPUT"], ["NEXT"])]
    graph = helper.make_graph(nodes, "kept", [info("INPUT"), info("STATE")], [info("OUTPUT"), info("NEXT")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)


def kept_config(strategy):
    return ("max_batch_size: 4\n" + repositories.tensor("input", "INPUT", "TYPE_INT32", "1") + repositories.tensor("output", "OUTPUT", "TYPE_INT32", "1")
            + "instance_group [ { count: 2 kind: KIND_CPU } ]\n"
            + f'sequence_batching {{ max_sequence_idle_microseconds: 60000000 state {{ input_name: "STATE" output_name: "NEXT" '
              f'data_type: TYPE_INT32 dims: [ 1 ] }} {strategy} }}\n')


STRATEGIES = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 8 }"}


def write(path):
    adder = sequence_plays.config(STRATEGIES["oldest"], instances=2).replace("TYPE_STRING", "TYPE_INT32")
    repositories.write_model(path, "python_oldest", "galatea", "python", adder, {"1/model.py": ADDER})
    adder = sequence_plays.config(STRATEGIES["direct"], instances=2).replace("TYPE_STRING", "TYPE_INT32")
    ready = ADDER.replace("    def step(self, request):\n", '''    def step(self, request):
        if not pb.get_input_tensor_by_name(request, "READY").as_numpy().item():
            return pb.InferenceResponse([pb.Tensor("OUTPUT", np.zeros((1, 1), np.int32))])
''')
    repositories.write_model(path, "python_direct", "galatea", "python", adder, {"1/model.py": ready})
    for name, strategy in STRATEGIES.items():
        folder = repositories.write_model(path, f"kept_{name}", "galatea", "onnxruntime", kept_config(strategy))
        write_kept(folder / "1/model.onnx")
        repositories.write_model(path, f"rows_{name}", "galatea", "dyna_sequence", builtin_config("dyna_sequence", strategy, instances=2))


MODELS = [f"{kind}_{strategy}" for kind in ("python", "kept", "rows") for strategy in STRATEGIES]


class Play:
    """What all clients share."""

    def __init__(self, server, path):
        self.server, self.path = server, path
        self.next, self.lock = iter(range(1, SEQUENCES + 1)), threading.Lock()
        self.ends, self.wrong, self.trouble = collections.Counter(), [], collections.Counter()

    def take(self):
        with self.lock:
            return next(self.next, None)

    def note(self, end, problem=None):
        with self.lock:
            self.ends[end] += 1
            if problem:
                self.wrong.append(problem)

    def make_trouble(self, number, chance):
        if number % KILL_EVERY == 0:
            waiting.eventually("a worker is there to be killed", lambda: self.kill(chance))
            self.trouble["killed"] += 1
        if number % LOAD_EVERY == 0:
            model = chance.choice(MODELS)
            with (self.path / model / "config.pbtxt").open("a") as file:
                file.write(f'parameters {{ key: "load_{number}" value {{ string_value: "again" }} }}\n')
            while not self.load(model):
                self.trouble["killed while loading"] += 1
            self.trouble["loaded"] += 1

    def kill(self, chance):
        """False where the worker ended before, because its model was loaded again."""
        workers = [pid for pid in processes.children(self.server.pid) if not processes.is_zombie(pid)]
        return bool(workers) and processes.signal_if_there(chance.choice(workers), signal.SIGKILL)

    def load(self, model):
        """False where a worker was killed that the load had just started."""
        status, _, text = clients.ask(self.server.http, "POST", f"/v2/repository/models/{model}/load", {})
        assert status == 200 or b"signal 9" in text, text
        return status == 200


def value_of(number, turn):
    """No other sequence has it, nor a sum with it."""
    return number * 100_000 + turn


def run_client(play, client):
    with grpc.insecure_channel(play.server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        while (number := play.take()) is not None:
            chance = random.Random(SEED * 100_000 + number)
            try:
                play.make_trouble(number, chance)
                play.note(*run_sequence(stub, chance.choice(MODELS), number, chance))
            except Exception as error:  # noqa: BLE001
                play.note("failed", (number, repr(error)))


def run_sequence(stub, model, number, chance):
    """How a sequence ended: `right`, `told`, `cancelled` or `wrong`, and what was wrong."""
    steps, was_cancelled = chance.randrange(2, 9), False
    # A request that is cancelled may have been executed, or may never have left the client.
    sums = {0}
    for turn in range(steps):
        value, is_last = value_of(number, turn), turn + 1 == steps
        call = stub.ModelInfer.future(step(number, value, ("s" if turn == 0 else "") + ("e" if is_last else ""), model), timeout=LIMIT)
        is_cancelled = chance.random() < CANCELLED and call.cancel()
        added = {total + value for total in sums}
        sums = sums | added if is_cancelled else added
        try:
            answer = int(np.frombuffer(call.result().raw_output_contents[0], np.int32)[0])
        except grpc.FutureCancelledError:
            was_cancelled = True
            continue
        except grpc.RpcError as error:
            return ("told", None) if CLEAR.search(error.details()) else ("wrong", (model, number, turn, error.details()))
        id_at_end = number if model.startswith("rows") and is_last else 0
        if answer - id_at_end not in sums:
            return "wrong", (model, number, turn, answer, sums)
        sums = {answer - id_at_end}
    return ("cancelled" if was_cancelled else "right"), None


@tiers.measure
def test_no_sequence_is_lost_or_mixed_up(tmp_path):
    write(tmp_path)
    with servers.galatea(tmp_path, "--model-control-mode=explicit", "--load-model=*") as server:
        play = Play(server, tmp_path)
        threads = [threading.Thread(target=run_client, args=(play, client)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not play.wrong, (play.wrong[:10], play.ends)
        assert sum(play.ends.values()) == SEQUENCES
        assert play.ends["right"] > SEQUENCES / 2, play.ends
        assert (play.trouble["killed"], play.trouble["loaded"]) == (SEQUENCES // KILL_EVERY, SEQUENCES // LOAD_EVERY), play.trouble
        check_afterwards(server)


def check_afterwards(server):
    """Nothing waits, and each model has its places for new sequences."""
    waiting.eventually("all models are ready", lambda: all(clients.ask(server.http, "GET", f"/v2/models/{model}/ready")[0] == 200 for model in MODELS))

    def waits():
        return {labels: value for (name, labels), value in clients.metrics(server).items() if name == "nv_inference_pending_request_count" and value}

    waiting.eventually("nothing waits", lambda: not waits())
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for model in MODELS:
            for number in range(5000, 5016):
                reply = stub.ModelInfer(step(number, 1, "se", model), timeout=LIMIT)
                wanted = 1 + (number if model.startswith("rows") else 0)
                assert np.frombuffer(reply.raw_output_contents[0], np.int32)[0] == wanted, (model, number)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_requests_waiting_for_a_slot_are_answered_after_a_reload(stage, strategy):
    """The sequence in the only slot cannot continue: its next request reaches the new model."""
    one = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 1 }"}[strategy]
    text = builtin_config("dyna_sequence", one, max_batch_size=1, idle=600_000_000)
    server = stage.get("galatea", lambda folder, target: repositories.write_model(folder, "rows", target, "dyna_sequence", text))
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

        def send(*step_of):
            return stub.ModelInfer.future(step(*step_of, "rows"), timeout=LIMIT)

        assert send(1, 10, "s").result()
        others = [send(2, 20, "s"), send(3, 30, "s")]
        waiting.eventually("both wait", lambda: pending(server, "rows") == 2)
        with (server.repository / "rows/config.pbtxt").open("a") as file:
            file.write('parameters { key: "load" value { string_value: "again" } }\n')
        assert clients.ask(server.http, "POST", "/v2/repository/models/rows/load", {})[0] == 200
        assert [int(np.frombuffer(other.result().raw_output_contents[0], np.int32)[0]) for other in others] == [20, 30]
        with pytest.raises(grpc.RpcError, match="must specify the START flag"):
            send(1, 11, "").result()


@pytest.mark.parametrize("model", ["kept_direct", "kept_oldest"])
def test_a_cancelled_request_ends_only_its_sequence(stage, model):
    """The cancelled request waits in the queue; later requests of its sequence are not executed."""
    def write_one(path, target):
        text = kept_config(STRATEGIES[model[5:]]).replace("count: 2", "count: 1")
        write_kept(repositories.write_model(path, model, target, "onnxruntime", text) / "1/model.onnx")

    # Counted are the requests in all places, with the oldest strategy one of each sequence.
    held = {"kept_direct": "6", "kept_oldest": "3"}[model]
    server = stage.get("galatea", write_one, env={"TRITONSERVER_DELAY_SCHEDULER": held})
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

        def send(*step_of):
            return stub.ModelInfer.future(step(*step_of, model), timeout=LIMIT)

        first = send(1, 10, "s")
        waiting.eventually("one request waits", lambda: pending(server, model) == 1)
        second = send(1, 20, "")
        waiting.eventually("two requests wait", lambda: pending(server, model) == 2)
        second.cancel()
        others = {2: [send(2, 7, "s")]}
        waiting.eventually("the cancelled one is gone", lambda: pending(server, model) in (1, 3))
        third = send(1, 30, "")
        waiting.eventually("the third waits or is answered", lambda: third.done() or pending(server, model) == 4)
        others[2] += [send(2, 8, ""), send(2, 9, "e")]
        others |= {number: [send(number, number, "s"), send(number, 1, "e")] for number in (3, 4)}
        sums = {number: [int(np.frombuffer(call.result().raw_output_contents[0], np.int32)[0]) for call in calls] for number, calls in others.items()}
        assert sums == {2: [7, 15, 24], 3: [3, 4], 4: [4, 5]}
        assert "the sequence of the request was cancelled" in str(third.exception())
        # It was there before, and may have been executed or not.
        assert first.exception() is None or "the sequence of the request was cancelled" in first.exception().details()
        with pytest.raises(grpc.RpcError, match="must specify the START flag"):
            stub.ModelInfer(step(1, 40, "", model), timeout=LIMIT)


def pending(server, model):
    samples = clients.metrics(server)
    return sum(value for (name, labels), value in samples.items() if name == "nv_inference_pending_request_count" and f'model="{model}"' in labels)
