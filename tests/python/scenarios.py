"""Differential scenarios: the same requests to our server and to the real Triton.

A scenario (tests/scenarios/*.yaml) names models and steps. What the real server answered is recorded in
tests/golden/<scenario>.json; the real server is held to that record whenever it is installed, ours always.
A step may say where ours differs on purpose, only together with the reason:

    galatea: {reason: ..., status: ..., text: ..., headers: ..., code: ..., details: ..., text_matches: ...}

The folder of the repositories is `<folder>` in answers. A model with `at_start: false` is written by a step only. A model may stand in a further repository, `second/name`; flags name its folder as `{second}`. A step may change the
repository before it asks: `changes: {configs: {model: text}, versions: {model: [2]}, files: {path: text}, remove: [path]}`.

Usage: scenarios.py [--target galatea|triton|both] [--record] [--count] [names...]
"""

import argparse
import base64
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
import numpy as np
import yaml
from google.protobuf import json_format
from tritonclient.grpc import service_pb2, service_pb2_grpc

import repositories
import servers

TESTS = Path(__file__).resolve().parents[1]
SCENARIOS = sorted((TESTS / "scenarios").glob("*.yaml"))
HEADERS = ("content-type", "inference-header-content-length", "transfer-encoding")
UNTIL_LIMIT = 30
NUMPY = {
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64, "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "bool": np.bool_,
}


def golden_path(scenario):
    return TESTS / "golden" / f"{scenario.stem}.json"


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


# ---- building requests


def packed(part):
    """Bytes of one part of a binary body: {json: ..}, {hex: ..}, {text: ..}, {bytes: [..]} or {int32: [..]} ..."""
    ((kind, value),) = part.items()
    if kind == "json":
        return json.dumps(value).encode()
    if kind == "hex":
        return bytes.fromhex(value)
    if kind == "text":
        return value.encode()
    if kind == "bytes":
        return b"".join(len(v.encode()).to_bytes(4, "little") + v.encode() for v in value)
    return np.array(value, dtype=NUMPY[kind]).tobytes()


def http_request(step):
    """Method, path, headers and body of a step."""
    method, path = step["http"].split(" ", 1)
    headers = {k: str(v) for k, v in step.get("headers", {}).items()}
    body = None
    if "json" in step:
        body = json.dumps(step["json"]).encode()
    elif "body" in step:
        body = step["body"].encode()
    elif "binary" in step:
        parts = [packed(part) for part in step["binary"]]
        body = b"".join(parts)
        headers.setdefault("Inference-Header-Content-Length", str(len(parts[0])))
    headers = {k: v for k, v in headers.items() if v != "None"}
    return method, path, headers, body


def ask_http(server, step):
    method, path, headers, body = http_request(step)
    address = server.metrics if step.get("port") == "metrics" else server.http
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        if body is not None and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        reply = connection.getresponse()
        content = reply.read()
    except (ConnectionError, http.client.HTTPException) as error:
        return {"closed": type(error).__name__}
    finally:
        connection.close()
    answer = {"status": reply.status}
    found = {name: reply.headers[name] for name in HEADERS if reply.headers[name] is not None}
    if found:
        answer["headers"] = found
    answer.update(body_fields(content))
    return answer


def body_fields(content):
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def ask_grpc(server, step):
    with grpc.insecure_channel(server.grpc) as channel:
        call, request = grpc_call(channel, step)
        metadata = [(name, str(value)) for name, value in step.get("metadata", {}).items()]
        try:
            reply = call(request, timeout=60, metadata=metadata)
            if step["grpc"] == "ModelStreamInfer":
                return {"code": "OK", "messages": [readable(one) for one in reply]}
        except grpc.RpcError as error:
            return {"code": error.code().name, "details": error.details()}
    return {"code": "OK", "message": readable(reply)}


def readable(reply):
    if isinstance(reply, bytes):
        return {"hex": reply.hex()}
    return json_format.MessageToDict(reply, preserving_proto_field_name=True)


