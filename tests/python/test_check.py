"""`galatea check` and `galatea config`: what is said of a repository without a server, and that a server says the same."""

import contextlib
import http.client
import json
import os
import pathlib
import pty
import re
import resource
import subprocess
import tempfile
import types

import pytest

import servers
import tiers
from check_cases import CASES, GOOD, IDENTITY, IO, LFS, LONGS, ONNX, PYTHON, TORCH, Link, ensemble, write


def galatea(*arguments, **environment):
    return subprocess.run(
        [servers.galatea_binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60,
        env={**os.environ, **environment},
    )


def check(*arguments):
    run = galatea("check", *arguments, "--json")
    assert run.stderr == "", run.stderr
    return run.returncode, json.loads(run.stdout)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("mistakes")
    write(root, {"fine/1/model.onnx": GOOD, "longs/1/model.onnx": LONGS})
    for case in CASES:
        write(root / case.name, case.files)
    return root


@pytest.fixture(scope="module")
def checked(repository):
    code, report = check("--model-repository", repository)
    assert code == 1
    return report


ROOTS = {
    "one_model": ({"config.pbtxt": ONNX, "1/model.onnx": GOOD}, "", "error", "give the folder above it as the repository"),
    "one_model_bare": ({"1/model.onnx": GOOD}, "/1", "error", "put it into a folder with the name of the model"),
    "nothing": ({"README.md": "x"}, "", "warning", "put each model into a folder of its own"),
    "file_in_root": ({"iris.onnx": GOOD, "beside_iris/1/model.onnx": GOOD}, "/iris.onnx", "warning", "move it to 'iris/1/model.onnx'"),
    "lost_link": ({"gone": Link("nowhere"), "beside_gone/1/model.onnx": GOOD}, "/gone", "warning", "put the file or folder itself in its place"),
}


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """Repositories with a mistake of their own, by name."""
    folder = tmp_path_factory.mktemp("roots")
    for name, (files, *_) in ROOTS.items():
        write(folder / name, files)
    return {name: folder / name for name in ROOTS}


PRINTED = {"py_alone/1/model.py": IDENTITY, "py/1/model.py": IDENTITY, "py/config.pbtxt": 'backend: "python"\n' + IO}
PRINTED |= {f"both/{path}": text for path, text in ensemble(("py", "x=x", "y=m"), ("py", "x=m", "y=y"), batch=0).items()}


def print_configurations(root, folders):
    """Each model with the configuration that is printed of it, and links to all its other files."""
    for folder in folders:
        printed = galatea("config", folder)
        assert (printed.returncode, printed.stderr) == (0, ""), folder
        target = root / folder.name
        others = {path.name: Link(str(path)) for path in folder.iterdir() if path.name != "config.pbtxt"}
        write(target, {"config.pbtxt": printed.stdout, **others})


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """A repository of printed configurations."""
    root = tmp_path_factory.mktemp("printed")
    examples = [folder for folder in sorted((servers.ROOT / "examples/models").iterdir()) if (folder / "1/model.onnx").exists()]
    assert examples
    write(root / "given", {**PRINTED, "onnx_alone/1/model.onnx": GOOD})
    print_configurations(root / "served", [*examples, *sorted((root / "given").iterdir())])
    assert len(list((root / "served").iterdir())) == len(examples) + 4
    return root / "served"


def index(server):
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", "/v2/repository/index", "{}")
    return json.loads(connection.getresponse().read())


def states(server):
    return {entry["name"]: entry.get("state", "") for entry in index(server)}


@pytest.fixture(scope="module")
def served(repository, roots, printed):
    """What one server says of all these repositories: the reasons of the index by model, its states, and the log."""
    more = [f"--model-repository={folder}" for folder in (*roots.values(), printed)]
    with servers.galatea(repository, *more, "--exit-on-error=false", "--runtime-downloads=never") as server:
        reasons = {}
        for entry in index(server):
            reasons[entry["name"]] = reasons.get(entry["name"], "") + entry.get("reason", "")
        yield types.SimpleNamespace(reasons=reasons, states=states(server), log=server.text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_is_reported_with_place_and_advice(case, checked):
    found = [f for f in checked["findings"] if f["model"] == case.name]
    at = [":".join(str(f[key]) for key in ("file", "line", "column") if f[key] is not None) for f in found]
    text = case.text.format(case.name)
    fits = [f for f, at in zip(found, at) if at == case.at and text in f["text"] and case.advice in (f["advice"] or "")]
    assert fits, found
    assert fits[0]["severity"] == case.severity, found
    assert case.severity == "error" or all(f["severity"] != "error" for f in found), found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_server_reports_the_same_mistake(case, served):
    reasons, log = served.reasons, served.log
    if case.severity == "error":
        reason = reasons[case.name]
        told = case.served or case.text.format(case.name)
        assert told in reason and case.advice in reason, reason
        assert str(servers.ROOT) not in reason and "/tmp" not in reason, reason
    else:
        lines = [line for line in log.splitlines() if case.name in line and case.advice in line]
        assert lines, [line for line in log.splitlines() if case.name in line]


def test_a_good_repository_has_no_mistakes(tmp_path):
    write(tmp_path, {"fine/1/model.onnx": GOOD, "py/1/model.py": PYTHON, "py/config.pbtxt": IO, "py/README.md": "x"})
    assert check(tmp_path) == (0, {"models": 2, "policies": 0, "errors": 0, "warnings": 0, "notes": 0, "findings": []})
    assert galatea("check", tmp_path).stdout == "2 models checked: 0 mistakes, 0 warnings, 0 notes\n"


MANY = """\
name: "other"
backend: "python"
max_batch_size: 2
input [
  { name: "a" data_type: TYPE_FP32 dims: [ 0 ] },
  { name: "b" dims: [ 1 ] }
]
output [ { data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_GPU gpus: [ 77 ] } ]
dynamic_batching { preferred_batch_size: [ 1, 8 ] }
"""


def test_all_mistakes_of_a_configuration_are_reported(tmp_path):
    write(tmp_path, {"m/config.pbtxt": MANY, "m/1/model.py": PYTHON})
    _, report = check(tmp_path)
    found = [(f["line"], f["field"]) for f in report["findings"]]
    assert found == [
        (1, "name"), (5, "input[0].dims[0]"), (8, "output[0].name"), (9, "instance_group[0].gpus[0]"),
        (10, "dynamic_batching.preferred_batch_size[1]"),
    ], report
    assert all(f["severity"] == "error" and f["advice"] for f in report["findings"])
    # One that nothing completes lacks the type of `b` as well.
    code, report = check(tmp_path, "--disable-auto-complete-config")
    assert (6, "input[1].data_type") in [(f["line"], f["field"]) for f in report["findings"]]


def test_all_unknown_tensors_are_reported(tmp_path):
    write(tmp_path, {"m/config.pbtxt": ONNX + IO.replace('"x"', '"input"').replace('"y"', '"output"'), "m/1/model.onnx": GOOD})
    _, report = check(tmp_path)
    assert [(f["line"], f["column"], f["text"]) for f in report["findings"]] == [
        (2, 17, "unexpected inference input 'input', allowed inputs are: x"),
        (3, 18, "unexpected inference output 'output', allowed outputs are: y"),
    ], report


def test_all_mistakes_of_an_ensemble_are_reported(tmp_path):
    steps = ("fin", "x=x", "y=m"), ("fine", "wrong=m", "y=n"), ("longs:2", "x=n", "y=y"), ("fine", "x=n", "wrong=z")
    write(tmp_path, {"fine/1/model.onnx": GOOD, "longs/1/model.onnx": LONGS})
    write(tmp_path / "e", ensemble(*steps, outputs="y z"))
    _, report = check(tmp_path)
    assert [(f["line"], f["field"]) for f in report["findings"]] == [
        (6, "ensemble_scheduling.step[0].model_name"),
        (11, 'ensemble_scheduling.step[1].input_map["wrong"]'),
        (14, "ensemble_scheduling.step[2].model_version"),
        (20, 'ensemble_scheduling.step[3].output_map["wrong"]'),
    ], report


def test_consequences_of_a_mistake_are_not_reported(tmp_path):
    circle = {"a": ensemble(("b", "x=x", "y=y")), "b": ensemble(("a", "x=x", "y=y")), "c": ensemble(("a", "x=x", "y=y"))}
    for name, files in circle.items():
        write(tmp_path / name, files)
    write(tmp_path / "d", ensemble(("broken", "x=x", "y=y")))
    write(tmp_path, {"broken/1/model.onnx": LFS})
    _, report = check(tmp_path)
    assert [f["model"] for f in report["findings"]] == ["a", "b", "broken"], report


@pytest.mark.parametrize("name", ROOTS)
def test_mistakes_of_a_repository_are_reported(name, roots, served):
    _, at, severity, advice = ROOTS[name]
    code, report = check("--model-repository", roots[name])
    found = [f for f in report["findings"] if f["file"] == f"{roots[name]}{at}"]
    assert [(f["severity"], f["model"]) for f in found] == [(severity, None)], report
    assert advice in found[0]["advice"]
    assert code == (1 if report["errors"] else 0)
    assert [line for line in served.log.splitlines() if f"{roots[name]}{at}" in line and advice in line]


def test_a_single_model_folder_is_checked(tmp_path):
    write(tmp_path, {"m/config.pbtxt": ONNX, "m/1/model.onnx": GOOD, "iris.onnx": LFS})
    assert check(tmp_path / "m") == (0, {"models": 1, "policies": 0, "errors": 0, "warnings": 0, "notes": 0, "findings": []})
    code, report = check(tmp_path / "iris.onnx")
    assert (code, report["errors"]) == (1, 1)
    assert "git lfs pull" in report["findings"][0]["advice"]


def test_a_model_in_two_repositories_is_a_mistake(tmp_path):
    for root in ("a", "b"):
        write(tmp_path / root, {"m/1/model.onnx": GOOD})
    both = ["--model-repository", tmp_path / "a", "--model-repository", tmp_path / "b"]
    code, report = check(*both)
    assert code == 1
    assert [f["text"] for f in report["findings"]] == ["failed to poll model 'm': not unique across all model repositories"]
    assert check(*both, "--model-namespacing")[0] == 0


@pytest.mark.parametrize(
    "arguments, text",
    [
        ([], "a repository is missing: its folder is expected"),
        (["--model-repository=/nonexistent/models"], "failed to stat file /nonexistent/models: No such file or directory (os error 2)"),
        (["--jsn", "."], "unrecognized option '--jsn'; did you mean '--json'?"),
    ],
)
def test_paths_that_cannot_be_checked_exit_with_2(arguments, text):
    run = galatea("check", *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"error: {text}\n"), run.stderr


@pytest.mark.parametrize("no_color, coloured", [("", True), ("1", False)])
def test_a_terminal_gets_colours(tmp_path, no_color, coloured):
    write(tmp_path, {"m/1/model.onnx": GOOD, "m/config.pbtxt": "bakend: 'x'\n"})
    main, terminal = pty.openpty()
    # As wide as the lines are, which are not folded then.
    environment = {**os.environ, "NO_COLOR": no_color, "COLUMNS": "500"}
    with subprocess.Popen([servers.galatea_binary(), "check", tmp_path], stdout=terminal, env=environment) as process:
        os.close(terminal)
        text = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(main, 1 << 16):
                text += part
        assert process.wait(60) == 1
    os.close(main)
    text = text.decode()
    assert ("\x1b[" in text) == coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")
    assert "m/config.pbtxt:1:1: error: no field `bakend`" in plain
    assert "1 | bakend: 'x'\n  | ^\n" in plain


def test_check_runs_no_model_code_and_writes_nothing(tmp_path):
    code = "open('ran', 'w')\n" + PYTHON.decode() + "    @staticmethod\n    def auto_complete_config(c):\n        open('ran', 'w')\n        return c\n"
    write(tmp_path / "r", {"m/1/model.py": code})
    before = sorted(path for path in tmp_path.rglob("*"))
    code, report = check(tmp_path / "r")
    assert code == 0
    assert [(f["severity"], f["file"]) for f in report["findings"]] == [("note", "m")], report
    assert "auto_complete_config" in report["findings"][0]["text"]
    assert sorted(path for path in tmp_path.rglob("*")) == before


UNREADABLE = {
    "config": ("config.pbtxt", 0o000, "config/config.pbtxt", "failed to read config/config.pbtxt: Permission denied"),
    "model": ("1/model.onnx", 0o000, "model/1/model.onnx", "Permission denied"),
    "code": ("1/model.py", 0o000, "code/1/model.py", "Permission denied"),
    "labels": ("labels.txt", 0o000, "labels/labels.txt", "failed to open text file for read labels/labels.txt: Permission denied"),
    "version": ("1", 0o000, "version/1", "version/1/model.onnx"),
    "folder": (".", 0o000, "folder", "Permission denied"),
}


def test_unreadable_files_are_reported_with_advice():
    """Root can read everything, so the check runs as the user nobody."""
    labels = ONNX + IO.replace("[ 3 ]", "[ -1, 3 ]").replace('name: "y"', 'name: "y" label_filename: "labels.txt"')
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, {"labels/config.pbtxt": labels, "labels/labels.txt": "a\n", "labels/1/model.onnx": GOOD})
        write(root, {"code/1/model.py": PYTHON, "code/config.pbtxt": 'backend: "python"\n' + IO})
        write(root, {f"{name}/{file}": text for name in ("config", "model", "version", "folder") for file, text in {"config.pbtxt": ONNX, "1/model.onnx": GOOD}.items()})
        root.chmod(0o755)
        for name, (path, mode, _, _) in UNREADABLE.items():
            (root / name / path).chmod(mode)
        command = [servers.galatea_binary(), "check", "--model-repository", root, "--json"]
        try:
            run = subprocess.run(command, capture_output=True, timeout=30, cwd="/", user=65534 if os.getuid() == 0 else None)
        except PermissionError:
            pytest.skip("nobody may not run the program under test")
        finally:
            for name, (path, _, _, _) in UNREADABLE.items():
                (root / name / path).chmod(0o755)
    report = json.loads(run.stdout)
    for name, (_, _, file, text) in UNREADABLE.items():
        found = [f for f in report["findings"] if f["model"] == name]
        assert [(f["severity"], f["file"]) for f in found] == [("error", file)], found
        assert text in found[0]["text"], found
        assert found[0]["advice"].endswith("let the user that runs the server read it: chmod a+r for a file, a+rx for its folders"), found


OF_BACKENDS = {
    "torch_type": (TORCH.replace("TYPE_FP32", "TYPE_UINT32", 1), {"1/model.pt": b"PK\x03\x04"}, "2:39", "unsupported datatype TYPE_UINT32 for input 'INPUT__0'", "write that of the model"),
    "torch_text": ("max_batch_size: 4\n" + TORCH.replace("TYPE_FP32", "TYPE_STRING", 1), {"1/model.pt": b"PK\x03\x04"}, "3:51", "only supports 1 dimensional List of String as input", "write `max_batch_size: 0`"),
    "python_setting": ('backend: "python"\n' + IO + 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "maybe" } }\n', {"1/model.py": PYTHON}, "4:72", "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: maybe", "write `yes` or `no`"),
}


