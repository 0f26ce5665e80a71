"""The handwriting document from its repository to its benchmark, on CPU."""

import json
import re
import shutil
import sys
import urllib.request
from pathlib import Path

import numpy as np
import onnxruntime
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import walkthrough  # noqa: E402
from make_models import LETTERS, draw  # noqa: E402

# Models that lie in the other example repositories, as links.
LINKED = {
    "sentence_tokens": "pipelines",
    "sentence_vector": "pipelines",
    "minilm_int8": "models",
    "silero_vad": "models",
}
FOOD, BREAD, BABY = "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."
BODY = "data_samples/body_bm_wav2vec/body_w2v_v4.txt"


def play(walk):
    make_models(walk)
    walk.title("Start the server")
    walk.not_run("docker network create mspeak-network", "Docker")
    with walk.serving("tritonserver --model-repository=/models") as server:
        started(walk, server)
        classification(walk, server)
        voice(walk, server)
        sentences(walk, server)
        benchmark(walk, server)
        metrics(walk, server)


def make_models(walk):
    walk.title("Convert the models")
    for script in (HERE / "make_models.py", HERE.parent / "saved_model.py"):
        shutil.copy(script, walk.folder)
    walk.run("python3 make_models.py")
    for name, where in LINKED.items():
        source = walkthrough.ROOT / "examples" / where / name
        if where == "models" and not (source / "1/model.onnx").is_file():
            raise walkthrough.Failed(f"{source}/1/model.onnx is missing: `cargo xtask setup` fetches it")
        (walk.folder / "model_repository" / name).symlink_to(source)
    for command in (
        "trtexec --onnx=onnx/handwriting/1/model.onnx --saveEngine='model.engine' --explicitBatch --workspace=1024 --fp16",
        "docker run -d --gpus all -it --rm -v ./:/workspace nvcr.io/nvidia/tensorrt:23.09-py3",
    ):
        walk.not_run(command, "a GPU and TensorRT")
    walk.not_run(
        "aws s3 sync model_repository s3://data-team-media-ai/model-zoo/mspeak-v3/", "an account of that cloud"
    )
    walk.not_run(
        "docker build . -t <image_name>:<image_tag>",
        "Docker; the packages of requirements.txt are installed by the server, see below",
    )


def started(walk, server):
    states = {name: status for name, _, status in server.table()}
    wanted = ["handwriting", "handwriting_tensorflow", "wav2vec_trt", "silero_vad", "esemble_embedding", *LINKED]
    for row in server.table():
        walk.say("   | " + " | ".join(row))
    walk.check(
        "the table at the end of the start says READY for every model",
        all(states.get(name) == "READY" for name in wanted),
        states,
    )
    for line in server.log:
        if "Python environment" in line:
            walk.say("   " + line.split('"', 1)[-1].rstrip('"'))
    pythons = {
        Path(command).parents[1].name
        for command in interpreters(server.process.pid)
        if "python-environments" in command
    }
    walk.check("the two Python models run in the environments of their requirements.txt", len(pythons) == 2, pythons)


def interpreters(pid):
    """The programs of the server's worker processes, as they were started."""
    children = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [Path(f"/proc/{child}/cmdline").read_text().split("\0")[0] for child in children]


def classification(walk, server):
    walk.title("Letters: images NHWC in, labels out")
    random = np.random.default_rng(5)
    images = np.stack([draw(letter, random) for letter in LETTERS])
    client = httpclient.InferenceServerClient(server.http)
    tensor = httpclient.InferInput("input_1", list(images.shape), "FP32")
    tensor.set_data_from_numpy(images)
    wanted = httpclient.InferRequestedOutput("dense_1", class_count=2)
    rows = client.infer("handwriting", [tensor], outputs=[wanted]).as_numpy("dense_1")
    entries = [[entry.decode().split(":") for entry in row] for row in rows]
    read = "".join(row[0][2] for row in entries)
    walk.say(f"   written: {LETTERS}\n   read:    {read}\n   e.g. {rows[0].tolist()}")
    right = sum(a == b for a, b in zip(read, LETTERS))
    walk.check("at least 23 of 26 letters are read right", right >= 23, right)
    walk.check(
        "each entry is value:index:label and the label is the line of labels.txt",
        all(LETTERS[int(index)] == label and 0 <= float(value) <= 1 for row in entries for value, index, label in row),
    )
    direct = onnxruntime.InferenceSession(
        walk.folder / "model_repository/handwriting/1/model.onnx", providers=["CPUExecutionProvider"]
    )
    theirs = direct.run(None, {"input_1": images})[0]
    ours = client.infer("handwriting", [tensor]).as_numpy("dense_1")
    walk.check(
        "the probabilities are those of ONNX Runtime by itself",
        ours.shape == (26, 26) and walkthrough.difference(ours, theirs) < 1e-5,
    )
    of_tensorflow = client.infer("handwriting_tensorflow", [tensor]).as_numpy("dense_1")
    walk.check(
        "the same network as a model of TensorFlow answers the same",
        of_tensorflow.shape == theirs.shape and walkthrough.difference(of_tensorflow, theirs) < 1e-5,
    )
    json_request(walk, server, images[7], "H")
    too_many = httpclient.InferInput("input_1", [33, 128, 128, 3], "FP32")
    too_many.set_data_from_numpy(np.ones((33, 128, 128, 3), np.float32))
    try:
        client.infer("handwriting", [too_many])
        said = "an answer"
    except httpclient.InferenceServerException as error:
        said = str(error)
    walk.check(
        "33 images at once are too many, and the answer says so",
        "batch-size must be <= 32 for 'handwriting'" in said,
        said,
    )


