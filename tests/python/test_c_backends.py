"""Backends in C: libraries that were compiled against Triton's interface, in our server and in the real one."""

import json
import subprocess
from pathlib import Path

import pytest

import c_libraries
import clients
import python_cases
import scenarios
import servers
import tiers
from console_events import Events
from repositories import identity_config, tensor, write_model

EXAMPLE = servers.ROOT / "examples/c-backend"

# Ends its process at the input 0, and otherwise answers nothing.
ABORTS = """
#include "triton_backend.h"
#include <stdlib.h>

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count) {
  (void)instance, (void)count;
  TRITONBACKEND_Input *input;
  const void *data;
  uint64_t size;
  uint32_t memory;
  int64_t id;
  if (TRITONBACKEND_RequestInput(requests[0], "INPUT0", &input) == NULL &&
      TRITONBACKEND_InputBuffer(input, 0, &data, &size, &memory, &id) == NULL && *(const float *)data == 0)
    abort();
  return TRITONSERVER_ErrorNew(TRITON_INVALID_ARG, "not zero");
}
"""
# Calls a function that no server has.
TOMORROW = ABORTS.replace("abort();", "TRITONBACKEND_OfTomorrow();").replace("<stdlib.h>", "<stdlib.h>\nvoid TRITONBACKEND_OfTomorrow(void);")

# Throws at the input 0, and otherwise answers nothing.
THROWS = ABORTS.replace("abort();", 'throw std::runtime_error("zero");').replace("<stdlib.h>", "<stdexcept>")
THROWS = THROWS.replace('#include "triton_backend.h"', '').replace("#include <stdexcept>", '#include <stdexcept>\nextern "C" {\n#include "triton_backend.h"') + "}\n"

# Adds what it gets to the state of its sequence, counts requests in a metric, and says the request's parameter in its response.
SUMS = """
#include "triton_backend.h"
#include <string.h>

typedef struct Opaque Opaque;
TRITONSERVER_Error *TRITONBACKEND_StateNew(Opaque **, TRITONBACKEND_Request *, const char *, uint32_t, const int64_t *, uint32_t);
TRITONSERVER_Error *TRITONBACKEND_StateBuffer(Opaque *, void **, uint64_t, uint32_t *, int64_t *);
TRITONSERVER_Error *TRITONBACKEND_StateUpdate(Opaque *);
TRITONSERVER_Error *TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *, uint32_t, const char **, uint32_t *, const void **);
TRITONSERVER_Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *, const char *, const char *);
TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(Opaque **, uint32_t, const char *, const char *);
TRITONSERVER_Error *TRITONSERVER_MetricNew(Opaque **, Opaque *, const Opaque **, uint64_t);
TRITONSERVER_Error *TRITONSERVER_MetricIncrement(Opaque *, double);
static Opaque *requests_seen;

#define TRY(call) do { TRITONSERVER_Error *error_of = (call); if (error_of) return error_of; } while (0)
enum { INT32 = 8 };

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
  (void)backend;
  Opaque *family;
  TRY(TRITONSERVER_MetricFamilyNew(&family, 0, "sums_requests", "Requests of the backend"));
  return TRITONSERVER_MetricNew(&requests_seen, family, 0, 0);
}

static TRITONSERVER_Error *read(TRITONBACKEND_Request *request, const char *name, int32_t *value) {
  TRITONBACKEND_Input *input;
  const void *data;
  uint64_t size;
  uint32_t memory;
  int64_t id;
  TRY(TRITONBACKEND_RequestInput(request, name, &input));
  TRY(TRITONBACKEND_InputBuffer(input, 0, &data, &size, &memory, &id));
  memcpy(value, data, 4);
  return 0;
}

static TRITONSERVER_Error *sum(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response) {
  int32_t value, total;
  TRY(read(request, "INPUT0", &value));
  TRY(read(request, "STATE", &total));
  total += value;
  int64_t shape = 1, id;
  uint32_t memory, kind;
  void *buffer;
  Opaque *state;
  TRY(TRITONBACKEND_StateNew(&state, request, "NEW_STATE", INT32, &shape, 1));
  TRY(TRITONBACKEND_StateBuffer(state, &buffer, 4, &memory, &id));
  memcpy(buffer, &total, 4);
  TRY(TRITONBACKEND_StateUpdate(state));
  TRITONBACKEND_Output *output;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", INT32, &shape, 1));
  TRY(TRITONBACKEND_OutputBuffer(output, &buffer, 4, &memory, &id));
  memcpy(buffer, &total, 4);
  const char *name;
  const void *word;
  TRY(TRITONBACKEND_RequestParameter(request, 0, &name, &kind, &word));
  return TRITONBACKEND_ResponseSetStringParameter(response, name, word);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count) {
  (void)instance;
  for (uint32_t index = 0; index < count; ++index) {
    TRITONBACKEND_Response *response;
    TRY(TRITONBACKEND_ResponseNew(&response, requests[index]));
    TRITONSERVER_Error *error = sum(requests[index], response);
    TRY(TRITONBACKEND_ResponseSend(response, TRITON_RESPONSE_FINAL, error));
    TRY(TRITONSERVER_MetricIncrement(requests_seen, 1));
    TRY(TRITONBACKEND_RequestRelease(requests[index], TRITON_RELEASE_ALL));
  }
  return 0;
}
"""
SUMS_CONFIG = (
    tensor("input", "INPUT0", "TYPE_INT32", "1") + tensor("output", "OUTPUT0", "TYPE_INT32", "1") + """
sequence_batching {
  max_sequence_idle_microseconds: 600000000
  state { input_name: "STATE" output_name: "NEW_STATE" data_type: TYPE_INT32 dims: 1
          initial_state { name: "zero" data_type: TYPE_INT32 dims: 1 zero_data: true } }
}
"""
)


