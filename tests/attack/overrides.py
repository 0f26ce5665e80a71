"""Configurations sent with a load: paths into the host, and numbers no machine has."""

import json
import os
import shutil
import stat
import subprocess
import time

import models
import raw_http
from registry import Achieved, attack

SECRET = "secret-of-the-host"
VECTOR = {
    "name": "vector", "backend": "identity",
    "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
}


def labelled(path):
    config = json.loads(json.dumps(VECTOR))
    config["output"][0]["label_filename"] = path
    return config


def classified(target):
    body = {
        "inputs": [{"name": "INPUT0", "shape": [2], "datatype": "FP32", "data": [1, 2]}],
        "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 2}}],
    }
    return target.ask("POST", "/v2/models/vector/infer", body)[1]


@attack("label-file")
def label_file(target):
    """label_filename names files outside the model: absolute, relative, the process's environment"""
    secret = target.outside / "secret.txt"
    secret.write_text(f"{SECRET}\n{SECRET}\n")
    answers = []
    for path in (str(secret), "../../outside/secret.txt", "1/../../../outside/secret.txt", "/proc/self/environ"):
        status, text = target.load("vector", labelled(path))
        answers.append(status)
        said = text + (classified(target) if status == 200 else "")
        if SECRET in said or "GALATEA_HOME=" in said:
            raise Achieved(f"label_filename '{path.replace(str(target.folder), '...')}' came back as a class")
    return "loads: " + raw_http.statuses(answers)


@attack("label-fifo")
def label_fifo(target):
    """label_filename names a FIFO, inside and outside the model: do other loads go on?"""
    outside, inside = target.outside / "fifo", target.repository / "vector/fifo"
    os.mkfifo(outside)
    os.mkfifo(inside)
    for path in [str(outside), "fifo"] * 6:
        connection = raw_http.connect(target.http)
        body = json.dumps({"parameters": {"config": json.dumps(labelled(path))}}).encode()
        connection.sendall(raw_http.post("/v2/repository/models/vector/load", body))
        target.outside_connections = [*getattr(target, "outside_connections", []), connection]
    time.sleep(1)
    status = raw_http.exchange(target.http, raw_http.post("/v2/repository/models/strings/load", b"{}"), 10)[0]
    raw_http.close(target.outside_connections)
    if status != 200:
        raise Achieved(f"another load after it: {status or 'no answer in 10 s'}")
    return ""


@attack("label-huge")
def label_huge(target):
    """label_filename names a file of 2 GB inside the model, and /dev/zero"""
    with open(target.repository / "vector/huge.txt", "wb") as file:
        file.truncate(2_000_000_000)
    answers = []
    for path in ("huge.txt", "/dev/zero"):
        body = json.dumps({"parameters": {"config": json.dumps(labelled(path))}}).encode()
        answers.append(raw_http.exchange(target.http, raw_http.post("/v2/repository/models/vector/load", body), 10)[0])
    return "loads: " + raw_http.statuses(answers)


@attack("default-model-filename")
def default_model_filename(target):
    """default_model_filename names a model outside the repository"""
    shutil.copy(target.repository / "magika/1/model.onnx", target.outside / "foreign.onnx")
    answers = []
    for path in (str(target.outside / "foreign.onnx"), "../../../outside/foreign.onnx"):
        config = {"name": "silero_vad", "backend": "onnxruntime", "default_model_filename": path}
        status, text = target.load("silero_vad", config)
        answers.append(status)
        if status == 200:
            raise Achieved("a file outside the repository was loaded as a model")
    return "loads: " + raw_http.statuses(answers)


MARKER = """\
#include <stdlib.h>
__attribute__((constructor)) static void ran(void) { system("touch %s"); }
"""


