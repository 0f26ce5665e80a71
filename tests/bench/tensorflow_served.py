"""TensorFlow models served, against TensorFlow called directly in a Python process of its own: the same models, the same
threads, the same requests. And what instances cost in memory, and a load in time.
"""

import re
import subprocess
import tempfile
import time
from pathlib import Path

import clients
import measure
import servers

PYTHON = servers.PEERS / "engines/bin/python"
MAKER = servers.ROOT / "tests/python/tensorflow_models.py"
# Of each its input, the dimensions of that, and where a run is computed that nothing overlaps (ADR 24): on the thread that
# asks where it is short, else on all of TensorFlow's.
MODELS = {"perceptron": ("x", [64], -1), "convolutions": ("image", [96, 96, 3], 0)}
GOAL = ">= 0.97 of direct"
MEMORY_GOAL = "<= 1.1 of one instance"
# In a session, as the server does it, and not by Python's functions: those cost more.
DIRECT = """
import sys, time, numpy as np, tensorflow as tf
v1 = tf.compat.v1
path, name, pool, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
with tf.Graph().as_default(), v1.Session() as session:
    signature = v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
    info = signature.inputs[name]
    shape = [1] + [dim.size for dim in info.tensor_shape.dim[1:]]
    fetched = [output.name for output in signature.outputs.values()]
    options = v1.RunOptions(inter_op_thread_pool=pool)
    run = session.make_callable(fetched, [info.name], accept_options=True)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for _ in range(50):
        run(x, options=options)
    begin, cpu, runs = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        run(x, options=options)
        runs += 1
    took = time.perf_counter() - begin
print(runs / took, took / runs * 1e6, (time.process_time() - cpu) / runs * 1e6)
"""


def direct(path, name, pool, seconds):
    done = subprocess.run(
        [PYTHON, "-c", DIRECT, path, name, str(pool), str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    rate, latency, cpu = map(float, done.stdout.split()[-3:])
    return {"infer/s": rate, "p50 us": latency, "p99 us": None, "CPU us/req": cpu}


def served(args):
    """One instance, two requests in flight over gRPC, not joined: the next one is there when an instance is free."""
    rows, raw = [], []
    if not PYTHON.exists():
        print("left out: no Python with TensorFlow (cargo xtask setup)")
        return rows, raw
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([PYTHON, MAKER, made], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        source = Path(made) / "repository"
        for model, (name, _, pool) in MODELS.items():
            with tempfile.TemporaryDirectory() as folder, serving(source, model, folder, 1) as server:
                cases = {
                    "galatea": lambda: load(server, model, 2, args.seconds),
                    "direct": lambda: direct(source / model / "1/model.savedmodel", name, pool, args.seconds * 3),
                }
                runs = {case: [] for case in cases}
                for _ in range(args.rounds):
                    for case, run in cases.items():
                        runs[case].append(run())
            rows += rows_of(f"{model}, TensorFlow, 1 instance", {case: median(done) for case, done in runs.items()})
            raw.append({"what": model, "runs": runs})
        more, kept = memory(source)
        rows += more
        raw.append({"what": "memory of instances, time of a load", "runs": kept})
    return rows, raw


def serving(source, model, folder, instances):
    copy = Path(folder) / model
    (copy / "1").mkdir(parents=True)
    (copy / "1/model.savedmodel").symlink_to(source / model / "1/model.savedmodel")
    (copy / "config.pbtxt").write_text(f"max_batch_size: 0 instance_group {{ count: {instances} kind: KIND_CPU }}\n{whole(model)}")
    return servers.galatea(folder)


def whole(model):
    """Inputs with their first dimension, so that requests are not joined."""
    name, dims, _ = MODELS[model]
    return f'input {{ name: "{name}" data_type: TYPE_FP32 dims: {[-1, *dims]} }}'


def load(server, model, concurrency, seconds):
    name, dims, _ = MODELS[model]
    shape = ",".join(map(str, [1, *dims]))
    return measure.perf(server, model, "grpc", concurrency, seconds, "--shape", f"{name}:{shape}")


def memory(source):
    """Resident memory after every instance has served, and how long the server needed to be ready."""
    kept = {}
    for instances in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            with serving(source, "convolutions", folder, instances) as server:
                took = time.perf_counter() - begin
                load(server, "convolutions", 2 * instances, 2)
                kept[instances] = {"MB": resident(server.process.pid), "ready s": took}
    ratio = kept[4]["MB"] / kept[1]["MB"]
    rows = [
        {"what": f"convolutions, {count} instances", "server": "galatea", "other": f"{one['MB']:.0f} MB, ready in {one['ready s']:.1f} s"}
        for count, one in kept.items()
    ]
    rows[-1] |= {"other": f"{ratio:.2f} of one, {rows[-1]['other']}", "goal": MEMORY_GOAL}
    return rows, kept


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def median(runs):
    return measure.median_of([{key: value for key, value in run.items() if value is not None} for run in runs])


def rows_of(what, medians):
    ratio = medians["galatea"]["infer/s"] / medians["direct"]["infer/s"]
    return [
        {"what": what, "server": "TensorFlow in-process", **medians["direct"]},
        {"what": what, "server": "galatea", **medians["galatea"], "other": f"{ratio:.3f} of direct", "goal": GOAL},
    ]