@pytest.mark.parametrize("name", OF_BACKENDS)
def test_mistakes_found_by_backends_have_a_place(name, tmp_path):
    config, files, at, text, advice = OF_BACKENDS[name]
    write(tmp_path / name, {"config.pbtxt": config, **files})
    _, report = check("--model-repository", tmp_path)
    [found] = report["findings"]
    assert (found["file"], f"{found['line']}:{found['column']}", found["severity"]) == (f"{name}/config.pbtxt", at, "error"), found
    assert text in found["text"] and advice in found["advice"], found


HOSTILE = {
    "config_pipe": {"config.pbtxt": "pipe", "1/model.onnx": GOOD},
    "config_zero": {"config.pbtxt": Link("/dev/zero"), "1/model.onnx": GOOD},
    "config_huge": {"config.pbtxt": 1 << 30, "1/model.onnx": GOOD},
    "config_loop": {"config.pbtxt": Link("config.pbtxt"), "1/model.onnx": GOOD},
    "config_folder": {"config.pbtxt/x": b"", "1/model.onnx": GOOD},
    "config_deep": {"config.pbtxt": "input { " * 200_000, "1/model.onnx": GOOD},
    "config_long": {"config.pbtxt": "x" * 1_000_000, "1/model.onnx": GOOD},
    "config_many": {"config.pbtxt": "input { name: 'a' dims: 0 }\n" * 20_000, "1/model.py": PYTHON},
    "onnx_pipe": {"1/model.onnx": "pipe"},
    "onnx_zero": {"1/model.onnx": Link("/dev/zero")},
    "onnx_huge": {"1/model.onnx": 1 << 40},
    "torch_pipe": {"1/model.pt": "pipe"},
    "torch_zero": {"1/model.pt": Link("/dev/zero")},
    "python_pipe": {"1/model.py": "pipe"},
    "python_zero": {"1/model.py": Link("/dev/zero")},
    "python_huge": {"1/model.py": 1 << 40},
    "labels_pipe": {"config.pbtxt": ONNX + IO.replace('name: "y"', 'name: "y" label_filename: "labels.txt"'), "labels.txt": "pipe", "1/model.onnx": GOOD},
    "version_loop": {"1": Link("1")},
    "version_up": {"1": Link("..")},
    "itself": {"1/model.onnx": Link("model.onnx")},
    "many_files": {f"1/{number}.txt": b"" for number in range(3000)},
    "many_versions": {f"{number}/model.onnx": GOOD for number in range(1, 500)} | {"config.pbtxt": "version_policy { all { } }"},
}


