"""The differential scenarios: ours against the record of the real server, and that record against the real server."""

import pytest

import scenarios
import server_pool
import tiers


@pytest.fixture
def lend(pool):
    """A server of ours by its flags, whose models have the names that the scenario gives them."""
    lent = []

    def get(*flags):
        lent.append(server_pool.SharedServer(pool, pool.get(flags), None))
        return lent[-1]

    yield get
    for server in lent:
        server.leave()


@tiers.both
@pytest.mark.parametrize("path", scenarios.SCENARIOS, ids=lambda path: path.stem)
def test_the_scenario_equals_its_record(path, target, lend, request):
    if target == "triton" and request.config.getoption("--record"):
        scenarios.record(path)
    differences = scenarios.check(path, target, lend)
    assert not differences, "\n  ".join(["", *differences])


def test_the_order_of_json_keys_counts():
    step, recorded = {"id": "x"}, {"status": 200, "text": '{"a":1,"b":2}'}
    assert not scenarios.faults(step, "galatea", recorded, recorded)
    assert scenarios.faults(step, "galatea", {"status": 200, "text": '{"b":2,"a":1}'}, recorded)


def test_a_difference_needs_its_reason():
    answer = {"status": 200}
    with pytest.raises(AssertionError, match="reason"):
        scenarios.faults({"id": "x", "galatea": {"status": 400}}, "galatea", answer, answer)
