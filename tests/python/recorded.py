"""Answers of the real server that are kept in tests/golden/recorded, one file for each file of tests.

A test that runs on both servers (`tiers.both`) gives its answer to the fixture `recorded`. Our answer is held against the
record in the tier commit. The real server's answer is held against it in the tier peers, which writes an answer that differs
to target/golden and fails. With `--record` that tier writes the answer to tests/golden instead.
"""

import json

import servers

GOLDEN = servers.ROOT / "tests/golden/recorded"
ANEW = servers.ROOT / "target/golden/recorded"


class Record:
    """The recorded answers of one file of tests, by the name of the test and a key."""

    def __init__(self, file, test, anew):
        self.path, self.test, self.anew = GOLDEN / f"{file}.json", test, anew

    def holds(self, target, answer, key=""):
        """Asserts that `answer`, which JSON can hold, is what the real server answered. `target` says whose it is."""
        name = f"{self.test}/{key}" if key else self.test
        answer = json.loads(json.dumps(answer))
        if target == "triton" and self.anew:
            write(self.path, name, answer)
        if target == "triton" and read(self.path).get(name) != answer:
            write(ANEW / self.path.name, name, answer)
        assert answer == self.answer(key), f"{target} differs from the record {name} in {self.path.name}"

    def answer(self, key=""):
        """Returns what is recorded, for tests that allow ours to differ in a way that they describe."""
        name = f"{self.test}/{key}" if key else self.test
        answers = read(self.path)
        assert name in answers, f"{name} is not recorded: cargo xtask test --peers --record -k {self.test}"
        return answers[name]


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path, name, answer):
    path.parent.mkdir(parents=True, exist_ok=True)
    answers = {**read(path), name: answer}
    lines = [f"{json.dumps(key)}: {json.dumps(answers[key], ensure_ascii=False)}" for key in sorted(answers)]
    written = path.with_suffix(".new")
    written.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    written.replace(path)