def grpc_call(channel, step):
    """A bound method and its request; a method written as a path is called with the bytes in `hex`."""
    method = step["grpc"]
    if method.startswith("/"):
        return channel.unary_unary(method), bytes.fromhex(step.get("hex", ""))
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    if method == "ModelStreamInfer":
        return stub.ModelStreamInfer, iter(infer_request(message) for message in step["messages"])
    request = json_format.ParseDict(step.get("message") or {}, getattr(service_pb2, f"{method}Request")())
    raw = [packed(part) for part in step.get("raw", [])]
    if raw:
        request.raw_input_contents.extend(raw)
    return getattr(stub, method), request


def infer_request(message):
    return json_format.ParseDict(message, service_pb2.ModelInferRequest())


# ---- comparing answers

# What Triton's `identity` puts into each response, and ours with it; a model of the 2.51 Python backend, which takes its
# place on the real server, cannot. test_builtin_backends.py looks at it.
EXAMPLE_PARAMETERS = b'"param0":"an example string parameter","param1":42,"param2":false,"param3":123.123'
EXAMPLES_IN_ANSWER = re.compile(
    rb'"parameters":\{' + re.escape(EXAMPLE_PARAMETERS) + rb"\},|," + re.escape(EXAMPLE_PARAMETERS)
)


def without_examples(answer):
    """The answer as a model would give it that adds no parameters."""
    found = answer.get("message", {})
    if isinstance(found, dict) and "param3" in found.get("parameters", {}):
        left = {key: value for key, value in found["parameters"].items() if not re.fullmatch("param[0-3]", key)}
        found = {**found, "parameters": left} if left else {k: v for k, v in found.items() if k != "parameters"}
        return {**answer, "message": found}
    content = base64.b64decode(answer["base64"]) if "base64" in answer else answer.get("text", "").encode()
    plain = EXAMPLES_IN_ANSWER.sub(b"", content)
    if plain == content:
        return answer
    headers = dict(answer.get("headers", {}))
    if "inference-header-content-length" in headers:
        length = int(headers["inference-header-content-length"]) - len(content) + len(plain)
        headers["inference-header-content-length"] = str(length)
    kept = {key: value for key, value in answer.items() if key not in ("text", "base64", "headers")}
    return {**kept, **({"headers": headers} if headers else {}), **body_fields(plain)}


# What ours puts behind Triton's sentence about a configuration: its place and what to do. crates/config/tests/mistakes.rs looks at it.
NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
# So does what is wrong with the files of a model: their path, or the model's name.
# Behind sentences about a request: the input, or what there is to choose from.
PLACE = re.compile(r" \((?:[^()/ ]+/config\.pbtxt|config#|input '|its (?:in|out)puts: |(?!details)[^() ]+: )" + NESTED + r"\)")


def without_places(answer):
    """The answer as Triton would give it, without the place and the advice behind its sentences."""
    return json.loads(PLACE.sub("", json.dumps(answer)))


# In the frames of a traceback ours never shows where the repository is: before the folder of a model.
OUTER_FOLDERS = re.compile(r"(\\n  )(?:<folder>|/[^ \"]*)/[^/ ]+/(?=[^/ ]+/[^/ ]+/[^/ ]+\.py\(\d+\))")


def masked(answer, step):
    """The answer without what may differ from run to run or server to server."""
    answer = json.loads(OUTER_FOLDERS.sub(r"\1", json.dumps(answer)))
    if "only_lines" in step and "text" in answer:
        lines = answer["text"].splitlines()
        answer["text"] = "\n".join(sorted(line for line in lines if re.search(step["only_lines"], line)))
    for pattern in step.get("mask", []):
        for field in ("text", "details"):
            if field in answer:
                answer[field] = re.sub(pattern, "<masked>", answer[field])
    if "text" in answer:
        try:
            answer["text"] = json.loads(answer["text"], object_pairs_hook=Ordered)
        except ValueError:
            pass
    for path in step.get("ignore", []):
        for field in ("text", "message"):
            if field in answer:
                drop(answer[field], path.strip("/").split("/"))
    return answer


