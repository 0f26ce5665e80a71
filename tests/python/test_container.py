"""The container files, without a container engine: linted, every path in them checked, and the tree that the image
would hold laid out by the same script, started by the same entry point and asked by the same health check."""

import fnmatch
import json
import os
import re
import signal
import shlex
import subprocess
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import yaml

import clients
import repositories
import servers
import tiers

ROOT = servers.ROOT
HADOLINT = servers.PEERS / "venv/bin/hadolint"
SCRIPTS = ROOT / "container"


# Answers who runs it.
NEEDS = """\
import os

import numpy
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        assert "environments" in numpy.__file__, numpy.__file__
        who = numpy.array([os.getuid(), os.getgid()], numpy.float32)
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", who)]) for _ in requests]
"""


# --- reading the files ---------------------------------------------------------------------------------------------


def instructions(text):
    """(name, rest) of every instruction of a Dockerfile."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def stages(text):
    """{name of the stage: its instructions}, in the order of the file."""
    found = {}
    for name, rest in instructions(text):
        if name == "FROM":
            found[rest.split(" AS ")[1]] = current = []
        current.append((name, rest))
    return found


DOCKERFILE = stages((ROOT / "Dockerfile").read_text())
BUILD, LAST, CUDA = DOCKERFILE["build"], DOCKERFILE["cpu"], DOCKERFILE["cuda"]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]


def all_of(stage, name):
    return [rest for kind, rest in stage if kind == name]


def copies(stage):
    """(stage they come from or None, sources, destination) of a stage."""
    for rest in all_of(stage, "COPY"):
        words = shlex.split(rest)
        options = [word for word in words if word.startswith("--")]
        paths = [word for word in words if not word.startswith("--")]
        origin = next((option.split("=")[1] for option in options if option.startswith("--from=")), None)
        yield origin, paths[:-1], paths[-1]


def is_sent(path):
    """Whether .dockerignore lets a path of the checkout through; its last line that fits decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").strip()
        ancestors = [path, *path.parents]
        if pattern and not line.startswith("#") and any(fnmatch.fnmatch(str(p), pattern) for p in ancestors if p.name):
            sent = line.startswith("!")
    return sent


# --- what they say -------------------------------------------------------------------------------------------------


