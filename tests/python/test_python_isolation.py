"""--python-isolation: what a hostile model cannot do, what every model still can, and what the log says about both."""

import json
import os
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

import clients
import isolation_attempts
import processes
import servers
import tiers
from repositories import tensor, write_model
from waiting import eventually

LEVELS = ["standard", "strict"]
CONFIG = tensor("input", "IN", "TYPE_STRING", "1") + tensor("output", "OUT", "TYPE_STRING", "1")
# Runs the Python that it is sent: what a model that was taken over does.
MODEL = '''
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            scope = {"__file__": __file__, "pb": pb, "result": None}
            try:
                exec(request.inputs()[0].as_numpy()[0].decode(), scope)
                said = "done: %s" % (scope["result"],)
            except Exception as error:
                said = "%s: %s" % (type(error).__name__, error)
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", np.array([said.encode()], object))]))
        return answers
'''
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "aws-value", "HF_TOKEN": "hf-value", "TRITON_CLOUD_CREDENTIAL_PATH": "/keys/path-value",
    "DATABASE_URL": "postgres://user:url-value@db", "OPENAI_API_KEY": "openai-value", "MY_PASSWORD": "password-value",
}


class Place:
    """A server with a hostile model and a neighbour, and what lies around them."""

    def __init__(self, folder, level, temporary, **options):
        self.folder, self.level = folder, level
        self.repository, self.home, self.own = folder / "models", folder / "home", folder / "server"
        self.data, self.results, self.backends = folder / "data", folder / "results", folder / "backends"
        for name in ("models", "home/.aws", "server", "data", "results", "backends/mine"):
            (folder / name).mkdir(parents=True)
        (self.own / "policy.toml").write_text("key = 'secret'")
        (self.home / ".aws/credentials").write_text("[default]")
        (self.data / "weights").write_text("42")
        (self.backends / "mine/beside.py").write_text("VALUE = 42\n")
        (self.backends / "mine/model.py").write_text("import beside\n" + MODEL)
        for name in ("hostile", "neighbour"):
            self.write(name, MODEL)
        self.server = servers.galatea(
            self.repository, f"--python-isolation={level}", "--model-control-mode=explicit", "--load-model=*",
            f"--python-readable-path={self.data}", f"--python-writable-path={self.results}", f"--backend-directory={self.backends}",
            "--python-environment-variable=HF_TOKEN", **options,
            env={"HOME": str(self.home), "TMPDIR": str(temporary), "PLAIN": "plain-value", **SECRETS},
        )

    def write(self, name, code, config=CONFIG, backend="python"):
        files = {"1/model.py": code} if code else {}
        write_model(self.repository, name, "galatea", backend, config, {**files, "1/spare": "weights"})

    def control(self, verb, model):
        status, _, text = clients.ask(self.server.http, "POST", f"/v2/repository/models/{model}/{verb}", {})
        return status, text.decode()

    def run(self, code, model="hostile"):
        """What became of code in a model: `done: RESULT`, or the exception."""
        body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [code]}]}
        status, _, text = clients.ask(self.server.http, "POST", f"/v2/models/{model}/infer", body)
        answer = json.loads(text)
        return answer["outputs"][0]["data"][0] if status == 200 else answer["error"]

    def attempt(self, attempt, others):
        """What became of an attempt: whether it was refused, and its answer."""
        other = self.run("import os; result = os.getpid()", "neighbour").removeprefix("done: ")
        place = {
            "SERVER": str(self.own), "HOME": str(self.home), "NEIGHBOUR": str(self.repository / "neighbour"),
            "PID": self.server.pid, "OTHER": int(other), "PORT": int(self.server.http.rsplit(":", 1)[1]),
            "SIGNAL": 0 if self.level == "none" else int(signal.SIGKILL), **others,
        }
        assigned = "".join(f"{name} = {value!r}\n" for name, value in place.items())
        answer = self.run(assigned + isolation_attempts.PRELUDE + attempt.code)
        refused = answer.startswith("PermissionError")
        assert refused or answer.startswith("done"), answer
        return refused, answer


