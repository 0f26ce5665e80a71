"""Differential scenarios: the same requests to our server and to the real Triton.

A scenario (tests/scenarios/*.yaml) names models and steps. What the real server answered is recorded in
tests/golden/<scenario>.json; the real server is held to that record whenever it is installed, ours always.
A step may say where ours differs on purpose, only together with the reason:

    galatea: {reason: ..., status: ..., text: ..., headers: ..., code: ..., details: ..., text_matches: ...}

The folder of the repositories is `<folder>` in answers. A model with `at_start: false` is written by a step only. A model may stand in a further repository, `second/name`; flags name its folder as `{second}`. A step may change the
repository before it asks: `changes: {configs: {model: text}, versions: {model: [2]}, files: {path: text}, remove: [path]}`.
`galatea_flags` are for ours alone. `memory` names files of shared memory (see shared_files.py), which steps call `{shm}NAME`; a step may
change them (`changes: {memory: ...}`) and tell their bytes after its answer (`reads: {NAME: [offset, size]}`).

Usage: scenarios.py [--target galatea|triton|both] [--record] [--count] [names...]
"""

import argparse
import base64
import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

import clients
import repositories
import server_pool
import servers
import shared_files
import waiting
from scenario_requests import ask_grpc, ask_http, body_fields

TESTS = Path(__file__).resolve().parents[1]
ANEW = servers.ROOT / "target/golden"
SCENARIOS = sorted((TESTS / "scenarios").glob("*.yaml"))


def golden_path(scenario):
    return TESTS / "golden" / f"{scenario.stem}.json"


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


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


# What ours puts behind Triton's sentence about a configuration: its place and what to do. crates/core/config/tests/mistakes.rs looks at it.
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
    """The repositories of a scenario: `main`, and those its models name, in the folder `parent`."""

    def __init__(self, scenario, target, parent, memory=None):
        self.models, self.target, self.parent = scenario.get("models", {}), target, Path(parent)
        self.memory = memory
        for name, file in scenario.get("memory", {}).items():
            memory.write(name, **file)
        # Models of other scenarios on the same server.
        self.foreign = set()
        (self.parent / "main").mkdir(exist_ok=True)
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
        flags = scenario.get("flags", []) + (scenario.get("galatea_flags", []) if self.target == "galatea" else [])
        for other in self.others():
            flags = [flag.replace(f"{{{other}}}", str(self.parent / other)) for flag in flags]
        return flags

    def hidden(self, answer):
        """The answer with `<folder>` for the folder of the repositories, and `{shm}` for the names of shared memory."""
        text = json.dumps(answer).replace(str(self.parent), "<folder>")
        return json.loads(text.replace(self.memory.prefix, "{shm}") if self.memory else text)

    def named(self, step):
        """The step with the names of this run's shared memory."""
        return json.loads(json.dumps(step).replace("{shm}", self.memory.prefix)) if self.memory else step

    def change(self, changes):
        for name, config in changes.get("configs", {}).items():
            self.write(name, config, None, [])
        for name, versions in changes.get("versions", {}).items():
            self.write(name, None, None, versions)
        for name, text in changes.get("files", {}).items():
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, file in changes.get("memory", {}).items():
            self.memory.write(name, **file)
        for name in changes.get("remove", []):
            path = self.path(name)
            shutil.rmtree(path) if path.is_dir() else path.unlink()


# Steps that ask for the index of the repositories.
INDEX = re.compile("repository/index|RepositoryIndex")


def ask(server, step, foreign=()):
    """The answer to a step; one with `until` (a text or a list of them) is asked again until its answer holds all. An index is
    told without the models named in `foreign`, which other scenarios had on the same server."""
    texts = step.get("until", [])
    texts = [texts] if isinstance(texts, str) else texts

    def answer():
        found = ask_grpc(server, step) if "grpc" in step else ask_http(server, step)
        if foreign and INDEX.search(step.get("grpc") or step["http"]):
            found = without_models(found, foreign)
        told = json.dumps(found)
        assert all(text in told for text in texts), told[:2000]
        return found

    return waiting.eventually(f"the answer to the step {step['id']} holds {texts}", answer)