def write_hostile(root):
    for name, files in HOSTILE.items():
        for path, content in files.items():
            path = root / name / path
            if content == "pipe":
                path.parent.mkdir(parents=True, exist_ok=True)
                os.mkfifo(path)
            elif isinstance(content, int):
                write(path.parent, {path.name: b""})
                os.truncate(path, content)
            else:
                write(path.parent, {path.name: content})
    write(root, {"loop": Link("loop"), "up": Link(".."), "fine/1/model.onnx": GOOD})


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def test_a_hostile_repository_causes_neither_hang_nor_memory_growth(tmp_path):
    write_hostile(tmp_path)
    command = [servers.galatea_binary(), "check", "--model-repository", tmp_path, "--json"]
    run = subprocess.run(command, capture_output=True, timeout=30, preexec_fn=limited)
    assert (run.returncode, run.stderr) == (1, b""), run.stderr[-1000:]
    report = json.loads(run.stdout)
    found = {}
    for finding in report["findings"]:
        found.setdefault(finding["model"], []).append(finding)
    assert not {"fine"} & set(found)
    # Whatever is in them, what is told of one stays readable.
    assert all(name in found for name in HOSTILE if name not in ("config_loop", "many_versions")), set(HOSTILE) - set(found)
    assert max(len(json.dumps(finding)) for finding in report["findings"]) < 2000
    assert max(map(len, found.values())) <= 100