@tiers.peers
@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not installed: `cargo xtask setup`")
def test_the_linter_finds_no_faults():
    done = subprocess.run(
        [HADOLINT, "--failure-threshold", "style", ROOT / "Dockerfile"], text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_copied_paths_exist():
    seen = []
    for name, stage in DOCKERFILE.items():
        for origin, sources, _ in copies(stage):
            assert origin is None or origin in seen, f"{name} copies from {origin}, which is not built before it"
            for source in sources if origin is None else ():
                assert (ROOT / source).exists(), source
                assert is_sent(Path(source)), f"{source} is kept back by .dockerignore"
        seen.append(name)
    assert not is_sent(Path("target")) and not is_sent(Path(".git"))


def test_the_build_gets_the_whole_workspace():
    copied = [source for origin, sources, _ in copies(BUILD) if origin is None for source in sources]
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    folders = [folder for pattern in members for folder in ROOT.glob(pattern)]
    assert len(folders) > 10
    for folder in folders:
        assert folder.relative_to(ROOT).parts[0] in copied, folder
    for file in ROOT.glob("crates/**/src/**/*.rs"):
        for included in re.findall(r"include_(?:str|bytes)!\(\s*\"([^\"]+)\"", file.read_text()):
            path = (file.parent / included).resolve().relative_to(ROOT)
            assert path.parts[0] in copied, f"{file} includes {path}"


def test_the_image_runs_as_an_ordinary_user_with_tritons_ports():
    (user,) = all_of(LAST, "USER")
    # Of the group 0, as users are whom a platform makes up.
    assert re.fullmatch(r"[1-9]\d*:0", user)
    assert all_of(LAST, "EXPOSE") == ["8000 8001 8002"]
    # Nothing is copied or installed after the user is changed.
    after = [name for name, _ in LAST[LAST.index(("USER", user)) + 1 :]]
    assert not {"RUN", "COPY", "ADD"} & set(after)


def test_the_image_variants_differ_only_in_their_base():
    assert "nvidia/cuda" in all_of(CUDA, "FROM")[0] and "debian" in all_of(LAST, "FROM")[0]
    assert all_of(CUDA, "COPY") == [*all_of(LAST, "COPY"), "--from=gpu-runtime /image /"]
    for name in ("RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"):
        assert all_of(CUDA, name) == all_of(LAST, name), name
    assert set(shlex.split(all_of(LAST, "ENV")[0])) <= set(shlex.split(all_of(CUDA, "ENV")[0]))
    for stage in (CUDA, LAST):
        (labels,) = all_of(stage, "LABEL")
        assert {"title", "description", "licenses"} == set(re.findall(r"org\.opencontainers\.image\.(\w+)=", labels))
    assert list(DOCKERFILE)[-1] == "cpu", "what a build without a target makes"


@tiers.peers
def test_the_compose_file_fits_its_schema():
    check = servers.PEERS / "dist-checks/bin/check-jsonschema"
    done = subprocess.run(
        [check, "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml"], text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_in_compose_reads_the_servers_metrics():
    read = yaml.safe_load((SCRIPTS / "prometheus.yaml").read_text())["scrape_configs"][0]["static_configs"][0]["targets"]
    assert read == ["triton-server:8002"] and "8002:8002" in COMPOSE["triton-server"]["ports"]
    source = yaml.safe_load((SCRIPTS / "grafana/datasource.yaml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090" and "prometheus" in COMPOSE
    for name in ("prometheus", "grafana"):
        assert all(port.startswith("127.0.0.1:") for port in COMPOSE[name]["ports"])
    places = [volume.split(":")[:2] for volume in COMPOSE["grafana"]["volumes"]]
    for source, _ in places:
        assert (ROOT / source).is_file(), source


def test_compose_services_fit_the_dockerfile():
    assert {"triton-server", "triton-client", "perf-analyzer"} <= set(COMPOSE)
    ours = {name: service for name, service in COMPOSE.items() if "build" in service}
    for name, service in ours.items():
        assert service["build"]["target"] in DOCKERFILE, name
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"} and other in COMPOSE
            assert all_of(
                DOCKERFILE[COMPOSE[other]["build"]["target"]], "HEALTHCHECK"
            ), f"{other} has no health to wait for"
    ports = COMPOSE["triton-server"]["ports"]
    assert ports == [f"{port}:{port}" for port in all_of(LAST, "EXPOSE")[0].split()]
    for volume in map(with_defaults, COMPOSE["triton-server"]["volumes"]):
        source = volume.split(":")[0]
        assert (
            (ROOT / source).is_dir()
            if source.startswith(".")
            else source in yaml.safe_load((ROOT / "compose.yaml").read_text())["volumes"]
        )


# --- what they make ------------------------------------------------------------------------------------------------


def with_defaults(text):
    """Compose's ${NAME:-default} where no variable is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


class Image:
    """The tree under / of the image, in a folder."""

    def __init__(self, folder):
        self.root = folder
        library = servers.onnx_runtime().get("GALATEA_ONNXRUNTIME_LIB") or os.environ["GALATEA_ONNXRUNTIME_LIB"]
        subprocess.run([SCRIPTS / "lay-out", servers.galatea_binary(), library, folder], check=True)
        self.env = {"PATH": f"{folder}/usr/local/bin:{os.environ['PATH']}", "HOME": str(folder)}
        for pair in shlex.split(all_of(LAST, "ENV")[0]):
            name, value = pair.split("=")
            self.env[name] = f"{folder}{value}" if value.startswith("/") else value

    def started_as(self, command):
        """What the engine would start for a command: the entry point, then the command."""
        return json.loads(all_of(LAST, "ENTRYPOINT")[0]) + command

    def run(self, command, **more):
        return subprocess.run(
            [self.program(command[0]), *command[1:]],
            env={**self.env, **more},
            text=True,
            timeout=60,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def program(self, name):
        """A program of ours in the tree; not one that happens to be on this machine."""
        return self.root / "usr/local/bin" / name

    def ready(self, http):
        command = json.loads(all_of(LAST, "HEALTHCHECK")[0].split(" CMD ")[1])
        return self.run(command, GALATEA_HTTP_PORT=http.split(":")[1])

    def serve(self, command, models):
        """The command of a container, with the repository that would be mounted and ports that are free."""
        flags = [flag.replace("=/models", f"={models}") for flag in self.started_as(command)]
        ours = [
            "--http-port=0",
            "--grpc-port=0",
            "--metrics-port=0",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
        ]
        return servers.Server([self.program(flags[0]), *flags[1:], *ours], self.env)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return Image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def composed(image):
    """The service triton-server of compose.yaml."""
    with image.serve(
        [with_defaults(word) for word in COMPOSE["triton-server"]["command"]], repositories.EXAMPLES
    ) as server:
        yield server


def test_the_image_contains_its_programs(image):
    first = json.loads(all_of(LAST, "CMD")[0])[0]
    for name in (first, *json.loads(all_of(LAST, "ENTRYPOINT")[0]), "galatea", "perf_analyzer", "galatea-ready"):
        assert os.access(image.program(name), os.X_OK), name
        assert image.program(name).resolve().is_relative_to(image.root.resolve()), f"{name} leads out of the image"
    libraries = subprocess.run(["ldd", image.program("galatea")], text=True, capture_output=True).stdout
    assert "not found" not in libraries
    # What the program needs is in every Debian image.
    assert set(re.findall(r"^\s*(?:/\S+/)?([\w-]+)\.so", libraries, re.MULTILINE)) <= {
        "linux-vdso",
        "libgcc_s",
        "libm",
        "libc",
        "ld-linux-x86-64",
    }


def test_options_without_a_command_start_the_server(image):
    assert "--model-repository" in image.run(image.started_as(["--help"])).stdout
    assert image.run(image.started_as(["galatea", "--version"])).stdout.startswith("galatea ")
    done = image.run(image.started_as(["sh", "-c", "exit 7"]))
    assert done.returncode == 7


def test_the_composed_server_is_healthy_and_answers(image, composed):
    healthy = image.ready(composed.http)
    assert healthy.returncode == 0, healthy.stdout
    status, _, body = clients.ask(composed.http, "POST", "/v2/models/simple/infer", clients.pair_json())
    assert status == 200 and json.loads(body)["outputs"][0]["data"] == list(range(1, 17))
    assert f"{image.root}/opt/galatea/lib/libonnxruntime.so" in composed.text()


def test_the_client_service_works(composed):
    script = next(sources[0] for _, sources, _ in copies(DOCKERFILE["client"]))
    addresses = {"triton-server:8000": composed.http, "triton-server:8001": composed.grpc}
    flags = [
        f"{name}={addresses[value]}"
        for name, value in (flag.split("=") for flag in COMPOSE["triton-client"]["command"])
    ]
    done = subprocess.run([sys.executable, ROOT / script, *flags], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ready: simple",
        "simple over HTTP: OUTPUT0 [1, 16], OUTPUT1 [1, 16]",
        "simple over gRPC: OUTPUT0 [1, 16], OUTPUT1 [1, 16]",
    ]


def test_the_load_tool_service_works(image, composed):
    service = COMPOSE["perf-analyzer"]
    words = [with_defaults(word).replace("triton-server:8001", composed.grpc) for word in service["command"]]
    done = image.run([*service["entrypoint"], *words, "-p", "200", "-s", "1000000", "-r", "3"])
    assert done.returncode == 0, done.stdout
    assert re.search(
        r"^Concurrency: 4, throughput: [1-9][\d.]* infer/sec, latency [1-9]\d* usec", done.stdout, re.MULTILINE
    )


def test_the_health_check_reports_unready_and_stopped_servers(image, tmp_path):
    """The check fails while a model fails and while nothing listens; the server ends cleanly at the signal."""
    repositories.write_model(tmp_path, "broken", "galatea", "onnxruntime", repositories.identity_config())
    server = image.serve(["--model-repository=/models", "--exit-on-error=false"], tmp_path)
    try:
        unhealthy = image.ready(server.http)
        assert unhealthy.returncode == 1 and "answered 400" in unhealthy.stdout
    finally:
        assert server.stop(signal.SIGTERM) == 0
    assert image.ready(server.http).returncode == 1


@tiers.peers
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user and mount")
def test_any_user_builds_a_python_environment_in_a_read_only_root(image, tmp_path):
    """Runs as a user without an entry, in group 0; only the volume and /tmp are writable."""
    repositories.write_model(tmp_path / "models", "needs", "galatea", "python", repositories.identity_config())
    folder = tmp_path / "models/needs"
    (folder / "1/model.py").write_text(NEEDS)
    (folder / "requirements.txt").write_text(f"--no-index\n--find-links {tmp_path}/wheels\nnumpy\n")
    home = image.env["GALATEA_HOME"]
    assert Path(home).stat().st_mode & 0o777 == 0o775 and Path(home).stat().st_gid == 0
    private, temporary = image.root.parent, tmp_path / "tmp"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o1777)
    # Where this Python lies may be root's alone too.
    (python := tmp_path / "python").mkdir()
    shutil.copytree(servers.PEERS / "wheels/pipelines", tmp_path / "wheels", ignore=lambda _, names: [n for n in names if not n.startswith("numpy-")])
    # The folders of the tests are root's alone.
    for place in [image.root, tmp_path, private, *private.parents]:
        if place.stat().st_mode & 0o055 != 0o055 and place.is_relative_to(tempfile.gettempdir()):
            place.chmod(place.stat().st_mode | 0o055)
    # Nothing can be written but the two folders that the compose file mounts.
    script = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --bind "$2" "$2"
mount -o remount,bind,rw "$2"
mount --bind "$TMPDIR" "$TMPDIR"
mount --bind "$3" "$4"
mount -o remount,bind,ro /
if touch "$1/written" "$HOME/../written" 2>/dev/null; then exit 9; fi
shift 4
exec setpriv --reuid=1000650 --regid=0 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""
    words = image.started_as(["--model-repository=/models", f"--backend-config=python,python-interpreter={python}/bin/python3"])
    words = [image.program(words[0]), *[str(word).replace("=/models", f"={tmp_path}/models") for word in words[1:]]]
    through = ["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh", image.root, home, sys.base_prefix, python]
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
    with servers.Server([*through, *words, *ports], {**image.env, "TMPDIR": str(temporary)}) as server:
        body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [2], "datatype": "FP32", "data": [1, 2]}]})
        status, _, answer = clients.ask(server.http, "POST", "/v2/models/needs/infer", body.encode())
        assert status == 200 and json.loads(answer)["outputs"][0]["data"] == [1000650.0, 0.0]
