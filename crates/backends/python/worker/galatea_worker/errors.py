"""Exceptions that models see, and how exceptions that models raise are reported."""

import os

from .advice import advice

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Frames of the event loop behind a coroutine differ between Python versions and are of no interest.
_EVENT_LOOP = os.sep + "asyncio" + os.sep
# How Python imports says nothing about the model.
_IMPORT = "<frozen importlib"
# The files from which model code is called.
_CALLERS = frozenset(
    os.path.join(_HOME, "galatea_worker", name)
    for name in ("executor.py", "main.py", "loader.py", "coroutines.py", "event_channel.py")
)

# Characters of a traceback that are sent to the server.
_MAX_TRACEBACK = 16384


class TritonModelException(Exception):
    """Raised by the functions of triton_python_backend_utils."""


TritonModelException.__module__ = "c_python_backend_utils"


def _frames(traceback):
    """(file, line, function) of the frames of model code, innermost first, up to the worker's own call.

    The walk goes from the innermost frame to its callers and not along the traceback: an exception that came
    through a future then shows where it was raised, not where it was waited for.
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
        if not file.startswith((_HOME, _IMPORT)) and _EVENT_LOOP not in file:
            yield file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back


def call(method, argument):
    """Calls a method of the model. One that takes other arguments fails outside of its code: then that is where it stands."""
    try:
        return method(argument)
    except TypeError as error:
        code = getattr(method, "__code__", None)
        if code is not None and error.__traceback__.tb_next is None:
            error.galatea_place = (code.co_filename, code.co_firstlineno, code.co_name)
        raise


def _message(error):
    try:
        return str(error) or "<EMPTY MESSAGE>"
    except Exception:  # the model's own __str__ may fail as well
        return "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"


# Folders of this machine, and what clients read in their place; the longest first.
_hidden = []


def hide(folders):
    """From now on messages for clients name these folders otherwise: {folder: name}."""
    places = {}
    for folder, name in folders.items():
        for place in (folder, os.path.abspath(folder), os.path.realpath(folder)):
            if place.count(os.sep) > 1:
                places[place.rstrip(os.sep)] = name
    _hidden[:] = sorted(places.items(), key=lambda place: -len(place[0]))


def describe(error):
    """The message of an exception for clients: type, text, and where it came from, as Triton's backend prints it, but
    without the folders of this machine.

    That of a `WorkerError` is only its text.
    """
    text = _describe(error)
    for folder, name in _hidden:
        text = text.replace(folder, name)
    return text


def _describe(error):
    if isinstance(error, WorkerError):
        return str(error)
    text = "%s: %s" % (type(error).__name__, _message(error))
    own = getattr(error, "galatea_place", None)
    frames = ["  %s(%d): %s\n" % frame for frame in [own] * (own is not None) + list(_frames(error.__traceback__))]
    if frames:
        text += "\n\nAt:\n" + "".join(frames)
    hint = advice(error)
    text += hint and (hint if frames else "\n\n" + hint) + "\n"
    return text


class WorkerError(Exception):
    """An error that the worker itself raises: what a model did is not allowed."""


class Failure:
    """An exception as the server gets it: the message for clients, and Python's traceback for the log."""

    __slots__ = ("message", "traceback")

    def __init__(self, message, traceback=""):
        self.message = message
        self.traceback = traceback


def failure_of(error):
    """The failure that an exception is; a `WorkerError` has no traceback."""
    return Failure(describe(error), "" if isinstance(error, WorkerError) else _traceback(error))


def _traceback(error):
    """What Python prints of an exception and those it came from, without this package's own frames at the start."""
    import traceback

    start = error.__traceback__
    while start is not None and start.tb_frame.f_code.co_filename.startswith((_HOME, _IMPORT)):
        start = start.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, start))
    except Exception:  # what the model raised may be an object of any kind
        return ""
    if len(text) > _MAX_TRACEBACK:
        half = _MAX_TRACEBACK // 2
        text = text[:half] + "\n  [...]\n" + text[-half:]
    return text


def _kind(value, is_name):
    """What an argument is, for somebody who may not see what is in it."""
    if value is None or isinstance(value, bool) or (is_name and isinstance(value, str)):
        return repr(value)
    kind = type(value).__name__
    if isinstance(value, (list, tuple)):
        kinds = sorted({type(element).__name__ for element in value})
        return "%s of %d (%s)" % (kind, len(value), ", ".join(kinds) or "empty")
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return "%s of %s %s" % (kind, value.dtype, list(value.shape))
    return kind


def incompatible(call, wanted, given):
    """The TypeError for arguments of wrong types, with the text that model code may match. Clients read it: of the
    arguments it says what they are, and not what is in them, but for the name of what was to be constructed.
    """
    shown = ", ".join(_kind(value, call == "__init__" and not index) for index, value in enumerate(given))
    return TypeError(
        "%s(): incompatible %s arguments. The following argument types are supported:\n    1. %s\n\nInvoked with: %s"
        % (call, "constructor" if call == "__init__" else "function", wanted, shown)
    )
