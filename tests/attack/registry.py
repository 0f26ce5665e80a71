"""The list of attacks, and what one of them says about itself."""

import dataclasses
from typing import Callable

ATTACKS = {}


class Achieved(Exception):
    """The attack got what it came for, though the server lives: something leaked, hung or stayed."""


@dataclasses.dataclass
class Attack:
    name: str
    play: Callable
    what: str
    # Whether the goals for the latency of others hold: not where the attack occupies what the other client asks for.
    goals: bool = True
    triton: bool = False
    flags: tuple = ()
    # Flags that an earlier build does not know.
    new_flags: tuple = ()
    # Writes more models into the repository; those of `loads` are loaded before anything is measured.
    models: Callable | None = None
    loads: tuple = ()
    descriptors: int | None = None
    # Whether models are loaded by request; otherwise the flags say how.
    explicit: bool = True


def attack(name, **options):
    """Puts the decorated function `play(target)` on the list. It returns a short note for the table, or raises
    `Achieved`; its first line of documentation says what is sent."""

    def put(play):
        ATTACKS[name] = Attack(name, play, play.__doc__.strip().splitlines()[0], **options)
        return play

    return put
