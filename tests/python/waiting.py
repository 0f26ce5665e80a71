"""The one way in which tests wait for something that happens outside their process."""

import time

# Far longer than anything takes that works, on a machine that is busy. A test that waits this long fails.
LIMIT = 60
# Between two looks. Short, because a test that waits does nothing else.
PAUSE = 0.01


def eventually(what, look, limit=LIMIT):
    """Calls `look` until it returns something true, and returns that. Fails with `what` and the last thing seen.

    `what` completes the sentence "waited in vain until ...". An AssertionError that `look` raises counts as "not yet".
    """
    deadline = time.monotonic() + limit
    while True:
        try:
            seen = look()
            if seen:
                return seen
        except AssertionError as error:
            seen = error
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit} s in vain until {what}; last seen: {seen!r}")
        time.sleep(PAUSE)
