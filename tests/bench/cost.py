"""What a request costs here as a share of what it costs the real Triton, row by row with the goals.

The real Triton of the wheel has no ONNX backend. `simple` and the identity model it answers from its response cache, so that
its figure is protocol and core alone while ours runs the model; the tagger is a Python model there and an ONNX model here.
For the sentence encoder the limit is ONNX Runtime called in this process, with the layout of sessions, threads and batches
that does best.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import frontends
import measure
import models
import process
import python_models
import quiet
import servers
from repositories import EXAMPLES

CPU, RATE, P50 = "CPU us/req", "infer/s", "p50 us"
NAMES = {CPU: "CPU", RATE: "infer/s", P50: "p50"}
# Which figure of ours over theirs may be at most, or must be at least, what.
SMALL = {
    ("http", 1): {CPU: 0.40, P50: 0.65}, ("http", 16): {CPU: 0.33}, ("grpc", 1): {CPU: 0.35, P50: 0.65}, ("grpc", 16): {CPU: 0.33},
}
LARGE, JSON, ENSEMBLE = {CPU: 0.20}, {CPU: 0.16}, {1: {CPU: 0.5, RATE: 1.3}, 16: {CPU: 0.5, RATE: 1.8}}
IN_PROCESS = {RATE: 0.98}
READY_MS, RESIDENT_MB = 25, 30
ENCODER = "encoder"
ATTEMPTS = 4


def judged(ratios, goals):
    """Text of the ratios, and of the goals with which of them are met."""
    found = ", ".join(f"{NAMES[key]} {ratio:.2f} x" for key, ratio in ratios.items())
    wanted = []
    for key, goal in goals.items():
        is_met = ratios[key] >= goal if key == RATE else ratios[key] <= goal
        wanted.append(f"{NAMES[key]} {'>=' if key == RATE else '<='} {goal:.2f} x{'' if is_met else ' MISSED'}")
    return found, ", ".join(wanted)


def rows_of(what, runs, goals, ours="galatea", theirs="triton"):
    """Ratios are the medians of those within each round."""
    rows = [{"what": what, "server": name, **measure.median_of(done)} for name, done in runs.items()]
    if theirs in runs:
        pairs = list(zip(runs[ours], runs[theirs]))
        ratios = {key: statistics.median(a[key] / b[key] for a, b in pairs) for key in NAMES}
        own = next(row for row in rows if row["server"] == ours)
        own["other"], own["goal"] = judged(ratios, goals)
    return rows


def fresh_runs(args, what, case):
    """Quiet rounds of `case(server)` on servers of their own. With as many threads as requests in flight perf_analyzer does not
    come to the end of a window now and then, and goes on and on (seen beside the real server): then all begins again.
    """
    for attempt in range(ATTEMPTS):
        try:
            with frontends.running(args.targets) as found:
                return quiet.rounds_of(args.rounds, {target: lambda s=server: case(s) for target, server in found.items()})
        except subprocess.TimeoutExpired as hung:
            print(f"{what}: perf_analyzer did not end; attempt {attempt + 1} of {ATTEMPTS}: {hung.cmd[3:]}", file=sys.stderr, flush=True)
    raise RuntimeError(f"{what}: perf_analyzer did not end {ATTEMPTS} times")


def small_and_large(args):
    rows, raw = [], []

    def add(what, goals, case):
        runs = fresh_runs(args, what, case)
        rows.extend(rows_of(what, runs, goals))
        raw.append({"what": what, "runs": runs})

    for (protocol, concurrency), goals in SMALL.items():
        load = (protocol, concurrency, args.seconds)
        add(f"simple, {protocol}, {concurrency}", goals, lambda s, load=load: measure.perf(s, "simple", *load))
    for protocol in ("http", "grpc"):
        load = (protocol, 4, args.seconds, "--shape", "INPUT0:100000")
        add(f"400 KB each way, {protocol}, 4", LARGE, lambda s, load=load: measure.perf(s, "identity", *load))
    with tempfile.TemporaryDirectory() as folder:
        body, size = frontends.json_body(folder)
        what = f"JSON both ways, {size:.1f} MB in, ab -c 16"
        add(what, JSON, lambda s: measure.ab(s, "identity", body, 16, int(100 * args.seconds)))
    return rows, raw


def ensemble(args):
    rows, raw = [], []
    with python_models.running(args.targets, python_models.write_tagger) as found, tempfile.TemporaryDirectory() as folder:
        options = python_models.sentence_options(folder)
        for concurrency, goals in sorted(ENSEMBLE.items(), reverse=True):
            cases = {
                target: lambda s=server, m="with_tagger_onnx" if target == "galatea" else "with_tagger_python": measure.perf(
                    s, m, "http", concurrency, 2 * args.seconds, *options
                )
                for target, server in found.items()
            }
            what = f"tagger ensemble, http, {concurrency}"
            runs = quiet.rounds_of(args.rounds, cases)
            rows += rows_of(what, runs, goals)
            raw.append({"what": what, "runs": runs})
    return rows, raw


def encoder_file():
    file = servers.ROOT / "target/bench/minilm.onnx"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_suffix(".new")
        subprocess.run([sys.executable, servers.ROOT / "crates/backends/onnx/examples/minilm.py", written], check=True)
        written.rename(file)
    return file


def encoder(args):
    """The layout that the seeds write, and dynamic batching, against the best of ONNX Runtime alone."""
    config = (EXAMPLES / "minilm_int8/config.pbtxt").read_text().split("instance_group")[0].replace("minilm_int8", ENCODER)
    unset = "instance_group [ { kind: KIND_CPU } ]\n"
    rows, raw = [], []
    for what, more, batch in (("KIND_CPU, count unset", "", 1), ("dynamic batching", "dynamic_batching { }\n", 8)):
        runs = encoder_runs(args, config + unset + more, batch)
        best = max((name for name in runs if name != "galatea"), key=lambda n: measure.median_of(runs[n])[RATE])
        what = f"MiniLM in FP32, {what}, grpc, 16"
        rows += rows_of(what, {"galatea": runs["galatea"], best: runs[best]}, IN_PROCESS, theirs=best)
        raw.append({"what": what, "runs": runs})
    return rows, raw


def encoder_runs(args, config, batch):
    file, seconds = encoder_file(), 3 * args.seconds
    layouts = {"1 session x 2 threads": (1, 2, 1), "2 sessions x 1 thread": (2, 1, 2), "1 session x 1 thread, 2 callers": (1, 1, 2)}
    cases = {
        f"in this process, {name}": lambda layout=layout: {
            **models.direct("minilm_int8", *layout, seconds, batch=batch, file=file), "p99 us": 0.0
        }
        for name, layout in layouts.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        version = Path(folder) / ENCODER / "1"
        version.mkdir(parents=True)
        shutil.copy(file, version / "model.onnx")
        (version.parent / "config.pbtxt").write_text(config)
        row = {name: {"content": a.ravel().tolist(), "shape": list(a.shape[1:])} for name, a in models.arrays("minilm_int8").items()}
        data = Path(folder) / ENCODER / "input.json"
        data.write_text(json.dumps({"data": [row]}))
        with servers.galatea(folder) as server:
            ours = {"galatea": lambda: measure.perf(server, ENCODER, "grpc", 16, seconds, "--input-data", data)}
            return quiet.rounds_of(args.rounds, {**ours, **cases})


def start(args):
    rows, raw = process.start_and_memory_of_simple(args)
    for row in rows:
        if row["server"] == "galatea":
            limit = READY_MS if row["other"].endswith("ms") else RESIDENT_MB
            row["goal"] = f"<= {limit}{'' if float(row['other'].split()[0]) <= limit else ' MISSED'}"
    return rows, raw


def compared(args):
    rows, raw = [], []
    for measured in (small_and_large, ensemble, encoder, start):
        more_rows, more_raw = measured(args)
        rows, raw = rows + more_rows, raw + more_raw
    return rows, raw
