"""Warm-up: what instances are asked before they are ready, and what becomes of samples that fail. What the real server does
is compared in the scenario `warmup`."""

import json
import os
import signal
import subprocess

import numpy as np
import pytest
import tritonclient.http

import clients
import repositories
import servers
import waiting

LIMIT = 60
# Notes each execution in a file beside the repository: the number of requests, and the sum of their elements. Fails while a
# file `cold` is there.
MODEL = """\
import os

import triton_python_backend_utils as pb

FOLDER = {folder!r}


class TritonPythonModel:
    def execute(self, requests):
        if os.path.exists(os.path.join(FOLDER, "cold")):
            raise ValueError("cold")
        arrays = [pb.get_input_tensor_by_name(r, "INPUT0").as_numpy() for r in requests]
        with open(os.path.join(FOLDER, "noted"), "a") as file:
            file.write(f"{{len(requests)}}:{{int(sum(a.sum() for a in arrays))}}:{{os.getpid()}}\\n")
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", a)]) for a in arrays]
"""


def sample(name="it", batch_size=1, count=1, data="zero_data: true", data_type="TYPE_FP32", dims="[ 2 ]", key="INPUT0"):
    value = f"{{ data_type: {data_type} dims: {dims} {data} }}"
    inputs = f'inputs {{ key: "{key}" value {value} }}'
    return f'model_warmup [ {{ name: "{name}" batch_size: {batch_size} count: {count} {inputs} }} ]\n'


class Noting:
    """A server with the Python model `m`, and what its instances noted."""

    def __init__(self, repository, folder):
        self.repository, self.folder, self.server = repository, folder, None

    def write(self, warm_up, instances=1, max_batch_size=0):
        config = repositories.identity_config(max_batch_size=max_batch_size, more=warm_up)
        config += f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n"
        # Written once: the model's code is no part of what changes.
        is_new = not (self.repository / "m/1/model.py").exists()
        files = {"1/model.py": MODEL.format(folder=str(self.folder))} if is_new else {}
        repositories.write_model(self.repository, "m", "galatea", "python", config, files)

    def load(self):
        status, _, text = clients.ask(self.server.http, "POST", "/v2/repository/models/m/load", {})
        return status, text.decode()

    def infer(self, rows=None):
        data = np.ones([2] if rows is None else [rows, 2], np.float32)
        body = {"inputs": [clients.tensor_json("INPUT0", data)]}
        status, _, text = clients.ask(self.server.http, "POST", "/v2/models/m/infer", body)
        return status, text.decode()

    def noted(self):
        """(requests, sum of the elements, process) of each execution."""
        path = self.folder / "noted"
        lines = path.read_text().split() if path.exists() else []
        return [tuple(int(part) for part in line.split(":")) for line in lines]

    def is_ready(self):
        status, _, _ = clients.ask(self.server.http, "GET", "/v2/models/m/ready")
        return status == 200


@pytest.fixture
def noting(tmp_path, shared):
    """On the shared server; the model is written once, as its code is no part of what changes."""
    server = shared()
    server.owns("m")
    noting = Noting(server.repository, tmp_path)
    noting.write(sample())
    noting.server = server
    return noting


def test_each_instance_is_warmed_up_before_ready_and_at_each_load(noting):
    noting.write(sample(batch_size=3, count=2), instances=2, max_batch_size=4)
    assert noting.load() == (200, "")
    noted = noting.noted()
    assert [(requests, total) for requests, total, _ in noted] == [(3, 0)] * 4
    assert len({process for _, _, process in noted}) == 2
    assert noting.infer(rows=1)[0] == 200
    counted = clients.statistics(noting.server, "m")
    assert (counted["inference_stats"]["success"]["count"], counted["execution_count"]) == (13, 5)
    assert [(b["batch_size"], b["compute_infer"]["count"]) for b in counted["batch_stats"]] == [(1, 1), (3, 4)]
    # Other samples: it is loaded anew.
    noting.write(sample(batch_size=1), instances=2, max_batch_size=4)
    assert noting.load() == (200, "")
    assert [(requests, total) for requests, total, _ in noting.noted()[5:]] == [(1, 0)] * 2


def test_a_model_without_batching_is_warmed_up_request_by_request(noting):
    noting.write(sample(batch_size=2, count=2))
    assert noting.load() == (200, "")
    assert [(requests, total) for requests, total, _ in noting.noted()] == [(1, 0)] * 4


def test_added_instances_are_warmed_up(noting):
    assert noting.load() == (200, "")
    noting.write(sample(), instances=3)
    assert noting.load() == (200, "")
    assert len({process for _, _, process in noting.noted()}) == 3
    assert len(noting.noted()) == 3, "the first one was warm already"
    (noting.folder / "cold").touch()
    noting.write(sample(), instances=4)
    status, text = noting.load()
    assert status == 400 and "failed to run warmup sample 'it': Failed to process the request(s)" in text, text
    assert noting.is_ready()


def test_a_restarted_instance_is_warmed_up(noting):
    assert noting.load() == (200, "")
    (_, _, process), = noting.noted()
    os.kill(process, signal.SIGKILL)
    waiting.eventually("the new instance is warm", lambda: len(noting.noted()) == 2)
    waiting.eventually("the model is ready", noting.is_ready)
    assert noting.infer()[0] == 200
    assert [total for _, total, _ in noting.noted()] == [0, 0, 2]