def keeps_to_itself(answer, step, folder, scenario):
    """What the machine is like is nothing to clients: where things are, and what is in the environment. What a request says
    may be in its answer."""
    told, asked = json.dumps(answer), json.dumps(step)
    secrets = [folder, str(Path.home()), "/site-packages", "/dist-packages", sys.prefix, server_pool.SECRET[1]]
    if any("--model-namespacing" in flag for flag in scenario.get("flags", [])):
        # The name of a namespace, by which clients ask for models, is the folder as the operator wrote it.
        secrets.remove(folder)
    found = [secret for secret in secrets if secret in told and secret not in asked]
    assert not found, f"{step['id']} tells {found}: {told[:2000]}"


def play(scenario, target):
    """Answers of one server to every step, by step id. A step that ends the server is answered with that."""
    answers = {}
    steps = list(scenario["steps"])
    with tempfile.TemporaryDirectory() as folder, shared_files.SharedFiles() as memory:
        folders = Folders(scenario, target, folder, memory)
        while steps:
            environment = {"env": dict([server_pool.SECRET])} if target == "galatea" else {}
            with servers.TARGETS[target](folders.path(""), *folders.flags(scenario), **environment) as server:
                play_steps(scenario, server, folders, steps, answers)
    return answers


def play_steps(scenario, server, folders, steps, answers):
    """Takes steps from the list, and puts their answers into the dictionary, until there are none or the server has ended."""
    while steps and server.process.poll() is None:
        step = steps.pop(0)
        assert step["id"] not in answers, f"two steps with id {step['id']}"
        folders.change(step.get("changes", {}))
        answer = ask(server, folders.named(step), folders.foreign)
        if "reads" in step:
            answer["memory"] = {name: folders.memory.read(name, *span).hex() for name, span in step["reads"].items()}
        if folders.target == "galatea":
            keeps_to_itself(answer, step, str(folders.parent), scenario)
        answer = folders.hidden(answer)
        if folders.target == "galatea":
            answer = without_places(without_examples(answer))
        if "closed" in answer and has_ended(server):
            answer = {"closed": "the server ended"}
        answers[step["id"]] = answer


# Scenarios whose answers do not depend on each other's flags: ours plays them one after another on one server. Those whose only
# flag is the explicit mode, or that have none, are played on one as well. All others have a server of their own, because the
# mode, a failure at the start, or what a page shows depends on it.
TOGETHER = [
    ["http_headers", "grpc_headers", "strict"],
    ["metrics_quantiles", "response_cache", "repository_instances"],
    ["metrics", "response_cache_small"],
    ["metrics_less", "repository_two"],
]
# These have the same models, which are loaded at the start, and each asks over another protocol.
SAME_MODELS = ["http_access", "grpc_access"]
# These look at the readiness of the whole server.
STRICT = ["config_refusals", "http_repository", "python_load_failures"]
ALONE = ["repository_none", "shared_memory"]
EXPLICIT = "--model-control-mode=explicit"
LOADS = "--load-model="


@functools.cache
def play_same_models():
    """The answers of one server of ours to scenarios with the same models, by their names."""
    parts = {name: load(TESTS / "scenarios" / f"{name}.yaml") for name in SAME_MODELS}
    first, second = parts.values()
    assert first["models"] == second["models"]
    steps = [{**step, "id": (name, step["id"])} for name, part in parts.items() for step in part["steps"]]
    answers = play({**first, "flags": list(dict.fromkeys(first["flags"] + second["flags"])), "steps": steps}, "galatea")
    return {name: {step: answer for (of, step), answer in answers.items() if of == name} for name in parts}


