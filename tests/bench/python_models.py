"""Python models here and under the real Triton: the same model.py, the same load, CPU of server and workers.

`ensemble` is the first seed document's pipeline (tokenize, BiLSTM tagger, Viterbi); the real Triton of the
wheel has no ONNX backend, so there the tagger is ONNX Runtime inside a Python model, and here once the same way
and once as an ONNX model.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import clients
import measure
import servers
from repositories import PYTHON_TWINS, identity_config, tensor

TAGGER = Path(__file__).resolve().parent / "tagger"
SENTENCE = "George Washington went to Washington and then to Mount Vernon , he said"
GOAL = ">= 2 x infer/s, <= 0.5 x CPU"

# Calls `identity` many times in one request and answers the mean time of a call in microseconds.
BLS = """\
import time

import numpy as np
import triton_python_backend_utils as pb

CALLS = 200


class TritonPythonModel:
    def execute(self, requests):
        return [self.time_calls(request) for request in requests]

    def time_calls(self, request):
        value = pb.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call = pb.InferenceRequest(
                model_name="identity", requested_output_names=["OUTPUT0"], inputs=[pb.Tensor("INPUT0", value)]
            )
            answer = call.exec()
            assert not answer.has_error(), answer.error().message()
        took = (time.perf_counter() - begin) / CALLS * 1e6
        return pb.InferenceResponse([pb.Tensor("OUTPUT0", np.array([took], dtype=np.float32))])