def compile_backend(folder, name, source, compiler="cc"):
    """`folder/libtriton_NAME.so`, from a file or a text."""
    folder.mkdir(parents=True, exist_ok=True)
    if not isinstance(source, Path):
        text, source = source, folder / f"{name}.{'c' if compiler == 'cc' else 'cpp'}"
        source.write_text(text)
    library = folder / f"libtriton_{name}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{EXAMPLE}", "-o", library, source], check=True)
    return library


def isolated():
    return identity_config() + 'parameters { key: "isolation" value: { string_value: "process" } }\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models, backends = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("backends")
    compile_backend(backends / "mirror", "mirror", EXAMPLE / "mirror.c")
    compile_backend(backends / "aborts", "aborts", ABORTS)
    compile_backend(backends / "throws", "throws", THROWS, "c++")
    compile_backend(backends / "tomorrow", "tomorrow", TOMORROW)
    write_model(models, "plain", "galatea", "mirror", identity_config())
    write_model(models, "own", "galatea", "identity", identity_config())
    write_model(models, "apart", "galatea", "mirror", isolated())
    write_model(models, "crashes", "galatea", "aborts", isolated())
    write_model(models, "throws", "galatea", "throws", identity_config())
    write_model(models, "throws_apart", "galatea", "throws", isolated())
    compile_backend(backends / "sums", "sums", SUMS)
    write_model(models, "sums", "galatea", "sums", SUMS_CONFIG)
    compile_backend(backends / "reads", "reads", c_libraries.SOURCES / "reads.c")
    write_model(models, "prefers_apart", "galatea", "reads", isolated())
    write_model(models, "newer", "galatea", "tomorrow", identity_config())
    # Backends that nobody else has: one lies in the model's folder, one in the version's.
    for name, place in (("of_model", "brings"), ("of_version", "brings_too/1")):
        write_model(models, place.partition("/")[0], "galatea", name, identity_config())
        compile_backend(models / place, name, EXAMPLE / "mirror.c")
    with servers.galatea(models, f"--backend-directory={backends}", "--exit-on-error=false") as running:
        running.repository, running.backends = models, backends
        yield running


def infer(server, model, values):
    body = {"inputs": [{"name": "INPUT0", "shape": [len(values)], "datatype": "FP32", "data": values}]}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, json.loads(text)


@pytest.mark.parametrize("model", ["plain", "apart", "brings", "brings_too"])
def test_a_backend_in_c_answers(server, model):
    for values in ([1.0], [2.0, 3.0, 4.0]):
        status, answer = infer(server, model, values)
        assert status == 200, answer
        assert answer["outputs"][0]["data"] == values
    statistics = clients.statistics(server, model)
    assert (statistics["inference_count"], statistics["execution_count"]) == (2, 2)


def test_a_crash_costs_only_the_requests_of_its_process(server):
    status, answer = infer(server, "crashes", [0.0])
    assert status == 503 and "SIGABRT" in answer["error"], answer
    assert infer(server, "crashes", [1.0]) == (400, {"error": "not zero"})
    assert infer(server, "plain", [1.0])[0] == 200


