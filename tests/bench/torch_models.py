"""A TorchScript model served, against libtorch called directly in a process of its own: the same library (Debian's),
the same threads.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import clients
import measure
import seeds
import servers
import test_pytorch as scripts
import torchscript

BATCHES = (1, 8)
GOAL = ">= 0.95 of direct"
# One thread computes on either side, so that both sides use one core for it.
DIRECT = """
import sys, time, torch
torch.set_num_threads(1)
model = torch.jit.load(sys.argv[1]).eval()
batch, seconds = int(sys.argv[2]), float(sys.argv[3])
x = torch.rand(batch, 1, 28, 28)
with torch.inference_mode():
    for _ in range(50):
        model(x)
    begin, cpu, runs = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        model(x)
        runs += 1
took = time.perf_counter() - begin
print(runs * batch / took, took / runs * 1e6, (time.process_time() - cpu) / runs * 1e6)
"""


def direct(python, model, batch, seconds):
    done = subprocess.run([python, "-c", DIRECT, model, str(batch), str(seconds)], capture_output=True, text=True,
                          env=seeds.prepare.torch_env(), check=True)
    rate, latency, cpu = map(float, done.stdout.split())
    return {"infer/s": rate, "p50 us": latency, "p99 us": None, "CPU us/req": cpu}


def served(args):
    """One instance with one thread, four requests in flight over gRPC, not joined with each other."""
    rows, raw = [], []
    try:
        python = seeds.prepare.python_with_torch()
    except seeds.prepare.Missing as missing:
        print(f"left out: {missing}", file=sys.stderr)
        return rows, raw
    with tempfile.TemporaryDirectory() as folder:
        model = write_digits(Path(folder))
        with servers.galatea(folder, env=one_thread()) as server:
            for batch in BATCHES:
                cases = {
                    "galatea": lambda: measure.perf(server, "digits_pt", "grpc", 4, args.seconds, "-b", batch),
                    "direct": lambda: direct(python, model, batch, args.seconds * 3),
                }
                runs = {name: [] for name in cases}
                for _ in range(args.rounds):
                    for name, case in cases.items():
                        runs[name].append(case())
                medians = {name: median(done) for name, done in runs.items()}
                rows += rows_of(f"digits, TorchScript, 1 thread, batch {batch}", medians)
                raw.append({"what": f"digits batch {batch}", "runs": runs})
    more_rows, more_raw = first_requests()
    return rows + more_rows, raw + more_raw


WARM_UP = """
model_warmup { name: "digit" batch_size: 1 count: 3 inputs { key: "INPUT__0" value {
  data_type: TYPE_FP32 dims: [ 1, 28, 28 ] random_data: true } } }
"""


def first_requests():
    """The first request to a model that is ready: without warm-up libtorch compiles the script while a client waits."""
    rows, raw = [], []
    for label, more in (("without warm-up", ""), ("with warm-up", WARM_UP)):
        runs = [milliseconds_of_requests(more) for _ in range(5)]
        first, usual = (statistics.median(values) for values in zip(*runs))
        other = f"{first:.1f} ms ({first / usual:.1f} times the usual {usual:.1f} ms)"
        rows.append({"what": f"first request, digits, TorchScript, {label}", "server": "galatea", "other": other, "goal": None})
        raw.append({"what": f"first request {label}", "runs": runs})
    return rows, raw


def milliseconds_of_requests(more):
    """Of the first request to a new server, and the median of the 20 behind it."""
    body = {"inputs": [clients.tensor_json("INPUT__0", np.ones([1, 1, 28, 28], np.float32))]}
    with tempfile.TemporaryDirectory() as folder:
        write_digits(Path(folder), more)
        with servers.galatea(folder, env=one_thread()) as server:
            took = []
            for _ in range(21):
                begin = time.monotonic()
                status, _, text = clients.ask(server.http, "POST", "/v2/models/digits_pt/infer", body)
                took.append((time.monotonic() - begin) * 1000)
                assert status == 200, text
            return took[0], statistics.median(took[1:])


def one_thread():
    """OpenBLAS has threads of its own, which libtorch's setting does not reach: on both sides one."""
    return {**seeds.fast_matrices(), "OPENBLAS_NUM_THREADS": "1"}


def write_digits(root, more=""):
    config = 'name: "digits_pt" max_batch_size: 64 platform: "pytorch_libtorch" '
    config += f'input {scripts.port("INPUT__0", "FP32", "[ 1, 28, 28 ]")} output {scripts.port("OUTPUT__0", "FP32", 10)} '
    config += "instance_group { count: 1 kind: KIND_CPU } "
    config += 'parameters { key: "INTRA_OP_THREAD_COUNT" value { string_value: "1" } }'
    path = scripts.write_model(root, "digits_pt", config + more)
    torchscript.write_script(path, scripts.DIGITS, scripts.digit_weights())
    return path


def median(runs):
    known = [{key: value for key, value in run.items() if value is not None} for run in runs]
    return measure.median_of(known)


def rows_of(what, medians):
    ratio = medians["galatea"]["infer/s"] / medians["direct"]["infer/s"]
    return [
        {"what": what, "server": "libtorch in-process", **medians["direct"]},
        {"what": what, "server": "galatea", **medians["galatea"], "other": f"{ratio:.3f} of direct", "goal": GOAL},
    ]
