"""The tagger document from its first command to its last, on CPU."""

import ast
import concurrent.futures
import re
import shutil
import sys
from pathlib import Path

import numpy as np
from tritonclient.utils import InferenceServerException

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE / "model_repository/flair-ner-english-fast-tokenization/1")]

import client as tagger  # noqa: E402
import prepare  # noqa: E402
import walkthrough  # noqa: E402
from embeddings import sentence_vectors, words_of  # noqa: E402

SERVE = "tritonserver --model-repository=/models --allow-metrics=true --allow-gpu-metrics=true --log-verbose=0"
DATA = f"model_repository/{prepare.ENSEMBLE}/1/perf_analyzer_data.json"
MEASURE = (
    f"perf_analyzer -m {prepare.ENSEMBLE} --async --percentile=95 --concurrency-range 4 --input-data {DATA} "
    "--shape sentence_bytes:70 -u localhost:8001 -i grpc --measurement-interval 30000 -v"
)
MEASURE_LATER = (
    f'perf_analyzer -m {prepare.ONE_MODEL} -a -i grpc -u localhost:8001 --string-data "{tagger.SENTENCES[0]}" --shape INPUT_0:1 '
    "--percentile 95 --max-threads 32 --request-distribution constant --measurement-interval 30000 --percentile=99 "
    "--concurrency-range 32:64:16 -b 32"
)
STEPS = [prepare.TAGGER, prepare.TOKENIZATION, prepare.VITERBI]
# What the pipeline must find in the documents' two sentences: text and kind.
WANTED = {
    tagger.SENTENCES[0]: [("NVIDIA", "ORG"), ("Jensen Huang", "PER"), ("Chris Malachowsky", "PER"), ("Curtis Priem", "PER")],
    tagger.SENTENCES[1]: [("George Washington", "PER"), ("Washington", "LOC")],
}
# The document's report, its numbers left out. Its tool was older than the one ours is like: that one writes the settings
# in another order and names the service, writes `p95throughput` where the document has `p95 latency`, and tells the
# version that the document leaves blank.
REPORT = """\
Successfully read data for # stream/streams with # step/steps.
*** Measurement Settings ***
Batch size: #
Using "time_windows" mode for stabilization
Measurement window: # msec
Using asynchronous calls for inference
Request concurrency: #
Pass [#] throughput: # infer/sec. p95 latency: # usec
Client:
Request count: #
Throughput: # infer/sec
p50 latency: # usec
p90 latency: # usec
p95 latency: # usec
p99 latency: # usec
Avg gRPC time: # usec (marshal # usec + response wait # usec + unmarshal # usec)
Server:
Inference count: #
Execution count: #
Successful request count: #
Avg request latency: # usec (overhead # usec + queue # usec + compute # usec)
Composing models:
flair-ner-english-fast, version: #
flair-ner-english-fast-tokenization, version: #
flair-ner-english-fast-viterbi-decoder, version: #
Avg request latency: # usec (overhead # usec + queue # usec + compute input # usec + compute infer # usec + compute output # usec)
Inferences/Second vs. Client p95 Batch Latency
Concurrency: #, throughput: # infer/sec, latency # usec
""".splitlines()


def play(walk):
    # Three windows of half a minute at each of three loads.
    walkthrough.COMMAND_LIMIT = 900
    files = make_model(walk)
    walk.env.update({"LD_LIBRARY_PATH": path for name, path in prepare.torch_env().items() if name == "LD_LIBRARY_PATH"})
    walk.title("Start the server")
    walk.not_run("docker compose up triton-server", "Docker; its command line follows")
    with walk.serving(SERVE) as server:
        started(walk, server)
        sentences(walk, server)
        against_torch(walk, server, np.load(files / "expected.npz"))
        refusals(walk, server)
        at_once(walk, server)
        pipeline_measured(walk)
        later_form_measured(walk, server)
        metrics(walk, server)
    farewell(walk, server)


def make_model(walk):
    walk.title("Make the model")
    walk.not_run("docker compose up ner-english-fast", "Docker")
    walk.not_run("python3 flair_model_surgery.py", "Flair's weights, gigabytes with all they need; train.py makes a model of that shape")
    try:
        files = prepare.trained(walk.say)
    except prepare.Missing as missing:
        raise walkthrough.Failed(str(missing)) from missing
    walk.say(f"   trained: {(files / 'report.json').read_text()}")
    prepare.assemble(walk.folder / "model_repository", files)
    return files


