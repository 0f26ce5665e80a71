"""Real models at saturation, against ONNX Runtime called directly in this process."""

import json
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import onnxruntime

import measure
import quiet
import servers
from repositories import EXAMPLES, copy_example

LENGTH = 32
# What one instance is here: all cores for one request.
SAME = "direct, 1 session x 2 threads"


def arrays(model):
    random = np.random.default_rng(7)
    if model == "magika":
        return {"bytes": random.integers(0, 257, (1, 2048), dtype=np.int32)}
    ids = random.integers(1000, 20000, (1, LENGTH), dtype=np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def input_file(folder, model):
    """The same input for perf_analyzer."""
    row = {name: {"content": a.ravel().tolist(), "shape": list(a.shape[1:])} for name, a in arrays(model).items()}
    file = Path(folder) / f"{model}.json"
    file.write_text(json.dumps({"data": [row]}))
    return file


def direct(model, sessions, threads, callers, seconds, spins=True, batch=1, file=None):
    """Inferences per second and CPU of ONNX Runtime in this process, with a layout of sessions and threads."""
    file = file or EXAMPLES / model / "1/model.onnx"
    made = []
    for _ in range(sessions):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spins else "0")
        made.append(onnxruntime.InferenceSession(file, options))
    feed = {name: np.repeat(a, batch, axis=0) for name, a in arrays(model).items()}
    for session in made:
        session.run(None, feed)
    counts, stop = [0] * callers, threading.Event()

    def call(n):
        session = made[n % sessions]
        while not stop.is_set():
            session.run(None, feed)
            counts[n] += batch

    workers = [threading.Thread(target=call, args=(n,)) for n in range(callers)]
    cpu, begin = time.process_time(), time.monotonic()
    for worker in workers:
        worker.start()
    stop.wait(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    took, total = time.monotonic() - begin, sum(counts)
    return {"infer/s": total / took, "p50 us": callers * took * 1e6 * batch / total, "p99 us": None,
            "CPU us/req": (time.process_time() - cpu) * 1e6 / total}


def served(args, model, config, concurrency, callers):
    """Interleaved runs of the server (gRPC) and of the direct callers on one model."""
    with tempfile.TemporaryDirectory() as folder:
        copy_example(folder, model, config)
        data = input_file(tempfile.mkdtemp(dir=folder, prefix="."), model)
        with servers.galatea(folder) as server:
            cases = {"galatea": lambda: measure.perf(
                server, model, "grpc", concurrency, args.seconds * 2, "--input-data", data
            )}
            cases.update(callers)
            runs = quiet.rounds_of(args.rounds, cases)
    medians = {name: median(done) for name, done in runs.items()}
    return medians, runs


def median(runs):
    return {k: (None if runs[0][k] is None else float(np.median([r[k] for r in runs]))) for k in runs[0]}


def rows_of(what, medians, goal):
    """The server's efficiency is compared with the direct layout it runs itself, and with the best of them."""
    same, best = (medians[SAME]["infer/s"] if SAME in medians else None, max(
        figures["infer/s"] for name, figures in medians.items() if name != "galatea"
    ))
    rows = []
    for name, figures in medians.items():
        other = None
        if name == "galatea":
            other = f"{figures['infer/s'] / best:.2f} of the best direct"
            if same:
                other = f"{figures['infer/s'] / same:.2f} of the same layout, " + other
        rows.append({"what": what, "server": name, **figures, "other": other, "goal": goal if other else None})
    return rows


def saturation(args):
    """The example models without joining requests, so that both sides run batches of one; then joined."""
    rows, raw = [], []
    for model in ("minilm_int8", "magika"):
        plain = (EXAMPLES / model / "config.pbtxt").read_text().split("dynamic_batching")[0]
        seconds = args.seconds * 2
        callers = {
            SAME: lambda: direct(model, 1, 2, 1, seconds),
            "direct, 1 session x 1 thread, 2 callers": lambda: direct(model, 1, 1, 2, seconds),
            "direct, 2 sessions x 1 thread, 2 callers": lambda: direct(model, 2, 1, 2, seconds),
        }
        medians, runs = served(args, model, plain, 8, callers)
        rows += rows_of(f"{model}, batch 1, concurrency 8", medians, ">= 0.97 of the same layout")
        raw.append({"what": f"{model} batch 1", "runs": runs})
        joined = {
            SAME: lambda: direct(model, 1, 2, 1, seconds, batch=8),
            "direct, 2 sessions x 1 thread, batches of 8": lambda: direct(model, 2, 1, 2, seconds, batch=8),
        }
        medians, runs = served(args, model, None, 32, joined)
        rows += rows_of(f"{model}, joined by the server, concurrency 32", medians, ">= 0.97 of the same layout")
        raw.append({"what": f"{model} joined", "runs": runs})
    return rows, raw


def default_layout(args):
    """The seeds' `instance_group [{ kind: KIND_CPU }]`, count unset, against what Triton makes of it."""
    model = "minilm_int8"
    config = (EXAMPLES / model / "config.pbtxt").read_text().split("instance_group")[0]
    config += "instance_group [ { kind: KIND_CPU } ]\n"
    seconds = args.seconds * 2
    callers = {
        "Triton's layout: 2 sessions x 2 spinning threads": lambda: direct(model, 2, 2, 2, seconds),
        "1 session x 2 threads, 1 caller": lambda: direct(model, 1, 2, 1, seconds),
    }
    rows, raw = [], []
    for concurrency, goal in ((4, ">= 1.7 x Triton's layout"), (1, "p50 no slower than all cores")):
        medians, runs = served(args, model, config, concurrency, callers)
        base = medians["Triton's layout: 2 sessions x 2 spinning threads"]["infer/s"]
        for name, figures in medians.items():
            ratio = f"{figures['infer/s'] / base:.2f} x Triton's layout"
            what = f"{model}, KIND_CPU without count, concurrency {concurrency}"
            rows.append({"what": what, "server": name, **figures, "other": ratio, "goal": goal if name == "galatea" else None})
        raw.append({"what": f"layout, concurrency {concurrency}", "runs": runs})
    return rows, raw
