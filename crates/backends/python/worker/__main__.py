"""Start of a worker process: `python worker_dir COMMANDS_FD EVENTS_FD INBOX_FD OUTBOX_FD`."""

import os
import sys


def _start():
    home = os.path.dirname(os.path.abspath(__file__))
    if home not in sys.path:
        sys.path.insert(0, home)
    from galatea_worker.main import run
    from galatea_worker.process import hide_program

    fds = [int(number) for number in sys.argv[1:5]]
    hide_program()
    run(fds)


if __name__ == "__main__":
    _start()
