"""Where threads and processes of instances run: host policies, and the priority of a model."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import clients
import processes
import repositories
import servers

needs_triton = pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")
BOTH = pytest.mark.parametrize("target", ["galatea", pytest.param("triton", marks=needs_triton)])
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


def of_instance(server, name):
    """CPUs and nice value of the thread of an instance."""
    (found,) = {(cpus, nice) for thread, cpus, nice in threads(server).values() if thread == name[:15]}
    return found


@BOTH
def test_instances_run_on_the_cpus_of_their_policy(tmp_path, target):
    write(tmp_path, "of_kind", group(""))
    write(tmp_path, "named", group('host_policy: "mine"'))
    write(tmp_path, "other", group('host_policy: "unknown"'))
    with servers.TARGETS[target](tmp_path, f"--host-policy=mine,{PINNED}") as server:
        all_of_them = (ALLOWED, 0)
        assert placed(server, "named") == (([LAST], 0),) * 2
        assert placed(server, "of_kind") == (all_of_them,) * 2
        assert placed(server, "other") == (all_of_them,) * 2
        if target == "galatea":
            assert of_instance(server, "named_0_0") == (str(LAST), 0)
            server.wait_for_line("instance_group.host_policy 'unknown' of model 'other' has no effect: define it with")


@BOTH
def test_instances_without_a_policy_have_that_of_their_kind(tmp_path, target):
    write(tmp_path, "m", group(""))
    with servers.TARGETS[target](tmp_path, f"--host-policy=cpu,{PINNED}") as server:
        assert placed(server, "m") == (([LAST], 0),) * 2


def test_a_numa_node_brings_its_cpus(tmp_path):
    """With one node these are all; that memory is bound to it the kernel says of the thread."""
    write(tmp_path, "m", group(""))
    write(tmp_path, "named", group('host_policy: "mine"'))
    flags = ["--host-policy=mine,numa-node=0", f"--host-policy=mine,{PINNED}"]
    with servers.galatea(tmp_path, "--host-policy=cpu,numa-node=0", *flags) as server:
        assert placed(server, "named") == (([LAST], 0),) * 2
        assert placed(server, "m") == ((ALLOWED, 0),) * 2
        (thread,) = (number for number, (name, *_) in threads(server).items() if name == "m_0_0")
        maps = Path(f"/proc/{server.pid}/task/{thread}/numa_maps")
        if maps.exists():
            policies = {line.split()[1] for line in maps.read_text().splitlines()}
            assert "bind:0" in policies, policies


def test_threads_of_onnx_runtime_run_where_the_instances_do(tmp_path):
    """Those of the session are started while the model is loaded, before there is an instance."""
    folder = repositories.copy_example(tmp_path, "simple")
    config = (folder / "config.pbtxt").read_text()
    helpers = 'parameters { key: "intra_op_thread_count" value: { string_value: "3" } }\n'
    (folder / "config.pbtxt").write_text(config + helpers)
    with servers.galatea(tmp_path, f"--host-policy=cpu,{PINNED}") as server:
        found = threads(server).values()
        if len(ALLOWED) > 1:
            pinned = [name for name, cpus, _ in found if cpus == str(LAST)]
            assert "simple_0_0" in pinned and len(pinned) == 3, found
        stock = clients.client(server, "http")
        ones = np.ones((1, 16), np.int32)
        assert (clients.infer(stock, "http", "simple", {"INPUT0": ones, "INPUT1": ones})["OUTPUT0"] == 2).all()


def test_a_model_of_low_priority_lets_others_go_first(tmp_path):
    write(tmp_path, "m", "optimization { priority: PRIORITY_MIN }\n")
    write(tmp_path, "other")
    with servers.galatea(tmp_path) as server:
        assert placed(server, "m") == ((ALLOWED, 19),) * 2
        assert of_instance(server, "m_0")[1] == 19
        assert placed(server, "other") == ((ALLOWED, 0),) * 2
        assert of_instance(server, "other_0")[1] == 0


def may_raise_priority():
    child = os.fork()
    if child == 0:
        try:
            os.nice(-5)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_a_model_of_high_priority_goes_first_where_that_is_allowed(tmp_path):
    for name in ("m", "n"):
        write(tmp_path, name, "optimization { priority: PRIORITY_MAX }\n")
    with servers.galatea(tmp_path) as server:
        nice = -5 if may_raise_priority() else 0
        assert placed(server, "m") == ((ALLOWED, nice),) * 2
        assert of_instance(server, "m_0")[1] == nice


def test_a_model_of_high_priority_runs_as_others_where_it_is_not(tmp_path):
    """A warning says once what to do."""
    for name in ("m", "n"):
        write(tmp_path, name, "optimization { priority: PRIORITY_MAX }\n")
    with servers.galatea(tmp_path, through=["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]) as server:
        for name in ("m", "n"):
            assert placed(server, name) == ((ALLOWED, 0),) * 2
        said = [line for line in server.log if "CAP_SYS_NICE" in line]
        assert len(said) == 1 and "PRIORITY_MIN" in said[0], said


@needs_triton
def test_the_real_one_has_no_priorities(tmp_path):
    """Which is why ours are our own: the thread of an instance has the nice value 0 there, whatever the model says."""
    write(tmp_path, "m", "optimization { priority: PRIORITY_MIN }\n")
    with servers.triton(tmp_path) as server:
        assert placed(server, "m") == ((ALLOWED, 0),) * 2


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
def test_what_this_machine_does_not_have_is_told_at_the_start(tmp_path, setting, reason):
    server = servers.galatea(tmp_path, f"--host-policy=cpu,{setting}", wait=False)
    assert server.wait_for_exit() == 1
    assert f"setting host policy: Invalid argument - {reason}" in server.text()
