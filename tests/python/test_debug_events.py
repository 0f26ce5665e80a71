"""Events for tests: a server reports what happens inside it, in the order in which it happens."""

import json
import threading
import urllib.request

import debug_events
from repositories import identity_config, write_model

# Nothing ends the wait of a batch but its second request.
PAIRS = "dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 3600000000 }\n"


def post(server, path, content):
    request = urllib.request.Request(f"http://{server.http}{path}", data=json.dumps(content).encode())
    with urllib.request.urlopen(request, timeout=debug_events.LIMIT) as response:
        return json.load(response)


def infer(server, value):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [value]}
    return post(server, "/v2/models/pairs/infer", {"inputs": [tensor]})


def test_debug_events_let_a_test_wait_for_executions_batches_and_settings(tmp_path):
    repository = tmp_path / "models"
    config = identity_config(dims="1", max_batch_size=2, more=PAIRS)
    write_model(repository, "pairs", "galatea", "identity", config)
    with debug_events.server(tmp_path, repository) as (server, events):
        assert events.wait_for("instance_idle", model="pairs")["instance"] == "pairs_0"
        answers = []
        askers = [threading.Thread(target=lambda n=n: answers.append(infer(server, n))) for n in (1, 2)]
        for asker in askers:
            asker.start()
        formed = events.wait_for("batch_formed", model="pairs")
        began = events.wait_for("execution_began", model="pairs")
        assert (formed["requests"], began["requests"], began["version"]) == (2, 2, 1)
        for asker in askers:
            asker.join()
        assert sorted(answer["outputs"][0]["data"][0] for answer in answers) == [1, 2]
        post(server, "/v2/logging", {"log_verbose_level": 1})
        events.wait_for("settings_changed", settings="log")
