"""Instance groups and metrics of GPUs, on machines without one: what is refused and how, and where instances go and
what is told when there is a driver. The driver is made up (`fake_driver`): it says which GPUs there are and what they
do, and nothing computes on them. What computes is proved by `tests/gpu`, on a machine that has one."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import made_up_driver
import repositories
import scenarios
import servers
import tiers
from shared_flags import NO_GPU
from waiting import eventually

CAPABILITY = "GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: "

# Name of the instance group's fields, and the error about them where there is no GPU.
GROUPS = {
    "any_gpu": ("kind: KIND_GPU", "instance group any_gpu_0 of model any_gpu has kind KIND_GPU but no GPUs are available"),
    "gpu_0": ("count: 1 kind: KIND_GPU gpus: [ 0 ]", f"instance group gpu_0_0 of model gpu_0 specifies invalid or unsupported gpu id 0. {CAPABILITY}"),
    "auto_0": ("gpus: [ 0 ]", "instance group auto_0_0 of model auto_0 has kind KIND_CPU but specifies one or more GPUs"),
    "named": ('name: "fast" kind: KIND_GPU gpus: [ 3, 1 ]', f"instance group fast of model named specifies invalid or unsupported gpu id 3. {CAPABILITY}"),
}

PLACES = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.place = f"{args['model_instance_kind']} {args['model_instance_device_id']} {args['model_instance_name']}"

    def execute(self, requests):
        place = pb.Tensor("PLACE", np.array([self.place.encode()], dtype=np.object_))
        return [pb.InferenceResponse([place]) for _ in requests]
"""
PLACES_CONFIG = 'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "PLACE" data_type: TYPE_STRING dims: 1 }\n'


def add_python(folder, name, group=""):
    group = f"instance_group {{ {group} }}" if group else ""
    repositories.write_model(folder, name, "galatea", "python", PLACES_CONFIG + group, files={"1/model.py": PLACES})


