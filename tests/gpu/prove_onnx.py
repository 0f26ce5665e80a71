"""Proves ONNX models on a GPU through the server: the same answers as on the CPU, the weights once per GPU, the GPU's
metrics, what is refused; then prints the throughput of a batched ResNet-50. Needs Python with numpy and onnx only.

    prove_onnx.py --galatea PROGRAM --onnxruntime-lib LIBRARY [--device cpu]

`--device cpu` plays all but what needs a GPU: for trying this script where there is none."""

import argparse
import concurrent.futures
import json
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

import numpy as np

import models

SMALL = (3, 32, 32)
LARGE = (3, 224, 224)
INDEX_NOBODY_HAS = 63


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--galatea", required=True)
    parser.add_argument("--onnxruntime-lib", required=True)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--concurrencies", default="1,4")
    parser.add_argument("--accelerator", choices=["cuda", "tensorrt"], default="cuda")
    return parser.parse_args()


class Server:
    def __init__(self, arguments, repository):
        command = [
            arguments.galatea, "serve", f"--model-repository={repository}", "--exit-on-error=false",
            "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--http-port=0", "--grpc-port=0",
            "--metrics-port=0", "--metrics-interval-ms=100", f"--onnxruntime-lib={arguments.onnxruntime_lib}",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.log, self.at = [], {}
        for line in self.process.stdout:
            self.log.append(line)
            started = re.search(r"Started (\w+).* at (\S+?)\"", line)
            if started:
                self.at[started[1]] = started[2]
            if started and started[1] == "Metrics":
                break
        else:
            sys.exit("the server ended:\n" + "".join(self.log))
        threading.Thread(target=lambda: self.log.extend(self.process.stdout), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def get(self, path, body=None, service="HTTPService"):
        request = urllib.request.Request(f"http://{self.at[service]}{path}", data=body)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()

    def state(self, model):
        rows = json.loads(self.get("/v2/repository/index", b"{}"))
        return next((row["state"], row.get("reason", "")) for row in rows if row["name"] == model)

    def infer(self, model, images):
        header = json.dumps({
            "inputs": [{
                "name": "IMAGE", "datatype": "UINT8", "shape": list(images.shape),
                "parameters": {"binary_data_size": images.nbytes},
            }],
            "parameters": {"binary_data_output": True},
        }).encode()
        request = urllib.request.Request(
            f"http://{self.at['HTTPService']}/v2/models/{model}/infer", data=header + images.tobytes(),
            headers={"Inference-Header-Content-Length": str(len(header))},
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            length = int(answer.headers["Inference-Header-Content-Length"])
            body = answer.read()
        shape = json.loads(body[:length])["outputs"][0]["shape"]
        return np.frombuffer(body[length:], np.float32).reshape(shape)

    def next_metrics(self):
        """Waits until the GPUs have been looked at anew, which the energy shows."""
        before = self.gpu_metrics()["nv_energy_consumption"]
        while self.gpu_metrics()["nv_energy_consumption"] == before:
            pass

    def gpu_metrics(self):
        text = self.get("/metrics", service="Metrics").decode()
        return {name: float(value) for name, value in re.findall(r"^(nv_(?:gpu|energy)\w+)\{.*\} (\S+)$", text, re.M)}


def say(text):
    print(text, flush=True)


def write_repository(root, on_gpu, accelerator):
    """Twins of each network, on the CPU and on the device, and a model for a GPU that is not there."""
    group = "kind: KIND_GPU gpus: [ 0 ]" if on_gpu else "kind: KIND_CPU"
    fast = ""
    if on_gpu and accelerator == "tensorrt":
        fast = 'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } } } }\n'
    for name, network in [("small", models.small), ("resnet", models.resnet50)]:
        for twin, where, more in [
            ("cpu", "count: 1 kind: KIND_CPU", ""),
            ("device", f"count: 2 {group}", models.EXACT if on_gpu else ""),
        ]:
            folder = root / f"{name}_{twin}"
            network(folder / "1/model.onnx")
            models.config(folder, where, more + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n")
    folder = root / "resnet_fast"
    models.resnet50(folder / "1/model.onnx")
    models.config(folder, f"count: 2 {group}", fast)
    models.small(root / "open/1/model.onnx")
    (root / "open/config.pbtxt").write_text('platform: "onnxruntime_onnx"\nmax_batch_size: 8\n')
    models.small(root / "absent/1/model.onnx")
    models.config(root / "absent", f"kind: KIND_GPU gpus: [ {INDEX_NOBODY_HAS} ]")


def compare(server, name, image, count):
    """Every answer of the device's twin, alone and merged with others, against the CPU's."""
    random = np.random.default_rng(7)
    batches = [random.integers(0, 256, (1 + i % 4, *image), dtype=np.uint8) for i in range(count)]
    expected = [server.infer(f"{name}_cpu", batch) for batch in batches]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda batch: server.infer(f"{name}_device", batch), batches))
    scale = max(np.abs(scores).max() for scores in expected)
    worst = max(np.abs(a - b).max() for a, b in zip(expected, found)) / scale
    say(f"{name}: {count} requests of 1 to 4 images, 8 at a time: largest difference to the CPU {worst:.2e} of the largest score")
    assert worst < 1e-3, "not the CPU's answers"
    assert all(np.ptp(scores) > 0 for scores in found), "all scores are the same"


def check_gpu(server):
    for model in ["small_device", "open"]:
        group = json.loads(server.get(f"/v2/models/{model}/config"))["instance_group"][0]
        say(f"{model}: {group['kind']} on {group['gpus']}")
        assert group["kind"] == "KIND_GPU", group
    state, reason = server.state("absent")
    assert state == "UNAVAILABLE" and f"specifies invalid or unsupported gpu id {INDEX_NOBODY_HAS}. GPUs with" in reason, reason
    metrics = server.gpu_metrics()
    say(f"metrics: {metrics}")
    assert metrics["nv_gpu_memory_used_bytes"] > 100e6 and metrics["nv_gpu_power_usage"] > 0, metrics


def check_weights_once(arguments):
    """Three more instances on the GPU must not cost three times 100 MB of weights."""
    used = [memory_used(arguments, count) for count in (1, 4)]
    say(f"GPU memory with 1 and 4 instances of ResNet-50: {used[0] / 1e6:.0f} and {used[1] / 1e6:.0f} MB")
    assert used[1] - used[0] < 150e6


def memory_used(arguments, count):
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "resnet"
        models.resnet50(model / "1/model.onnx")
        models.config(model, f"count: {count} kind: KIND_GPU gpus: [ 0 ]")
        with Server(arguments, folder) as server:
            for _ in range(8):
                server.infer("resnet", np.zeros((1, *LARGE), np.uint8))
            server.next_metrics()
            return server.gpu_metrics()["nv_gpu_memory_used_bytes"]


def perf(arguments, server, model, batch, concurrency):
    command = [
        arguments.galatea, "perf", "-m", model, "-u", server.at["GRPCInferenceService"], "-i", "grpc",
        "-b", str(batch), "--concurrency-range", str(concurrency), "--measurement-interval", "3000",
        "--stability-percentage", "30",
    ]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    found = re.search(r"throughput: ([\d.]+) infer/sec, latency (\d+) usec", run.stdout)
    if "Failed to obtain stable measurement" in run.stdout:
        return None
    assert run.returncode == 0 and found, run.stdout
    return float(found[1]), int(found[2])


def measure(arguments, server):
    before = server.gpu_metrics().get("nv_energy_consumption")
    say("| batch | concurrency | images/s | latency, ms |\n|---|---|---|---|")
    for batch in map(int, arguments.batches.split(",")):
        for concurrency in map(int, arguments.concurrencies.split(",")):
            measured = perf(arguments, server, "resnet_fast", batch, concurrency)
            cells = f"{measured[0]:.0f} | {measured[1] / 1000:.2f}" if measured else "not steady | "
            say(f"| {batch} | {concurrency} | {cells} |")
    if before is not None:
        after = server.gpu_metrics()
        say(f"meanwhile: {after['nv_energy_consumption'] - before:.0f} J")
        assert after["nv_energy_consumption"] > before


def main():
    arguments = parse_arguments()
    on_gpu = arguments.device == "gpu"
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), on_gpu, arguments.accelerator)
        with Server(arguments, folder) as server:
            for model in ["small_device", "resnet_device", "resnet_fast", "open"]:
                state, reason = server.state(model)
                assert state == "READY", f"{model}: {reason}\n" + "".join(server.log)
            compare(server, "small", SMALL, 200)
            compare(server, "resnet", LARGE, 16 if on_gpu else 4)
            if on_gpu:
                check_gpu(server)
            measure(arguments, server)
        if on_gpu:
            check_weights_once(arguments)
    say("proved" if on_gpu else "played on the CPU")


if __name__ == "__main__":
    main()
