"""The repository tutorial: layout, configuration, start, clients and load tool, on CPU."""

import concurrent.futures
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from onnx import TensorProto, helper, numpy_helper, save

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import small_models  # noqa: E402
import walkthrough  # noqa: E402

SERVE = "tritonserver --strict-model-config=False --model-repository=/models"
ROW = np.array([[0.1, 0.4, 0.2, 0.3]], np.float32)


def play(walk):
    repository = walk.folder / "model_repository"
    make_models(walk, repository)
    has_pytorch = needs_a_gpu(walk, repository)
    walk.title("Run the server")
    walk.not_run(
        "docker run -it -v <path_to_model_dir>/:/models -p5000:8000 -p5001:8001 -p5002:8002 nvcr.io/nvidia/tritonserver:21.07-py3 ...",
        "Docker; the command in the container is the next one",
    )
    with walk.serving(SERVE) as server:
        answer = walk.run("curl -v <ip_address>:<port>/v2/health/ready")
        walk.check("the return value is 200", "200 OK" in answer, answer)
        versions(walk, server)
        if has_pytorch:
            torchscript(walk, server)
        configurations(walk, server)
        instances(walk, server)
        clients(walk, server)
        performance(walk)


def make_models(walk, repository):
    walk.title("Create the model repository")
    for version in (1, 2):
        small_models.write_torchscript(repository / f"model_name_1/{version}/model.pt", version)
        small_models.write_onnx(repository / f"model_name_2/{version}/model.onnx", version)
    # Neither of these is a version: one begins with 0, the others are no numbers.
    for ignored in ("03", "notes", "4_draft"):
        small_models.write_onnx(repository / f"model_name_2/{ignored}/model.onnx", 9)
    small_models.write_onnx(repository / "unconfigured/1/model.onnx", 1, size=5)
    resnet_shaped(repository)
    shutil.copytree(walkthrough.EXAMPLE_MODELS / "simple", repository / "simple")
    for file in sorted(repository.rglob("*")):
        if file.is_file() and "model_name" in str(file):
            walk.say(f"   {file.relative_to(repository.parent)}")


def resnet_shaped(repository):
    """The document's configuration with another platform and a group of CPU instances, and a model of its shapes."""
    text = (repository / "resnet50_trt_fp16/config.pbtxt").read_text()
    for gpu, cpu in (
        ("resnet50_trt_fp16", "resnet50_cpu"),
        ("tensorrt_plan", "onnxruntime_onnx"),
        ("KIND_GPU", "KIND_CPU"),
        ("gpus: [0]", ""),
    ):
        assert gpu in text
        text = text.replace(gpu, cpu)
    folder = repository / "resnet50_cpu"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(text)
    tensors = [
        helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 224, 224]),
        helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 4]),
    ]
    weights = numpy_helper.from_array(np.random.default_rng(8).normal(0, 1, (3, 4)).astype(np.float32), "weights")
    nodes = [
        helper.make_node("ReduceMean", ["input"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["mean", "weights"], ["output"]),
    ]
    graph = helper.make_graph(nodes, "resnet_shaped", tensors[:1], tensors[1:], [weights])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "1/model.onnx")


def needs_a_gpu(walk, repository):
    """The document's TensorRT model keeps the server from starting; the log tells why, and which models are well.
    Whether this server runs PyTorch models is read there too."""
    walk.title("The document's configuration as it stands, without a GPU")
    log = walk.refused(SERVE)
    reason = reason_of(log, "resnet50_trt_fp16")
    walk.check(
        "the log says that resnet50_trt_fp16 wants a GPU, or TensorRT where there is one",
        "GPU" in reason or "tensorrt" in reason.lower(),
        reason,
    )
    shutil.rmtree(repository / "resnet50_trt_fp16")
    if "successfully loaded 'model_name_1'" in log:
        return True
    walk.say("   model_name_1 needs PyTorch, which this server does not have:")
    reason = reason_of(log, "model_name_1")
    walk.check("the log says so", "pytorch" in reason.lower(), reason)
    shutil.rmtree(repository / "model_name_1")
    return False


def reason_of(log, model):
    """What the table of models says of one that is not served."""
    row = next((line for line in log.splitlines() if line.startswith(f"| {model} ")), "")
    reason = " ".join(row.partition("UNAVAILABLE: ")[2].strip(" |").split())
    print(f"   {model}: {reason}")
    return reason


def tensors(module, arrays):
    made = []
    for name, array in arrays.items():
        made.append(module.InferInput(name, list(array.shape), {"float32": "FP32", "int32": "INT32"}[str(array.dtype)]))
        made[-1].set_data_from_numpy(array)
    return made