def test_a_failed_warm_up_after_a_restart_is_retried(noting):
    assert noting.load() == (200, "")
    (_, _, process), = noting.noted()
    (noting.folder / "cold").touch()
    os.kill(process, signal.SIGKILL)
    noting.server.wait_for_line("cannot restart instance m_0_0")
    assert not noting.is_ready()
    status, text = noting.infer()
    assert status == 503 and "failed to run warmup sample 'it'" in text, text
    assert str(noting.repository) not in text
    (noting.folder / "cold").unlink()
    waiting.eventually("the model is ready", noting.is_ready)
    assert noting.infer()[0] == 200


def test_a_failed_sample_fails_the_load(noting):
    (noting.folder / "cold").touch()
    status, text = noting.load()
    reason = json.loads(text)["error"]
    # The real server's text, where it does not crash.
    text = (
        "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: failed to run warmup sample 'it': "
        "Failed to process the request(s) for model 'm_0_0', message: ValueError: cold\n\nAt:\n  m/1/model.py(11): execute\n; ;\n"
    )
    assert (status, reason) == (400, text)
    assert not noting.is_ready()
    log = noting.server.text()
    assert log.count("ValueError: cold") <= 3, "the traceback is told once"


REFUSED = [
    (sample(batch_size=5), 4, "failed to run warmup sample 'it': batch size 5 for 'm', max allowed is 4"),
    (sample(dims="[ 4611686018427387904 ]"), 0, "is too large with input 'INPUT0' of shape [4611686018427387904]"),
    (sample(dims="[ 300000000 ]"), 0, "the limit is 1073741824 bytes for all samples together"),
    (sample(data='input_data_file: "none"'), 0, "failed to open text file for read m/warmup/none: No such file or directory"),
    (sample(data='input_data_file: "."'), 0, "input_data_file '.' of model 'm' must be a relative path that stays inside"),
    (sample(data='input_data_file: "../x"'), 0, "input_data_file '../x' of model 'm' must be a relative path that stays inside"),
    (sample(count=4000000000), 0, "model_warmup.count of model 'm' is 4000000000, the limit is 100000"),
]


@pytest.mark.parametrize("case", REFUSED, ids=[text for _, _, text in REFUSED])
def test_oversized_warm_up_configurations_are_refused(noting, case):
    warm_up, max_batch_size, told = case
    noting.write(warm_up, max_batch_size=max_batch_size)
    status, text = noting.load()
    assert status == 400 and told in text, text
    assert noting.noted() == []


def onnx_model(repository, warm_up):
    """The example `simple` with samples: sums and differences of rows of 16 numbers."""
    config = (repositories.EXAMPLES / "simple/config.pbtxt").read_text() + warm_up
    return repositories.copy_example(repository, "simple", config)


def pair(first, second, **more):
    def value(data):
        return f"{{ data_type: TYPE_INT32 dims: 16 {data} }}"

    fields = " ".join(f"{name}: {number}" for name, number in more.items())
    inputs = f'inputs {{ key: "INPUT0" value {value(first)} }} inputs {{ key: "INPUT1" value {value(second)} }}'
    return f'{{ name: "pair" {fields} {inputs} }}'


def test_an_onnx_model_is_warmed_up_and_answers_the_stock_client(tmp_path, stage):
    samples = [pair("zero_data: true", "random_data: true", batch_size=2, count=3)]
    samples += [pair('input_data_file: "row"', "zero_data: true", batch_size=1)]
    folder = onnx_model(tmp_path, f"model_warmup [ {', '.join(samples)} ]\n")
    (folder / "warmup").mkdir()
    (folder / "warmup/row").write_bytes(np.arange(16, dtype=np.int32).tobytes())
    server = stage.serves(tmp_path, "--log-verbose=1")
    with tritonclient.http.InferenceServerClient(server.http) as client:
        (counted,) = client.get_inference_statistics("simple")["model_stats"]
        instances = server.text().count("is running warmup sample 'pair' for iteration 3")
        assert instances >= 1
        assert counted["execution_count"] == 4 * instances
        assert counted["inference_stats"]["success"]["count"] == 7 * instances
        assert counted["inference_stats"]["fail"]["count"] == 0
        assert "model 'simple' instance simple_0_0 is running warmup sample 'pair' for iteration 1" in server.text()


def test_the_example_of_the_page_works(tmp_path, stage):
    page = (servers.ROOT / "docs/warm-up.md").read_text()
    example = page.split("```pbtxt\n")[1].split("```")[0]
    folder = onnx_model(tmp_path, example)
    (folder / "warmup").mkdir()
    (folder / "warmup/row").write_bytes(bytes(64))
    assert check("--model-repository", tmp_path) == []
    server = stage.serves(tmp_path)
    sizes = {b["batch_size"] for b in clients.statistics(server, "simple")["batch_stats"]}
    assert sizes == {1, 4}


def check(*arguments):
    command = [servers.galatea_binary(), "check", *map(str, arguments), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    return json.loads(run.stdout)["findings"]


def test_check_finds_impossible_samples(tmp_path):
    sample_of_file = pair('input_data_file: "row"', "zero_data: true", batch_size=1)
    folder = onnx_model(tmp_path, f"model_warmup [ {sample_of_file} ]\n")
    (found,) = check("--model-repository", tmp_path)
    assert found["severity"] == "error" and found["file"] == "simple/warmup/row", found
    assert "No such file or directory" in found["text"] and "put the file there" in found["advice"]
    (folder / "warmup").mkdir()
    (folder / "warmup/row").write_bytes(bytes(60))
    (found,) = check("--model-repository", tmp_path)
    assert found["text"] == "warmup setting expects 64 bytes, but the data provided from row only has 60 bytes", found
    assert found["file"] == "simple/config.pbtxt" and found["line"] > 1, found
    (folder / "warmup/row").write_bytes(bytes(64))
    assert check("--model-repository", tmp_path) == []