def started(walk, server):
    states = {name: status for name, _, status in server.table()}
    models = [*STEPS, prepare.ENSEMBLE, prepare.ONE_MODEL]
    walk.check("all five models are READY", all(states.get(model) == "READY" for model in models), states)
    config = tagger.connect(server.http).get_model_config(prepare.TAGGER)
    group = config["instance_group"][0]
    walk.check("the group is the one written there", (group["name"], group["count"], group["kind"]) == (prepare.TAGGER, 1, "KIND_CPU"), group)


# ---- answers


def sentences(walk, server):
    walk.title("Sentences in, names out")
    shutil.copy(HERE / "client.py", walk.folder)
    walk.run("python3 client.py", "--url localhost:8000")
    walk.run("python3 client.py --protocol grpc --url localhost:8001")
    walk.run("python3 client.py --model ner-english-fast --url localhost:8000")
    http, grpc = tagger.connect(server.http), tagger.connect(server.grpc, "grpc")
    for sentence, wanted in WANTED.items():
        answers = [tagger.ask_ensemble(client, sentence) for client in (http, grpc)]
        found = [(e["word"], e["entity_group"]) for e in entities_of(answers[0])]
        walk.check(f"the names of: {sentence}", found == wanted, found)
        walk.check("HTTP and gRPC say the same", answers[0] == answers[1], answers)
    for sentence in (*tagger.SENTENCES, "Zoë Müller lives in São Paulo – not in Paris."):
        steps, one = tagger.ask_ensemble(http, sentence), tagger.ask_one_model(grpc, [sentence])
        walk.check(f"three steps and one model agree: {sentence}", same_entities(steps, one), (steps, one))
        places_right = all(sentence[e["start"]:e["end"]] == e["word"] for e in entities_of(steps))
        walk.check("and a name stands where they say", places_right, steps)


def entities_of(text):
    return [entity for entities in ast.literal_eval(text).values() for entity in entities]


def same_entities(one, other):
    """The same names in the same places; libtorch and numpy may round a percentage apart."""
    one, other = ast.literal_eval(one), ast.literal_eval(other)
    flat = [[(e["entity_group"], e["start"], e["end"]) for entities in said.values() for e in entities] for said in (one, other)]
    scores = [[e["score"] for entities in said.values() for e in entities] for said in (one, other)]
    return list(one) == list(other) and flat[0] == flat[1] and all(abs(a - b) <= 1 for a, b in zip(*scores))


def against_torch(walk, server, expected):
    """The middle step alone: what PyTorch said in the process that traced it."""
    walk.title("TorchScript over packed sequences, several sentences of different lengths")
    client = tagger.connect(server.grpc, "grpc")
    lengths, vectors = expected["lengths"], expected["vectors"]
    alone = [features(client, lengths[n:n + 1], vectors[n:n + 1, :length]) for n, length in enumerate(lengths)]
    apart = max(walkthrough.difference(ours, expected[f"alone_{n}"]) for n, (ours, _) in enumerate(alone))
    walk.check(f"one after another as PyTorch itself (furthest apart: {apart:.1e})", apart < 1e-4)
    together, said = features(client, lengths, vectors)
    inside = np.arange(vectors.shape[1]) < lengths[:, None]
    apart = walkthrough.difference(together[inside], expected["together"][inside])
    walk.check(f"and all in one request (furthest apart: {apart:.1e})", apart < 1e-4 and (said == lengths).all(), said)
    try:
        answer = features(client, np.sort(lengths), vectors)[1]
        walk.check("lengths that are not sorted are refused", False, answer)
    except InferenceServerException as error:
        walk.check("lengths that are not sorted are refused in PyTorch's words", "sorted in decreasing order" in str(error), error)


def features(client, lengths, vectors):
    inputs = [tagger.tensor(client, "INPUT__0", lengths.astype(np.int64), "INT64"), tagger.tensor(client, "INPUT__1", vectors, "FP32")]
    answer = client.infer(prepare.TAGGER, inputs)
    return answer.as_numpy("OUTPUT__0"), answer.as_numpy("OUTPUT__1")


def refusals(walk, server):
    walk.title("What is no sentence")
    for protocol, url in (("http", server.http), ("grpc", server.grpc)):
        try:
            answer = tagger.ask_ensemble(tagger.connect(url, protocol), "   ")
            walk.check(f"{protocol}: a sentence without words is refused", False, answer)
        except InferenceServerException as error:
            walk.check(f"{protocol}: the first step's own words reach the client", "the sentence has no words" in str(error), error)


