"""Errors that models see, and the text of errors that models raise."""

import os

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class TritonModelException(Exception):
    """Raised by the functions of triton_python_backend_utils."""


TritonModelException.__module__ = "c_python_backend_utils"


def _frames(traceback):
    """(file, line, function) of the frames of model code, innermost first; this package's own are left out."""
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_HOME):
            frames.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return reversed(frames)


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