def json_request(walk, server, image, letter):
    """As the document's Postman collection asks: plain JSON."""
    request = {
        "inputs": [
            {"name": "input_1", "shape": [1, 128, 128, 3], "datatype": "FP32", "data": image.round(4).ravel().tolist()}
        ],
        "outputs": [{"name": "dense_1", "parameters": {"classification": 1}}],
    }
    (walk.folder / "letter.json").write_text(json.dumps(request))
    answer = walk.run(
        "curl -s -H 'Content-Type: application/json' -d @letter.json http://localhost:8000/v2/models/handwriting/infer"
    )
    output = json.loads(answer)["outputs"][0]
    walk.check(
        f"curl reads the same {letter}",
        output["data"][0].endswith(f":{letter}") and output["datatype"] == "BYTES",
        output,
    )


def voice(walk, server):
    walk.title("silero_vad: is somebody speaking?")
    client = grpcclient.InferenceServerClient(server.grpc)
    random = np.random.default_rng(6)
    chunks = [np.zeros((1, 576), np.float32), random.normal(0, 0.02, (1, 576)).astype(np.float32)]
    direct = onnxruntime.InferenceSession(
        walkthrough.EXAMPLE_MODELS / "silero_vad/1/model.onnx", providers=["CPUExecutionProvider"]
    )
    apart, heard = 0.0, []
    for chunk in chunks * 5:
        arrays = {"input": chunk, "state": np.zeros((2, 1, 128), np.float32), "sr": np.array([16000])}
        tensors = [
            grpcclient.InferInput(name, list(array.shape), "INT64" if name == "sr" else "FP32")
            for name, array in arrays.items()
        ]
        for tensor, array in zip(tensors, arrays.values()):
            tensor.set_data_from_numpy(array)
        answer = client.infer("silero_vad", tensors).as_numpy("output")
        theirs = direct.run(["output"], {**arrays, "sr": np.array(16000)})[0]
        apart = max(apart, walkthrough.difference(answer, theirs))
        heard.append(float(answer.item()))
    walk.check("ten answers over gRPC are those of ONNX Runtime by itself", apart < 1e-5, apart)
    walk.check("nobody speaks in silence and noise", max(heard) < 0.3, heard)


def sentences(walk, server):
    walk.title("esemble_embedding: an ensemble, text in and vectors out")
    client = grpcclient.InferenceServerClient(server.grpc)
    tensor = grpcclient.InferInput("sentence", [3, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[FOOD.encode()], [BREAD.encode()], [BABY.encode()]], object))
    vectors = client.infer("esemble_embedding", [tensor]).as_numpy("embedding")
    near, far = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    walk.say(f'   "{FOOD}" to "{BREAD}": {near:.4f}, to "{BABY}": {far:.4f}')
    walk.check(
        "the cosines are those of the model's own reference, 0.7535 and -0.1055",
        abs(near - 0.7535) < 0.002 and abs(far + 0.1055) < 0.002,
    )


def benchmark(walk, server):
    walk.title("Apache Bench: a JSON body of 100000 samples, 1000 times, 100 at once")
    samples = np.random.default_rng(7).normal(0, 0.1, 100000).round(4)
    body = {"inputs": [{"name": "input", "shape": [1, 100000], "datatype": "FP32", "data": samples.tolist()}]}
    (walk.folder / BODY).parent.mkdir(parents=True)
    (walk.folder / BODY).write_text(json.dumps(body))
    report = walk.run(
        f"ab -p {BODY} -T application/json  -c 100 -n 1000 http://localhost:8000/v2/models/wav2vec_trt/infer"
    )
    walk.check("1000 requests are complete", re.search(r"^Complete requests:\s+1000$", report, re.MULTILINE), report)
    # Answers that differ in length are failures to ab; the last digit of a number may depend on the batch it was in.
    failed, lengths = (
        re.search(pattern, report) for pattern in (r"Failed requests:\s+(\d+)", r"Length: (\d+), Exceptions")
    )
    walk.check(
        "none failed and all have status 200",
        int(failed[1]) == int(lengths[1] if lengths else 0) and "Non-2xx" not in report,
    )
    stats = httpclient.InferenceServerClient(server.http).get_inference_statistics("wav2vec_trt")["model_stats"][0]
    sizes = {int(batch["batch_size"]): int(batch["compute_infer"]["count"]) for batch in stats["batch_stats"]}
    walk.check(f"the 20 ms of delay make batches, of at most 5 (batch size: how often = {sizes})", 2 <= max(sizes) <= 5)


def metrics(walk, server):
    walk.title("Metrics")
    page = walk.run("curl -s http://127.0.0.1:8002/metrics", shown=12)
    success = {
        model: int(count)
        for model, count in re.findall(
            r'^nv_inference_request_success\{model="([^"]+)",version="1"\} (\d+)$', page, re.MULTILINE
        )
    }
    for model in ("wav2vec_trt", "silero_vad", "handwriting"):
        walk.say(f'   nv_inference_request_success{{model="{model}",version="1"}} {success.get(model)}')
    walk.check(
        "the counters say how many requests were made",
        (success.get("wav2vec_trt"), success.get("silero_vad"), success.get("handwriting")) == (1000, 10, 3),
        success,
    )
    walk.check(
        "success and failure are counters",
        all(f"# TYPE nv_inference_request_{kind} counter" in page for kind in ("success", "failure")),
    )
    walk.check(
        "failures have a series of this model",
        re.search(r'^nv_inference_request_failure\{model="handwriting".*\} 0', page, re.MULTILINE),
    )
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        walk.check("the page is plain text", answer.headers["Content-Type"].startswith("text/plain"))


if __name__ == "__main__":
    walkthrough.main(__file__, play)
