"""Mistakes made on purpose (tests/mistakes/*.yaml): makes each, and gathers what is said of it.

`python mistakes.py [file...]` shows the texts as a person reads them.
"""

import concurrent.futures
import http.client
import json
import re
import subprocess
import sys
from pathlib import Path

import grpc
import yaml
from tritonclient.grpc import service_pb2, service_pb2_grpc

import servers
from repositories import EXAMPLES

TABLES = Path(__file__).resolve().parents[1] / "mistakes"

WORKS = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
"""
TENSORS = 'input [ { name: "IN" data_type: %s dims: [ %s ] } ]\noutput [ { name: "OUT" data_type: %s dims: [ %s ] } ]\n'
FLOATS = TENSORS % ("TYPE_FP32", "-1", "TYPE_FP32", "-1")
# The models that requests are sent to.
SERVED = {
    "good": FLOATS,
    "batched": TENSORS % ("TYPE_FP32", "2", "TYPE_FP32", "2") + "max_batch_size: 4\n",
    "strings": TENSORS % ("TYPE_STRING", "1", "TYPE_STRING", "1"),
    "pair": 'input [ { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "B" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
    'output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]\n',
    "images": TENSORS % ("TYPE_FP32", "-1, 3", "TYPE_FP32", "-1, 3") + "max_batch_size: 4\n",
    "bytes": TENSORS % ("TYPE_UINT8", "-1", "TYPE_UINT8", "-1"),
    "stream": FLOATS + "model_transaction_policy { decoupled: true }\n",
}
# Requests of the models whose code is wrong.
ASK = {"inputs": [{"name": "IN", "shape": [1], "datatype": "FP32", "data": [1]}]}


def table(name):
    return yaml.safe_load((TABLES / f"{name}.yaml").read_text())


def write(folder, files):
    for path, text in files.items():
        file = folder / str(path)
        if text is None:
            file.mkdir(parents=True, exist_ok=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if text == "onnx":
            file.symlink_to(EXAMPLES / "simple/1/model.onnx")
        else:
            file.write_text(WORKS if text == "ok" else text)


def write_repository(folder):
    for name, config in SERVED.items():
        write(folder / name, {"config.pbtxt": f'backend: "python"\n{config}', "1/model.py": "ok"})
    for name, mistake in {**table("config"), **table("layout")}.items():
        files = mistake.get("files", {"1/model.py": "ok"})
        (folder / name).mkdir()
        write(folder / name, {**({"config.pbtxt": mistake["config"]} if "config" in mistake else {}), **files})
    for name, mistake in table("model_py").items():
        config = f'backend: "python"\n{FLOATS}{mistake.get("config", "")}'
        write(folder / name, {"config.pbtxt": config, "1/model.py": mistake["code"]})


def ask(server, method, path, body=b"", headers=None):
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


def error_of(text):
    try:
        return json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return text


class Repository:
    """A server with every wrong model: what it says of each."""

    def __init__(self, folder):
        self.folder = folder
        write_repository(folder)
        flags = ["--exit-on-error=false", "--model-control-mode=explicit", "--load-model=*"]
        self.server = servers.galatea(folder, *flags)
        _, index = ask(self.server, "POST", "/v2/repository/index")
        self.reasons = {}
        for entry in json.loads(index):
            reason = entry.get("reason", "")
            self.reasons[entry["name"]] = "\n".join(filter(None, [self.reasons.get(entry["name"]), reason]))
        self.answers = {}

    def load(self, names):
        """The answers to loads of these models."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            load = lambda name: ask(self.server, "POST", f"/v2/repository/models/{name}/load")
            self.answers.update(zip(names, pool.map(load, names)))

    def logged(self, name):
        """The lines of the log about a model, as they were before each was put on one line."""
        lines = [line for line in self.server.text().splitlines() if re.search(rf"\b{name}\b", line) and re.match("[EWI]", line)]
        # The log, unlike answers, says where the repository is.
        return "\n".join(unescaped(line).replace(f"{self.folder}/", "") for line in lines)

    def request_over_grpc(self, mistake):
        """Code and text of the answer to the same mistake over gRPC."""
        with grpc.insecure_channel(self.server.grpc) as channel:
            try:
                service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(as_message(mistake), timeout=60)
            except grpc.RpcError as error:
                return error.code().name, error.details()
        return "OK", ""

    def request(self, mistake):
        """Status and text of the answer to a wrong request."""
        body = mistake["body"].encode() if "body" in mistake else json.dumps(mistake.get("json", ASK)).encode()
        method = mistake.get("method", "POST")
        path = mistake.get("path", "/v2/models/good/infer")
        status, text = ask(self.server, method, path, body if method == "POST" else b"", mistake.get("headers"))
        return status, error_of(text)