@pytest.mark.parametrize("model", ["throws", "throws_apart"])
def test_an_exception_costs_only_its_request(server, model):
    text = "'libtriton_throws.so' has thrown std::runtime_error out of TRITONBACKEND_ModelInstanceExecute: zero"
    for _ in range(3):
        assert infer(server, model, [0.0]) == (500, {"error": text})
        assert infer(server, model, [1.0]) == (400, {"error": "not zero"})
    assert text in server.text() or model == "throws_apart"


def test_a_library_in_a_process_of_its_own_tells_the_groups_that_it_prefers(server):
    config = json.loads(clients.ask(server.http, "GET", "/v2/models/prefers_apart/config")[2])
    assert [(group["kind"], group["count"]) for group in config["instance_group"]] == [("KIND_CPU", 3)]


def test_states_parameters_and_metrics_of_a_library(server):
    def step(value, **parameters):
        body = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "INT32", "data": [value]}], "parameters": parameters}
        status, _, text = clients.ask(server.http, "POST", "/v2/models/sums/infer", body)
        assert status == 200, text
        return json.loads(text)

    first = step(1, sequence_id=5, sequence_start=True, word="one")
    assert (first["outputs"][0]["data"], first["parameters"]["word"]) == ([1], "one")
    last = step(2, sequence_id=5, sequence_end=True, word="two")
    assert (last["outputs"][0]["data"], last["parameters"]["word"]) == ([3], "two")
    assert step(10, sequence_id=6, sequence_start=True, sequence_end=True, word="ten")["outputs"][0]["data"] == [10]
    assert clients.metrics(server)["sums_requests", ""] == 3


def test_the_log_and_the_console_name_the_library_of_each_model(server):
    libraries = {
        "plain": ("mirror", server.backends / "mirror/libtriton_mirror.so"),
        "brings": ("of_model", server.repository / "brings/libtriton_of_model.so"),
        "brings_too": ("of_version", server.repository / "brings_too/1/libtriton_of_version.so"),
    }
    with Events(server) as events:
        assert events.next()[0] == "state"
        assert {model: events.models[f"{model}/1"]["library"] for model in libraries} == {m: str(path) for m, (_, path) in libraries.items()}
        assert events.models["own/1"]["library"] is None
    for model, (backend, path) in libraries.items():
        server.wait_for_line(f"backend '{backend}' of '{model}' version 1 is '{path}'")
    assert "backend 'identity' of 'own'" not in server.text()


def reasons(server):
    rows = json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])
    return {row["name"]: row.get("reason", "") for row in rows}


def test_a_library_that_calls_what_is_not_offered_is_named(server):
    assert "libtriton_tomorrow.so' cannot be opened: it calls TRITONBACKEND_OfTomorrow" in reasons(server)["newer"]


