"""Sequences: what a step costs beside a plain request of the same model, and what a live sequence takes of memory."""

import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
import measure
import repositories
import servers
from sequence_plays import step
from test_streams import message

# By name: how the requests of one model are scheduled, all that is different between the rows.
SCHEDULING = {
    "plain": "dynamic_batching { }\n",
    "direct": "sequence_batching { max_sequence_idle_microseconds: 600000000 direct { } }\n",
    "oldest": "sequence_batching { max_sequence_idle_microseconds: 600000000 oldest { max_candidate_sequences: 32 } }\n",
}
CALLERS = (1, 16)
# At most so much more CPU for a step than for a plain request.
GOAL_US = 5
LIVE = 10_000
STATE_FLOATS = 256


def fill(root):
    for name, scheduling in SCHEDULING.items():
        tensors = "".join(repositories.tensor(kind, f"{kind.upper()}0", "TYPE_INT32", "16") for kind in ("input", "output"))
        config = f"max_batch_size: 32\n{tensors}instance_group [ {{ count: 1 kind: KIND_CPU }} ]\n{scheduling}"
        repositories.write_model(root, name, "galatea", "failing", config)


def own_perf(server, name, protocol, callers, seconds):
    address = server.grpc if protocol == "grpc" else server.http

    def load():
        command = [servers.galatea_binary(), "perf", "-m", name, "-u", address, "-i", protocol, "--concurrency-range", callers,
                   "-p", int(seconds * 1000), "-s", "999", "-r", "3", *([] if name == "plain" else ["--sequence-length", "50"])]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    report, cpu = measure.cpu_of(server, name, load)
    return {
        "infer/s": measure.number(r"Throughput: ([\d.]+) infer/sec", report),
        "p50 us": measure.number(r"p50 latency: (\d+) usec", report),
        "p99 us": measure.number(r"p99 latency: (\d+) usec", report),
        "CPU us/req": cpu,
    }


def compared(args):
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        with servers.galatea(folder) as server:
            for protocol in ("http", "grpc"):
                for callers in CALLERS:
                    cases = {name: lambda name=name: own_perf(server, name, protocol, callers, args.seconds) for name in SCHEDULING}
                    medians, runs = measure.interleaved(args.rounds, cases)
                    rows += rows_of(protocol, callers, medians)
                    raw.append({"what": f"sequence steps, {protocol}, {callers} callers", "runs": runs})
    more, figures = live_sequences()
    return rows + more, raw + [figures]


def rows_of(protocol, callers, medians):
    plain = medians["plain"]["CPU us/req"]
    rows = []
    for name, figures in medians.items():
        row = {"what": f"INT32[16], {protocol}, {callers} callers", "server": name, **figures}
        if name != "plain":
            row["other"] = f"{figures['CPU us/req'] - plain:+.1f} us CPU"
            row["goal"] = f"<= +{GOAL_US}"
        rows.append(row)
    return rows


def write_kept(root):
    """A model whose state the server keeps: it adds up rows of numbers."""
    import onnx
    from onnx import TensorProto, helper

    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", STATE_FLOATS])

    nodes = [helper.make_node("Add", ["INPUT", "STATE"], ["NEXT"]), helper.make_node("Slice", ["NEXT", "from", "to", "axis"], ["OUTPUT"])]
    numbers = {"from": [0], "to": [1], "axis": [1]}
    constants = [helper.make_tensor(name, TensorProto.INT64, [1], value) for name, value in numbers.items()]
    outputs = [helper.make_tensor_value_info("OUTPUT", TensorProto.FLOAT, ["batch", 1]), info("NEXT")]
    graph = helper.make_graph(nodes, "kept", [info("INPUT"), info("STATE")], outputs, constants)
    config = ("max_batch_size: 32\n" + repositories.tensor("input", "INPUT", "TYPE_FP32", str(STATE_FLOATS)) + repositories.tensor("output", "OUTPUT", "TYPE_FP32", "1")
              + "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
              + "sequence_batching { max_sequence_idle_microseconds: 600000000 "
              + f'state {{ input_name: "STATE" output_name: "NEXT" data_type: TYPE_FP32 dims: [ {STATE_FLOATS} ] }} '
              + f"oldest {{ max_candidate_sequences: {LIVE} }} }}\n")
    folder = repositories.write_model(root, "kept", "galatea", "onnxruntime", config)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), folder / "1/model.onnx")


def write_bare(root):
    tensors = "".join(repositories.tensor(kind, f"{kind.upper()}0", "TYPE_INT32", "1") for kind in ("input", "output"))
    scheduling = f"sequence_batching {{ max_sequence_idle_microseconds: 600000000 oldest {{ max_candidate_sequences: {LIVE} }} }}\n"
    config = f"max_batch_size: 32\n{tensors}instance_group [ {{ count: 1 kind: KIND_CPU }} ]\n{scheduling}"
    repositories.write_model(root, "bare", "galatea", "failing", config)


def live_sequences():
    rows, figures = [], {}
    with tempfile.TemporaryDirectory() as folder:
        write_bare(Path(folder))
        write_kept(Path(folder))
        for name, state in (("bare", 0), ("kept", STATE_FLOATS * 4)):
            with servers.galatea(folder) as server:
                begun(server, name, range(1, LIVE + 1), "se")
                before = server.rss_mb()
                begun(server, name, range(1, LIVE + 1), "s")
                grown = server.rss_mb() - before
                begun(server, name, range(1, LIVE + 1), "e")
            figures[name] = grown * 2**20 / LIVE
            rows.append({"what": f"{LIVE:,} live sequences", "server": f"state of {state} bytes", "other": f"{figures[name]:.0f} bytes each"})
    return rows, {"what": "bytes of memory for each live sequence", "runs": figures}


def begun(server, name, sequences, flags):
    """One request of each sequence, all on one stream."""
    import numpy as np
    from tritonclient.grpc import service_pb2_grpc

    def requests():
        for sequence in sequences:
            request = step(sequence, 1, flags, name)
            kind, size = ("int32", 1) if name == "bare" else ("float32", STATE_FLOATS)
            own = message(name, {"INPUT0" if name == "bare" else "INPUT": np.ones((1, size), kind)})
            del request.inputs[:], request.raw_input_contents[:]
            request.inputs.extend(own.inputs)
            request.raw_input_contents.extend(own.raw_input_contents)
            yield request

    with grpc.insecure_channel(server.grpc) as channel:
        replies = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(requests())
        failed = [reply.error_message for reply in replies if reply.error_message]
    assert not failed, failed[0]