def test_thousands_of_models_are_checked_quickly(tmp_path):
    """Checks good models, a chain and a cycle: time that grows with the square would exceed the limit."""
    for number in range(1000):
        write(tmp_path / "good" / f"m{number}", {"1/model.onnx": GOOD})
        # Against the alphabet: each is needed by the one before it.
        write(tmp_path / "good" / f"c{number:04}", ensemble((f"c{number + 1:04}" if number < 999 else "m0", "x=x", "y=y")))
        write(tmp_path / "circle" / f"c{number}", ensemble((f"c{(number + 1) % 1000}", "x=x", "y=y")))
    assert check("--model-repository", tmp_path / "good") == (0, {"models": 2000, "policies": 0, "errors": 0, "warnings": 0, "notes": 0, "findings": []})
    code, report = check("--model-repository", tmp_path / "circle")
    assert (code, report["errors"]) == (1, 1000)


def test_file_names_cannot_forge_lines(tmp_path):
    write(tmp_path, {"m/1/a\nerror: forged\x1b[2J.onnx": GOOD, "m/config.pbtxt": ONNX})
    text = galatea("check", tmp_path).stdout
    assert "\x1b" not in text and "\nerror: forged" not in text
    assert "a\\nerror: forged\\u{1b}[2J.onnx" in text