class Ordered(dict):
    """A JSON object that is equal only to one with the same keys in the same order."""

    def __eq__(self, other):
        return list(self.items()) == list(other.items()) if isinstance(other, dict) else False

    def __ne__(self, other):
        return not self == other

    __hash__ = None


def drop(value, path):
    """Removes what lies at a path; `*` stands for every element."""
    if isinstance(value, list) and path:
        for item in value:
            drop(item, path[1:] if path[0] == "*" else path)
        return
    if not isinstance(value, dict):
        return
    for key in list(value) if path[0] == "*" else [path[0]]:
        if key in value and len(path) == 1:
            del value[key]
        elif key in value:
            drop(value[key], path[1:])


def faults(step, target, answer, recorded):
    """Lines that say where an answer is not what it should be."""
    wanted = masked(recorded, step)
    got = masked(answer, step)
    override = step.get("galatea") if target == "galatea" else None
    if override:
        assert override.get("reason"), f"{step['id']}: a difference needs its reason"
        wanted, got = overridden(wanted, got, answer, override)
    found = []
    if step.get("status", wanted.get("status")) != wanted.get("status") and not override:
        found.append(f"scenario says status {step['status']}, recorded {wanted.get('status')}")
    for field in sorted(set(wanted) | set(got)):
        if field == "headers" and step.get("headers_differ"):
            continue
        if wanted.get(field) != got.get(field):
            found.append(f"{field}:\n      expected {wanted.get(field)!r}\n      got      {got.get(field)!r}")
    return found


def overridden(wanted, got, answer, override):
    """What is wanted, and got, where ours differs on purpose; a pattern is held against the answer as it came."""
    for field in ("status", "headers", "text", "code", "details", "message", "closed"):
        if field in override:
            wanted[field] = override[field]
        if f"{field}_matches" in override:
            pattern = override[f"{field}_matches"]
            matches = re.search(pattern, answer.get(field) or "", re.DOTALL)
            wanted[field] = got[field] if matches else f"something like {pattern}"
    return {field: value for field, value in wanted.items() if value is not None}, got


# ---- running


class Folders:
    """The repositories of a scenario: `main`, and those its models name."""

    def __init__(self, scenario, target, parent):
        self.models, self.target, self.parent = scenario.get("models", {}), target, Path(parent)
        (self.parent / "main").mkdir()
        for name, model in self.models.items():
            if model.get("at_start", True):
                self.write(name, model.get("config"), model.get("files"), model.get("versions", [1]))

    def path(self, name):
        """Of a model, or of a file of one."""
        return self.parent / name if name.split("/")[0] in self.others() else self.parent / "main" / name

    def others(self):
        return {name.split("/")[0] for name in self.models if "/" in name}

    def write(self, name, config, files, versions):
        path, backend = self.path(name), self.models[name]["backend"]
        repositories.write_model(path.parent, path.name, self.target, backend, config, files, versions)

    def flags(self, scenario):
        """With the folders of further repositories in them."""
        flags = scenario.get("flags", [])
        for other in self.others():
            flags = [flag.replace(f"{{{other}}}", str(self.parent / other)) for flag in flags]
        return flags

    def hidden(self, answer):
        """The answer with `<folder>` for the folder of the repositories."""
        return json.loads(json.dumps(answer).replace(str(self.parent), "<folder>"))

    def change(self, changes):
        for name, config in changes.get("configs", {}).items():
            self.write(name, config, None, [])
        for name, versions in changes.get("versions", {}).items():
            self.write(name, None, None, versions)
        for name, text in changes.get("files", {}).items():
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in changes.get("remove", []):
            path = self.path(name)
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def ask(server, step):
    """The answer to a step; one with `until` (a text or a list of them) is asked again until its answer holds all."""
    texts = step.get("until", [])
    texts = [texts] if isinstance(texts, str) else texts
    deadline = time.monotonic() + UNTIL_LIMIT
    while True:
        answer = ask_grpc(server, step) if "grpc" in step else ask_http(server, step)
        told = json.dumps(answer)
        if all(text in told for text in texts) or time.monotonic() > deadline:
            return answer


