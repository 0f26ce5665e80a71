"""Start of a worker process: `python worker_dir COMMANDS_FD EVENTS_FD INBOX_FD OUTBOX_FD`."""

import os
import sys

if __name__ == "__main__":
    home = os.path.dirname(os.path.abspath(__file__))
    if home not in sys.path:
        sys.path.insert(0, home)
    from galatea_worker.main import run

    run([int(number) for number in sys.argv[1:5]])
