"""The differential scenarios: ours against the record of the real server, and that record against the real server."""

import pytest

import scenarios
import servers

needs_triton = pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")


@pytest.mark.parametrize("target", ["galatea", pytest.param("triton", marks=needs_triton)])
@pytest.mark.parametrize("path", scenarios.SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path, target):
    differences = scenarios.check(path, target)
    assert not differences, "\n  ".join(["", *differences])


def test_order_of_keys_counts():
    step, recorded = {"id": "x"}, {"status": 200, "text": '{"a":1,"b":2}'}
    assert not scenarios.faults(step, "galatea", recorded, recorded)
    assert scenarios.faults(step, "galatea", {"status": 200, "text": '{"b":2,"a":1}'}, recorded)


def test_a_difference_needs_its_reason():
    answer = {"status": 200}
    with pytest.raises(AssertionError, match="reason"):
        scenarios.faults({"id": "x", "galatea": {"status": 400}}, "galatea", answer, answer)