# In the environment of every server of a scenario.
SECRET = ("GALATEA_TEST_TOKEN", "hunter2-of-the-environment")


def keeps_to_itself(answer, step, folder, scenario):
    """What the machine is like is nothing to clients: where things are, and what is in the environment. What a request says
    may be in its answer."""
    told, asked = json.dumps(answer), json.dumps(step)
    secrets = [folder, str(Path.home()), "/site-packages", "/dist-packages", sys.prefix, SECRET[1]]
    if any("--model-namespacing" in flag for flag in scenario.get("flags", [])):
        # The name of a namespace, by which clients ask for models, is the folder as the operator wrote it.
        secrets.remove(folder)
    found = [secret for secret in secrets if secret in told and secret not in asked]
    assert not found, f"{step['id']} tells {found}: {told[:2000]}"


def play(scenario, target):
    """Answers of one server to every step, by step id. A step that ends the server is answered with that."""
    answers = {}
    steps = list(scenario["steps"])
    with tempfile.TemporaryDirectory() as folder:
        folders = Folders(scenario, target, folder)
        while steps:
            environment = {"env": dict([SECRET])} if target == "galatea" else {}
            with servers.TARGETS[target](folders.path(""), *folders.flags(scenario), **environment) as server:
                while steps and server.process.poll() is None:
                    step = steps.pop(0)
                    assert step["id"] not in answers, f"two steps with id {step['id']}"
                    folders.change(step.get("changes", {}))
                    answer = ask(server, step)
                    if target == "galatea":
                        keeps_to_itself(answer, step, folder, scenario)
                    answers[step["id"]] = folders.hidden(answer)
                    if target == "galatea":
                        answers[step["id"]] = without_places(without_examples(answers[step["id"]]))
                    if "closed" in answers[step["id"]] and has_ended(server):
                        answers[step["id"]] = {"closed": "the server ended"}
    return answers


def play_again_if_hung(scenario, target):
    """The real Triton hangs now and then, without an answer to anything: it is started once more. Ours may not."""
    try:
        return play(scenario, target)
    except TimeoutError:
        if target != "triton":
            raise
        return play(scenario, target)


def has_ended(server):
    try:
        server.process.wait(2)
    except subprocess.TimeoutExpired:
        return False
    return True


def record(path):
    answers = play(load(path), "triton")
    with open(golden_path(path), "w", encoding="utf-8") as file:
        json.dump(answers, file, indent=1, ensure_ascii=False)
        file.write("\n")


def check(path, target):
    """Lines that say what is wrong; none if the server answers as recorded."""
    scenario = load(path)
    recorded = json.loads(golden_path(path).read_text(encoding="utf-8"))
    answers = play_again_if_hung(scenario, target)
    found = []
    for step in scenario["steps"]:
        if step["id"] not in recorded:
            found.append(f"{step['id']}: not recorded")
            continue
        lines = faults(step, target, answers[step["id"]], recorded[step["id"]])
        found += [f"{step['id']}: {line}" for line in lines]
    return found


def count():
    """Prints how many answers are the real server's, and how many differ for a reason."""
    steps = [step for path in SCENARIOS for step in load(path)["steps"]]
    differ = sum("galatea" in step for step in steps)
    masked = sum("ignore" in step or "headers_differ" in step for step in steps if "galatea" not in step)
    print(f"{len(steps)} answers: {len(steps) - differ} alike ({masked} of them but for named fields), {differ} differ for a reason")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=["galatea", "triton", "both"], default="both")
    parser.add_argument("--record", action="store_true", help="write what the real server answers to tests/golden")
    parser.add_argument("--count", action="store_true", help="print only how many answers are alike and differ")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.count:
        return count()
    wrong = 0
    for path in SCENARIOS:
        if args.names and path.stem not in args.names:
            continue
        if args.record:
            record(path)
        for target in ["galatea", "triton"] if args.target == "both" else [args.target]:
            lines = check(path, target)
            wrong += len(lines)
            print(f"{path.stem} on {target}: {len(lines) or 'no'} differences")
            for line in lines:
                print(f"    {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