@attack("op-library")
def op_library(target):
    """op_library_filename names a library outside the model, which leaves a mark when it is opened"""
    if shutil.which("cc") is None:
        return "not played: no C compiler here"
    marker, library = target.outside / "mark", target.outside / "ops.so"
    source = target.outside / "ops.c"
    source.write_text(MARKER % marker)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    answers = []
    for path in (str(library), "../../outside/ops.so"):
        config = {
            "name": "simple", "backend": "onnxruntime", "max_batch_size": 8,
            "model_operations": {"op_library_filename": [path]},
        }
        answers.append(target.load("simple", config)[0])
        if marker.exists():
            raise Achieved("a library outside the repository was opened")
    return "loads: " + raw_http.statuses(answers)


@attack("execution-env-path", models=models.worker)
def execution_env_path(target):
    """EXECUTION_ENV_PATH names a folder outside the model, whose python leaves a mark"""
    marker, python = target.outside / "mark", target.outside / "env/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntouch {marker}\nexec python3 "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IEXEC)
    (python.parent / "python3").symlink_to(python)
    answers = []
    for path in (str(target.outside / "env"), "$$TRITON_MODEL_DIRECTORY/../../outside/env"):
        config = {
            "name": "worker", "backend": "python",
            "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
            "output": [{"name": "PID", "data_type": "TYPE_INT32", "dims": [1]}],
            "parameters": {"EXECUTION_ENV_PATH": {"string_value": path}},
        }
        answers.append(target.load("worker", config)[0])
        if marker.exists():
            raise Achieved("a program outside the repository was run")
    return "loads: " + raw_http.statuses(answers)


@attack("absolute-paths")
def absolute_paths(target):
    """errors of loads and requests: do they tell where things lie on the host?"""
    (target.repository / "broken/1").mkdir(parents=True)
    (target.repository / "broken/1/model.onnx").write_text("no model")
    (target.repository / "no_config/1").mkdir(parents=True)
    (target.repository / "bad_config").mkdir()
    (target.repository / "bad_config/config.pbtxt").write_text("backend: 3")
    models.python_model(target.repository, "raises", "import nowhere_to_be_found\n", models.WORKER_CONFIG)
    tries = [
        ("broken", {"name": "broken", "backend": "onnxruntime"}), ("broken", None), ("no_config", None), ("bad_config", None),
        ("raises", None), ("nowhere", None), ("vector", labelled("absent.txt")), ("../outside", None),
        ("silero_vad", {"name": "silero_vad", "backend": "onnxruntime", "default_model_filename": "absent.onnx"}),
        ("vector", "{"), ("vector", {"name": "vector", "backend": "absent"}),
    ]
    for model, config in tries:
        said = target.load(model.replace("/", "%2F"), config)[1]
        told(target, model, said)
    told(target, "index", target.ask("POST", "/v2/repository/index", {})[1])
    return f"{len(tries)} errors read"


def told(target, what, said):
    """The server's own folders; a Python model's traceback names the files of its interpreter, as it must."""
    if str(target.folder) in said:
        at = said.index(str(target.folder))
        raise Achieved(f"{what}: ...{said[max(0, at - 60):at + 60]}...".replace(str(target.folder), "<folder>"))