def test_a_check_reads_libraries_and_opens_none(server):
    command = [servers.galatea_binary(), "check", server.repository, f"--backend-directory={server.backends}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    findings = json.loads(done.stdout)["findings"]
    mistakes = [finding for finding in findings if finding["severity"] == "error"]
    assert [finding["model"] for finding in mistakes] == ["newer"], findings
    assert "TRITONBACKEND_OfTomorrow" in mistakes[0]["text"]
    notes = {finding["model"]: (finding["field"], finding["text"]) for finding in findings if finding["severity"] == "note"}
    facts = "it calls functions up to TRITONBACKEND {}, 1.19 is offered"
    library = server.backends / "sums/libtriton_sums.so"
    assert notes["sums"] == ("backend", f"backend 'sums' of this model is '{library}': {facts.format('1.12')}")
    library = server.repository / "brings_too/1/libtriton_of_version.so"
    assert notes["brings_too"] == ("backend", f"backend 'of_version' of this model is '{library}': {facts.format('1.10')}")


def test_runtimes_are_listed_with_the_libraries_for_triton(server, tmp_path):
    cache = c_libraries.compile_library(tmp_path / "caches", "cache", "local")
    agent = c_libraries.compile_library(tmp_path / "agents", "agent", "first")
    folders = [f"--backend-directory={server.backends}", f"--cache-directory={tmp_path}/caches", f"--repoagent-directory={tmp_path}/agents"]
    listed = subprocess.run([servers.galatea_binary(), "runtime", "list", *folders], capture_output=True, text=True, timeout=60).stdout
    lines = [line for line in listed.splitlines() if ", for " in line]
    library = server.backends / "sums/libtriton_sums.so"
    assert f'backend sums, for models with backend: "sums": {library} (it calls functions up to TRITONBACKEND 1.12, 1.19 is offered)' in lines
    assert any(line.startswith('backend tomorrow, for models with backend: "tomorrow": ') and "TRITONBACKEND_OfTomorrow" in line for line in lines)
    assert lines[-2:] == [
        f"cache local, for --cache-config=local,library=triton: {cache} (it calls functions up to TRITONCACHE 0.1, 0.1 is offered)",
        "repository agent first, for models that name it in model_repository_agents: "
        f"{agent} (it calls functions up to TRITONREPOAGENT 0.1, 0.1 is offered)",
    ]


# ---- with the real server


@tiers.both
def test_the_example_answers_alike_in_both_servers(tmp_path, target, recorded):
    backends = tmp_path / "backends"
    compile_backend(backends / "mirror", "mirror", EXAMPLE / "mirror.c")
    config = tensor("input", "INPUT0", "TYPE_STRING", "-1") + tensor("output", "OUTPUT0", "TYPE_STRING", "-1")
    (tmp_path / "models/m/1").mkdir(parents=True)
    (tmp_path / "models/m/config.pbtxt").write_text(f'backend: "mirror"\nmax_batch_size: 4\n{config}')
    bodies = [
        {"inputs": [{"name": "INPUT0", "shape": [2, 1], "datatype": "BYTES", "data": ["a", "bc"]}], "id": "7"},
        {"inputs": [{"name": "INPUT0", "shape": [1, 0], "datatype": "BYTES", "data": []}]},
        {"inputs": [{"name": "INPUT0", "shape": [1, 1], "datatype": "BYTES", "data": ["é"]}], "outputs": [{"name": "OUTPUT0"}]},
    ]
    with servers.TARGETS[target](tmp_path / "models", f"--backend-directory={backends}") as running:
        answers = [clients.ask(running.http, "POST", "/v2/models/m/infer", body) for body in bodies]
    recorded.holds(target, [[status, json.loads(text)] for status, _, text in answers])


@tiers.both
def test_values_of_a_librarys_own_request_are_those_of_triton(tmp_path, target, recorded):
    backends = tmp_path / "backends"
    compile_backend(backends / "reads", "reads", c_libraries.SOURCES / "reads.c")
    config = tensor("input", "INPUT0", "TYPE_STRING", "1") + tensor("output", "OUTPUT0", "TYPE_STRING", "1")
    (tmp_path / "models/m/1").mkdir(parents=True)
    (tmp_path / "models/m/config.pbtxt").write_text(f'backend: "reads"\n{config}')
    body = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "BYTES", "data": ["a"]}]}
    with servers.TARGETS[target](tmp_path / "models", f"--backend-directory={backends}") as running:
        bodies = [body, {**body, "id": "7", "parameters": {"sequence_id": "word"}}]
        answers = [clients.ask(running.http, "POST", "/v2/models/m/infer", body) for body in bodies]
    recorded.holds(target, [[status, json.loads(text)["error"].split("; ")] for status, _, text in answers])


@tiers.both
def test_a_model_without_instance_groups_gets_those_that_its_library_prefers(tmp_path, target, recorded):
    backends = tmp_path / "backends"
    compile_backend(backends / "reads", "reads", c_libraries.SOURCES / "reads.c")
    config = tensor("input", "INPUT0", "TYPE_STRING", "1") + tensor("output", "OUTPUT0", "TYPE_STRING", "1")
    for name, groups in (("none", ""), ("own", "instance_group { count: 2 }\n")):
        (tmp_path / f"models/{name}/1").mkdir(parents=True)
        (tmp_path / f"models/{name}/config.pbtxt").write_text(f'backend: "reads"\n{config}{groups}')
    for more in ([], ["--disable-auto-complete-config"]):
        with servers.TARGETS[target](tmp_path / "models", f"--backend-directory={backends}", *more) as running:
            configs = [clients.ask(running.http, "GET", f"/v2/models/{name}/config")[2] for name in ("none", "own")]
        recorded.holds(target, [json.loads(config)["instance_group"] for config in configs])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Triton's own Python backend in our server, over the models of the suite."""
    running = python_cases.start("library", tmp_path_factory.mktemp("repository"))
    yield running
    python_cases.end(running)


# Plays on the models of the suite. What hangs the library in the real server harms it here too.
PLAYS = [name for name in python_cases.plays() if python_cases.is_harmless(name)]


@tiers.peers
@pytest.mark.parametrize("name", PLAYS)
def test_the_python_library_answers_as_in_triton(library, name):
    library.asked.add(name)
    answer = scenarios.without_places(python_cases.played(python_cases.plays()[name], library))
    # Some sentences are those of the server around it.
    wanted = [scenarios.without_places(python_cases.wanted(name, target)) for target in ("library", "galatea")]
    assert answer in wanted, "\n" + python_cases.compared(answer, wanted[0])
