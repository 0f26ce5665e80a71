"""The first start: `galatea serve PATH` with a model file, a model's folder or a repository, and what a person is told."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
import urllib.request

import pytest

import processes
import servers
from package_index import WHEELS
from repositories import EXAMPLES, identity_config, write_model

ECHO = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", pb.get_input_tensor_by_name(r, "INPUT0").as_numpy())]) for r in requests]
"""
PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]


def command(*words):
    python = f"--backend-config=python,python-interpreter={sys.executable}"
    return [servers.galatea_binary(), "serve", *words, *PORTS, python]


def start(*words):
    return servers.Server(command(*words), servers.onnx_runtime())


def start_up(home):
    """`galatea up` with the log, which says where it serves."""
    env = {**servers.onnx_runtime(), **processes.offline(WHEELS), "GALATEA_HOME": str(home)}
    return servers.Server([servers.galatea_binary(), "up", *PORTS, "--log-info=true"], env)


def metadata(server, model):
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}", timeout=30) as answer:
        return json.load(answer)


def test_files_model_folders_and_repositories_are_served(tmp_path):
    """Serves an ONNX file, a Python file with the files beside it, a model folder and a repository."""
    (tmp_path / "file").mkdir()
    onnx = tmp_path / "file/types.v2.onnx"
    onnx.symlink_to(EXAMPLES / "simple/1/model.onnx")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/echo.py").write_text("import beside_it\n" + ECHO)
    (tmp_path / "code/beside_it.py").write_text("")
    (tmp_path / "code/config.pbtxt").write_text(identity_config())
    for repository, models in {"some": ("one", "other"), "all": ("two", "three")}.items():
        for model in models:
            write_model(tmp_path / repository, model, "galatea", "identity", identity_config())
    with start(onnx, tmp_path / "code/echo.py", tmp_path / "some/one", tmp_path / "all") as server:
        found = metadata(server, "types.v2")
        assert found["platform"] == "onnxruntime_onnx" and found["versions"] == ["1"]
        assert [tensor["name"] for tensor in found["inputs"]] == ["INPUT0", "INPUT1"]
        body = {"inputs": [{"name": "INPUT0", "shape": [2], "datatype": "FP32", "data": [1, 2]}]}
        request = urllib.request.Request(f"http://{server.http}/v2/models/echo/infer", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["outputs"][0]["data"] == [1.0, 2.0]
        assert metadata(server, "one")["versions"] == ["1"]
        assert metadata(server, "two") and metadata(server, "three")
        assert "other" not in server.text()
        assert "Ask it" not in server.text(), "not where a script reads"
    assert os.listdir(tmp_path / "file") == [onnx.name], "nothing is written beside it"


@pytest.mark.parametrize("dims, asks", [("2", "/v2/models/one/infer -d"), ("3, 224, 224", "/v2/models/one\r\n")])
def test_a_terminal_shows_an_example_request(tmp_path, dims, asks):
    write_model(tmp_path, "one", "galatea", "identity", identity_config(dims=dims))
    ours, its = pty.openpty()
    process = subprocess.Popen([str(word) for word in command(tmp_path)], stdout=its, stderr=its)
    os.close(its)
    try:
        text = ""
        with os.fdopen(ours, errors="replace", newline="") as terminal:
            while "Ask it:" not in text:
                text = terminal.readline()
            assert asks in text
            line = text.removeprefix("Ask it:")
            answer = subprocess.run(line.strip(), shell=True, capture_output=True, text=True, timeout=30).stdout
            if "infer" in asks:
                assert json.loads(answer)["outputs"][0]["data"] == [1.0, 1.0]
            else:
                assert json.loads(answer)["name"] == "one"
            process.terminate()
            with pytest.raises(OSError):  # the terminal is closed when the server has ended
                while terminal.readline():
                    pass
                raise OSError
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0


def seen(words):
    """What a person sees of a start that ends by itself, in lines."""
    ours, its = pty.openpty()
    process = subprocess.Popen([str(word) for word in words], stdout=its, stderr=its)
    os.close(its)
    text = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:  # the terminal is closed when the server has ended
            break
        if not read:
            break
        text += read
    os.close(ours)
    assert process.wait(timeout=30) == 1
    return text.decode(errors="replace").replace("\r", "").rstrip("\n").split("\n")


def test_a_terminal_shows_the_reason_of_a_failed_start_last(tmp_path):
    (tmp_path / "wrong.py").write_text("import no_such_package\n" + ECHO)
    words = command(tmp_path / "wrong.py")
    lines = seen(words)
    assert lines[-1].startswith("error: creating server: ") and "No module named 'no_such_package'" in lines[-1]
    assert "see the log above" in lines[-1]
    text = "\n".join(lines)
    assert "The module 'no_such_package' is not in" in text and "(wrong/1/wrong.py:1)" in lines[-1]
    # All of it is on the screen: the tables of options and backends are for a start that went well, and for scripts.
    assert len(lines) < 30 and "server_extensions" not in text
    assert "importlib" not in text, "frames that are not the model's"
    piped = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert "server_extensions" in piped.stdout + piped.stderr


def test_a_port_in_use_is_reported_with_its_process_and_option(tmp_path):
    write_model(tmp_path, "one", "galatea", "identity", identity_config())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option, service in (("http", "HTTP"), ("grpc", "GRPC"), ("metrics", "Metrics")):
            line = seen([word for word in command(tmp_path) if not str(word).startswith(f"--{option}-port")] + [f"--{option}-port={port}"])[-1]
            assert line.startswith(f"error: failed to start {service} service: Unavailable - Socket '127.0.0.1:{port}' already in use by process {os.getpid()} (")
            assert line.endswith(f": stop it, or take another port with --{option}-port=PORT")


PAGE = servers.ROOT / "docs/first-start.md"


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S)


def test_the_first_start_page_is_accurate(tmp_path):
    """Runs the commands of the page in order in one folder, with other ports."""
    page = PAGE.read_text()
    (tmp_path / "simple.onnx").write_bytes((EXAMPLES / "simple/1/model.onnx").read_bytes())
    (tmp_path / "double.py").write_text(blocks(page, "python")[0])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/galatea").symlink_to(servers.galatea_binary())
    environment = {**os.environ, **servers.onnx_runtime(), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    server, answers = None, []
    try:
        for block in blocks(page, "sh"):
            if words := re.match(r"galatea (serve \S+|up)\n", block):
                if server:
                    server.stop()
                server = start_up(tmp_path / "home") if words[1] == "up" else start(tmp_path / words[1].split()[1])
                continue
            if server:
                block = block.replace("localhost:8000", server.http)
            done = subprocess.run(["bash", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, block + done.stdout + done.stderr
            if "curl" in block:
                answers.append(json.loads(done.stdout))
    finally:
        if server:
            server.stop()
    kind, sums, metadata_of_file, doubled, config = answers
    assert kind["outputs"][0]["data"] == ["elf"]
    assert sums["outputs"][0]["data"] == [2] * 16
    assert metadata_of_file["name"] == "simple" and len(metadata_of_file["inputs"]) == 2
    assert doubled["outputs"][0]["data"] == [2.0, 4.0, 6.0]
    assert config["name"] == "simple" and config["backend"] == "onnxruntime"
