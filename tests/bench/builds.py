"""Two builds of the server in one run: what a change costs, or saves, per request.

`--before PROGRAM` names the earlier build. Rounds are interleaved and change their order (A B, B A), and the ratio
quoted is the median of the ratios of each round, so that a machine that gets slower meanwhile weighs on both.
"""

import contextlib
import json
import os
import statistics
import tempfile
from pathlib import Path

import clients
import frontends
import measure
import numpy as np
import process
import python_models
import quiet
import servers
from repositories import copy_example, identity_config, write_model

# One step after another through the same model: what an ensemble adds to its steps.
CHAIN = """\
platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] } ]
ensemble_scheduling {
  step [
    {
      model_name: "simple" model_version: -1
      input_map { key: "INPUT0" value: "INPUT0" } input_map { key: "INPUT1" value: "INPUT1" }
      output_map { key: "OUTPUT0" value: "SUM" } output_map { key: "OUTPUT1" value: "DIFFERENCE" }
    },
    {
      model_name: "simple" model_version: -1
      input_map { key: "INPUT0" value: "SUM" } input_map { key: "INPUT1" value: "DIFFERENCE" }
      output_map { key: "OUTPUT0" value: "OUTPUT0" }
    }
  ]
}
"""


def write_repository(folder):
    copy_example(folder, "simple")
    write_model(folder, "identity", "galatea", "identity", identity_config())
    chain = Path(folder) / "chain"
    (chain / "1").mkdir(parents=True)
    (chain / "config.pbtxt").write_text(f'name: "chain"\n{CHAIN}')
    python_models.python_model(folder, "python_identity", identity_config(), python_models.identity_code())


@contextlib.contextmanager
def running(builds):
    """A server of each build over a repository of its own."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, program in builds.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            write_repository(folder)
            found[name] = stack.enter_context(of_build(program, folder))
        yield found


def of_build(program, folder):
    os.environ["GALATEA"] = str(program)
    return servers.galatea(folder)


def cases(seconds, folder):
    """What is measured: description, and a function of the server."""
    found = [
        (
            f"{model}, {protocol}, concurrency {concurrency}",
            lambda s, m=model, p=protocol, c=concurrency: measure.perf(s, m, p, c, seconds),
        )
        for model in ("simple", "chain")
        for protocol in ("http", "grpc")
        for concurrency in (1, 4, 16)
    ]
    # From 2 MiB on the allocator treats blocks in another way.
    for size, protocol, concurrency in (("400 KB", "http", 4), ("400 KB", "grpc", 16), ("4 MB", "http", 4), ("4 MB", "grpc", 4)):
        shape = f"INPUT0:{100_000 if size == '400 KB' else 1_000_000}"
        found.append((
            f"identity {size} binary, {protocol}, concurrency {concurrency}",
            lambda s, p=protocol, c=concurrency, shape=shape: measure.perf(s, "identity", p, c, seconds, "--shape", shape),
        ))
    for protocol, concurrency in (("http", 1), ("http", 16), ("grpc", 16)):
        found.append((
            f"Python identity FP32[16], {protocol}, concurrency {concurrency}",
            lambda s, p=protocol, c=concurrency: measure.perf(
                s, "python_identity", p, c, seconds, "--shape", "INPUT0:16"
            ),
        ))
    body = Path(folder) / "body.json"
    array = np.random.default_rng(1).standard_normal(100_000, dtype=np.float32).astype(np.float64).round(10)
    body.write_text(json.dumps({"inputs": [{**clients.tensor_json("INPUT0", array), "datatype": "FP32"}]}))
    found.append((
        "identity, JSON both ways, ab -c 16", lambda s: measure.ab(s, "identity", body, 16, int(100 * seconds)),
    ))
    return found


def ratios(rounds, run):
    """Medians by build, and of the ratios after / before within each round."""
    done = quiet.rounds_of(rounds, {name: lambda name=name: run(name) for name in ("before", "after")})
    pairs = list(zip(done["after"], done["before"]))
    found = {
        key: statistics.median(after[key] / before[key] for after, before in pairs) for key in ("CPU us/req", "infer/s")
    }
    return {name: measure.median_of(runs) for name, runs in done.items()}, found, done


def compared(args):
    """Rows and raw runs; the goal is what a change of shape may cost."""
    builds = {"before": args.before, "after": args.server or servers.galatea_binary()}
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder, running(builds) as found:
        for what, run in cases(args.seconds, folder):
            if args.rows and not any(part in what for part in args.rows):
                continue
            medians, ratio, runs = ratios(args.rounds, lambda name: run(found[name]))
            for name, figures in medians.items():
                is_after = name == "after"
                other = f"CPU {ratio['CPU us/req']:.3f} x, infer/s {ratio['infer/s']:.3f} x" if is_after else None
                goal = "CPU <= 1.03 x" if is_after else None
                rows.append({"what": what, "server": name, **figures, "other": other, "goal": goal})
            raw.append({"what": what, "runs": runs})
    more_rows, more_raw = ([], []) if args.rows else starts(builds)
    return rows + more_rows, raw + more_raw


def starts(builds):
    rows, raw = [], []
    for name, program in builds.items():
        os.environ["GALATEA"] = str(program)
        with tempfile.TemporaryDirectory() as folder:
            copy_example(folder, "simple")
            runs = [process.start_seconds("galatea", folder) for _ in range(7)]
        took, memory = (statistics.median(values) for values in zip(*runs))
        size = Path(program).stat().st_size / 1e6
        other = f"{took * 1000:.0f} ms, {memory:.0f} MB resident, program {size:.1f} MB"
        rows.append({"what": "start to ready, simple", "server": name, "other": other})
        raw.append({"build": name, "start and memory": runs})
    return rows, raw
