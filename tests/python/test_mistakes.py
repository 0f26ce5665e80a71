"""The tables of mistakes (tests/mistakes): each is made, and must be told as its row says, wherever somebody looks."""

import concurrent.futures
import json
import re

import pytest

import mistakes
import processes

# Folders of a machine, as no answer may show them.
HOST_FOLDER = re.compile(r"(?<![\w.])/(tmp|work|home|root|usr|opt|var|etc)/[\w.]")
MODELS = {**mistakes.table("config"), **mistakes.table("layout")}
CODES = mistakes.table("model_py")
REQUESTS = mistakes.table("request")
COMMANDS = mistakes.table("command_line")
SECRET = "hunter2-secret"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    made = mistakes.Repository(tmp_path_factory.mktemp("mistakes"))
    with made.server:
        made.load([name for name, mistake in MODELS.items() if "told" in mistake])
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("commands")
    mistakes.write_folder_of_commands(made)
    return made


def keeps_folders_to_itself(text):
    return not HOST_FOLDER.search(text) and SECRET not in text


def test_the_tables_hold_at_least_120_mistakes():
    assert len(MODELS) + len(CODES) + len(REQUESTS) + len(COMMANDS) >= 120


def test_the_troubleshooting_page_quotes_the_tables():
    quoted, told = mistakes.quoted_on_the_page(), mistakes.told_in_the_tables()
    assert len(quoted) >= 60
    assert not [part for part in quoted if part.strip() not in told]


def test_runtime_messages_in_the_table_exist_in_the_sources():
    sources = mistakes.strings_of_the_sources()
    for name, mistake in mistakes.table("running").items():
        missing = [part for part in mistake["told"].split("...") if part.strip() and part not in sources]
        assert not missing, f"{name}: {missing}"


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_model_is_reported_by_the_server(repository, name):
    mistake = MODELS[name]
    reason, logged = repository.reasons.get(name, ""), repository.logged(name)
    if "warned" in mistake:
        # As in the real server it loads.
        assert not reason
        assert mistake["warned"] in logged and mistake.get("advised", "") in logged, logged
        return
    status, answer = repository.answers[name]
    answer = mistakes.error_of(answer)
    assert status >= 400
    for told in filter(None, [mistake["told"], mistake.get("advised")]):
        assert told in reason
        assert told in answer
        assert told in logged
    assert keeps_folders_to_itself(reason) and keeps_folders_to_itself(answer)


@pytest.fixture(scope="module")
def checked(repository):
    status, found = mistakes.check(repository.folder)
    assert status == 1
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_model_is_reported_by_check(checked, name):
    mistake, found = MODELS[name], checked.get(name, [])
    if warned := mistake.get("warned"):
        assert any(warned in text and mistake.get("advised", "") in text for text in found), found
        return
    expected = mistake.get("check") or mistake.get("advised") or mistake["told"]
    # A place stands before the text only where both are one line.
    without_place = expected.partition(": ")[2] or expected
    assert any(expected in text or without_place in text for text in found)


@pytest.mark.parametrize("name", [name for name, mistake in CODES.items() if "check" in mistake])
def test_a_wrong_model_py_is_reported_by_check(checked, name):
    assert any(CODES[name]["check"] in text for text in checked.get(name, [])), checked.get(name)


def test_working_models_are_no_mistakes(checked):
    assert not set(mistakes.SERVED) & set(checked)


@pytest.mark.parametrize("name", CODES)
def test_a_wrong_model_py_is_reported_by_the_server(repository, name):
    mistake = CODES[name]
    if "status" not in mistake:
        text = repository.reasons[name]
    else:
        status, text = repository.request({"path": f"/v2/models/{name}/infer"})
        assert status == mistake["status"]
    for told in filter(None, [mistake.get("told"), mistake.get("advised")]):
        assert told in text
    if logged := mistake.get("logged"):
        repository.server.wait(lambda: logged in repository.logged(name), f"a line of the log about {name}", 10)
        count = repository.logged(name).count(logged)
        repository.request({"path": f"/v2/models/{name}/infer"})
        if "told" not in mistake and "configuration" in logged:
            assert repository.logged(name).count(logged) == count == 1, "told once"
    elif mistake.get("status") != 501:
        told = mistake["told"]
        repository.server.wait(lambda: told in repository.logged(name), f"a line of the log about {name}", 10)
    assert keeps_folders_to_itself(text)


def test_a_mistake_of_all_workers_is_logged_once(repository):
    name = "three_workers_output_mistyped"
    wanted = {"path": f"/v2/models/{name}/infer", "json": {**mistakes.ASK, "id": "meet"}}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = [json.loads(text) for _, text in pool.map(lambda _: repository.request(wanted), range(3))]
    # Each worker waits for the others, so that each has one.
    assert len({answer["outputs"][0]["data"][0] for answer in answers}) == 3
    # Both kinds of wrong outputs: one that is not declared, and one of another shape.
    for told in ("'OUTT' that its configuration does not declare", "output 'OUT' with data type FP32 and shape [1,1]"):
        repository.server.wait(lambda: told in repository.logged(name), f"a line of the log about {name}", 10)
        assert repository.logged(name).count(told) == 1