def shared_flags(name):
    """The flags of the server that a scenario shares, None if it shares none."""
    if name in ALONE:
        return None
    names = next((names for names in TOGETHER if name in names), [name])
    flags = [flag for one in names for flag in load(TESTS / "scenarios" / f"{one}.yaml").get("flags", [])]
    flags = [flag for flag in flags if flag != EXPLICIT and not flag.startswith(LOADS)]
    flags += ["--strict-readiness=true"] if name in STRICT else []
    return None if flags and names == [name] and name not in STRICT else tuple(flags)


def play_shared(scenario, server):
    """Answers of a server of ours that plays other scenarios as well: its models are loaded, and at the end they go."""
    answers, steps = {}, list(scenario["steps"])
    flags, models = scenario.get("flags", []), scenario.get("models", {})
    wanted = [flag.removeprefix(LOADS) for flag in flags if flag.startswith(LOADS)]
    if EXPLICIT not in flags:
        wanted = [name for name, model in models.items() if model.get("at_start", True)]
    log_settings = json.loads(clients.ask(server.http, "GET", "/v2/logging")[2])
    # It cannot be set.
    del log_settings["log_file"]
    foreign = indexed(server)
    folders = Folders(scenario, "galatea", server.folder.name)
    folders.foreign = foreign - set(models)
    for name in models:
        server.owns(name.rpartition("/")[2], folders.path(name))
    for name in wanted:
        server.load(name)
    play_steps(scenario, server, folders, steps, answers)
    assert not steps, f"the server ended before the step {steps[0]['id']}"
    assert clients.ask(server.http, "POST", "/v2/logging", log_settings)[0] == 200
    return answers


def remembers(server, scenario):
    """Whether a scenario asks for the index of a server that still lists one of its models, which another scenario had there."""
    asks = any(INDEX.search(step.get("grpc") or step.get("http") or "") for step in scenario["steps"])
    models = {name.rpartition("/")[2] for name in scenario.get("models", {})}
    return asks and bool(models & indexed(server))


def indexed(server):
    """The names of all models in the index of a server."""
    return {row["name"] for row in json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])}


def without_models(answer, names):
    """The answer of the index without models that other scenarios had on the same server: they are unloaded."""
    if "text" in answer:
        try:
            rows = json.loads(answer["text"])
        except ValueError:
            return answer
        kept = [row for row in rows if row["name"] not in names] if isinstance(rows, list) else rows
        return {**answer, "text": json.dumps(kept, separators=(",", ":"), ensure_ascii=False)}
    found = answer.get("message", {})
    kept = [row for row in found.get("models", []) if row["name"] not in names]
    return {**answer, "message": {**found, "models": kept} if kept else {}} if "models" in found else answer


def has_ended(server):
    try:
        server.process.wait(2)
    except subprocess.TimeoutExpired:
        return False
    return True


def record(path):
    write_answers(golden_path(path), play(load(path), "triton"))


def write_answers(path, answers):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(answers, file, indent=1, ensure_ascii=False)
        file.write("\n")


def check(path, target, shared=None):
    """Lines that say what is wrong; none if the server answers as recorded. `shared` gives a server of ours by its flags. What
    the real server answers is written to target/golden where it is not as recorded."""
    scenario = load(path)
    recorded = json.loads(golden_path(path).read_text(encoding="utf-8"))
    flags = shared_flags(path.stem) if shared and target == "galatea" else None
    server = shared(*flags) if flags is not None else None
    if server is not None and not remembers(server, scenario):
        answers = play_shared(scenario, server)
    elif target == "galatea" and path.stem in SAME_MODELS:
        answers = play_same_models()[path.stem]
    else:
        answers = play(scenario, target)
    found = []
    for step in scenario["steps"]:
        if step["id"] not in recorded:
            found.append(f"{step['id']}: not recorded")
            continue
        lines = faults(step, target, answers[step["id"]], recorded[step["id"]])
        found += [f"{step['id']}: {line}" for line in lines]
    if found and target == "triton":
        write_answers(ANEW / golden_path(path).name, answers)
        found.append(f"what it answered is in {ANEW / golden_path(path).name}")
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