HUGE = (1_000_000_000_000, 2_000_000_000, 2**32 - 1, 2**63 - 1, 2**64 - 1)
NUMBERS = {
    "priority_levels": lambda n: {"max_batch_size": 8, "dynamic_batching": {"priority_levels": n, "default_priority_level": 1}},
    "default_priority_level": lambda n: {"max_batch_size": 8, "dynamic_batching": {"priority_levels": n, "default_priority_level": n}},
    "instance_group.count": lambda n: {"instance_group": [{"count": n, "kind": "KIND_CPU"}]},
    "preferred_batch_size": lambda n: {"max_batch_size": n, "dynamic_batching": {"preferred_batch_size": [n]}},
    "max_batch_size": lambda n: {"max_batch_size": n},
    "max_queue_delay_microseconds": lambda n: {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": n}},
    "max_queue_size": lambda n: {"max_batch_size": 8, "dynamic_batching": {"default_queue_policy": {"max_queue_size": n}}},
    "default_timeout_microseconds": lambda n: {"max_batch_size": 8, "dynamic_batching": {"default_queue_policy": {"default_timeout_microseconds": n}}},
    "dims": lambda n: {"input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [n, n]}]},
    "version_policy.latest": lambda n: {"version_policy": {"latest": {"num_versions": n}}},
    "version_policy.specific": lambda n: {"version_policy": {"specific": {"versions": [n, 1]}}},
    "warmup.batch_size": lambda n: {"model_warmup": [warm_up(n, [1], 1)]},
    "warmup.count": lambda n: {"model_warmup": [warm_up(1, [1], n)]},
    "warmup.dims": lambda n: {"model_warmup": [warm_up(1, [n], 1)]},
    "execute_delay_ms": lambda n: {"parameters": {"instance_wise_delay_multiplier": {"string_value": str(n)}}},
}


def warm_up(batch, dims, count):
    tensor = {"data_type": "TYPE_FP32", "dims": dims, "zero_data": True}
    return {"name": "warm", "batch_size": batch, "count": count, "inputs": {"INPUT0": tensor}}


@attack("config-numbers")
def config_numbers(target):
    """every count of a configuration at 1e12, 2e9 and the ends of its type: does each load end, with an answer?"""
    answers, hung = [], []
    for name, config in NUMBERS.items():
        for number in HUGE:
            body = json.dumps({"parameters": {"config": json.dumps({**VECTOR, **config(number)})}}).encode()
            status = raw_http.exchange(target.http, raw_http.post("/v2/repository/models/vector/load", body), 15)[0]
            answers.append(status)
            if not target.is_alive():
                return f"after {name} = {number}"
            if status == 0:
                hung.append(f"{name} = {number}")
                break
    if hung:
        raise Achieved("no answer in 15 s: " + ", ".join(hung))
    return "loads: " + raw_http.statuses(answers)


@attack("poll-hostile-tree", explicit=False, flags=("--model-control-mode=poll", "--repository-poll-secs=1", "--exit-on-error=false"))
def poll_hostile_tree(target):
    """the repository that is polled gets links in circles, 20,000 files, deep folders, FIFOs, and a model that never stops growing"""
    tree = target.repository
    (tree / "circle").mkdir()
    (tree / "circle/1").symlink_to(tree)
    (tree / "outside").symlink_to("/proc")
    os.mkfifo(tree / "fifo")
    (tree / "piped/1").mkdir(parents=True)
    os.mkfifo(tree / "piped/config.pbtxt")
    deep = tree / "deep/1" / "/".join(["d"] * 200)
    deep.mkdir(parents=True)
    wide = tree / "wide/1"
    wide.mkdir(parents=True)
    for number in range(20_000):
        (wide / f"file_{number}").touch()
    (tree / "huge").mkdir()
    with open(tree / "huge/config.pbtxt", "wb") as file:
        file.truncate(2_000_000_000)
    growing = tree / "growing"
    shutil.copytree(tree / "vector", growing)
    config = (growing / "config.pbtxt").read_text().replace('"vector"', '"growing"')
    loads = 0
    for round_ in range(16):
        (growing / "config.pbtxt").write_text(config + "# more\n" * round_)
        loads += target.ask("GET", "/v2/models/growing/ready")[0] == 200
        if target.ask("GET", "/v2/models/vector/ready")[0] != 200:
            raise Achieved(f"another model is not ready after {round_} rounds")
        time.sleep(0.5)
    if loads:
        raise Achieved("a model was loaded while its files still changed")
    deadline = time.monotonic() + 10
    while target.ask("GET", "/v2/models/growing/ready")[0] != 200:
        if time.monotonic() > deadline:
            raise Achieved("a model whose files no longer change is not loaded within 10 s")
        time.sleep(0.2)
    return "nothing was loaded that was not whole"
