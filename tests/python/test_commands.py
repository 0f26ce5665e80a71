"""`galatea models` and `galatea infer`: what people ask a running server, ours and the real Triton."""

import contextlib
import fcntl
import http.server
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
import threading

import pytest

import perf_models
import repositories
import servers
import tiers

ROW = ",".join(map(str, range(16)))
SIMPLE = ["--input", f"INPUT0={ROW}", "--input", "INPUT1=" + json.dumps([[1] * 16])]


def galatea(*words):
    return subprocess.run([servers.galatea_binary(), *map(str, words)], capture_output=True, text=True, timeout=60)


def at(server, protocol):
    return ["-i", protocol, "-u", getattr(server, protocol)]


EXPLICIT = ["--model-control-mode=explicit", "--load-model=*"]
IMAGE = 'input [ { name: "INPUT0" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 2, 3, 3 ] } ]\n'


def write_models(path):
    """The model of most tests, one that answers in pieces, and models that give back the pictures, sounds and arrays they get."""
    (path / "simple").symlink_to(repositories.EXAMPLES / "simple")
    repositories.write_model(path, "repeat", "galatea", "repeat", repositories.REPEAT_CONFIG)
    image = IMAGE + repositories.tensor("output", "OUTPUT0", "TYPE_FP32", "2, 3, 3")
    repositories.write_model(path, "picture", "galatea", "identity", f"max_batch_size: 4\n{image}")
    planes = repositories.identity_config("TYPE_UINT8", "3, -1, -1")
    repositories.write_model(path, "planes", "galatea", "identity", planes)
    repositories.write_model(path, "floats", "galatea", "identity", repositories.identity_config())
    repositories.write_model(path, "text", "galatea", "identity", repositories.identity_config("TYPE_STRING"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("commands")
    write_models(path)
    with servers.galatea(path, *EXPLICIT) as running:
        yield running


@pytest.fixture(scope="module", params=tiers.BOTH)
def target(request, server, tmp_path_factory):
    """Our server or the real one with the models `simple` and `repeat`."""
    if request.param == "galatea":
        yield server
        return
    repository = tmp_path_factory.mktemp("triton")
    perf_models.add_pair(repository, "simple", "triton", "")
    repositories.write_model(repository, "repeat", "triton", "repeat", repositories.REPEAT_CONFIG)
    with servers.triton(repository, *EXPLICIT) as running:
        yield running


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_models_are_listed_and_inferred(target, protocol):
    where = at(target, protocol)
    listed = galatea("models", *where)
    assert listed.returncode == 0, listed.stderr
    line = next(line for line in listed.stdout.splitlines() if line.startswith("simple "))
    assert "READY" in line and "INPUT0 INT32 [-1,16], INPUT1 INT32 [-1,16] → OUTPUT0 INT32 [-1,16]" in line
    models = json.loads(galatea("models", "--json", *where).stdout)
    assert next(model for model in models if model["name"] == "simple")["state"] == "READY"

    ready = galatea("models", "simple", *where).stdout.splitlines()[-1]
    done = galatea(*shlex.split(ready)[1:])
    assert done.returncode == 0 and "OUTPUT1  INT32 [1,16]\n  0, 0," in done.stdout, done

    done = galatea("infer", "simple", *SIMPLE, "--json", *where)
    assert done.returncode == 0, done.stderr
    outputs = {output["name"]: output for output in json.loads(done.stdout)["outputs"]}
    assert outputs["OUTPUT0"]["data"] == [i + 1 for i in range(16)] and outputs["OUTPUT1"]["shape"] == [1, 16]

    done = galatea("infer", "simple", *SIMPLE, "--output", "OUTPUT0", "--classes", 2, *where)
    assert done.returncode == 0 and "OUTPUT0  BYTES [1,2]\n" in done.stdout and "OUTPUT1" not in done.stdout, done


@pytest.mark.parametrize("words, code, expected", [
    (["simple", "--input", "INPUT0=zeros"], 2, "missing input: INPUT1 INT32 [-1,16]"),
    (["simple", "--input", "INPTU0=zeros"], 2, "did you mean 'INPUT0'?"),
    (["simple", "--input", "INPUT0=1,2"], 2, "'INPUT0' needs INT32 [-1,16]: 2 elements given; give a multiple of 16"),
    (["simple", "--input", "INPUT0=1,x"], 2, "'x' is not a value of INT32"),
    (["simple", *SIMPLE, "--output", "OUTPUT"], 2, "did you mean 'OUTPUT0'?"),
    (["simpel"], 1, "did you mean 'simple'?"),
    (["simple", *SIMPLE, "--model-version", "7"], 1, "7"),
    (["simple", "--inptu", "x"], 2, "--input"),
    ([], 2, "a model is missing"),
])
def test_wrong_commands_are_reported(server, words, code, expected):
    done = galatea("infer", *words, "-u", server.http)
    assert done.returncode == code and expected in done.stderr and not done.stdout, done


def test_values_are_read_from_files(server, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"".join(i.to_bytes(4, "little") for i in range(32)))
    (tmp_path / "b.txt").write_text("1 " * 32)
    files = ["--input", f"INPUT0=@{tmp_path}/a.bin", "--input", f"INPUT1=@{tmp_path}/b.txt"]
    done = galatea("infer", "simple", *files, "--json", "-u", server.http)
    outputs = json.loads(done.stdout)["outputs"]
    assert outputs[0]["shape"] == [2, 16] and outputs[0]["data"] == [i + 1 for i in range(32)]


def on_a_terminal(words, width, **variables):
    """What a command prints on a terminal of so many columns."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, "NO_COLOR": "1", "TERM": "xterm", **variables}
    process = subprocess.Popen([servers.galatea_binary(), *words], stdout=terminal, stdin=subprocess.DEVNULL, env=env)
    os.close(terminal)
    out = b""
    with contextlib.suppress(OSError):
        while piece := os.read(main, 1 << 16):
            out += piece
    os.close(main)
    process.wait(60)
    return out.decode().replace("\r\n", "\n")


def test_tables_fit_the_terminal(server, tmp_path):
    (tmp_path / "models/m").mkdir(parents=True)
    (tmp_path / "models/m/config.pbtxt").write_text('input [ { name: "x" datatype: TYPE_FP32 } ]\n')
    top = ["top", "--once", "--interval", "0.1", "-u", server.http, "--metrics-url", server.metrics]
    for words in (["models", "-u", server.http], top, ["check", str(tmp_path / "models")]):
        for width, variables in ((70, {}), (50, {}), (70, {"COLUMNS": "48"})):
            limit = int(variables.get("COLUMNS", width))
            shown = on_a_terminal(words, width, **variables)
            # A path stays whole: it is to be clicked on.
            lines = [line for line in shown.splitlines() if len(line) > limit and str(tmp_path) not in line]
            assert shown and not lines, (words, limit, shown)
    narrow = on_a_terminal(["models", "-u", server.http], 60)
    assert "INPUT0 INT32" in narrow and "OUTPUT1 INT32" in re.sub(r"\s+", " ", narrow)
    assert "# too narrow for" in on_a_terminal(top, 60) and "too narrow" not in galatea(*top).stdout
    assert max(map(len, galatea("models", "-u", server.http).stdout.splitlines())) > 100, "whole lines in a pipe"


def test_inputs_may_follow_the_model_name(server, tmp_path):
    done = galatea("infer", "simple", f"INPUT0={ROW}", "INPUT1=zeros", "--json", "-u", server.http)
    assert json.loads(done.stdout)["outputs"][0]["data"] == list(range(16)), done
    (tmp_path / "letter").write_bytes(b"Dear Sir\n")
    for word in (f"@{tmp_path}/letter", f"INPUT0=@{tmp_path}/letter"):
        done = galatea("infer", "text", word, "--json", "-u", server.http)
        assert json.loads(done.stdout)["outputs"][0]["data"] == ["Dear Sir\n"], done
    done = galatea("infer", "simple", "other", "-u", server.http)
    assert done.returncode == 2 and "'simple' and 'other'; an input is written NAME=VALUE or @FILE" in done.stderr, done


def test_every_command_prints_the_program_version():
    commands = ("serve", "up", "check", "config", "tune", "models", "infer", "top", "trace", "auth", "runtime", "cache")
    for command in ((), *((command,) for command in commands)):
        run = subprocess.run([servers.galatea_binary(), *command, "--version"], capture_output=True, text=True, timeout=60)
        assert (run.returncode, run.stderr) == (0, "") and re.fullmatch(r"galatea \d+\.\d+\.\d+\n", run.stdout), (command, run)


def test_an_unreachable_server_is_reported():
    done = galatea("models", "-u", "127.0.0.1:1")
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr


class Odd(http.server.BaseHTTPRequestHandler):
    """Has no index; its model's platform would clear the screen."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        documents = {
            "/v2": {"name": "odd", "version": "1", "extensions": []},
            "/v2/models/evil": {"name": "evil", "versions": ["1"], "platform": "\x1b[2J\x9b2J", "inputs": [], "outputs": []},
        }
        body = json.dumps(documents.get(self.path, {"error": "no \x1b[2J such path"}), ensure_ascii=False).encode()
        self.send_response(200 if self.path in documents else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def test_a_server_with_odd_answers_is_reported():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = ["-u", f"127.0.0.1:{server.server_port}"]
        listed, shown, missing = galatea("models", *where), galatea("models", "evil", *where), galatea("models", "x", *where)
        server.shutdown()
    assert listed.returncode == 1 and "has no repository index" in listed.stderr
    assert shown.returncode == 0 and "\\u{1b}[2J\\u{9b}2J" in shown.stdout
    assert missing.returncode == 1 and "\x1b" not in missing.stderr


def png(folder, width, height, pixels):
    """A PNG written by hand: `pixels` are red, green, blue, row by row."""
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(pixels[at * width * 3:(at + 1) * width * 3]) for at in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path = folder / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


def asked(server, model, *words, protocol="http", **more):
    words = [servers.galatea_binary(), "infer", model, *map(str, words), "--json", *at(server, protocol)]
    done = subprocess.run(words, capture_output=True, timeout=60, **more)
    assert done.returncode == 0, done
    return [json.loads(line)["outputs"][0] for line in done.stdout.splitlines()]


def test_pictures_are_sent_and_received(server, tmp_path):
    pixels = [255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 40, 50, 60, 70, 80, 90]
    path = png(tmp_path, 3, 2, pixels)
    [output] = asked(server, "picture", "--input", f"@{path}", "--output-file", f"OUTPUT0={tmp_path}/back.png")
    assert output["shape"] == [1, 2, 3, 3] and output["data"] == pytest.approx([p / 255 for p in pixels])
    [output] = asked(server, "planes", "--input", f"@{tmp_path}/back.png", "--layout", "nchw")
    assert output["shape"] == [3, 2, 3] and output["data"] == pixels[0::3] + pixels[1::3] + pixels[2::3]
    [output] = asked(server, "planes", "--input", f"@{path}", "--bgr")
    assert output["data"] == pixels[2::3] + pixels[1::3] + pixels[0::3]
    [output] = asked(server, "picture", "--input", "@-", "--scale", "-1-1", stdin=path.open("rb"))
    assert min(output["data"]) == -1 and max(output["data"]) == 1
    [output] = asked(server, "text", "--input", f"@{path}")
    assert "b64" in output["data"][0]
    bomb = bytearray(path.read_bytes())
    bomb[16:24] = b"\0\1\0\0\0\1\0\0"
    (tmp_path / "bomb.png").write_bytes(bomb)
    done = galatea("infer", "picture", "--input", f"@{tmp_path}/bomb.png", "-u", server.http)
    assert done.returncode == 2 and "input 'INPUT0': the picture" in done.stderr, done


def test_arrays_and_sound_are_sent_and_received(server, tmp_path):
    import wave

    import numpy as np

    np.save(tmp_path / "a.npy", np.array([1, 2.5, -3]))
    [output] = asked(server, "floats", "--input", f"@{tmp_path}/a.npy", "--output-file", f"OUTPUT0={tmp_path}/b.npy")
    assert output["data"] == [1, 2.5, -3]
    back = np.load(tmp_path / "b.npy")
    assert back.dtype == np.float32 and back.tolist() == [1, 2.5, -3]
    with wave.open(str(tmp_path / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 16000, 0, "NONE", ""))
        sound.writeframes(np.array([0, 16384, -32768], "<i2").tobytes())
    done = galatea("infer", "floats", "--input", f"@{tmp_path}/a.wav", "-u", server.http)
    assert "  0, 0.5, -1\n" in done.stdout and "INPUT0: 16000 samples per second" in done.stderr, done


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_decoupled_model_is_read_as_a_stream(target, protocol):
    words = ["--input", "IN=7,8,9", "--input", "DELAY=0,0,0", "--input", "WAIT=0", "--request-id", "a"]
    done = galatea("infer", "repeat", *words, "--json", *at(target, protocol))
    assert done.returncode == 0, done
    lines = [json.loads(line)["outputs"] for line in done.stdout.splitlines()]
    assert [[o["data"] for o in line if o["name"] == "OUT"] for line in lines] == [[[7]], [[8]], [[9]]]
    shown = galatea("infer", "repeat", *words, *at(target, protocol))
    assert len(shown.stdout.split("\n\n")) == 3 and "OUT  INT32" in shown.stdout, shown


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_models_are_unloaded_and_loaded(target, protocol):
    where = at(target, protocol)
    shown = galatea("models", "repeat", *where)
    assert "requests to 1" in shown.stdout and "successful" in shown.stdout, shown
    assert "UNAVAILABLE" in galatea("models", "unload", "repeat", *where).stdout
    assert "READY" in galatea("models", "load", "repeat", *where).stdout
    assert "READY" in galatea("models", "reload", "repeat", *where).stdout
    absent = galatea("models", "load", "absent", *where)
    assert absent.returncode == 1 and "absent" in absent.stderr
    wrong = galatea("models", "lod", "repeat", *where)
    assert wrong.returncode == 2 and "did you mean 'load'?" in wrong.stderr


@pytest.fixture(scope="module")
def restricted(tmp_path_factory):
    """A server that gives nothing away without a key, and has the models of its start."""
    path = tmp_path_factory.mktemp("restricted")
    (path / "simple").symlink_to(repositories.EXAMPLES / "simple")
    apis = "model-repository,metadata,statistics,inference,health,model-config"
    with servers.galatea(path, f"--http-restricted-api={apis}:key=secret") as running:
        yield running


def test_a_refused_load_comes_with_advice(restricted):
    done = galatea("models", "unload", "simple", "-u", restricted.http, "-H", "key: secret")
    assert done.returncode == 1 and "--model-control-mode=explicit" in done.stderr, done


@pytest.mark.parametrize("command", [["models"], ["infer", "simple", *SIMPLE], ["top", "--once", "--interval", "0.1"]])
def test_keys_of_restricted_apis_are_sent(restricted, command):
    allowed = galatea(*command, "-u", restricted.http, "-H", "key: secret")
    refused = galatea(*command, "-u", restricted.http, "-H", "key: wrong")
    assert allowed.returncode == 0 and "simple" in allowed.stdout + str(command), allowed
    assert "restrict" in refused.stdout + refused.stderr, refused
