"""`galatea check`: the paths and the counts of its report."""

import re
import subprocess

import servers
from check_cases import GOOD, LFS, ONNX, write
from test_check import check, galatea


def test_places_are_paths_that_can_be_opened(tmp_path):
    """Places are relative to the working directory or absolute, like the given repository."""
    write(tmp_path, {"r/m/config.pbtxt": "bakend: 'x'\n", "r/m/1/model.onnx": GOOD, "r/bad.onnx": LFS, "one/config.pbtxt": "bakend: 'x'\n", "one/iris.onnx": GOOD})
    places = {
        ("r",): ["r/bad.onnx", "r/m/config.pbtxt"],
        ("r/m",): ["r/m/config.pbtxt"],
        ("r/m/1/model.onnx",): ["r/m/config.pbtxt"],
        ("r/bad.onnx",): ["r/bad.onnx"],
        ("one",): ["one/config.pbtxt"],
        ("one/iris.onnx",): ["one/config.pbtxt"],
        ("--model-repository=r",): ["r/bad.onnx", "r/m/config.pbtxt"],
        (str(tmp_path / "r"),): [f"{tmp_path}/r/bad.onnx", f"{tmp_path}/r/m/config.pbtxt"],
    }
    for arguments, expected in places.items():
        run = subprocess.run([servers.galatea_binary(), "check", *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        found = [line.split(": ")[0] for line in run.stdout.splitlines() if re.match(r"\S+: (error|warning|note): ", line)]
        files = [re.sub(r":\d+:\d+$", "", place) for place in found]
        assert set(files) == set(expected), run.stdout
        assert all((tmp_path / file).exists() for file in files)
    _, report = check(tmp_path / "r")
    assert {(f["file"], f["path"]) for f in report["findings"]} >= {("m/config.pbtxt", f"{tmp_path}/r/m/config.pbtxt")}, report


def test_a_policy_without_repository_is_checked(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rol]]\n")
    run = galatea("check", f"--auth-policy={policy}")
    assert run.returncode == 1 and run.stdout.splitlines()[-1] == "the policy checked: 1 mistake, 0 warnings, 0 notes", run.stdout
    write(tmp_path / "r", {"m/1/model.onnx": GOOD})
    run = galatea("check", tmp_path / "r", f"--auth-policy={policy}")
    assert run.stdout.splitlines()[-1] == "1 model and the policy checked: 1 mistake, 0 warnings, 0 notes", run.stdout


def test_a_model_in_ort_format_is_no_mistake(tmp_path):
    write(tmp_path, {"m/config.pbtxt": ONNX + 'default_model_filename: "model.ort"\n', "m/1/model.ort": b"\x08\0\0\0ORTM"})
    code, report = check(tmp_path)
    assert (code, [f["severity"] for f in report["findings"]]) == (0, ["note"]), report
    assert "known once the model is loaded" in report["findings"][0]["text"]
