"""The front ends of cloud platforms, names of models that are paths, and reports that a header asks for."""

import json
import re
import shutil
import time
import uuid
from pathlib import Path

import raw_http

from registry import Achieved, attack
from repositories import identity_config, write_model

SAGEMAKER = ("--allow-sagemaker=true", "--sagemaker-port=0")
# Where SageMaker unpacks models.
UNPACKED = Path("/opt/ml/models")


class Archives:
    """Folders as SageMaker makes them, of this attack alone; gone with it."""

    def __enter__(self):
        self.prefix = f"attack{uuid.uuid4().hex}"
        UNPACKED.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_):
        for folder in UNPACKED.glob(f"{self.prefix}*"):
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)

    def path(self, tail):
        return UNPACKED / f"{self.prefix}{tail}"

    def write(self, name):
        write_model(self.path(name), "model", "galatea", "identity", identity_config())
        return str(self.path(name) / "model")


def sagemaker(target):
    line = target.server.wait_for_line("Started Sagemaker HTTPService at ")
    host, port = re.search(r"HTTPService at ([^\"\s]+):(\d+)", line).groups()
    return host, int(port)


def loading(name, url, **headers):
    return raw_http.post("/models", json.dumps({"model_name": name, "url": url}).encode(), **headers)


def deleting(name):
    return raw_http.head("DELETE", f"/models/{name}", 0)


def listed(address):
    return json.loads(raw_http.exchange(address, raw_http.head("GET", "/models"))[1])["models"]


@attack("sagemaker-urls", flags=SAGEMAKER)
def sagemaker_urls(target):
    """loads by urls that lead elsewhere: other folders, links, /proc, and bodies that are none"""
    address = sagemaker(target)
    write_model(target.outside, "model", "galatea", "identity", identity_config())
    answers = []
    with Archives() as archives:
        archives.path("link").symlink_to(target.outside)
        archives.path("all").symlink_to("/")
        near = archives.write("near")
        urls = [
            "/", "/proc/self/root", "/proc/1/root/etc", "/dev/", "/dev/fd", "/sys", "/etc", "../../proc", "..", "", "model", "\0", "/opt/ml/models",
            "/opt/ml/models/", "/opt/ml/models/..", f"{near}/../../../../../etc", f"{near}\0/../../etc", "file:///etc", "s3://bucket/model", "x" * 60_000,
            str(target.outside / "model"), str(archives.path("link") / "model"), str(archives.path("all") / "etc"), str(target.repository / "simple"),
            f"/opt/ml/models/{'a/' * 2000}model", f"/opt/ml/models/{'../' * 2000}etc",
        ]
        answers += [raw_http.exchange(address, loading(f"m{n}", url))[0] for n, url in enumerate(urls)]
        names = ["..", ".", "a/b", "/etc/passwd", "", "\0", "n" * 60_000, "ns::m", "%2F", "\u202e"]
        answers += [raw_http.exchange(address, loading(name, str(archives.path("none"))))[0] for name in names]
        answers += [
            raw_http.exchange(address, loading("m", str(target.outside / "model"), X_Amzn_SageMaker_Target_Model=header))[0]
            for header in ("../m", "a/b", "m" * 30_000, "simple")
        ]
        bodies = [b"x", b"[]", b"5", b"{", b'{"url":5}', b'{"model_name":[]}', b"[" * 10_000_000, b'{"url":"' + b"a" * 20_000_000 + b'"}', b"\xff" * 1000]
        answers += [raw_http.exchange(address, raw_http.post("/models", body))[0] for body in bodies]
        if listed(address):
            raise Achieved(f"loaded: {listed(address)}")
        if raw_http.exchange(address, loading("m", near))[0] != 200:
            raise Achieved("what may be loaded is not")
    return raw_http.statuses(answers)


