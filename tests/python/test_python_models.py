"""The same model.py files under the real Triton and under ours: every play of python_cases.py on both.

What the real server answered is recorded; it is held to that, ours as well unless models/differences.yaml says why not.
"""

import json
import tempfile

import pytest

import python_cases
import scenarios
import tiers

PLAYS = python_cases.plays()
# Plays of these names are played on the model `surroundings`.
ON_SURROUNDINGS = ("metrics", "log", "surroundings")


def played(names, target):
    """Plays as parameters. Those of one model run in one process; each process has one server."""
    models = {name: name.partition("/")[0] for name in names}
    group = lambda name: "surroundings" if models[name] in ON_SURROUNDINGS else models[name]  # noqa: E731
    return [pytest.param(name, marks=pytest.mark.xdist_group(f"python_{target}_{group(name)}")) for name in models]


class Player:
    """One server for all plays; a new one only when a play has harmed it."""

    def __init__(self, target):
        self.target, self.server, self.folder = target, None, None

    def answer(self, name):
        if self.server is None or python_cases.is_harmed(self.server):
            self.close()
            self.folder = tempfile.TemporaryDirectory()
            self.server = python_cases.start(self.target, self.folder.name)
        self.server.asked.add(name)
        return python_cases.played(PLAYS[name], self.server)

    def close(self):
        if self.server is not None:
            python_cases.end(self.server)
            self.folder.cleanup()
            self.server = None


@pytest.fixture(scope="session")
def players():
    made = {target: Player(target) for target in ("galatea", "triton")}
    yield made
    for player in made.values():
        player.close()


def check(answer, name, target):
    want = python_cases.wanted(name, target)
    if target == "galatea":
        # The real server's sentences, without what ours says behind them.
        answer, want = scenarios.without_places(answer), scenarios.without_places(want)
    assert answer == want, "\n" + python_cases.compared(answer, want)


@pytest.mark.parametrize("name", played(PLAYS, "galatea"))
def test_model_answers_equal_the_record(players, name):
    check(players["galatea"].answer(name), name, "galatea")


@tiers.peers
@pytest.mark.parametrize("name", played(filter(python_cases.is_harmless, PLAYS), "triton"))
def test_tritons_answers_equal_the_record(players, name, request):
    """With --record its answer becomes the record."""
    answer = players["triton"].answer(name)
    if isinstance(answer, dict) and "closed" in answer:
        pytest.skip("the real server ended in the middle of the play, as it does at random after others")
    if request.config.getoption("--record"):
        python_cases.write_record({**json.loads(python_cases.GOLDEN.read_text(encoding="utf-8")), name: answer})
    check(answer, name, "triton")


def test_every_case_is_recorded():
    assert set(PLAYS) == set(python_cases.records())


def test_listed_differences_belong_to_existing_cases():
    for name in python_cases.differences():
        assert name in PLAYS
        assert python_cases.wanted(name, "galatea") != python_cases.records()[name], name


def test_the_models_use_every_name_of_the_interface():
    """Every name of the interface occurs in one of the models."""
    source = "".join(path.read_text(encoding="utf-8") for path in python_cases.MODELS.rglob("*.py"))
    surface = (MODELS_SURFACE + " " + HELPERS).split()
    assert not [name for name in surface if name not in source]


MODELS_SURFACE = """
    Tensor as_numpy triton_dtype shape is_cpu to_dlpack from_dlpack __dlpack_device__ InferenceRequest inputs request_id correlation_id
    flags set_flags timeout parameters trace get_context requested_output_names get_response_sender is_cancelled set_release_flags exec
    async_exec InferenceResponse output_tensors has_error error send TritonError code message TritonModelException Logger log_info
    log_warn log_error log_verbose MetricFamily Metric increment set observe value load_model unload_model is_model_ready PreferredMemory
    auto_complete_config as_dict add_input add_output set_max_batch_size set_dynamic_batching set_model_transaction_policy
    initialize execute finalize
"""
HELPERS = """
    get_input_tensor_by_name get_output_tensor_by_name get_input_config_by_name get_output_config_by_name
    using_decoupled_model_transaction_policy triton_to_numpy_type numpy_to_triton_type triton_string_to_numpy serialize_byte_tensor
    deserialize_bytes_tensor TRITONSERVER_REQUEST_FLAG_SEQUENCE_START TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
    TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
"""
