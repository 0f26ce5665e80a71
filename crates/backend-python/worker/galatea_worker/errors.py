"""Errors that models see, and the text of errors that models raise."""

import os

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Whether the event loop shows behind a coroutine differs between Python versions; it says nothing.
_EVENT_LOOP = os.sep + "asyncio" + os.sep
# The files from which model code is called.
_CALLERS = frozenset(
    os.path.join(_HOME, "galatea_worker", name)
    for name in ("executor.py", "life.py", "loader.py", "coroutines.py", "side.py")
)


class TritonModelException(Exception):
    """Raised by the functions of triton_python_backend_utils."""


TritonModelException.__module__ = "c_python_backend_utils"


def _frames(traceback):
    """(file, line, function) of the frames of model code, innermost first, as far out as the worker's own call.

    The walk goes from the innermost frame to its callers and not along the traceback: an exception that came
    through a future then shows where it was raised, not who waited for it.
    """
    if traceback is None:
        return
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _CALLERS:
            return
        if not file.startswith(_HOME) and _EVENT_LOOP not in file:
            yield file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back


def _message(error):
    try:
        return str(error) or "<EMPTY MESSAGE>"
    except Exception:  # the model's own __str__ may fail as well
        return "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"


def describe(error):
    """What users read of an exception: type, message, and where it came from, as Triton's backend prints it.

    Exceptions of the worker itself (`Complaint`) are only their message.
    """
    if isinstance(error, Complaint):
        return str(error)
    text = "%s: %s" % (type(error).__name__, _message(error))
    frames = ["  %s(%d): %s\n" % frame for frame in _frames(error.__traceback__)]
    if frames:
        text += "\n\nAt:\n" + "".join(frames)
    return text


class Complaint(Exception):
    """The worker's own objection to what a model did."""


def incompatible(call, wanted, given):
    """The TypeError for arguments of wrong types, in the wording model code may look for."""
    shown = ", ".join(repr(value) for value in given)
    return TypeError(
        "%s(): incompatible %s arguments. The following argument types are supported:\n    1. %s\n\nInvoked with: %s"
        % (call, "constructor" if call == "__init__" else "function", wanted, shown)
    )
