"""The captioner document from its first command to its last, on CPU."""

import concurrent.futures
import shutil
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tritonclient.http as httpclient

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import walkthrough  # noqa: E402
from generate_onnx import WORDS, draw  # noqa: E402
from iterative_inference_onnx import caption, logits  # noqa: E402

# Four tokens: an answer is half a megabyte.
IDS = [30522, 1037, 3861, 1997]
SERVE = "tritonserver --model-repository=/models"
SWEEP = "perf_analyzer -m {} --concurrency-range {} --shape pixel_values:3,384,384 --shape input_ids:16 --shape attention_mask:16"


def play(walk):
    make_models(walk)
    placeholders(walk)
    walk.title("Start the server")
    with walk.serving(SERVE, "--exit-on-error=false") as server:
        started(walk, server)
        captions(walk, server)
        batches(walk, server)
        sweep(walk)
    walk.title("What needs more than a CPU")
    for model, levels, needs in (
        ("base_model_gpu", "1:8:1", "a GPU"),
        ("base_model_multi_gpu", "1:4:1", "two GPUs"),
        ("trt_model", "1:4:1", "a GPU and TensorRT"),
    ):
        walk.not_run(SWEEP.format(model, levels), needs)


def make_models(walk):
    walk.title("Make the models")
    walk.not_run(
        "pip install torch torchvision transformers onnx onnxruntime-gpu requests",
        "gigabytes; a small network stands in for BLIP",
    )
    shutil.copy(HERE / "generate_onnx.py", walk.folder)
    walk.run("python3 generate_onnx.py")


def placeholders(walk):
    """The document's repository as it is cloned: version folders with an empty file in them."""
    walk.title("Before model.onnx is copied: every version folder holds only a placeholder")
    log = walk.refused(SERVE)
    for model in ("base_model_cpu", "shapes_captioner"):
        said = [line for line in log.splitlines() if line.startswith(("| ", "E")) and model in line]
        walk.check(f"the log says what {model} lacks", any("model.onnx" in line for line in said), said)
    walk.title("Copy the models")
    for source, model in (("model.onnx", "base_model_cpu"), ("shapes_captioner.onnx", "shapes_captioner")):
        walk.run(f"cp {source} model_repository/{model}/1/model.onnx")


def started(walk, server):
    log = server.text()
    walk.check(
        "the log has \"successfully loaded 'base_model_cpu'\"", "\"successfully loaded 'base_model_cpu'\"" in log
    )
    states = {name: status for name, _, status in server.table()}
    walk.check(
        "base_model_cpu and shapes_captioner are READY",
        all(states.get(m) == "READY" for m in ("base_model_cpu", "shapes_captioner")),
        states,
    )
    for model in ("base_model_gpu", "base_model_multi_gpu", "trt_model"):
        walk.say(f"   {model}: {states.get(model)}")
        walk.check(
            f"{model}, still without a model file, keeps nobody else down and has a reason",
            states.get(model, "").startswith("UNAVAILABLE: ") and len(states[model]) > 30,
            states,
        )
    config = httpclient.InferenceServerClient(server.http).get_model_config("base_model_cpu")
    walk.check(
        "a CPU group without a count has two instances",
        config["instance_group"][0]["count"] == 2,
        config["instance_group"],
    )


def captions(walk, server):
    walk.title("One request after another, each a token longer")
    shutil.copy(HERE / "iterative_inference_onnx.py", walk.folder)
    walk.run("python3 iterative_inference_onnx.py", "--url localhost:8000")
    client = httpclient.InferenceServerClient(server.http)
    random, right = np.random.default_rng(11), 0
    for _ in range(8):
        image, truth = draw(random)
        said = " ".join(WORDS[word] for word in caption(client, "shapes_captioner", image))
        right += said == truth
        walk.say(f"   {said}" + ("" if said == truth else f"   (it was: {truth})"))
    walk.check("at least seven of eight captions are right", right >= 7, right)
    direct = onnxruntime.InferenceSession(walk.folder / "model.onnx", providers=["CPUExecutionProvider"])
    ids, apart = [30522], 0.0
    for _ in range(6):
        ours = logits(client, "base_model_cpu", image, ids)
        mask = np.ones((1, len(ids)), np.int64)
        theirs = direct.run(None, {"pixel_values": image[None], "input_ids": np.array([ids]), "attention_mask": mask})[
            0
        ][0]
        apart = max(apart, walkthrough.difference(ours, theirs))
        ids.append(int(ours[-1].argmax()))
    walk.check(
        f"base_model_cpu answers as ONNX Runtime does by itself, {len(ids) - 1} lengths (furthest apart: {apart:.1e})",
        apart < 1e-4,
    )


def batches(walk, server):
    """Eight clients at once, more than there are instances: requests of one shape may be joined, and each client must
    get its own answer."""
    walk.title("Dynamic batching")
    random = np.random.default_rng(12)
    images = [draw(random)[0] for _ in range(8)]
    client = httpclient.InferenceServerClient(server.http)
    alone = [logits(client, "base_model_cpu", image, IDS) for image in images]
    with concurrent.futures.ThreadPoolExecutor(len(images)) as pool:
        for _ in range(10):
            together = list(pool.map(lambda image: ask_often(server, image, 6), images))
            apart = max(
                walkthrough.difference(answer, expected)
                for answers, expected in zip(together, alone)
                for answer in answers
            )
            sizes = batch_sizes(client, "base_model_cpu")
            if apart >= 1e-3 or max(sizes) > 1:
                break
    walk.check(f"each client got its own answers (furthest from the answer alone: {apart:.1e})", apart < 1e-3)
    walk.check(f"requests were joined, at most 8 (batch size: how often = {sizes})", 1 < max(sizes) <= 8)


def batch_sizes(client, model):
    stats = client.get_inference_statistics(model)["model_stats"][0]
    return {int(batch["batch_size"]): int(batch["compute_infer"]["count"]) for batch in stats["batch_stats"]}


def ask_often(server, image, times):
    client = httpclient.InferenceServerClient(server.http)
    return [logits(client, "base_model_cpu", image, IDS) for _ in range(times)]


def sweep(walk):
    walk.title("The load tool, 1 to 4 requests at once")
    report = walk.perf(SWEEP.format("base_model_cpu", "1:4:1"))
    walk.check(
        "its last part has the document's heading", "Inferences/Second vs. Client Average Batch Latency" in report
    )
    walk.check_measured(report, [f"Concurrency: {level}" for level in (1, 2, 3, 4)])


if __name__ == "__main__":
    walkthrough.main(__file__, play)
