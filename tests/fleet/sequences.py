"""A play of sequences: a host dies, its sequences are told as lost, and the others are answered as if nothing were."""

import json

import clients
from failures import envoy_before
from hosts import Fleet, wait_until_healthy
from repositories import tensor, write_model
from report import Report

FLAGS = "".join(
    f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{name} int32_false_true: [ 0, 1 ] }} }} ' for name in ("START", "READY")
)
CONFIG = (
    "max_batch_size: 64\n" + tensor("input", "INPUT", "TYPE_INT32", "1") + tensor("output", "OUTPUT", "TYPE_INT32", "1")
    + "sequence_batching { max_sequence_idle_microseconds: 600000000 direct { } " + FLAGS + "}\n"
)


def write(models, number):
    """The version of the model is the number of the host, so that an answer tells who gave it."""
    write_model(models, "sum", "galatea", "sequence", CONFIG, versions=[number])


class Sequence:
    """A sequence that sums numbers. `host` is the one that answered last, `lost` the first answer that was not a sum."""

    def __init__(self, number, address):
        self.number, self.address = number, address
        self.sum, self.host, self.lost = 0, None, None

    def step(self, value, start=False):
        body = {
            "inputs": [{"name": "INPUT", "shape": [1, 1], "datatype": "INT32", "data": [value]}],
            "parameters": {"sequence_id": self.number, "sequence_start": start, "sequence_end": False},
        }
        status, _, content = clients.ask(
            self.address, "POST", "/v2/models/sum/infer", body, {"x-sequence-id": str(self.number)}
        )
        if status != 200:
            self.lost = f"{status}: {content.decode()}"
            return
        answer = json.loads(content)
        self.sum = value if start else self.sum + value
        found = answer["outputs"][0]["data"][0]
        assert found == self.sum, f"sequence {self.number} is at {self.sum}, the answer is {found}"
        host = int(answer["model_version"])
        assert start or host == self.host, f"sequence {self.number} moved from host {self.host} to {host}"
        self.host, self.lost = host, None


def a_host_dies(folder, count=60, steps=10):
    """One of three hosts is killed in the middle of all sequences, and returns."""
    report = Report(f"{count} sequences, a host dies in the middle")
    with Fleet(folder, write=write) as fleet, envoy_before(fleet) as proxy:
        sequences = [Sequence(number, proxy.address("http")) for number in range(1, count + 1)]

        def step_all(number, some=sequences):
            for sequence in some:
                sequence.step(number * sequence.number, start=number == 1)

        for number in range(1, steps // 2):
            step_all(number)
        own = [sequence for sequence in sequences if sequence.host == 1]
        others = [sequence for sequence in sequences if sequence.host != 1]
        fleet.hosts[0].kill()
        for number in range(steps // 2, steps):
            step_all(number)
            report.faults += [f"sequence {one.number} of another host: {one.lost}" for one in others if one.lost]
            report.faults += [f"sequence {one.number} of the host that died goes on" for one in own if not one.lost]
        told = sorted({one.lost.split(":")[0] for one in own})
        report.must("sequences of the host: told as lost, with status", own and told == ["400"], f"{len(own)}, {', '.join(told)}")
        report.must("sequences of the others: each sum right", bool(others), len(others))
        step_all(1, own)
        step_all(2, own)
        report.must("begun again on another host", not any(one.lost or one.host == 1 for one in own), len(own))
        fleet.hosts[0].comes_back()
        wait_until_healthy(proxy, 3)
        # Those that the host would have got move there, and are told so.
        step_all(3)
        moved = [one for one in sequences if one.lost]
        report.row("told as lost when the host returns", len(moved))
        report.must("of the others", not set(moved) & set(others), len(set(moved) & set(others)))
    return report
