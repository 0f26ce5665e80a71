"""Where threads and processes of instances run: host policies, and the priority of a model."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import clients
import processes
import repositories
import servers
import tiers

# Answers with the CPUs and the nice value of its process, and with those of a thread it starts.
MODEL = """\
import json
import os
import threading

import numpy as np
import triton_python_backend_utils as pb


def placed():
    return sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0)


class TritonPythonModel:
    def execute(self, requests):
        found = [placed()]
        thread = threading.Thread(target=lambda: found.append(placed()))
        thread.start()
        thread.join()
        text = np.array([json.dumps(found).encode()], object)
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", text)]) for _ in requests]
"""
ALLOWED = sorted(os.sched_getaffinity(0))
LAST = ALLOWED[-1]
PINNED = f"cpu-cores={LAST}-{LAST}"


def write(repository, name, more=""):
    tensors = repositories.tensor("input", "INPUT0", "TYPE_FP32", "-1") + repositories.tensor("output", "OUTPUT0", "TYPE_STRING", "1")
    repositories.write_model(repository, name, "galatea", "python", tensors + more, {"1/model.py": MODEL})


def group(more):
    return f"instance_group [ {{ kind: KIND_CPU {more} }} ]\n"


def placed(server, model):
    """CPUs and nice value of the model's process and of its thread."""
    body = {"inputs": [clients.tensor_json("INPUT0", np.ones(1, np.float32))]}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    assert status == 200, text
    process, thread = json.loads(json.loads(text)["outputs"][0]["data"][0])
    return tuple(process), tuple(thread)


def threads(server):
    """Name, CPUs and nice value of each thread of the server."""
    found = {}
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        stat = (task / "stat").read_text().rsplit(")", 1)[1].split()
        allowed = processes.status(f"{server.pid}/task/{task.name}")["Cpus_allowed_list"].strip()
        found[int(task.name)] = (name, allowed, int(stat[16]))
    return found


def ordinary(server):
    """The nice value that the server was started with: a machine may start its jobs before others."""
    return threads(server)[server.pid][2]


def of_instance(server, name):
    """CPUs and nice value of the thread of an instance."""
    (found,) = {(cpus, nice) for thread, cpus, nice in threads(server).values() if thread == name[:15]}
    return found


# A policy by name, and the one of a kind, which says all CPUs where there is one node.
NAMED = ("--host-policy=cpu,numa-node=0", "--host-policy=mine,numa-node=0", f"--host-policy=mine,{PINNED}")


def write_three(folder, _):
    write(folder, "of_kind", group(""))
    write(folder, "named", group('host_policy: "mine"'))
    write(folder, "other", group('host_policy: "unknown"'))


@tiers.both
def test_instances_run_on_the_cpus_of_their_policy(stage, target):
    flags = NAMED if target == "galatea" else NAMED[-1:]
    server = stage.get(target, write_three, *flags)
    nice = ordinary(server)
    assert placed(server, "named") == (([LAST], nice),) * 2
    assert placed(server, "of_kind") == ((ALLOWED, nice),) * 2
    assert placed(server, "other") == ((ALLOWED, nice),) * 2
    if target == "galatea":
        assert of_instance(server, "named_0_0") == (str(LAST), nice)
        server.wait_for_line("instance_group.host_policy 'unknown' of model 'other' has no effect: define it with")
        check_memory(server, "of_kind_0_0")


def check_memory(server, name):
    """The kernel says of the thread of an instance that its memory is bound to the node."""
    (thread,) = (number for number, (found, *_) in threads(server).items() if found == name)
    maps = Path(f"/proc/{server.pid}/task/{thread}/numa_maps")
    if maps.exists():
        policies = {line.split()[1] for line in maps.read_text().splitlines()}
        assert "bind:0" in policies, policies


@tiers.peers
def test_in_triton_instances_without_a_policy_use_that_of_their_kind(stage):
    server = stage.get("triton", lambda folder, _: write(folder, "m", group("")), f"--host-policy=cpu,{PINNED}")
    assert placed(server, "m") == (([LAST], ordinary(server)),) * 2


