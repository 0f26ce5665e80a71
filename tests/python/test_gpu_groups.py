"""Repositories made for GPUs on a machine without one: what `--gpu-groups=cpu` makes of their instance groups."""

import json
import os
import re
import subprocess

import numpy as np
import pytest

import clients
import repositories
import servers
import tiers
import torchscript
from shared_flags import NO_GPU, WITHOUT_GPUS

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("without_gpus")
WARNING = "asks for GPUs that this server does not have: "

# Models for GPUs do this: a device by what the server says of the instance.
DEVICE_MODEL = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        on_gpu = args["model_instance_kind"] == "GPU"
        self.device = f"cuda:{args['model_instance_device_id']}" if on_gpu else "cpu"
        pb.Logger.log_warn(f"initialized {args['model_instance_name']} on {self.device}")

    def execute(self, requests):
        device = pb.Tensor("DEVICE", np.array([self.device.encode()], dtype=np.object_))
        return [pb.InferenceResponse([device]) for _ in requests]
"""
DEVICE_CONFIG = 'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "DEVICE" data_type: TYPE_STRING dims: 1 }\n'
TENSORRT = """\
optimization { cuda { graphs: true } execution_accelerators { gpu_execution_accelerator [
  { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }, { name: "gpu_io" } ] } }
"""
PORTS = 'input { name: "x" data_type: TYPE_FP32 dims: 2 } output { name: "y" data_type: TYPE_FP32 dims: 2 }\n'


@pytest.fixture
def server(shared):
    return shared(*WITHOUT_GPUS, env=NO_GPU)


def add_python(folder, name, group):
    repositories.write_model(folder, name, "galatea", "python", DEVICE_CONFIG + group, files={"1/model.py": DEVICE_MODEL})


def add_onnx(folder, name, more):
    """Doubles its input; onnx's own writer makes the file."""
    from onnx import TensorProto, helper, save

    value = lambda v: helper.make_tensor_value_info(v, TensorProto.FLOAT, ["n", 2])  # noqa: E731
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [value("x")], [value("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    repositories.write_model(folder, name, "galatea", "onnxruntime", f"max_batch_size: 4\n{more}")
    save(model, folder / name / "1/model.onnx")


def ask(server, method, path, body=None):
    status, _, answer = clients.ask(server.http, method, path, body)
    assert status == 200, answer
    return json.loads(answer) if answer else None


def groups(server, model):
    config = ask(server, "GET", f"/v2/models/{model}/config")
    return [(group["kind"], group["count"], group["gpus"]) for group in config["instance_group"]]


def doubled(server, model, shape):
    tensor = {"name": "x", "datatype": "FP32", "shape": shape, "data": [1.5, -2]}
    answer = ask(server, "POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
    return answer["outputs"][0]["data"]


def device(server, model):
    tensor = {"name": "X", "datatype": "FP32", "shape": [1], "data": [0]}
    answer = ask(server, "POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
    return answer["outputs"][0]["data"][0]


def warnings(server, model):
    """The lines about this model's groups."""
    return re.findall(rf"^W.*instance_group of model '{model}' {WARNING}(.*?)(?: \(\S*config\S*\)|\"?$)", server.text(), re.M)


def started(server, model):
    """The names of its instances, as its code got them, with their devices."""
    return set(re.findall(rf"initialized ({model}_\S+) on ([\w:]+)", server.text()))


def test_gpu_groups_run_on_the_cpu_if_allowed(server):
    folder = server.repository
    add_python(folder, "device", "instance_group [ { kind: KIND_GPU gpus: [ 0, 3 ] count: 2 } ]")
    add_python(folder, "open", "instance_group [ { kind: KIND_GPU } ]")
    add_python(folder, "mixed", "instance_group [ { kind: KIND_CPU count: 2 }, { gpus: [ 0 ] } ]")
    add_python(folder, "plain", "instance_group [ { kind: KIND_CPU } ]")
    add_onnx(folder, "onnx", "instance_group [ { kind: KIND_GPU gpus: [ 0, 1 ] } ]\n" + TENSORRT)
    for name in ("device", "open", "mixed", "plain", "onnx"):
        server.load(name)
    assert groups(server, "device") == [("KIND_GPU", 2, [0, 3])]
    assert groups(server, "open") == [("KIND_GPU", 1, [])]
    assert groups(server, "onnx") == [("KIND_GPU", 1, [0, 1])]
    accelerators = ask(server, "GET", "/v2/models/onnx/config")["optimization"]["execution_accelerators"]
    assert [a["name"] for a in accelerators["gpu_execution_accelerator"]] == ["tensorrt", "gpu_io"]
    assert doubled(server, "onnx", [1, 2]) == [3, -4]
    assert {device(server, model) for model in ("device", "open", "mixed", "plain")} == {"cpu"}
    assert started(server, "device") == {(f"device_0_{i}", "cpu") for i in range(4)}
    assert started(server, "open") == {("open_0_0", "cpu")}
    assert started(server, "mixed") == {("mixed_0_0", "cpu"), ("mixed_0_1", "cpu"), ("mixed_1_0", "cpu")}
    assert warnings(server, "device") == ["4 instances run (group 'device_0') on the CPU"]
    assert warnings(server, "open") == ["1 instance runs (group 'open_0') on the CPU"]
    assert warnings(server, "mixed") == ["1 instance runs (group 'mixed_1') on the CPU"]
    assert warnings(server, "onnx") == [
        "2 instances run (group 'onnx_0') on the CPU, without accelerator 'tensorrt', accelerator 'gpu_io', optimization.cuda"]
    assert warnings(server, "plain") == []
    assert not re.search(r"^W.*'onnx'.*has no effect", server.text(), re.M), "one warning a model"


def test_isolated_gpu_models_run_on_the_cpu_if_allowed(server):
    isolated = 'parameters { key: "isolation" value { string_value: "process" } }\n'
    add_onnx(server.repository, "onnx", "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n" + TENSORRT + isolated)
    server.load("onnx")
    assert doubled(server, "onnx", [1, 2]) == [3, -4]
    assert groups(server, "onnx") == [("KIND_GPU", 1, [0])]


@tiers.peers
@pytest.mark.skipif(not servers.has_libtorch(), reason="no libtorch here: apt-get install libtorch-dev g++")
def test_a_torchscript_model_for_a_gpu_runs_on_the_cpu_if_allowed(tmp_path):
    ports = PORTS.replace('"x"', '"x__0"').replace('"y"', '"y__0"')
    group = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 } ]\n"
    folder = repositories.write_model(tmp_path, "torch", "galatea", "pytorch", ports + group + TENSORRT)
    torchscript.write_script(folder / "1/model.pt", "x: Tensor) -> Tensor:\n    return torch.add(x, x)")
    with servers.galatea(tmp_path, "--gpu-groups=cpu", env=NO_GPU) as server:
        tensor = {"name": "x__0", "datatype": "FP32", "shape": [2], "data": [1.5, -2]}
        answer = ask(server, "POST", "/v2/models/torch/infer", json.dumps({"inputs": [tensor]}))
        np.testing.assert_array_equal(answer["outputs"][0]["data"], [3, -4])
        assert groups(server, "torch") == [("KIND_GPU", 2, [0])]
        assert len(warnings(server, "torch")) == 1


def test_gpu_groups_in_a_load_request_run_on_the_cpu_if_allowed(server):
    add_python(server.repository, "device", "instance_group [ { kind: KIND_CPU } ]")
    server.owns("device")
    config = {"backend": "python", "instance_group": [{"kind": "KIND_GPU", "gpus": [1, 2]}],
              "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [1]}],
              "output": [{"name": "DEVICE", "data_type": "TYPE_STRING", "dims": [1]}]}
    body = json.dumps({"parameters": {"config": json.dumps(config)}})
    ask(server, "POST", "/v2/repository/models/device/load", body)
    assert groups(server, "device") == [("KIND_GPU", 1, [1, 2])]
    assert device(server, "device") == "cpu"
    assert warnings(server, "device") == ["2 instances run (group 'device_0') on the CPU"]
    # Fewer, while it runs: only the instances change.
    config["instance_group"] = [{"kind": "KIND_GPU", "gpus": [1]}]
    body = json.dumps({"parameters": {"config": json.dumps(config)}})
    ask(server, "POST", "/v2/repository/models/device/load", body)
    assert warnings(server, "device")[1:] == ["1 instance runs (group 'device_0') on the CPU"]
    assert device(server, "device") == "cpu"


def test_check_reports_the_same(tmp_path):
    add_python(tmp_path, "device", "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    check = lambda *flags: subprocess.run(  # noqa: E731
        [servers.galatea_binary(), "check", tmp_path, *flags], env={**os.environ, **NO_GPU}, capture_output=True, text=True)
    refused = check()
    assert refused.returncode == 1 and "`--gpu-groups=cpu`" in refused.stdout, refused.stdout
    fine = check("--gpu-groups=cpu")
    assert fine.returncode == 0, fine.stdout
    assert f"instance_group of model 'device' {WARNING}1 instance runs (group 'device_0') on the CPU" in fine.stdout
    wrong = check("--gpu-groups=gpu")
    assert wrong.returncode == 2 and "refuse" in wrong.stderr and "cpu" in wrong.stderr
