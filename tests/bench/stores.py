"""Start to ready with a model of 90 MB: from a folder, from S3 for the first time, and from S3 with the model in the cache.

The store is an emulator on this machine that reads each object into memory before it sends it, so that the first time is an
upper bound of what this server needs, beside a network it would be the network's."""

import statistics
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import clients
import object_stores
import servers

WIDTH = 4744  # 4744 * 4744 floats are 90 MB
RUNS = 5


def write_model(folder):
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((WIDTH, WIDTH), np.float32), "w")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", tensors[:1], tensors[1:], [weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (folder / "large/1").mkdir(parents=True)
    onnx.save(made, folder / "large/1/model.onnx")
    (folder / "large/config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\n')


def start_seconds(repository, cache, home):
    env = object_stores.environment(home, AWS_ACCESS_KEY_ID="K", AWS_SECRET_ACCESS_KEY="s", AWS_DEFAULT_REGION="us-east-1")
    begin = time.monotonic()
    with servers.galatea(repository, f"--repository-cache-directory={cache}", env=env) as server:
        status, _, _ = clients.ask(server.http, "GET", "/v2/health/ready")
        assert status == 200, server.text()
        return time.monotonic() - begin


def compared(args):
    store = object_stores.running("s3")
    bucket = f"bench-{uuid.uuid4().hex[:8]}"
    store.create(bucket)
    seconds = {"folder": [], "S3, first": [], "S3, again": []}
    with tempfile.TemporaryDirectory() as home:
        home = Path(home)
        write_model(home / "models")
        object_stores.fill(store, bucket, home / "models", "models")
        address = f"s3://{store.address}/{bucket}/models"
        for turn in range(RUNS):
            cache = home / f"cache{turn}"
            seconds["folder"].append(start_seconds(home / "models", cache, home))
            seconds["S3, first"].append(start_seconds(address, cache, home))
            seconds["S3, again"].append(start_seconds(address, cache, home))
    medians = {where: statistics.median(values) for where, values in seconds.items()}
    rows = [
        {"what": f"start to ready, 90 MB from {where}", "server": "galatea", "other": f"{took:.2f} s, {took / medians['folder']:.2f} of a folder's"}
        for where, took in medians.items()
    ]
    return rows, [{"stores": seconds}]
