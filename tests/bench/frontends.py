"""What the front ends cost: small requests, 400 KB tensors, 1.3 MB of JSON.

The real Triton has no ONNX backend here, so it answers `simple` out of its response cache: its figure is
HTTP or gRPC and its core alone, ours includes running the model.
"""

import contextlib
import json
import tempfile
from pathlib import Path

import numpy as np

import clients
import measure
import servers
from repositories import add_sub_config, copy_example, identity_config, write_model

CPU_GOALS = {("http", 16): "CPU <= 30", ("grpc", 16): "CPU <= 45"}


@contextlib.contextmanager
def running(targets, flags_of=None):
    """Servers with `simple`, and `identity` for large tensors; by target. `flags_of` has further flags by target."""
    with contextlib.ExitStack() as stack:
        found = {}
        for target in targets:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            flags = [*(flags_of or {}).get(target, [])]
            write_model(folder, "identity", target, "identity", identity_config(more=cache(target)))
            if target == "triton":
                flags.append("--cache-config=local,size=268435456")
                write_model(folder, "simple", target, "add_sub", add_sub_config(more=cache(target)))
            else:
                copy_example(folder, "simple")
            found[target] = stack.enter_context(servers.TARGETS[target](folder, *flags))
        yield found


def cache(target):
    return "response_cache { enable: true }\n" if target == "triton" else ""


def label(target):
    return "Triton 2.51, cached" if target == "triton" else target


def rows_of(what, medians, goal):
    return [
        {"what": what, "server": label(target), **figures, "goal": goal if target == "galatea" else None}
        for target, figures in medians.items()
    ]


def compare(args, what, goal, run):
    """Rows and raw runs of one comparison; `run(server)` measures once."""
    with running(args.targets) as found:
        cases = {target: lambda server=server: run(server) for target, server in found.items()}
        medians, raw = measure.interleaved(args.rounds, cases)
    return rows_of(what, medians, goal), [{"what": what, "runs": raw}]


def small_requests(args):
    rows, raw = [], []
    with running(args.targets) as found:
        for protocol in ("http", "grpc"):
            for concurrency in (1, 4, 16):
                what = f"simple, {protocol}, concurrency {concurrency}"
                cases = {
                    target: lambda s=server: measure.perf(s, "simple", protocol, concurrency, args.seconds)
                    for target, server in found.items()
                }
                medians, runs = measure.interleaved(args.rounds, cases)
                rows += rows_of(what, medians, CPU_GOALS.get((protocol, concurrency)))
                raw.append({"what": what, "runs": runs})
    return rows, raw


def large_requests(args):
    rows, raw = [], []
    for protocol, concurrency in (("http", 4), ("grpc", 16)):
        more_rows, more_raw = compare(
            args, f"identity 400 KB binary, {protocol}, concurrency {concurrency}", "CPU <= 250",
            lambda s: measure.perf(s, "identity", protocol, concurrency, args.seconds, "--shape", "INPUT0:100000"),
        )
        rows, raw = rows + more_rows, raw + more_raw
    return rows, raw


def json_body(folder):
    """A file with a request of 100,000 numbers, and its size in MB."""
    array = np.random.default_rng(1).standard_normal(100_000, dtype=np.float32).astype(np.float64).round(10)
    body = Path(folder) / "body.json"
    tensor = {**clients.tensor_json("INPUT0", array), "datatype": "FP32"}
    body.write_text(json.dumps({"inputs": [tensor]}))
    return body, body.stat().st_size / 1e6


def json_bodies(args):
    with tempfile.TemporaryDirectory() as folder:
        body, size = json_body(folder)
        return compare(
            args, f"identity {size:.1f} MB JSON both ways, ab -c 16", "CPU <= 6000",
            lambda s: measure.ab(s, "identity", body, 16, int(100 * args.seconds)),
        )
