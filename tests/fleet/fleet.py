"""Plays of several servers behind Envoy: `cargo xtask fleet [PLAY] [--seed N] [--minutes M]`.

Each play prints its figures, and the exit status is 0 only if none of them was wrong.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "python"))

import failures  # noqa: E402
import faults  # noqa: E402
import rolling  # noqa: E402
import sequences  # noqa: E402
import shares  # noqa: E402


def both(play):
    """Returns the play over each protocol."""
    return [lambda folder, args, protocol=protocol: play(folder, protocol) for protocol in ("http", "grpc")]


def fails(folder, protocol):
    return failures.fail_and_return(folder, 50_000, protocol)


# Each play is a list of parts that get a folder and the arguments.
PLAYS = {
    "shares": [lambda folder, args: shares.by_capacity(folder)],
    "shares-stand-in": [lambda folder, args: shares.by_capacity(folder, in_groups=False)],
    "failures": [*both(fails), lambda folder, args: failures.fail_and_return(folder, 50_000, retries=False)],
    "hangs": both(failures.hangs),
    "errors": [lambda folder, args: failures.errors_and_slowness(folder)],
    "rolling": both(lambda folder, protocol: rolling.change_all(folder, protocol, rounds=5)),
    "upgrades": both(rolling.upgrade_often),
    "sequences": [lambda folder, args: sequences.a_host_dies(folder, count=300)],
    "faults": [lambda folder, args: faults.random_faults(folder, args.seed, args.minutes)],
}


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask fleet", description=__doc__)
    parser.add_argument("play", nargs="?", choices=[*PLAYS, "help"], help="all of them, if it is missing")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of the play `faults`")
    parser.add_argument("--minutes", type=float, default=30, help="of the play `faults`")
    args = parser.parse_args()
    if args.play == "help":
        parser.print_help()
        return 0
    wrong = []
    for name in [args.play] if args.play else PLAYS:
        for part in PLAYS[name]:
            with tempfile.TemporaryDirectory(prefix="fleet") as folder:
                report = part(Path(folder), args)
            print(f"\n{report.text()}", flush=True)
            wrong += report.faults
    print("\n" + ("\n".join(wrong) or "nothing was wrong"))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