@pytest.fixture(scope="module")
def unprivileged(tmp_path_factory):
    """A server that may not raise its priority, with a policy for all instances."""
    path = tmp_path_factory.mktemp("models")
    write(path, "of_kind", group(""))
    for name in ("m", "n"):
        write(path, name, "optimization { priority: PRIORITY_MAX }\n")
    folder = repositories.copy_example(path, "simple")
    helpers = 'parameters { key: "intra_op_thread_count" value: { string_value: "3" } }\n'
    (folder / "config.pbtxt").write_text((folder / "config.pbtxt").read_text() + helpers)
    # As late as can be, wherever the tests themselves begin: to go before others takes a right then.
    through = ["nice", "-n", "39", "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    with servers.galatea(path, f"--host-policy=cpu,{PINNED}", through=through) as server:
        yield server


def test_instances_without_a_policy_use_that_of_their_kind(unprivileged):
    assert placed(unprivileged, "of_kind") == (([LAST], 19),) * 2


def test_threads_of_onnx_runtime_run_on_the_cpus_of_the_instances(unprivileged):
    """Session threads start while the model loads, before any instance."""
    if len(ALLOWED) > 1:
        found = sorted(name for name, cpus, _ in threads(unprivileged).values() if cpus == str(LAST))
        assert [name for name in found if name in ("simple_0_0", "onnxruntime")] == ["onnxruntime"] * 2 + ["simple_0_0"], found
    ones = np.ones((1, 16), np.int32)
    with clients.client(unprivileged, "http") as stock:
        assert (clients.infer(stock, "http", "simple", {"INPUT0": ones, "INPUT1": ones})["OUTPUT0"] == 2).all()


def test_without_permission_a_high_priority_has_no_effect(unprivileged):
    """A warning says once what to do."""
    for name in ("m", "n"):
        assert placed(unprivileged, name) == (([LAST], 19),) * 2
    said = [line for line in unprivileged.log if "CAP_SYS_NICE" in line]
    assert len(said) == 1 and "PRIORITY_MIN" in said[0], said


def write_priorities(folder, _):
    write(folder, "low", "optimization { priority: PRIORITY_MIN }\n")
    write(folder, "plain")
    for name in ("high", "higher"):
        write(folder, name, "optimization { priority: PRIORITY_MAX }\n")


def test_priorities_of_models_set_the_nice_value(stage):
    """A low priority lets others go first; a high priority goes first if that is allowed."""
    server = stage.get("galatea", write_priorities)
    nice = ordinary(server)
    low, high = min(nice + 19, 19), max(nice - 5, -20) if may_raise_priority() else nice
    for name, expected in {"low": low, "plain": nice, "high": high, "higher": high}.items():
        assert placed(server, name) == ((ALLOWED, expected),) * 2
        assert of_instance(server, f"{name}_0")[1] == expected


def may_raise_priority():
    child = os.fork()
    if child == 0:
        try:
            os.nice(-5)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@tiers.peers
def test_triton_ignores_priorities_of_models(tmp_path):
    """Priorities are an extension: in Triton the thread of an instance always has the nice value 0."""
    write(tmp_path, "m", "optimization { priority: PRIORITY_MIN }\n")
    with servers.triton(tmp_path) as server:
        assert placed(server, "m") == ((ALLOWED, ordinary(server)),) * 2


@pytest.mark.parametrize(
    "setting, reason",
    [
        ("cpu-cores=x", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got x"),
        ("cpu-cores=3-2", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 3-2"),
        ("cpu-cores=0-99999999999", "host policy setting 'cpu-cores' format is"),
        ("cpu-cores=1022-1023", "host policy setting 'cpu-cores' names none of the CPUs that the server may use, which are "),
        ("numa-node=x", "Parsing 'numa-node' value: Can't parse 'x' to integer"),
        ("numa-node=1023", "host policy setting 'numa-node' names no NUMA node of this machine, which are 0-"),
    ],
)
def test_a_policy_unsuitable_for_this_machine_ends_the_start(tmp_path, setting, reason):
    command = [servers.galatea_binary(), "serve", f"--model-repository={tmp_path}", f"--host-policy=cpu,{setting}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"setting host policy: Invalid argument - {reason}" in done.stdout + done.stderr
