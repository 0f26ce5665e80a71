"""Our load tool and the real perf_analyzer in turns, same server, same arguments: what they measure, and what a
request costs them.

A tool's cost is the processor time of its process less that of a run with one request, over the requests the
server counted. Where tool and server share the cores the cheaper tool measures more throughput because it leaves
more to the server; pinned, each has cores of its own and the figures must agree.
"""

import contextlib
import json
import os
import statistics
import tempfile
from pathlib import Path

import clients
import models
import perf_models
import perf_tool
import servers
from repositories import REPEAT_CONFIG, copy_example, write_model

LATENCIES = ("p50", "p90", "p95", "p99")
GOAL = "infer/s 0.95-1.05, latency 0.9-1.1, CPU <= 0.33"
REPEAT = {"data": [{
    "IN": {"content": [1, 2, 3, 4], "shape": [4]}, "DELAY": {"content": [0] * 4, "shape": [4]}, "WAIT": [0],
}]}


def fill(folder, target):
    """The models that are measured."""
    path = Path(folder)
    perf_models.add_pair(path, "simple", target, "dynamic_batching { }\n")
    perf_models.add_pair(path, "plain", target, "")
    perf_models.add_pipelines(path)
    write_model(path, "repeat", target, "repeat", REPEAT_CONFIG)
    if target == "triton":
        perf_models.add_sequences(path)
    else:
        copy_example(path, "minilm_int8")


def cases(folder):
    """(label, servers that have the model, arguments) of each measurement."""
    stream = Path(folder) / "repeat.json"
    stream.write_text(json.dumps(REPEAT))
    sentence = models.input_file(folder, "minilm_int8")
    both = ("galatea", "triton")
    return [
        ("simple, http", both, ["-m", "simple"]),
        ("simple, grpc", both, ["-m", "simple", "-i", "grpc"]),
        ("simple, grpc async", both, ["-m", "simple", "-i", "grpc", "-a"]),
        ("minilm_int8, http", ("galatea",), ["-m", "minilm_int8", "--input-data", sentence]),
        ("ensemble, grpc", both, ["-m", "outer", "-i", "grpc"]),
        ("decoupled, stream", both, ["-m", "repeat", "-i", "grpc", "-a", "--streaming", "--input-data", stream]),
        ("sequences, http", ("triton",), ["-m", "sequence_direct"]),
    ]


def pin(server, cpus):
    """Every thread of the server and of its workers; threads to come inherit it."""
    for process in (server.pid, *servers.descendants(server.pid)):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cpus)


def layouts(choice):
    """{label: (processors of the server, processors of the tool)}."""
    cpus = sorted(os.sched_getaffinity(0))
    found = {}
    if choice in ("both", "yes") and len(cpus) > 1:
        half = len(cpus) // 2
        found["pinned"] = set(cpus[:half]), set(cpus[half:])
    if choice in ("both", "no") or not found:
        found["shared"] = set(cpus), set(cpus)
    return found


def run(tool, server, args, cpus, folder):
    address = server.grpc if "grpc" in args else server.http
    return perf_tool.run(tool, [*args, "-u", address], Path(folder), timeout=120, cpus=cpus)


def start_cost(tool, server, args, cpus, folder):
    """Processor microseconds of a run with one request. That it is over before the real tool has read the
    statistics, and the report therefore fails, does not matter here."""
    return run(tool, server, [*args, "--request-count", "1"], cpus, folder).cpu_seconds * 1e6


def measure(tool, server, args, cpus, folder):
    """One run: figures of the report, requests the server answered, and the tool's processor microseconds."""
    before = clients.counts(server, args[1])["success"]
    done = run(tool, server, args, cpus, folder)
    assert done.code == 0, done.out + done.err
    requests = clients.counts(server, args[1])["success"] - before
    client = done.report()["points"][-1]["client"]
    figures = {"infer/s": client["Throughput"][0], **{name: client[f"{name} latency"][0] for name in LATENCIES}}
    return {**figures, "requests": requests, "cpu": done.cpu_seconds * 1e6}


def compare(server, args, concurrency, cpus, options):
    """{tool: medians}: runs of the two tools in turns, first one request each for the cost of the start."""
    window = ["--concurrency-range", str(concurrency), "-p", str(int(options.seconds * 1000)), "-s", "1000000", "-r", "3"]
    tools = (perf_tool.REAL, perf_tool.OURS)
    runs, starts = {tool: [] for tool in tools}, {tool: [] for tool in tools}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for tool in tools:
                starts[tool].append(start_cost(tool, server, args, cpus, folder))
                runs[tool].append(measure(tool, server, [*args, *window], cpus, folder))
    found = {}
    for tool in tools:
        base = statistics.median(starts[tool])
        figures = {key: statistics.median(done[key] for done in runs[tool]) for key in ("infer/s", *LATENCIES)}
        cost = statistics.median((done["cpu"] - base) / max(done["requests"], 1) for done in runs[tool])
        found[tool] = {**figures, "CPU us/req": cost, "start ms": base / 1000}
    return found, {"runs": runs, "starts": starts}


def rows_of(what, target, found):
    real, ours = found[perf_tool.REAL], found[perf_tool.OURS]
    ratio = {key: ours[key] / max(real[key], 1e-9) for key in ("infer/s", *LATENCIES, "CPU us/req")}
    told = ", ".join(f"{name} {ratio[name]:.2f}" for name in LATENCIES)
    other = f"infer/s {ratio['infer/s']:.3f}, {told}, CPU {ratio['CPU us/req']:.2f}"
    server = "Triton 2.51" if target == "triton" else target
    shown = [
        {"infer/s": f["infer/s"], "p50 us": f["p50"], "p99 us": f["p99"], "CPU us/req": f["CPU us/req"]} for f in (real, ours)
    ]
    return [
        {"what": what, "server": f"{server}, perf_analyzer", **shown[0], "other": f"start {real['start ms']:.0f} ms"},
        {"what": what, "server": f"{server}, galatea perf", **shown[1], "other": other, "goal": GOAL},
    ]


def tools(options):
    rows, raw = [], []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for target in options.targets:
            repository = stack.enter_context(tempfile.TemporaryDirectory())
            fill(repository, target)
            with servers.TARGETS[target](repository) as server:
                for label, on, args in cases(folder):
                    if target not in on:
                        continue
                    for layout, (server_cpus, tool_cpus) in layouts(options.pin).items():
                        pin(server, server_cpus)
                        for concurrency in options.concurrency:
                            found, runs = compare(server, args, concurrency, tool_cpus, options)
                            what = f"{label}, {concurrency} in flight, {layout}"
                            rows += rows_of(what, target, found)
                            raw.append({"what": what, "target": target, "figures": found, **runs})
    return rows, raw