@pytest.mark.parametrize("name", REQUESTS)
def test_a_wrong_http_request_is_refused_with_advice(repository, name):
    mistake = REQUESTS[name]
    status, text = repository.request(mistake)
    assert status == mistake["status"]
    for told in filter(None, [mistake.get("told"), mistake.get("advised")]):
        assert told in text
    assert keeps_folders_to_itself(text)


@pytest.mark.parametrize("name", [name for name, mistake in REQUESTS.items() if "grpc" in mistake])
def test_a_wrong_grpc_request_is_refused_with_advice(repository, name):
    mistake = REQUESTS[name]
    expected = mistake["grpc"]
    code, text = repository.request_over_grpc(mistake)
    assert code == expected["code"]
    for told in [expected["told"]] if "told" in expected else [mistake["told"], mistake.get("advised", "")]:
        assert told in text
    assert keeps_folders_to_itself(text)


def test_the_content_of_a_request_is_not_logged(repository):
    repository.request(REQUESTS["secret_body"])
    assert SECRET not in repository.server.text()


# Model code that fails with what it was sent in its hands; the last one says it itself.
FAILS_WITH_A_TENSOR = {
    "as_array": "pb.Tensor('OUT', given.tolist())",
    "as_scalar": "pb.Tensor('OUT', given[0])",
    "as_name": "pb.Tensor(given, given)",
    "as_outputs": "pb.InferenceResponse(given)",
    "as_error": "pb.InferenceResponse([], error=given[0])",
    "as_request": "pb.InferenceRequest(model_name='m', requested_output_names=['OUT'], inputs=given.tolist())",
    "as_log": "pb.Logger.log_info(given)",
    "as_input": "pb.get_input_tensor_by_name(given, 'IN')",
    "as_sent": "request.get_response_sender().send(given)",
}
FAILS = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            given = request.inputs()[0].as_numpy()
            %s
"""


def test_errors_do_not_reveal_tensors_or_the_environment(tmp_path_factory, serve):
    folder = tmp_path_factory.mktemp("secrets")
    strings = mistakes.SERVED["strings"]
    for name, code in FAILS_WITH_A_TENSOR.items():
        mistakes.write(folder / name, {"config.pbtxt": f'backend: "python"\n{strings}', "1/model.py": FAILS % code})
    mistakes.write(folder / "good", {"config.pbtxt": f'backend: "python"\n{strings}', "1/model.py": "ok"})
    unbuildable = {"config.pbtxt": f'backend: "python"\n{strings}', "1/model.py": "ok", "requirements.txt": "no-such-package-as-this==1\n"}
    mistakes.write(folder / "unbuildable", unbuildable)
    home = tmp_path_factory.mktemp("home")
    environment = {"GALATEA_TEST_TOKEN": "hunter2-of-the-environment", "PIP_INDEX_URL": "https://user:hunter2@127.0.0.1:9/simple"}
    # The one that cannot be built is loaded by a call: each attempt makes an environment of Python.
    loaded = [f"--load-model={name}" for name in ("good", *FAILS_WITH_A_TENSOR)]
    flags = ["--exit-on-error=false", "--model-control-mode=explicit", *loaded]
    server = serve(folder, *flags, env={**processes.offline(), "GALATEA_HOME": str(home), **environment})

    def tensor(**fields):
        return {"name": "IN", "shape": [1], "datatype": "BYTES", "data": [SECRET], **fields}

    wrong = [tensor(datatype="FP32"), tensor(shape=[2]), tensor(shape=[1, 1]), tensor(name="OUT"), tensor(data=[SECRET, SECRET])]
    asked = [("good", inputs) for inputs in wrong] + [(name, tensor()) for name in FAILS_WITH_A_TENSOR]
    for name, inputs in asked:
        status, answer = mistakes.ask(server, "POST", f"/v2/models/{name}/infer", json.dumps({"inputs": [inputs]}))
        assert status >= 400, (name, answer)
        assert SECRET not in answer and "hunter2" not in answer and str(folder) not in answer, (name, answer)
    for path in ("/v2", "/v2/logging", "/v2/models/good/config", "/v2/models/stats", "/v2/health/ready", "/v2/models/nobody"):
        answer = mistakes.ask(server, "GET", path)[1]
        assert str(folder) not in answer and "of-the-environment" not in answer, (path, answer)
    loading = mistakes.ask(server, "POST", "/v2/repository/models/unbuildable/load")[1]
    index = mistakes.ask(server, "POST", "/v2/repository/index")[1]
    assert "cannot build the Python environment from 'unbuildable/requirements.txt'" in index
    for answer in (index, loading):
        assert str(folder) not in answer and str(home) not in answer and "hunter2" not in answer, answer
    assert "hunter2" not in server.text() and str(folder) in server.text(), "the log has the folders"


@pytest.mark.parametrize("mistake", COMMANDS, ids=lambda mistake: " ".join(mistake["words"]))
def test_a_wrong_command_line_is_refused_with_advice(folder, mistake):
    status, text = mistakes.command_line(mistake["words"], folder)
    text = " ".join(line for line in text.splitlines() if line.strip()).replace(str(folder), "{folder}")
    assert status == mistake["status"]
    assert mistake["told"] in text
