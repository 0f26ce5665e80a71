"""The course module's exercises: layouts, versions, health, load tool, on CPU."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import tritonclient.http as httpclient

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import small_models  # noqa: E402
import walkthrough  # noqa: E402

SERVE = "tritonserver --model-repository=/models"
ROW = np.array([[0.1, 0.4, 0.2, 0.3]], np.float32)
# Model, its version policy, the versions that are served of 1, 2 and 3.
POLICIES = [
    ("classifier", "version_policy { latest { num_versions: 2 } }", [2, 3]),
    ("classifier_newest", "", [3]),
    ("classifier_all", "version_policy { all { } }", [1, 2, 3]),
    ("classifier_chosen", "version_policy: { specific: { versions: [1, 3] } }", [1, 3]),
]


def play(walk):
    repository = walk.folder / "model_repository"
    make_models(walk, repository)
    has_pytorch = torchscript_loads(walk, repository)
    cloud(walk)
    walk.title("Exercise 1: run the server")
    walk.not_run("docker pull nvcr.io/nvidia/tritonserver:${RELEASE}-py3", "Docker; the server is one program here")
    with walk.serving(SERVE) as server:
        answer = walk.run("curl -v localhost:8000/v2/health/ready")
        walk.check("the answer is 200 OK", "200 OK" in answer, answer)
        policies(walk, server)
        if has_pytorch:
            torchscript(walk, server)
        batching(walk, server)
        walk.title("Exercise 3: the performance analyzer")
        walk.not_run(
            "docker run --gpus all --rm -it --net host nvcr.io/nvidia/tritonserver:${RELEASE}-py3-sdk",
            "Docker; the load tool is part of the server's program here",
        )
        report = walk.perf("perf_analyzer -m simple")
        walk.check_measured(report, ["Concurrency: 1"])


def make_models(walk, repository):
    """The same three versions under four policies; version n computes softmax(n * x)."""
    walk.title("Model repository")
    text = (repository / "classifier/config.pbtxt").read_text()
    for name, policy, _ in POLICIES:
        folder = repository / name
        folder.mkdir(exist_ok=True)
        assert POLICIES[0][1] in text
        (folder / "config.pbtxt").write_text(text.replace('"classifier"', f'"{name}"').replace(POLICIES[0][1], policy))
        for version in (1, 2, 3):
            small_models.write_onnx(folder / f"{version}/model.onnx", version)
    for version in (1, 2):
        small_models.write_torchscript(repository / f"classifier_pt/{version}/model.pt", version)
    shutil.copytree(walkthrough.EXAMPLE_MODELS / "simple", repository / "simple")
    for file in sorted(repository.rglob("*")):
        if file.is_file() and file.relative_to(repository).parts[0] in ("classifier", "classifier_pt"):
            walk.say(f"   {file.relative_to(repository.parent)}")


def torchscript_loads(walk, repository):
    """Whether this server runs the TorchScript layout; if not, its log must say why, and the layout is taken away."""
    walk.title("The TorchScript layout")
    with walk.serving(
        SERVE, "--exit-on-error=false --model-control-mode=explicit --load-model=classifier_pt"
    ) as server:
        rows = [f"{version}: {status}" for name, version, status in server.table() if name == "classifier_pt"]
    for row in rows:
        walk.say(f"   classifier_pt {row}")
    if all(row.endswith("READY") for row in rows) and rows:
        return True
    walk.check(
        "without PyTorch the log says that it is what the model lacks",
        any("UNAVAILABLE" in row and "pytorch" in row.lower() for row in rows),
        rows,
    )
    shutil.rmtree(repository / "classifier_pt")
    return False


def cloud(walk):
    walk.title("Exercise 2: a repository in a bucket")
    log = walk.refused("tritonserver --model-repository=gs://bucket/path/to/model/repository")
    last = log.strip().splitlines()[-1] if log.strip() else ""
    walk.say(f"   {last}\n   cloud storage is not built yet; with an account, copy the bucket into a folder for now")
    walk.check(
        "the server names the repository that it cannot read", "gs://bucket/path/to/model/repository" in log, log
    )


def ask(client, model, version=""):
    tensor = httpclient.InferInput("INPUT", [1, 4], "FP32")
    tensor.set_data_from_numpy(ROW)
    return client.infer(model, [tensor], model_version=version)


def policies(walk, server):
    walk.title("Version policies")
    client = httpclient.InferenceServerClient(server.http)
    for model, policy, served in POLICIES:
        metadata = json.loads(walk.run(f"curl -s localhost:8000/v2/models/{model}"))
        walk.check(
            f"{policy or 'no policy'}: of versions 1, 2, 3 it serves {served}",
            metadata["versions"] == [str(v) for v in served],
            metadata,
        )
        right = all(
            walkthrough.difference(ask(client, model, str(v)).as_numpy("OUTPUT"), small_models.expected(v, ROW)) < 1e-5
            for v in served
        )
        newest = ask(client, model).get_response()["model_version"]
        walk.check(
            f"each of them answers, and {served[-1]} when none is named", right and newest == str(served[-1]), newest
        )
    status = walk.run("curl -s -o /dev/null -w %{http_code} localhost:8000/v2/models/classifier/versions/1/ready")
    walk.check("version 1 of classifier is not ready", status == "400", status)
    index = json.loads(walk.run("curl -s -X POST localhost:8000/v2/repository/index"))
    ready = sorted(
        int(entry["version"]) for entry in index if entry["name"] == "classifier" and entry["state"] == "READY"
    )
    walk.check("the index of the repository says the same", ready == [2, 3], index)


def torchscript(walk, server):
    walk.title("The TorchScript models answer as their ONNX twins")
    client = httpclient.InferenceServerClient(server.http)
    for version in (1, 2):
        tensor = httpclient.InferInput("INPUT__0", [1, 4], "FP32")
        tensor.set_data_from_numpy(ROW)
        ours = client.infer("classifier_pt", [tensor], model_version=str(version)).as_numpy("OUTPUT__0")
        walk.check(f"version {version}", walkthrough.difference(ours, small_models.expected(version, ROW)) < 1e-5, ours)


def batching(walk, server):
    walk.title("Dynamic batching under asynchronous requests")
    report = walk.perf("perf_analyzer -m classifier --async --concurrency-range 8")
    walk.check_measured(report, ["Concurrency: 8"])
    client = httpclient.InferenceServerClient(server.http)
    newest = client.get_inference_statistics("classifier", "3")["model_stats"][0]
    executions, inferences = (int(newest[f"{kind}_count"]) for kind in ("execution", "inference"))
    walk.check(f"{inferences} inferences took fewer executions ({executions})", 0 < executions < inferences)
    config = client.get_model_config("classifier")
    walk.check(
        "the configuration is told with its keys",
        (config["optimization"]["graph"]["level"], config["version_policy"]) == (1, {"latest": {"num_versions": 2}}),
        config,
    )


if __name__ == "__main__":
    walkthrough.main(__file__, play)
