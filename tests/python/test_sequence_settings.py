"""Every setting of the sequence batcher that is no control: the same requests to our server and to the real Triton."""

import pytest

import tiers
from sequence_plays import step
from test_sequences import run

FOUR = [step(number, number, "se") for number in (1, 2, 3, 4)]

RUNS = {
    # One sequence goes on, as in the case of test_sequences.py without an order.
    "oldest_in_order": {
        "held": 4, "settings": {"strategy": "oldest { max_candidate_sequences: 4 preserve_ordering: true }"},
        "requests": [step(1, 1, "s"), step(1, 4, "e"), step(2, 2, "s"), step(4, 5, "s"), step(3, 3, "se")],
    },
    "oldest_has_few_candidates": {
        "settings": {"strategy": "oldest { max_candidate_sequences: 1 }"},
        "requests": [step(1, 1, "s"), step(2, 2, "se"), step(1, 3), step(1, 4, "e")],
    },
    "oldest_without_a_number": {"settings": {"strategy": "oldest { }"}, "requests": [step(1, 1, "s"), step(1, 2, "e")]},
    "direct_waits_for_half_of_the_places": {
        "settings": {"strategy": "direct { max_queue_delay_microseconds: 30000000 minimum_slot_utilization: 0.5 }"}, "requests": FOUR[:2],
    },
    "direct_waits_for_all_places": {
        "settings": {"strategy": "direct { max_queue_delay_microseconds: 30000000 minimum_slot_utilization: 1 }"}, "requests": FOUR,
    },
    "direct_without_a_share": {"settings": {"strategy": "direct { max_queue_delay_microseconds: 30000000 }"}, "requests": FOUR[:1]},
    "an_idle_sequence_leaves_its_place": {
        "settings": {"max_batch_size": 1, "idle": 150_000}, "requests": [step(1, 1, "s"), step(2, 2, "se")],
    },
    "an_idle_candidate_leaves_its_place": {
        "settings": {"strategy": "oldest { max_candidate_sequences: 1 }", "idle": 150_000}, "requests": [step(1, 1, "s"), step(2, 2, "se")],
    },
    **{f"ids_as_{kind.lower()}": {"settings": {"corrid": f"TYPE_{kind}"}, "requests": [step(70_000, 1, "s"), step(70_000, 2, "e")]}
       for kind in ("UINT64", "INT64", "UINT32", "INT32")},
}


@tiers.both
@pytest.mark.parametrize("case", RUNS)
def test_sequence_settings_equal_tritons(case, target, stage, recorded):
    recorded.holds(target, run(target, stage, RUNS[case]))