def at_once(walk, server):
    """Eight clients, each with its own sentences: everybody must get their own answers, batched or not."""
    walk.title("Eight clients at once")
    alone = {s: tagger.ask_ensemble(tagger.connect(server.http), s) for s in tagger.SENTENCES}

    def ask(number):
        client, sentence = tagger.connect(server.grpc, "grpc"), tagger.SENTENCES[number % len(tagger.SENTENCES)]
        steps = [tagger.ask_ensemble(client, sentence) for _ in range(10)]
        ones = [tagger.ask_one_model(client, [sentence]) for _ in range(10)]
        return all(answer == alone[sentence] for answer in steps) and all(same_entities(alone[sentence], one) for one in ones)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        walk.check("each got its own answers, 160 in all", all(pool.map(ask, range(8))))
    stats = tagger.connect(server.http).get_inference_statistics(prepare.ONE_MODEL)["model_stats"][0]
    sizes = {batch["batch_size"]: batch["compute_infer"]["count"] for batch in stats["batch_stats"]}
    walk.check(f"the one model was asked for several requests at a time (batch size: how often = {sizes})", max(sizes) > 1)


# ---- the load tool


def pipeline_measured(walk):
    walk.title("The load tool on the pipeline")
    walk.not_run("docker compose run perf-analyzer", "Docker; its command line follows")
    report = walk.perf(MEASURE, shown=60)
    if "Failed to obtain stable measurement" in report:
        raise walkthrough.Failed("other work on this machine kept the rates from settling: try again when it is quiet")
    lines = {number_free(line) for line in report.splitlines()}
    absent = [line for line in REPORT if line not in lines]
    walk.check("every line of the document's report is there", not absent, absent)
    counts = [int(count) for count in re.findall(r"^ {6}Inference count: (\d+)", report, re.MULTILINE)]
    whole = int(re.search(r"^ {4}Inference count: (\d+)", report, re.MULTILINE)[1])
    walk.check(f"the three steps ran as often as the pipeline, but for what was under way ({whole}: {counts})",
               len(counts) == 3 and all(abs(count - whole) <= 12 for count in counts))
    queue, compute = (parts(report, name, 4)[0] for name in ("queue", "compute"))
    own_queue, own_compute = sum(parts(report, "queue", 6)), sum(sum(parts(report, f"compute {part}", 6)) for part in ("input", "infer", "output"))
    walk.check(f"its queue and compute times are the sums of theirs (queue {queue} = {own_queue}, compute {compute} = {own_compute})",
               near(queue, own_queue) and near(compute, own_compute))


def number_free(line):
    """A line of a report without its numbers and indentation; names keep theirs."""
    return re.sub(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*[a-z])", "#", line.strip())


def parts(report, name, indent):
    """Microseconds of a part in the lines `Avg request latency` of this indentation."""
    lines = re.findall(rf"^ {{{indent}}}Avg request latency: .*", report, re.MULTILINE)
    return [int(re.search(rf"\b{name} (\d+) usec", line)[1]) for line in lines]


def near(one, other):
    # The windows of the steps begin and end with requests under way; each mean is rounded.
    return abs(one - other) <= max(0.1 * one, 200)


def later_form_measured(walk, server):
    walk.title("The load tool on the later form: 32 sentences a request")
    # A window in time that is short may pass without a single one of these large requests.
    windows = "" if walk.is_long else "--measurement-mode count_windows --measurement-request-count 6"
    report = walk.perf(MEASURE_LATER, windows)
    found = re.findall(r"^Concurrency: (\d+), throughput: ([\d.]+) infer/sec, latency (\d+) usec", report, re.MULTILINE)
    walk.check("a line for each of 32, 48 and 64", [level for level, *_ in found] == ["32", "48", "64"], found)
    walk.check("of the percentile that was given last", "Inferences/Second vs. Client p99 Batch Latency" in report)
    stats = tagger.connect(server.http).get_inference_statistics(prepare.ONE_MODEL)["model_stats"][0]
    walk.check("batches of 32 reached the model", any(batch["batch_size"] == 32 for batch in stats["batch_stats"]), stats["batch_stats"])


def metrics(walk, server):
    walk.title("Metrics")
    found = walk.run("curl -s localhost:8002/metrics", shown=6)
    counted = dict(re.findall(r'^nv_inference_count\{model="([^"]+)",version="1"\} (\d+)', found, re.MULTILINE))
    walk.check("each model's inferences are counted", all(int(counted.get(m, 0)) > 0 for m in (*STEPS, prepare.ENSEMBLE, prepare.ONE_MODEL)), counted)
    if "nv_gpu_utilization{" not in found:
        walk.not_run("--allow-gpu-metrics=true: nv_gpu_utilization and its family", "a GPU; without one there is nothing to tell")


def farewell(walk, server):
    walk.title("Stop the server")
    ended = [line for line in server.log if "cleaning up..." in line]
    walk.check("what finalize printed is in the log, once for each Python model", len(ended) == 3, ended)


if __name__ == "__main__":
    walkthrough.main(__file__, play)