def versions(walk, server):
    walk.title("Versions")
    client = httpclient.InferenceServerClient(server.http)
    answer = client.infer("model_name_2", tensors(httpclient, {"INPUT": ROW}))
    walk.check(
        "the newest version answers: 2, not the folders 03, notes and 4_draft",
        answer.get_response()["model_version"] == "2"
        and walkthrough.difference(answer.as_numpy("OUTPUT"), small_models.expected(2, ROW)) < 1e-5,
    )
    walk.check("it is the only one that is served", client.get_model_metadata("model_name_2")["versions"] == ["2"])
    wanted = [httpclient.InferRequestedOutput("OUTPUT", class_count=1)]
    top = (
        client.infer("model_name_2", tensors(httpclient, {"INPUT": ROW}), outputs=wanted)
        .as_numpy("OUTPUT")[0][0]
        .decode()
    )
    walk.check("its labels come from labels.txt", top.endswith(":1:dog"), top)


def torchscript(walk, server):
    walk.title("model_name_1 from model.pt")
    client = httpclient.InferenceServerClient(server.http)
    answer = client.infer("model_name_1", tensors(httpclient, {"INPUT__0": ROW}))
    walk.check(
        "version 2 of the TorchScript model answers as the ONNX model does",
        answer.get_response()["model_version"] == "2"
        and walkthrough.difference(answer.as_numpy("OUTPUT__0"), small_models.expected(2, ROW)) < 1e-5,
    )


def configurations(walk, server):
    walk.title("Configurations")
    config = json.loads(walk.run("curl -s <ip_address>:<port>/v2/models/unconfigured/config"))
    walk.check(
        "a model without config.pbtxt got one from its file",
        (config["platform"], config["max_batch_size"] > 0, config["input"][0]["dims"])
        == ("onnxruntime_onnx", True, [5]),
        config,
    )
    client = httpclient.InferenceServerClient(server.http)
    config = client.get_model_config("model_name_2")
    walk.check("a configuration without a name has its folder's", config["name"] == "model_name_2", config)
    config = client.get_model_config("resnet50_cpu")
    batching = config["dynamic_batching"]
    walk.check(
        "the document's forms `input{`, `dims: 4` and `[8,16,32]` are read",
        (
            config["output"][0]["dims"],
            batching["preferred_batch_size"],
            batching["max_queue_delay_microseconds"],
            config["max_batch_size"],
        )
        == ([4], [8, 16, 32], 100, 128),
        config,
    )
    images = np.random.default_rng(9).random((2, 3, 224, 224), np.float32)
    answer = client.infer("resnet50_cpu", tensors(httpclient, {"input": images})).as_numpy("output")
    weights = np.random.default_rng(8).normal(0, 1, (3, 4)).astype(np.float32)
    walk.check(
        "two images [3,224,224] give four numbers each",
        answer.shape == (2, 4) and walkthrough.difference(answer, images.mean((2, 3)) @ weights) < 1e-4,
        answer,
    )


def instances(walk, server):
    walk.title("Several instances")

    def ask(_):
        client = httpclient.InferenceServerClient(server.http, network_timeout=60)
        return client.infer("two_instances", tensors(httpclient, {"WAIT": np.array([30], np.int32)})).as_numpy("MET")[0]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        met = list(pool.map(ask, range(2)))
    walk.check("two requests are at work at the same time", met == [1, 1], met)


def clients(walk, server):
    walk.title("The clients' own first examples, HTTP and gRPC, on the model `simple`")
    a, b = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)
    for name, module, address in (("http", httpclient, server.http), ("grpc", grpcclient, server.grpc)):
        client = module.InferenceServerClient(address)
        wanted = [module.InferRequestedOutput(output) for output in ("OUTPUT0", "OUTPUT1")]
        answer = client.infer("simple", tensors(module, {"INPUT0": a, "INPUT1": b}), outputs=wanted)
        right = (answer.as_numpy("OUTPUT0") == a + b).all() and (answer.as_numpy("OUTPUT1") == a - b).all()
        walk.check(f"tritonclient.{name}: sum and difference are right", right)


def performance(walk):
    walk.title("Understanding model performance")
    report = walk.perf("perf_analyzer -m simple")
    walk.check_measured(report, ["Concurrency: 1"])
    report = walk.perf("perf_analyzer -m simple -b 4 --concurrency_range 1:2 -i grpc")
    walk.check("the document's spelling --concurrency_range is understood", "Batch size: 4" in report)
    walk.check_measured(report, ["Concurrency: 1", "Concurrency: 2"])
    report = walk.run("perf_analyzer -m simple -u <ip_address>:<port> -p 300" + ("" if walk.is_long else " -s 1000000"))
    walk.check_measured(report, ["Concurrency: 1"])


if __name__ == "__main__":
    walkthrough.main(__file__, play)
