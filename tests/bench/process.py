"""Start to ready, and memory."""

import statistics
import tempfile
import time

import clients
import servers
from repositories import EXAMPLES, add_sub_config, copy_example, write_model


def start_seconds(target, folder):
    """From starting the process to the first 200 of /v2/health/ready, asked as soon as the log reports the port."""
    begin = time.monotonic()
    with servers.TARGETS[target](folder) as server:
        status, _, _ = clients.ask(server.http, "GET", "/v2/health/ready")
        assert status == 200, server.text()
        return time.monotonic() - begin, server.rss_mb()


def start_and_memory(args):
    rows, raw = start_and_memory_of_simple(args)
    more_rows, more_raw = instances()
    return rows + more_rows, raw + more_raw


def start_and_memory_of_simple(args):
    rows, raw = [], []
    for target in args.targets:
        with tempfile.TemporaryDirectory() as folder:
            if target == "triton":
                write_model(folder, "simple", target, "add_sub", add_sub_config())
            else:
                copy_example(folder, "simple")
            runs = [start_seconds(target, folder) for _ in range(5)]
        took, memory = (statistics.median(values) for values in zip(*runs))
        label = "Triton 2.51, Python model" if target == "triton" else target
        goals = ("<= 100 ms", "<= 45 MB") if target == "galatea" else (None, None)
        rows.append({"what": "start to ready, simple", "server": label, "other": f"{took * 1000:.0f} ms", "goal": goals[0]})
        rows.append({"what": "memory, simple", "server": label, "other": f"{memory:.0f} MB", "goal": goals[1]})
        raw.append({"target": target, "start and memory": runs})
    return rows, raw


def instances():
    """Four instances of a model share its weights with one."""
    config = (EXAMPLES / "minilm_int8/config.pbtxt").read_text().split("instance_group")[0]
    sizes = {}
    for count in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            copy_example(folder, "minilm_int8", config + f"instance_group [ {{ count: {count} kind: KIND_CPU }} ]\n")
            sizes[count] = start_seconds("galatea", folder)[1]
    other = f"{sizes[4] / sizes[1]:.2f} ({sizes[1]:.0f} -> {sizes[4]:.0f} MB)"
    row = {"what": "memory, minilm_int8, 4 instances over 1", "server": "galatea", "other": other, "goal": "<= 1.1"}
    return [row], [{"instances": sizes}]