CONFIG_OF_GOOD = """\
name: "fine"
platform: "onnxruntime_onnx"
max_batch_size: 4
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [ 3 ]
  }
]
output [
  {
    name: "y"
    data_type: TYPE_FP32
    dims: [ 3 ]
  }
]
default_model_filename: "model.onnx"
backend: "onnxruntime"
dynamic_batching { }
"""


def test_the_config_command_prints_the_configuration_of_a_model(tmp_path):
    write(tmp_path, {"fine/1/model.onnx": GOOD, "py/1/model.py": PYTHON, "iris.onnx": GOOD, "net.pt": b"PK\x03\x04", "x.bin": b"x"})
    of_folder = galatea("config", tmp_path / "fine")
    assert (of_folder.returncode, of_folder.stderr) == (0, "")
    assert sorted(of_folder.stdout.splitlines()) == sorted(CONFIG_OF_GOOD.splitlines()), of_folder.stdout
    write(tmp_path, {"fine/config.pbtxt": of_folder.stdout})
    assert galatea("config", tmp_path / "fine").stdout == of_folder.stdout
    of_file = galatea("config", tmp_path / "iris.onnx").stdout
    assert of_file.startswith("# As iris/config.pbtxt; the model itself is iris/1/iris.onnx.\n")
    write(tmp_path, {"served/iris/config.pbtxt": of_file, "served/iris/1/iris.onnx": GOOD})
    assert check(tmp_path / "served")[0] == 0
    assert "# The file does not say its inputs" in galatea("config", tmp_path / "net.pt").stdout
    assert "# The file does not say its inputs" in galatea("config", tmp_path / "py").stdout
    assert "cannot be served" in galatea("config", tmp_path / "x.bin").stderr
    assert galatea("config").returncode == 2


def test_printed_configurations_are_served(printed, served):
    found = {folder.name: served.states[folder.name] for folder in printed.iterdir()}
    assert set(found.values()) == {"READY"}, found


@tiers.peers
def test_printed_configurations_are_served_by_triton(tmp_path):
    write(tmp_path / "given", PRINTED)
    print_configurations(tmp_path / "served", sorted((tmp_path / "given").iterdir()))
    with servers.triton(tmp_path / "served", "--exit-on-error=false") as server:
        found = states(server)
    assert found == {"both": "READY", "py": "READY", "py_alone": "READY"}