# The field of a message that elements of each data type stand in.
CONTENTS = {"FP32": "fp32_contents", "INT32": "int_contents", "INT64": "int64_contents", "BOOL": "bool_contents", "BYTES": "bytes_contents"}


def as_message(mistake):
    """The request as a message: of the model, version and JSON that HTTP has."""
    words = mistake.get("path", "/v2/models/good/infer").split("/")
    version = words[5] if words[4] == "versions" else ""
    body = mistake.get("json", ASK)
    message = service_pb2.ModelInferRequest(model_name=words[3], model_version=version)
    for given in body.get("inputs", ()):
        given_type = given.get("datatype", "")
        tensor = message.inputs.add(name=given.get("name", ""), datatype=given_type, shape=given.get("shape", ()))
        values = [value.encode() if isinstance(value, str) else value for value in given.get("data", ())]
        field = "bytes_contents" if values and isinstance(values[0], bytes) else CONTENTS.get(given_type, "fp32_contents")
        getattr(tensor.contents, field).extend(values)
    for asked in body.get("outputs", ()):
        message.outputs.add(name=asked["name"])
    return message


def check(folder):
    """What `galatea check` finds, by model: texts with their advice."""
    command = [servers.galatea_binary(), "check", folder, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=servers.START_LIMIT)
    found = {}
    for finding in json.loads(done.stdout)["findings"]:
        found.setdefault(finding["model"], []).append(f"{finding['text']} | {finding['advice'] or ''}")
    return done.returncode, found


def unescaped(line):
    return re.sub(r'\\(["\\n])', lambda found: "\n" if found[1] == "n" else found[1], line)


def command_line(words, folder):
    """Status and error of a command line that is wrong."""
    words = [word.replace("{folder}", str(folder)) for word in words]
    command = [str(servers.galatea_binary()), *words]
    if words[0] == "serve" and not any("-port" in word for word in words):
        command += ["--http-port=0", "--grpc-port=0", "--metrics-port=0"] if len(words) > 1 else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr


def write_folder_of_commands(folder):
    (folder / "models").mkdir()
    for name in ("iris.onnx", "model.pkl", "weights.safetensors"):
        (folder / name).write_text("x")


PAGE = TABLES.parents[1] / "docs/troubleshooting.md"


def quoted_on_the_page():
    """The parts of messages that the first column of each table in docs/troubleshooting.md quotes."""
    first_cells = re.findall(r"^\| (`.*?) \| ", PAGE.read_text(), re.M)
    spans = [span for cell in first_cells for span in re.findall(r"(`+) ?(.+?) ?\1(?!`)", cell)]
    return [part for _, span in spans for part in span.split("...") if part.strip()]


def told_in_the_tables():
    """Every message of the tables, one a line."""
    rows = [row for name in ("config", "layout", "model_py", "request") for row in table(name).values()]
    texts = [row[key] for row in rows for key in ("told", "advised", "warned", "logged") if row.get(key)]
    texts += [row["told"] for row in [*table("running").values(), *table("command_line")]]
    return "\n".join(" ".join(text.split()) for text in texts)


def strings_of_the_sources():
    """What stands in the sources of the program, with the lines of each text joined."""
    files = sorted((TABLES.parents[1] / "crates").glob("*/*/src/**/*.rs"))
    return re.sub(r"\\\n\s*", "", "\n".join(file.read_text() for file in files))


def show(names):
    import tempfile

    folder = Path(tempfile.mkdtemp())
    (folder / "models").mkdir()
    if "command_line" in names:
        (folder / "commands").mkdir()
        write_folder_of_commands(folder / "commands")
        for mistake in table("command_line"):
            words = mistake["words"] if isinstance(mistake, dict) else mistake
            print("##", " ".join(words), *command_line(words, folder / "commands"), sep="\n")
    if set(names) <= {"command_line"}:
        return
    repository = Repository(folder / "models")
    with repository.server:
        for name in ("config", "layout"):
            for model in table(name) if name in names else ():
                print("##", model, "\n  ", repository.reasons.get(model))
                if not repository.reasons.get(model):
                    print("   LOG:", repository.logged(model))
        for model, mistake in table("model_py").items() if "model_py" in names else ():
            print("##", model, "\n  ", repository.reasons.get(model))
            if not repository.reasons.get(model):
                print("   ASKED:", repository.request({"path": f"/v2/models/{model}/infer"}))
                print("   LOG:", repository.logged(model))
        for name, mistake in table("request").items() if "request" in names else ():
            print("##", name, "\n  ", *repository.request(mistake))


if __name__ == "__main__":
    show(sys.argv[1:] or ["config", "layout", "model_py", "command_line", "request"])