# A kernel without Landlock, or without seccomp: a filter answers for it, by the number of the call.
WITHOUT = [sys.executable, str(Path(__file__).with_name("without_syscall.py"))]
LANDLOCK, SECCOMP = "444", "317"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """`places(level)` has a server of that level, started when first asked for; `lacking` names a call that the kernel refuses."""
    running, temporary = {}, tmp_path_factory.mktemp("temporary")

    def get(level, lacking=None):
        if (level, lacking) not in running:
            through = [*WITHOUT, lacking] if lacking else ()
            running[level, lacking] = Place(tmp_path_factory.mktemp(level), level, temporary, through=through)
        return running[level, lacking]

    yield get
    for place in running.values():
        place.server.stop()


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Sockets that listen, and named memory of somebody else."""
    path = str(tmp_path_factory.mktemp("sockets") / "socket")
    name = f"galatea-test-{os.getpid()}"
    memory = Path("/dev/shm") / name
    memory.write_text("of others")
    with socket.socket(socket.AF_UNIX) as with_file, socket.socket(socket.AF_UNIX) as without:
        with_file.bind(path)
        without.bind("\0" + name)
        with_file.listen(64)
        without.listen(64)
        yield {"SOCKET": path, "NAME": name, "MEMORY": str(memory)}
    memory.unlink(missing_ok=True)


def require_all(place):
    """Fails where the machine's kernel is to blame, with what it lacks."""
    gaps = [line for line in place.server.log if "is only partly in force" in line]
    if gaps:
        pytest.skip(f"the kernel of this machine cannot isolate: {gaps[0]}")


@pytest.mark.parametrize("attempt", isolation_attempts.ALL, ids=lambda attempt: attempt.name)
def test_hostile_attempts_of_a_model_are_refused(places, others, attempt):
    allowed, answer = places("none"), None
    refused, answer = allowed.attempt(attempt, others)
    if refused and attempt.may_be_refused_anyway:
        pytest.skip(f"this machine refuses it to everyone: {answer}")
    assert not refused, answer
    for level in LEVELS:
        place = places(level)
        require_all(place)
        refused, answer = place.attempt(attempt, others)
        assert refused == (attempt.at_standard or level == "strict"), f"{level}: {answer}"
        # The server goes on, and so does its neighbour.
        assert place.server.process.poll() is None
        assert place.run("result = 6 * 7", "neighbour") == "done: 42"


# What models do every day, and at which levels it works.
ORDINARY = {
    "temporary_files": "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as f: f.write('x'); f.flush(); result = 42",
    "temporary_folders": "import os, shutil, tempfile\nf = tempfile.mkdtemp(); open(f + '/a', 'w').close()\n"
    "os.rename(f + '/a', f + '/b'); shutil.rmtree(f); result = 42",
    "files_of_the_own_folder": "import os; result = 42 if open(os.path.dirname(__file__) + '/spare').read() == 'weights' else 0",
    "settings_of_the_system": "import socket, ssl, time; open('/etc/passwd').read(); ssl.create_default_context(); result = 42",
    "programs": "import subprocess; result = int(subprocess.check_output(['/bin/sh', '-c', 'echo 42']))",
    "its_own_interpreter": "import subprocess, sys; result = int(subprocess.check_output([sys.executable, '-c', 'print(42)']))",
    "children": "import os\npid = os.fork()\nif pid == 0: os._exit(42)\nresult = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])",
    "ending_children": "import os, signal, subprocess, time\np = subprocess.Popen(['sleep', '60']); p.kill(); p.wait(); result = 42",
    "threads": "import concurrent.futures as c\nwith c.ThreadPoolExecutor(8) as pool: result = sum(pool.map(int, [20, 22]))",
    "event_loops": "import asyncio; result = asyncio.run(asyncio.sleep(0.001, 42))",
    "processors": "import os; os.sched_getaffinity(0); open('/proc/cpuinfo').read(); open('/proc/self/status').read(); result = 42",
    "random_numbers": "import os; open('/dev/urandom', 'rb').read(8); os.urandom(8); result = 42",
    "limits_of_its_own": "import resource; resource.getrlimit(resource.RLIMIT_NOFILE); result = 42",
    "memory_without_a_name": "import mmap, os; f = os.memfd_create('m'); os.ftruncate(f, 4096); mmap.mmap(f, 4096); result = 42",
    "pairs_of_sockets": "import socket; a, b = socket.socketpair(); a.send(b'42'); result = int(b.recv(9))",
    "its_own_place_on_the_processors": "import os; os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
    "os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)); result = 42",
    "requests_to_other_models": "import numpy as n\nr = pb.InferenceRequest(model_name='neighbour', requested_output_names=['OUT'],"
    " inputs=[pb.Tensor('IN', n.array([b'result = 42'], object))]).exec()\n"
    "result = int(pb.get_output_tensor_by_name(r, 'OUT').as_numpy()[0].split()[1])",
    "readiness_of_other_models": "result = 42 if pb.is_model_ready('neighbour') else 0",
    "metrics": "f = pb.MetricFamily(name='of_model', description='x', kind=pb.MetricFamily.COUNTER)\n"
    "m = f.Metric(labels={}); m.increment(42); result = int(m.value())",
    "lines_in_the_log": "pb.Logger.log_info('a line'); result = 42",
    "onnxruntime": "import onnxruntime; result = 42 if 'CPUExecutionProvider' in onnxruntime.get_available_providers() else 0",
}
AT_STANDARD = {
    "processes": "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as pool: result = sum(pool.map(abs, [-20, -22]))",
    "named_memory": "from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=64); m.close(); m.unlink(); result = 42",
    "the_own_folder": "import os; f = os.path.dirname(__file__) + '/made'; open(f, 'w').write('x'); os.remove(f); result = 42",
}