"""


def python_model(repository, name, config, code):
    folder = Path(repository) / name
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.py").write_text(code)
    (folder / "config.pbtxt").write_text(f'name: "{name}"\nbackend: "python"\n{config}')


@contextlib.contextmanager
def running(targets, fill):
    """Servers over a repository that `fill(folder, target)` writes; by target."""
    with contextlib.ExitStack() as stack:
        found = {}
        for target in targets:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            fill(folder, target)
            flags = [f"--backend-config=python,python-interpreter={sys.executable}"] if target == "galatea" else []
            found[target] = stack.enter_context(servers.TARGETS[target](folder, *flags))
        yield found


def rows_of(what, medians, goal):
    rows = []
    for target, figures in medians.items():
        row = {"what": what, "server": "Triton 2.51" if target == "triton" else target, **figures}
        if target != "triton" and "triton" in medians:
            speed = figures["infer/s"] / medians["triton"]["infer/s"]
            row["other"] = f"{speed:.2f} x, CPU {figures['CPU us/req'] / medians['triton']['CPU us/req']:.2f} x"
            row["goal"] = goal
        rows.append(row)
    return rows


IDENTITIES = {
    "FP32[16]": ("identity", ["--shape", "INPUT0:16"]),
    "BYTES": ("identity_bytes", ["--shape", "INPUT0:1", "--string-length", "64"]),
    "1 MB": ("identity", ["--shape", "INPUT0:250000"]),
    "FP32[16], batch 8": ("identity_batch", ["--shape", "INPUT0:16", "-b", "8"]),
}


def identity_code():
    """Answers its input, at once."""
    return PYTHON_TWINS["identity"].replace("        time.sleep(self.delay)\n", "")


def write_identities(folder, _target):
    code = identity_code()
    python_model(folder, "identity", identity_config(), code)
    python_model(folder, "identity_bytes", identity_config("TYPE_STRING"), code)
    python_model(folder, "identity_batch", identity_config(max_batch_size=8), code)


def identities(args):
    rows, raw = [], []
    with running(args.targets, write_identities) as found:
        for label, (model, shape) in IDENTITIES.items():
            for protocol in ("http", "grpc"):
                for concurrency in (1, 4, 16):
                    what = f"Python identity {label}, {protocol}, concurrency {concurrency}"
                    cases = {
                        target: lambda s=server: measure.perf(s, model, protocol, concurrency, args.seconds, *shape)
                        for target, server in found.items()
                    }
                    medians, runs = measure.interleaved(args.rounds, cases)
                    rows += rows_of(what, medians, GOAL)
                    raw.append({"what": what, "runs": runs})
    return rows, raw


def ensemble_config(tagger):
    def step(model, inputs, outputs):
        maps = [f'input_map {{ key: "{k}" value: "{v}" }}' for k, v in inputs.items()]
        maps += [f'output_map {{ key: "{k}" value: "{v}" }}' for k, v in outputs.items()]
        return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}\n'

    tagged = {"features": "FEATURES", "lengths": "LENGTHS"}
    read = {"sorted_lengths": "SORTED", "sentence_tensor": "VECTORS"}
    steps = (
        step("tokenization", {"sentence_bytes": "sentence_bytes"}, read)
        + step(tagger, read, tagged)
        + step("viterbi", {"sentence_bytes": "sentence_bytes", "features": "FEATURES", "sorted_lengths": "LENGTHS"},
               {"tagged_sentences": "tagged_sentences"})
    )
    ends = tensor("input", "sentence_bytes", "TYPE_INT64", "-1") + tensor("output", "tagged_sentences", "TYPE_INT64", "-1")
    return f'platform: "ensemble"\nmax_batch_size: 0\n{ends}ensemble_scheduling {{\n{steps}}}\n'


def write_tagger(folder, target):
    folder = Path(folder)
    for model in ("tokenization", "viterbi", "tagger_python"):
        shutil.copytree(TAGGER / model, folder / model)
    model = folder / "tagger_python/1/model.onnx"
    subprocess.run([sys.executable, TAGGER / "make_tagger.py", model], check=True)
    taggers = ["tagger_python"]
    if target == "galatea":
        taggers.append("tagger_onnx")
        config = (TAGGER / "tagger_python/config.pbtxt").read_text().replace('"python"', '"onnxruntime"')
        (folder / "tagger_onnx/1").mkdir(parents=True)
        shutil.copy(model, folder / "tagger_onnx/1/model.onnx")
        (folder / "tagger_onnx/config.pbtxt").write_text(
            config + 'instance_group [ { count: 1 kind: KIND_CPU } ]\n'
            'parameters { key: "intra_op_thread_count" value { string_value: "1" } }\n'
        )
    for tagger in taggers:
        (folder / f"with_{tagger}/1").mkdir(parents=True)
        (folder / f"with_{tagger}/config.pbtxt").write_text(ensemble_config(tagger))


def sentence_options(folder):
    """What perf_analyzer is to send to the tagger."""
    data, values = Path(folder) / "sentence.json", list(SENTENCE.encode())
    data.write_text(json.dumps({"data": [{"sentence_bytes": values}]}))
    return ["--input-data", data, "--shape", f"sentence_bytes:{len(values)}"]


def ensembles(args):
    rows, raw = [], []
    with running(args.targets, write_tagger) as found, tempfile.TemporaryDirectory() as folder:
        options = sentence_options(folder)
        for protocol, concurrency in (("http", 1), ("http", 16), ("grpc", 16)):
            what = f"tagger ensemble, {protocol}, concurrency {concurrency}"
            cases = {}
            for target, server in found.items():
                for tagger in ("tagger_python", "tagger_onnx"):
                    if target == "triton" and tagger == "tagger_onnx":
                        continue
                    name = "triton" if target == "triton" else f"galatea, {tagger}"
                    cases[name] = lambda s=server, m=f"with_{tagger}": measure.perf(
                        s, m, protocol, concurrency, args.seconds * 2, *options
                    )
            medians, runs = measure.interleaved(args.rounds, cases)
            rows += rows_of(what, medians, "CPU <= 900")
            raw.append({"what": what, "runs": runs})
    return rows, raw


def write_bls(folder, _target):
    write_identities(folder, _target)
    python_model(folder, "bls", identity_config(), BLS)


def time_of_call(server):
    body = {"inputs": [clients.tensor_json("INPUT0", np.zeros(16, dtype=np.float32))]}
    status, _, answer = clients.ask(server.http, "POST", "/v2/models/bls/infer", json.dumps(body).encode())
    assert status == 200, answer
    return {"p50 us": json.loads(answer)["outputs"][0]["data"][0]}


def bls(args):
    """Time of one `exec` of a Python identity model, seen from inside the caller; batches of 200 calls."""
    with running(args.targets, write_bls) as found:
        cases = {target: lambda s=server: time_of_call(s) for target, server in found.items()}
        for case in cases.values():
            case()
        medians, runs = measure.interleaved(max(args.rounds, 5), cases)
    rows = [
        {"what": "BLS call of a Python identity", "server": "Triton 2.51" if t == "triton" else t, **figures,
         "goal": "<= 150 us" if t == "galatea" else None}
        for t, figures in medians.items()
    ]
    return rows, [{"what": "bls", "runs": runs}]


def write_chains(folder, _target):
    ends = tensor("input", "INPUT0", "TYPE_FP32", "-1") + tensor("output", "OUTPUT0", "TYPE_FP32", "-1")
    identity = Path(folder) / "builtin"
    (identity / "1").mkdir(parents=True)
    (identity / "config.pbtxt").write_text(f'backend: "identity"\n{identity_config()}')
    for length in (1, 2, 4, 8):
        steps = ""
        for i in range(length):
            source = "INPUT0" if i == 0 else f"T{i}"
            target = "OUTPUT0" if i + 1 == length else f"T{i + 1}"
            steps += (
                f'step {{ model_name: "builtin" model_version: -1 input_map {{ key: "INPUT0" value: "{source}" }} '
                f'output_map {{ key: "OUTPUT0" value: "{target}" }} }}\n'
            )
        chain = Path(folder) / f"chain{length}"
        (chain / "1").mkdir(parents=True)
        (chain / "config.pbtxt").write_text(
            f'platform: "ensemble"\nmax_batch_size: 0\n{ends}ensemble_scheduling {{\n{steps}}}\n'
        )


def steps(args):
    """What one more step of an ensemble costs: chains of the built-in identity; ours alone."""
    rows, raw = [], []
    with running(["galatea"], write_chains) as found:
        server = found["galatea"]
        for concurrency in (1, 16):
            cases = {
                length: lambda m=f"chain{length}": measure.perf(
                    server, m, "grpc", concurrency, args.seconds, "--shape", "INPUT0:16"
                )
                for length in (1, 2, 4, 8)
            }
            medians, runs = measure.interleaved(args.rounds, cases)
            per_step = (medians[8]["CPU us/req"] - medians[1]["CPU us/req"]) / 7
            for length, figures in medians.items():
                row = {"what": f"ensemble of {length} identity steps, grpc, concurrency {concurrency}",
                       "server": "galatea", **figures}
                if length == 8:
                    row |= {"other": f"{per_step:.1f} us CPU an added step", "goal": "<= 20 us"}
                rows.append(row)
            raw.append({"what": f"steps, concurrency {concurrency}", "runs": runs})
    return rows, raw
