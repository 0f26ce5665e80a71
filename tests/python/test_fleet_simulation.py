"""The simulation of a fleet (tests/fleet/simulate.py) against what the theory of queues says, and against itself."""

import sys

import pytest

import servers

sys.path.append(str(servers.ROOT / "tests/fleet"))

import balancers  # noqa: E402
import simulate  # noqa: E402

# A fast replica, so that there are many requests.
RATE = 3000


@pytest.mark.parametrize("is_varied, times", [(False, 1 + simulate.LOAD / (2 * (1 - simulate.LOAD))), (True, 1 / (1 - simulate.LOAD))])
def test_one_replica_waits_as_the_theory_says(is_varied, times):
    """Queues with arrivals by chance and equal (M/D/1) or exponential (M/M/1) times."""
    found = simulate.simulate("round robin", 1, is_varied=is_varied, rates=(RATE,))
    assert found.mean == pytest.approx(1000 / RATE * times, rel=0.05)


def test_policies_give_their_shares():
    rates = (400, 200, 100)
    found = {policy: simulate.simulate(policy, 30, 0.1, rates=rates) for policy in balancers.POLICIES}
    assert found["round robin"].shares == pytest.approx([100 / 3] * 3, abs=0.1)
    assert found["by load"].shares == pytest.approx([400 / 7, 200 / 7, 100 / 7], abs=2)
    assert found["least request"].p99 < found["round robin"].p99 / 10


def test_a_report_covers_the_last_second():
    """Two requests of 0.8 seconds that come together: the first works and the second waits, then works."""
    replica = simulate.Replica(0.8)
    for _ in range(2):
        replica.take(0.5, True, 1)
    assert replica.report(1.0) == (0, pytest.approx(0.5 + 0.5))
    assert replica.report(2.0) == (1, pytest.approx(1 + 0.3))
    assert replica.report(3.0) == (1, pytest.approx(0.1))
    assert replica.report(4.0) == (0, 0)