@pytest.mark.parametrize("level", ["none", *LEVELS])
@pytest.mark.parametrize("name", [*ORDINARY, *AT_STANDARD])
def test_ordinary_model_code_works(places, level, name):
    said = places(level).run({**ORDINARY, **AT_STANDARD}[name])
    if level == "strict" and name in AT_STANDARD:
        assert said.startswith("PermissionError"), said
    else:
        assert said == "done: 42"


@pytest.mark.parametrize("level", ["none", *LEVELS])
def test_a_restarted_worker_is_isolated_again(places, level):
    place = places(level)
    pid = place.run("import os; result = os.getpid()")
    assert "it is being restarted" in place.run("import os; os._exit(3)")
    eventually("the model answers again", lambda: place.run("result = 1") == "done: 1")
    assert place.run("import os; result = os.getpid()") != pid
    confined = place.run("result = [l.split()[1] for l in open('/proc/self/status') if l.startswith('NoNewPrivs')]")
    assert confined == f"done: {[str(int(level != 'none'))]}"


@pytest.mark.parametrize("level", LEVELS)
def test_a_worker_run_as_root_has_no_capabilities(places, level):
    sets = places(level).run("result = [int(l.split()[1], 16) for l in open('/proc/self/status') if l.startswith('CapEff')]")
    kept = int(sets.removeprefix("done: [").removesuffix("]"))
    # CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_BOOT, CAP_NET_ADMIN, CAP_MKNOD
    assert not any(kept >> number & 1 for number in (16, 17, 19, 21, 22, 12, 27))


@pytest.mark.parametrize("level", LEVELS)
def test_floods_of_output_and_processes_do_not_end_the_server(places, level):
    place = places(level)
    workers = len(processes.running(place.server.pid))
    printed = place.run("import sys\nfor _ in range(400): sys.stdout.write('x' * 10_000)\nsys.stdout.flush(); result = 1")
    assert printed == "done: 1"
    flood = """
import os, time
for _ in range(60):
    if os.fork() == 0:
        for _ in range(2):
            os.fork()
        time.sleep(600)
os._exit(1)
"""
    assert "it is being restarted" in place.run(flood)
    eventually("the model answers again", lambda: place.run("result = 1") == "done: 1")
    assert place.run("result = 6 * 7", "neighbour") == "done: 42"
    # They went with the worker.
    left = lambda: [p for p in processes.descendants(place.server.pid) if not processes.is_zombie(p)]  # noqa: E731
    eventually("the processes of the flood are gone", lambda: len(left()) <= workers + 1)


@pytest.mark.parametrize("level", ["none", "standard"])
def test_secrets_are_withheld_unless_listed(places, level):
    place = places(level)
    seen = place.run("import os, subprocess; result = str(dict(os.environ)) + open('/proc/self/environ').read()"
                     " + subprocess.check_output(['env'], text=True)")
    assert seen.count("hf-value") == 3 and seen.count("plain-value") == 3
    for name, value in SECRETS.items():
        if name != "HF_TOKEN":
            assert name not in seen and value not in seen
    told = [line for line in place.server.log if "may hold secrets" in line]
    assert len(told) == 1 and all(name in told[0] for name in SECRETS if name != "HF_TOKEN"), told
    assert "HF_TOKEN" not in told[0]
    assert not any(value in place.server.text() for value in SECRETS.values())