def add_onnx(folder, name, group=""):
    """An identity; onnx's own writer makes the file."""
    from onnx import TensorProto, helper, save

    value = lambda v: helper.make_tensor_value_info(v, TensorProto.FLOAT, ["n", 2])
    node = helper.make_node("Identity", ["X"], ["Y"])
    graph = helper.make_graph([node], "identity", [value("X")], [value("Y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    group = f"instance_group {{ {group} }}" if group else ""
    repositories.write_model(folder, name, "galatea", "onnxruntime", f"max_batch_size: 4\n{group}")
    save(model, folder / name / "1/model.onnx")


def get(address):
    """The real server logs that it has started its services a moment before they take connections."""

    def answer():
        try:
            with urllib.request.urlopen(f"http://{address}", timeout=30) as found:
                return [found.read().decode()]
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                return None
            raise

    return eventually("the service takes connections", answer)[0]


def states(server):
    request = urllib.request.Request(f"http://{server.http}/v2/repository/index", method="POST", data=b"{}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {row["name"]: (row["state"], row.get("reason", "")) for row in json.load(answer)}


def groups(server, model):
    config = json.loads(get(f"{server.http}/v2/models/{model}/config"))
    return [(group["name"], group["kind"], group["count"], group["gpus"]) for group in config["instance_group"]]


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """`without(target)` is a server without GPUs that was started with models for them, and with others."""
    running = {}

    def get(target):
        if target not in running:
            folder = tmp_path_factory.mktemp(target)
            for name, (group, _) in GROUPS.items():
                add_python(folder, name, group)
            add_python(folder, "plain")
            add_python(folder, "plain_cpu", "count: 1 kind: KIND_CPU")
            if target == "galatea":
                add_onnx(folder, "gpu", "count: 1 kind: KIND_GPU gpus: [ 0 ]")
                add_onnx(folder, "open")
            # A machine's own GPUs are not what is meant here.
            options = {"env": NO_GPU} if target == "galatea" else {}
            running[target] = servers.TARGETS[target](folder, "--exit-on-error=false", **options)
        return running[target]

    yield get
    for server in running.values():
        server.stop()


@tiers.both
def test_without_gpus_gpu_models_are_refused_like_in_triton(target, without):
    """Triton refuses with the same text; all other models are served."""
    if target == "triton" and shutil.which("nvidia-smi"):
        pytest.skip("the real Triton would find GPUs")
    server = without(target)
    found = states(server)
    for name, (_, expected) in GROUPS.items():
        state, reason = found[name]
        assert (state, scenarios.PLACE.sub("", reason).removeprefix("Invalid argument: ")) == ("UNAVAILABLE", expected)
    assert found["plain"][0] == found["plain_cpu"][0] == "READY"
    assert "nv_gpu" not in get(f"{server.metrics}/metrics")
    assert "nv_energy" not in get(f"{server.metrics}/metrics")
    assert groups(server, "plain")[0][1:] == ("KIND_CPU", 1, [])
    assert re.search(r"min_supported_compute_capability *\| 6\.0 ", server.text())


def test_without_gpus_onnx_gpu_models_are_refused(without):
    server = without("galatea")
    found = states(server)
    assert found["gpu"][0] == "UNAVAILABLE"
    assert scenarios.without_places(found["gpu"][1]).endswith(f"instance group gpu_0 of model gpu specifies invalid or unsupported gpu id 0. {CAPABILITY}")
    assert found["open"][0] == "READY"
    assert groups(server, "open") == [("open", "KIND_CPU", 2, [])]
    assert re.search(r"^I.*GPU metrics will not be available: no NVIDIA GPU is found", server.text(), re.M)


@pytest.fixture(scope="module")
def driver():
    """Environment of a server that finds the made-up driver."""
    return made_up_driver.environment()


def gpu_samples(server):
    text = get(f"{server.metrics}/metrics")
    samples = re.findall(r'^(nv_(?:gpu|energy)\w+)\{gpu_uuid="([^"]+)"\} (\S+)$', text, re.M)
    return {(name, uuid): float(value) for name, uuid, value in samples}, text


@pytest.fixture(scope="module")
def made_up(driver, tmp_path_factory):
    """A server on the made-up driver."""
    folder = tmp_path_factory.mktemp("made-up")
    add_python(folder, "open")
    add_python(folder, "second", "count: 2 kind: KIND_GPU gpus: [ 1 ]")
    add_python(folder, "cpu", "kind: KIND_CPU")
    add_python(folder, "old", "kind: KIND_GPU gpus: [ 2 ]")
    add_onnx(folder, "open_onnx")
    add_onnx(folder, "gpu", "kind: KIND_GPU")
    with servers.galatea(folder, "--exit-on-error=false", "--metrics-interval-ms=20", env=driver) as server:
        yield server


def test_gpu_metrics_are_reported(made_up):
    server = made_up
    found, text = gpu_samples(server)
    for index in range(3):
        uuid = f"GPU-made-up-{index}"
        assert found["nv_gpu_utilization", uuid] == 0.25 * (index + 1)
        assert found["nv_gpu_memory_total_bytes", uuid] == 8e9
        assert found["nv_gpu_memory_used_bytes", uuid] == 1e6 * (index + 1)
    assert found["nv_gpu_power_usage", "GPU-made-up-0"] == 101.5
    assert found["nv_gpu_power_limit", "GPU-made-up-2"] == 700
    lacking = {name for name, uuid in found if uuid == "GPU-made-up-1"}
    assert lacking == {"nv_gpu_utilization", "nv_gpu_memory_total_bytes", "nv_gpu_memory_used_bytes"}
    assert "# TYPE nv_energy_consumption counter\n" in text and "# TYPE nv_gpu_power_usage gauge\n" in text
    server.wait_for_line(r"Collecting metrics for GPU 0: Made-up GPU 0")
    server.wait_for_line(r"^W.*Unable to get power usage for GPU 1: .*Not Supported")
    energy = [found["nv_energy_consumption", "GPU-made-up-0"]]

    def more():
        energy.append(gpu_samples(server)[0]["nv_energy_consumption", "GPU-made-up-0"])
        return len(set(energy)) == 3

    eventually("the energy is seen to grow twice", more)
    assert energy == sorted(energy) and 0 <= energy[0] < 1000, "since the server started"
    assert server.text().count("Unable to get power usage") == 1, "said once"


def test_gpu_metrics_can_be_switched_off(driver, tmp_path):
    """Another flag admits older GPUs."""
    add_python(tmp_path, "open")
    flags = ("--allow-gpu-metrics=false", "--min-supported-compute-capability=5.0")
    with servers.galatea(tmp_path, *flags, env=driver) as server:
        assert "nv_gpu" not in get(f"{server.metrics}/metrics")
        assert "Collecting metrics for GPU" not in server.text()
        assert groups(server, "open") == [("open", "KIND_GPU", 1, [0, 1, 2])]


@tiers.peers
def test_a_cpu_only_server_has_no_gpu_metrics(driver, tmp_path):
    with servers.galatea(tmp_path, env={**driver, "TRITON_SERVER_CPU_ONLY": "1"}) as server:
        assert "nv_gpu" not in get(f"{server.metrics}/metrics")
        assert "Collecting metrics for GPU" not in server.text()


def test_check_knows_the_gpus_of_its_machine(driver, tmp_path):
    add_python(tmp_path, "second", "count: 2 kind: KIND_GPU gpus: [ 1 ]")
    check = lambda **env: subprocess.run(  # noqa: E731
        [servers.galatea_binary(), "check", tmp_path], env={**os.environ, **env}, capture_output=True, text=True)
    assert "unsupported gpu id 1" in check().stdout
    found = check(**driver)
    assert found.returncode == 0, found.stdout


def test_instances_use_the_available_gpus(made_up):
    server = made_up
    assert groups(server, "open") == [("open", "KIND_GPU", 1, [0, 1])]
    assert groups(server, "second") == [("second_0", "KIND_GPU", 2, [1])]
    assert groups(server, "cpu") == [("cpu_0", "KIND_CPU", 1, [])]
    assert scenarios.without_places(states(server)["old"][1]).endswith(f"specifies invalid or unsupported gpu id 2. {CAPABILITY}0, 1")
    server.wait_for_line(r"GPU 2 \(Made-up GPU 2\) is not used: its compute capability 5\.2 is below ")
    places = {place(server, "second") for _ in range(20)}
    assert places <= {"GPU 1 second_0_0_gpu1", "GPU 1 second_0_1_gpu1"} and places
    assert place(server, "cpu") == "CPU 0 cpu_0_0"


def place(server, model):
    body = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [0]}]}).encode()
    request = urllib.request.Request(f"http://{server.http}/v2/models/{model}/infer", data=body)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["outputs"][0]["data"][0]


def test_an_onnx_runtime_without_cuda_uses_the_cpu(made_up):
    """The installed library has no CUDA: open groups run on the CPU, a request for a GPU is refused with the reason."""
    library = servers.onnx_runtime().get("GALATEA_ONNXRUNTIME_LIB")
    if library and list(Path(library).parent.glob("libonnxruntime_providers_cuda.so")):
        pytest.skip("this ONNX Runtime can use CUDA")
    server = made_up
    assert groups(server, "open_onnx") == [("open_onnx", "KIND_CPU", 2, [])]
    assert states(server)["open_onnx"][0] == "READY"
    reason = states(server)["gpu"][1]
    assert "unable to load model 'gpu': instance group 'gpu_0' is for GPUs (KIND_GPU), but ONNX Runtime 1." in reason
    assert "was built without CUDAExecutionProvider; use KIND_CPU, start with --gpu-groups=cpu, or use an ONNX Runtime" in reason
    server.wait_for_line(r"^W.*GPUs are not used for ONNX models: ONNX Runtime 1\..* was built without CUDAExecutionProvider")
