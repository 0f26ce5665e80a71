"""This process towards the system: signals, output, children."""

import os
import signal
import sys
import _thread

_PR_SET_PDEATHSIG = 1


def prepare_process():
    """Ignores the signals that a terminal sends to the whole group: the server handles them and ends its workers.

    Handlers, not SIG_IGN, which programs that model code starts would inherit.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignore)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True, errors="backslashreplace")


def _ignore(_number, _frame):
    pass


def hide_program():
    """Makes the interpreter look as one that no script was given to, which is what model code finds in Triton: what reads
    the command line (`argparse`, `absl`, `unittest.main`) finds no arguments, and `__main__` is nobody's file."""
    sys.argv = [""]
    if hasattr(sys, "orig_argv"):  # new in Python 3.10
        sys.orig_argv = []
    main = sys.modules["__main__"]
    for name in ("__file__", "__cached__", "_start"):
        main.__dict__.pop(name, None)
    main.__spec__ = main.__package__ = main.__doc__ = None


def guard_children(connection, detach):
    """Children made with fork never use the worker's connection but ask the worker, and end with it."""
    parent = os.getpid()
    main = _thread.get_ident()
    door = None
    # Loaded before the fork: a child of many threads should not import.
    prctl = _prctl()

    def before():
        nonlocal door
        if door is None:
            from .children import Door

            door = Door()

    def after_in_child():
        nonlocal parent, main
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        detach(door and door.leave())
        connection.closing = True
        connection.inbox.on_pending = None
        for sock in (connection.commands, connection.events):
            sock.close()
        # The kernel sends the signal when the *thread* that forked ends, so only the main thread may ask for it.
        if prctl is not None and _thread.get_ident() == main:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
        # It may have children in turn.
        parent, main = os.getpid(), _thread.get_ident()

    os.register_at_fork(before=before, after_in_child=after_in_child)


def _prctl():
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


def run_exit_handlers():
    """Runs what model code registered with atexit; the process itself ends without waiting for other threads."""
    import atexit

    try:
        atexit._run_exitfuncs()
    except BaseException:  # printed by atexit
        pass


def exit_process(code):
    """Ends the process at once, with what was printed so far."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    os._exit(code)