def test_listed_paths_are_added(places, tmp_path):
    place = places("strict")
    require_all(place)
    weights = str(place.data / "weights")
    assert place.run(f"result = open({weights!r}).read()") == "done: 42"
    assert place.run(f"open({weights!r}, 'a')").startswith("PermissionError")
    assert place.run(f"open({str(place.results)!r} + '/made', 'w').write('x'); result = 42") == "done: 42"
    assert (place.results / "made").exists()
    write_model(tmp_path, "hostile", "galatea", "python", CONFIG, {"1/model.py": MODEL})
    flags = ("--python-isolation=strict", "--python-readable-path=/nowhere/data")
    with servers.galatea(tmp_path, *flags, wait=False) as server:
        server.wait_for_line("--python-readable-path=/nowhere/data: there is no such file or folder")


def test_a_listed_model_may_load_only_models_of_the_repository(tmp_path):
    write_model(tmp_path, "named", "galatea", "python", CONFIG, {"1/model.py": MODEL})
    write_model(tmp_path, "other", "galatea", "python", CONFIG, {"1/model.py": MODEL})
    flags = ("--python-isolation=strict", "--model-control-mode=explicit", "--load-model=named", "--python-model-control=named")
    with servers.galatea(tmp_path, *flags) as server:
        def run(code):
            body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [code]}]}
            return json.loads(clients.ask(server.http, "POST", "/v2/models/named/infer", body)[2])["outputs"][0]["data"][0]

        assert run("pb.load_model('other'); result = pb.is_model_ready('other')") == "done: True"
        for brought in ("config='{}'", "files={'file:1/model.py': b''}"):
            said = run(f"pb.load_model('other', {brought})")
            assert "only as the model repository has them" in said, said
        assert run("pb.unload_model('other'); result = 42") == "done: 42"


def test_a_hardened_server_refuses_model_control_to_models(tmp_path):
    write_model(tmp_path, "m", "galatea", "python", CONFIG, {"1/model.py": MODEL})
    flags = ("--hardened", "--python-isolation=none", "--model-control-mode=explicit", "--load-model=m")
    with servers.galatea(tmp_path, *flags) as server:
        body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": ["pb.unload_model('m')"]}]}
        said = json.loads(clients.ask(server.http, "POST", "/v2/models/m/infer", body)[2])["outputs"][0]["data"][0]
        assert "may not load or unload models (--hardened); --python-model-control=m allows it" in said, said


def test_the_page_counts_what_each_level_refuses():
    page = (Path(__file__).parents[2] / "docs/python-isolation.md").read_text()
    at_standard = sum(attempt.at_standard for attempt in isolation_attempts.ALL)
    assert f"[{len(isolation_attempts.ALL)} attempts]" in page
    assert f"{at_standard} fail at both levels,\nand {len(isolation_attempts.ALL) - at_standard} more at `strict`" in page


@pytest.mark.parametrize("level", ["none", *LEVELS])
def test_a_load_error_mentions_the_isolation(places, tmp_path, level):
    place = places(level)
    secret = tmp_path / "secret"
    secret.write_text("")
    place.write("reads", f"class TritonPythonModel:\n    def initialize(self, args):\n        open({str(secret)!r}).read()\n")
    status, text = place.control("load", "reads")
    if level == "none":
        assert "PermissionError" not in text
        return
    assert status in (400, 500)
    error = json.loads(text)["error"]
    assert "PermissionError" in error and f"--python-isolation={level}" in error and "--python-readable-path" in error, error


def test_temporary_files_are_removed_with_the_model(places):
    place = places("strict")
    place.write("leaves", MODEL)
    assert place.control("load", "leaves")[0] == 200
    folder = place.run("import os, tempfile; result = tempfile.gettempdir()\nos.makedirs(result + '/a/b')\n"
                       "os.symlink('/etc', result + '/a/link'); open(result + '/a/b/file', 'w').close()", "leaves").removeprefix("done: ")
    assert Path(folder, "a/b/file").exists() and Path(folder).stat().st_mode & 0o77 == 0
    assert place.control("unload", "leaves")[0] == 200
    eventually("the temporary files are gone", lambda: not Path(folder).exists())
    assert Path("/etc/passwd").exists()


