"""What the Python models in `models` are asked, and what they answered, as plain data.

A play is a function of a running server; what it returns is held against tests/golden/python_models.json, the
record of the real server. Where ours differs on purpose, models/differences.yaml says why and in what.

Usage: python_cases.py --record [names...]    writes down what the real server answers
       python_cases.py --target galatea|triton [names...]
"""

import argparse
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import tritonclient.grpc as grpcclient
import yaml
from geventhttpclient.response import HTTPConnectionClosed

import processes
import python_examples
import python_plays
import servers
from python_requests import MODELS, by_infer, case_input, stream
from waiting import LIMIT, eventually

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden/python_models.json"
DIFFERENCES = MODELS / "differences.yaml"
HANGS_AFTER = 6
FLAGS = ["--model-control-mode=explicit", "--strict-readiness=false"]


def start(target, repository):
    """One server over all models of the folder, none of them loaded; `repository` is an empty folder."""
    shutil.copytree(MODELS, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.md", "*.yaml"))
    server = servers.TARGETS[target](repository, *FLAGS)
    server.repository = Path(repository)
    server.loaded, server.asked, server.harmed = set(), set(), False
    # The real one is known to hang in some plays; ours is given all the time that a busy machine may need.
    server.limit = HANGS_AFTER if target == "triton" else LIMIT
    return server


def end(server):
    """Ends it; the real one, once harmed, does not end by itself and leaves stubs and shared memory behind."""
    if not is_harmed(server):
        server.stop()
        return
    left = processes.descendants(server.pid)
    server.process.kill()
    server.wait_for_exit()
    for pid in processes.wait_for_end(left, 0):
        os.kill(pid, signal.SIGKILL)
    for file in Path("/dev/shm").glob(f"galatea_test_{server.http.split(':')[1]}_*"):
        file.unlink()


# ---- plays


def cases_of(model):
    return re.findall(r"^(?:async )?def case_(\w+)", (MODELS / model / "1/model.py").read_text(), re.MULTILINE)


def by_stream(model, case, **more):
    def play(server):
        return stream(server, model, case_input(grpcclient, case), **more)

    return play


def in_order(play):
    """Threads send as they come: their responses by what they say, the end last."""
    return lambda server: sorted(play(server), key=lambda answer: (answer["final"], answer["outputs"].get("SAID")))


def left_behind(server):
    """What two other plays left in the model, once it has noticed that the second one's stream was cancelled."""
    for case in ("after_final", "until_cancelled"):
        if f"stream/{case}" not in server.asked:
            by_stream("stream", case, cancel=case == "until_cancelled")(server)

    def noticed():
        answers = by_stream("stream", "left")(server)
        return "until_cancelled" in answers[0]["outputs"]["SAID"] and answers

    return eventually("the model notices that the stream was cancelled", noticed)


def discovered():
    """Every `case_` function of the models, over the protocols where it can make a difference."""
    plays = {}
    for model, ways in CASE_MODELS.items():
        for case in cases_of(model):
            for way in ways:
                name = f"{model}/{case}" if len(ways) == 1 else f"{model}/{case} over {way}"
                more = {"cancel": True} if case == "until_cancelled" else {}
                play = by_stream(model, case, **more) if way == "stream" else by_infer(model, way, case)
                plays[name] = in_order(play) if case == "send_from_many_threads" else play
    return {**plays, "stream/left": left_behind}


CASE_MODELS = {
    "tensors": ["http"], "outputs": ["http", "grpc"], "arguments": ["http"], "calls": ["http"], "calls_async": ["stream"],
    "accepted": ["http"], "stream": ["stream"], "sender": ["http", "grpc", "stream"], "surroundings": ["http"],
}


def plays():
    return {**discovered(), **python_plays.PLAYS, **python_examples.PLAYS}


# ---- harm

HARMFUL = ('"hangs"', '"closed"', "is not healthy")
# The real server ends or hangs in some of its runs when a model has several metrics or loads models.
AT_RANDOM = ("metrics/", "surroundings/", "accepted/buckets")

@functools.cache
def records():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def is_harmless(name):
    """What hangs or kills the real server was recorded once; asking it again costs it half a minute each time."""
    if name.startswith(AT_RANDOM):
        return False
    recorded = json.dumps(records().get(name))
    return not any(sign in recorded for sign in HARMFUL)


# ---- comparing


def clean(answer, server):
    """The answer without paths, addresses, lines of code, and the frames of others' code in a traceback."""
    return without_signatures(json.loads(json.dumps(answer)), str(server.repository))


def cleaned(text, repository):
    text = text.replace(repository, "<repository>")
    # Ours names files by their model, not by where the repository lies.
    text = re.sub(r"(?<=[\s'])(\w+/1/model\.py)", r"<repository>/\1", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "<address>", text)
    text = re.sub(r"\n  (?!<repository>)[^\n]+\(\d+\): [^\n]*", "", text)
    text = re.sub(r"\n\nAt:\n(;?\n?)$", r"\1", text)
    return re.sub(r"model\.py\(\d+\)", "model.py(<line>)", text)


def without_signatures(value, repository):
    """The text of a TypeError about a call is the text of the binding library."""
    if isinstance(value, str):
        return cleaned(value, repository)
    if isinstance(value, dict):
        is_signature = value.get("raised") == "TypeError"
        return {k: without_signatures(v, repository) for k, v in value.items() if not (is_signature and k == "text")}
    return [without_signatures(v, repository) for v in value] if isinstance(value, list) else value


def wanted(name, target):
    """The recorded answer; for ours with the parts that differ on purpose."""
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert name in recorded, f"{name}: not recorded"
    differing = differences().get(name, {}) if target == "galatea" else {}
    for path, part in differing.items():
        recorded[name] = replaced(recorded[name], path.split("/") if path else [], part)
    return recorded[name]


def replaced(answer, path, part):
    """A copy of `answer` with `part` at the end of the path: keys of objects, numbers of lists."""
    if not path:
        return part
    key, rest = int(path[0]) if isinstance(answer, list) else path[0], path[1:]
    changed = answer.copy()
    changed[key] = replaced(answer.get(key) if isinstance(answer, dict) else answer[key], rest, part)
    return changed


def differences():
    """By play: the parts of its answer that are other in ours, by their paths."""
    found = {}
    for entry in yaml.safe_load(DIFFERENCES.read_text(encoding="utf-8")):
        assert entry["reason"]
        for name, parts in entry["plays"].items():
            assert name not in found, f"{name}: two differences"
            found[name] = parts
    return found


def compared(answer, want):
    return f"expected {json.dumps(want, ensure_ascii=False)}\ngot      {json.dumps(answer, ensure_ascii=False)}"


def perform(target, names):
    """Names and answers of a server to the plays, each by a server that none before it has harmed."""
    todo = list(names)
    every = plays()
    while todo:
        with tempfile.TemporaryDirectory() as folder:
            server = start(target, folder)
            while todo and not is_harmed(server):
                name = todo.pop(0)
                server.asked.add(name)
                yield name, played(every[name], server)
            end(server)


def played(play, server):
    """What the server answered, or how the connection ended."""
    try:
        answer = clean(play(server), server)
    except (ConnectionError, HTTPConnectionClosed):
        answer = {"closed": "ended" if has_ended(server) else "runs"}
    except TimeoutError:
        answer = {"hangs": True}
    text = json.dumps(answer)
    server.harmed = any(sign in text for sign in ("is not healthy", '"hangs"', '"closed"'))
    return answer


def has_ended(server):
    try:
        server.process.wait(3)
    except subprocess.TimeoutExpired:
        return False
    return True


def is_harmed(server):
    """The real server does not restart a stub that ended, and unloading its model ends the server."""
    return server.process.poll() is not None or server.harmed


def write_record(answers):
    lines = [f"{json.dumps(name)}: {json.dumps(answers[name], ensure_ascii=False)}" for name in plays() if name in answers]
    written = GOLDEN.with_suffix(".new")
    written.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    written.replace(GOLDEN)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--target", choices=list(servers.TARGETS))
    parser.add_argument("names", nargs="*", help="plays, by the beginning of their names")
    args = parser.parse_args()
    names = [n for n in plays() if not args.names or n.startswith(tuple(args.names))]
    for name, answer in perform("triton" if args.record else args.target, names):
        if args.record:
            write_record({**json.loads(GOLDEN.read_text(encoding="utf-8")), name: answer})
            continue
        want = wanted(name, args.target)
        print(name, "as wanted" if answer == want else compared(answer, want), flush=True)


if __name__ == "__main__":
    sys.exit(main())