@attack("sagemaker-flood", flags=SAGEMAKER)
def sagemaker_flood(target):
    """64 clients load, list, ask and unload the same 8 models for 6 seconds, and hang up on a third of them"""
    address = sagemaker(target)
    row = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]}).encode()
    with Archives() as archives:
        urls = [archives.write(str(number)) for number in range(8)]

        def play(client):
            number = client % len(urls)
            calls = [
                loading(f"m{number}", urls[number]), raw_http.head("GET", "/models"), raw_http.post(f"/models/m{number}/invoke", row),
                deleting(f"m{number}"), loading(f"other{client}", urls[number]),
            ]
            statuses = []
            for place, sent in enumerate(calls):
                if (client + place) % 3 == 0:
                    with raw_http.connect(address) as connection:
                        connection.sendall(sent)
                    continue
                statuses.append(raw_http.exchange(address, sent)[0])
            return max(statuses)

        answers = raw_http.together(64, play, 6)
        # Whatever was begun comes to its end, and every name and place is free again.
        deadline = time.monotonic() + 20
        while left := listed(address):
            for model in left:
                raw_http.exchange(address, deleting(model["modelName"]))
            if time.monotonic() > deadline:
                raise Achieved(f"cannot be unloaded: {left}")
        for number, url in enumerate(urls):
            status, text = 409, b""
            while status == 409 and time.monotonic() < deadline:
                status, text = raw_http.exchange(address, loading(f"new{number}", url))
                for model in listed(address):
                    if model["modelName"] != f"new{number}" and model["modelUrl"] in url:
                        raw_http.exchange(address, deleting(model["modelName"]))
            if status != 200:
                raise Achieved(f"{url} cannot be loaded any more: {status} {text[:200]}")
            raw_http.exchange(address, deleting(f"new{number}"))
    return raw_http.statuses(answers)


NAMES = ("::simple", "a::simple", "/::simple", "..::simple", "{repository}::simple", "%2F{repository}::simple", "simple%00", "simple::", "..%2Fsimple", "%2e%2e/simple")


@attack("namespaced-names", flags=("--model-namespacing=true",))
def namespaced_names(target):
    """models named with a namespace, a path or escapes, on every route that takes a name"""
    answers = []
    for name in NAMES:
        name = name.replace("{repository}", str(target.repository).replace("/", "%2F"))
        for method, path in [
            ("GET", "v2/models/{}"), ("GET", "v2/models/{}/config"), ("GET", "v2/models/{}/stats"), ("GET", "v2/models/{}/ready"),
            ("POST", "v2/models/{}/infer"), ("POST", "v2/models/{}/generate"), ("POST", "v2/repository/models/{}/load"), ("POST", "v2/repository/models/{}/unload"),
        ]:
            sent = raw_http.head(method, f"/{path.format(name)}", 2) + b"{}"
            status, text = raw_http.exchange(target.http, sent)
            answers.append(status)
            if status == 200 and "unload" not in path:
                raise Achieved(f"{method} {path.format(name)} was answered: {text[:120]}")
    if target.ask("GET", "/v2/models/simple/ready")[0] != 200:
        raise Achieved("a model was unloaded by another name")
    return raw_http.statuses(answers)


SERIES = 9_000
REPORTING = f"""
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.family = pb.MetricFamily(name="nv_trt_llm_kv_cache_block_metrics", description="", kind=pb.MetricFamily.GAUGE)
        self.metrics = [self.family.Metric(labels={{"kv_cache_block_type": kind}}) for kind in ("used", "max", "tokens_per")]
        self.others = [self.family.Metric(labels={{"other": str(number)}}) for number in range({SERIES})]
        for metric in self.metrics:
            metric.set(4)

    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1, np.float32))]) for _ in requests]
"""


def write_reporting(repository):
    config = 'input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]\noutput [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
    write_model(repository, "reporting", "galatea", "python", config, {"1/model.py": REPORTING})


@attack("load-reports", models=write_reporting, loads=("reporting",))
def load_reports(target):
    """32 clients ask for a load report with each of their requests, of a model with 9,000 series; formats that are none"""
    body = b'{"IN":1}'
    odd = [
        raw_http.exchange(target.http, raw_http.post("/v2/models/reporting/generate", body, endpoint_load_metrics_format=format))[0]
        for format in ("", "xml", "text" * 5000, "text, json", "JSON", "text\t", "\x80\xff")
    ]
    sent = raw_http.post("/v2/models/reporting/generate", body, endpoint_load_metrics_format="json")
    return f"odd formats: {raw_http.statuses(odd)}; {target.heavy(32, sent, 5)}"