# What one level shows is enough for each build; the other is played with the peers.
STRICT_FIRST = pytest.mark.parametrize("level", ["strict", pytest.param("standard", marks=tiers.peers)])


@STRICT_FIRST
def test_without_landlock_the_log_lists_the_gaps(places, others, level):
    place = places(level, LANDLOCK)
    told = [line for line in place.server.log if "only partly in force" in line]
    assert len(told) == 1 and "without Landlock, models can read and change" in told[0] and "signals" in told[0], told
    assert place.run("open(%r).read(); result = 1" % str(place.own / "policy.toml")) == "done: 1"
    # What is left: calls, and the server's own process.
    named = {attempt.name: attempt for attempt in isolation_attempts.ALL}
    left = ["signal_the_server", "signal_with_a_child", "signal_everything", "read_the_servers_limits", "typing_into_a_terminal"]
    for name in left + (["connect_to_the_server"] if level == "strict" else []):
        assert place.attempt(named[name], others)[0], name
    assert place.server.process.poll() is None


def test_leftovers_of_a_killed_server_are_removed_by_the_next(places):
    """The killed server served the test before this one; the next server serves the test after it."""
    first, second = places("strict", LANDLOCK), places("standard")
    left = Path(first.run("import tempfile; result = tempfile.gettempdir()").removeprefix("done: "))
    used = Path(second.run("import tempfile; result = tempfile.gettempdir()").removeprefix("done: "))
    first.server.stop(signal.SIGKILL)
    assert left.exists() and used.exists()
    third = places("strict", SECCOMP)
    assert not left.exists() and used.exists()
    third.server.wait_for_line(f"removed '{left}', which a killed server has left")


@STRICT_FIRST
def test_without_seccomp_the_log_lists_the_gaps(places, others, level):
    place = places(level, SECCOMP)
    told = [line for line in place.server.log if "only partly in force" in line]
    assert len(told) == 1 and "without seccomp" in told[0], told
    assert ("network" in told[0]) == (level == "strict")
    named = {attempt.name: attempt for attempt in isolation_attempts.ALL}
    if "without Landlock" not in told[0]:
        left = ["read_the_policy", "write_another_models_code", "read_the_servers_memory"]
        for name in left + (["connect_to_the_server"] if level == "strict" else []):
            assert place.attempt(named[name], others)[0], name
    assert place.server.process.poll() is None


def test_tensors_of_every_size_and_model_calls_work(places):
    """Server and worker exchange data without any refused call."""
    identity = "import triton_python_backend_utils as pb\n\n\nclass TritonPythonModel:\n    def execute(self, requests):\n" \
        "        return [pb.InferenceResponse([pb.Tensor('OUT', r.inputs()[0].as_numpy())]) for r in requests]\n"
    caller = "import triton_python_backend_utils as pb\n\n\nclass TritonPythonModel:\n    def execute(self, requests):\n" \
        "        calls = [pb.InferenceRequest(model_name='identity', requested_output_names=['OUT'], inputs=r.inputs()) for r in requests]\n" \
        "        return [pb.InferenceResponse(call.exec().output_tensors()) for call in calls]\n"
    config = tensor("input", "IN", "TYPE_FP32", "-1") + tensor("output", "OUT", "TYPE_FP32", "-1")
    place = places("strict")
    for name, code in (("identity", identity), ("caller", caller)):
        place.write(name, code, config)
        assert place.control("load", name)[0] == 200
    with clients.client(place.server, "grpc") as stock:
        for size in (1, 100_000, 4_000_000):
            sent = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(clients.infer(stock, "grpc", "caller", {"IN": sent})["OUT"], sent)


@pytest.mark.parametrize("level", LEVELS)
def test_a_custom_python_backend_reads_files_beside_it(places, level):
    place = places(level)
    place.write("written", None, backend="mine")
    assert place.control("load", "written")[0] == 200
    assert place.run("import beside; result = beside.VALUE", "written") == "done: 42"
    code = str(place.backends / "mine/model.py")
    assert place.run(f"open({code!r}, 'a')", "written").startswith("PermissionError")
