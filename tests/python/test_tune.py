"""`galatea tune MODEL --engines`: each engine is measured on a server of its own, and the lines of the fastest are right."""

import os
import re
import signal
import subprocess

import numpy as np
import pytest

import doc_pages
import repositories
import servers
import tiers

FAST = ["--measurement-interval=100", "--max-concurrency=2"]


def has_openvino():
    found = subprocess.run([servers.galatea_binary(), "runtime", "path", "openvino"], capture_output=True)
    return found.returncode == 0


needs_openvino = pytest.mark.skipif(not has_openvino(), reason="no OpenVINO here: galatea runtime install openvino")


@pytest.fixture
def model(tmp_path):
    """One layer of a network, with weights that are the same on every run."""
    from onnx import TensorProto, helper, numpy_helper, save

    value = lambda v: helper.make_tensor_value_info(v, TensorProto.FLOAT, ["n", "m", 16])  # noqa: E731
    weights = numpy_helper.from_array(np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "layer", [value("x")], [value("y")], [weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    config = "# ours\nmax_batch_size: 8 # most\ninstance_group [ { count: 1 kind: KIND_GPU } ]\n"
    folder = repositories.write_model(tmp_path, "layer", "galatea", "onnxruntime", config)
    save(made, folder / "1/model.onnx")
    return folder


def tune(model, *flags, **variables):
    command = [servers.galatea_binary(), "tune", model, "--engines", "--runtime-downloads=never", *FAST, *flags]
    environment = {**os.environ, **servers.onnx_runtime(), **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def rows(text):
    """The cells of each engine, by its name; lines that go on belong to the row above."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] and cells[0] != "Engine":
            found[cells[0].removesuffix(" (configured)")] = cells[1:]
    return found


@tiers.peers
@needs_openvino
def test_engines_are_compared(model, tmp_path):
    place = tmp_path / "temporary"
    place.mkdir()
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    tuned = tune(model, "--allow-bf16", "--shape=x:4,16", TMPDIR=str(place))
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    found = rows(tuned.stdout)
    assert list(found) == ["ONNX Runtime", "OpenVINO f32", "OpenVINO bf16"]
    assert "| ONNX Runtime (configured) |" in tuned.stdout
    for engine, (p50, p99, most, memory, load, difference) in found.items():
        assert 0 < float(p50) <= float(p99) and float(load) > 0 and int(memory) > 10, engine
        assert re.match(r"[\d.]+ with [12] at a time", most), most
    assert found["ONNX Runtime"][-1] == "compared with"
    assert float(found["OpenVINO f32"][-1]) <= 1e-3
    assert re.search(r"^Fastest: (ONNX Runtime|OpenVINO (f32|bf16))\b", tuned.stdout, re.M)
    assert before == {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}, "nothing was asked to be written"
    assert list(place.glob("galatea*")) == [], "nothing is left behind"


def test_a_single_available_engine_is_measured(model):
    tuned = tune(model, "--shape=x:4,16", "--openvino-lib=/nowhere/libopenvino_c.so")
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert "not measured: " in rows(tuned.stdout)["OpenVINO f32"][-1]
    assert "/nowhere/libopenvino_c.so" in tuned.stdout, "the reason"
    assert tuned.stdout.endswith("Fastest: ONNX Runtime, as the model is configured.\n")


@tiers.peers
@needs_openvino
def test_the_fastest_engine_is_written_to_the_configuration(model):
    old = (model / "config.pbtxt").read_text()
    only = ["--onnxruntime-lib=/nowhere/libonnxruntime.so", "--shape=x:4,16", "--write"]
    tuned = tune(model, *only)
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert 'backend: "openvino"' in tuned.stdout and "Written to " in tuned.stdout
    written = (model / "config.pbtxt").read_text()
    assert "# ours" in written and "max_batch_size: 8 # most" in written, "what was not asked about stays"
    assert 'backend: "openvino"' in written and "onnxruntime" not in written
    assert (model / "config.pbtxt.bak").read_text() == old
    with servers.galatea(model.parent, "--gpu-groups=cpu") as server:
        server.wait_for_line(r"successfully loaded 'layer'")
    again = tune(model, *only)
    assert again.returncode == 1 and "config.pbtxt.bak' exists already" in again.stderr, again.stderr


def test_user_data_is_used_for_measuring(model, tmp_path):
    data = tmp_path / "data.json"
    data.write_text('{"data": [{"x": {"content": [' + ", ".join(["0.5"] * 32) + '], "shape": [2, 16]}}]}')
    tuned = tune(model, f"--input-data={data}", "-b", "1", "--openvino-lib=/nowhere/libopenvino_c.so")
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert rows(tuned.stdout)["ONNX Runtime"][-1] == "compared with"


def test_open_dimensions_need_a_shape(model):
    refused = tune(model)
    assert refused.returncode == 1
    assert "input 'x' has the shape [-1,16], in which -1 is any size: give it by --shape=x:" in refused.stderr


def test_unsuitable_models_are_refused(model, tmp_path):
    python = repositories.write_model(tmp_path, "code", "galatea", "python", "", files={"1/model.py": ""})
    refused = tune(python)
    assert refused.returncode == 1 and "the model has the backend 'python'" in refused.stderr
    refused = tune(tmp_path / "nothing")
    assert refused.returncode == 1 and "nothing'" in refused.stderr
    (model / "1/model.onnx").write_bytes(b"no model")
    failed = tune(model, "--shape=x:4,16", "--openvino-lib=/nowhere/libopenvino_c.so")
    assert failed.returncode == 1 and "No engine could be measured." in failed.stdout
    asked = subprocess.run([servers.galatea_binary(), "tune", model], capture_output=True, text=True)
    assert asked.returncode == 2 and "--engines" in asked.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_leaves_no_files_or_processes(model, tmp_path, how):
    place = tmp_path / "temporary"
    place.mkdir()
    command = [servers.galatea_binary(), "tune", model, "--engines", "--write", "--shape=x:4,16", "--measurement-interval=60000"]
    environment = {**os.environ, **servers.onnx_runtime(), "TMPDIR": str(place)}
    tuned = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    for line in tuned.stderr:
        if "1 request at a time" in line:
            break
    [server] = servers.descendants(tuned.pid)
    tuned.send_signal(how)
    _, errors = tuned.communicate(timeout=60)
    assert tuned.returncode == 130 and "interrupted" in errors
    assert not os.path.exists(f"/proc/{server}"), "its server has ended"
    assert list(place.glob("galatea*")) == [] and not (model / "config.pbtxt.bak").exists()


def test_the_command_of_the_page_works(tmp_path):
    """Runs the command from docs/tune.md with shorter measurements."""
    [block] = [block for block in doc_pages.blocks("docs/tune.md") if block.kind == "sh"]
    program, *words = block.text.split()
    assert program == "galatea"
    repositories.copy_example(tmp_path / "models", "simple")
    command = [servers.galatea_binary(), *words, "--runtime-downloads=never", *FAST]
    environment = {**os.environ, **servers.onnx_runtime()}
    tuned = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert rows(tuned.stdout)["ONNX Runtime"][-1] == "compared with"
