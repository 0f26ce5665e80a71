"""What to do about the exceptions that most models begin with."""

import errno
import os
import re
import sys

from .packages import SHARED, package_of

# The level that the server isolates its models at; None: it does not.
isolation = None
# The folders of the model, in which its own modules are looked for.
folders = []
model_name = ""
_REFUSALS = (errno.EACCES, errno.EPERM)
# What libraries that were written in C make of such a refusal.
_REFUSED = tuple(os.strerror(number) for number in _REFUSALS)
# How far back in a chain of exceptions is looked.
_MOST_CAUSES = 16


def advice(error):
    """One line that says what to do about an exception, or nothing where that is not known."""
    if isolation is not None and _is_refusal(error):
        return _isolated()
    if isinstance(error, ModuleNotFoundError):
        return _module(getattr(error, "name", None), error.__traceback__)
    if isinstance(error, FileNotFoundError):
        return _file(error.filename)
    if isinstance(error, AttributeError) and error.args[:1] == ("'NoneType' object has no attribute 'as_numpy'",):
        return "pb_utils.get_input_tensor_by_name gives None where the request has no input of that name."
    return ""


def _is_refusal(error):
    """Whether this exception, or one that it came from, says that the system has refused something."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return False
        if isinstance(error, OSError) and error.errno in _REFUSALS:
            return True
        if isinstance(error, (ImportError, OSError)) and any(text in str(error) for text in _REFUSED):
            return True
        error = error.__cause__ or error.__context__
    return False


def _isolated():
    text = (
        "The server isolates Python models (--python-isolation=%s): only listed files can be read or changed. "
        "--python-readable-path and --python-writable-path add to the list; files for a while belong into tempfile.gettempdir()."
    )
    network = " Sockets cannot be connected at this level; --python-isolation=standard allows them."
    return text % isolation + (network if isolation == "strict" else "")


def _file(name):
    if not isinstance(name, str) or not name:
        return ""
    if os.path.isabs(name):
        return _absolute(name)
    return (
        "Relative paths begin in the server's working directory. For files beside the model's code use "
        "os.path.join(os.path.dirname(__file__), ...)."
    )


def _absolute(name):
    """Advises on a path of another machine or of a container, such as /models/NAME/1/weights.bin."""
    if not folders or name.startswith(folders[-1] + os.sep):
        return ""
    parts = [part for part in name.split(os.sep) if part]
    inside = parts[parts.index(model_name) + 1 :] if model_name in parts else []
    is_inside = inside and os.path.exists(os.path.join(folders[-1], *inside))
    missing = _first_missing(os.path.dirname(name))
    if not missing and not is_inside:
        return ""
    text = "There is no folder '%s' here. " % missing if missing else ""
    text += "The model's folder in the repository is '%s': begin the path with args['model_repository']" % folders[-1]
    if is_inside:
        return text + ", as in os.path.join(args['model_repository'], %s)." % ", ".join(map(repr, inside))
    return text + ", which initialize gets."


def _first_missing(folder):
    """Returns the outermost folder of a path that is not there, or nothing."""
    missing = ""
    while folder != os.path.dirname(folder) and not os.path.isdir(folder):
        missing, folder = folder, os.path.dirname(folder)
    return missing


def _module(name, traceback):
    if not isinstance(name, str) or not name:
        return ""
    top = name.partition(".")[0]
    wanted = _wanted(name, traceback) if name in SHARED else name
    package = package_of(wanted)
    if top in sys.modules and name != top and top not in SHARED and package == package_of(top):
        return "The '%s' that is installed has no '%s': require the version that has it." % (top, name)
    if top in getattr(sys, "stdlib_module_names", ()):
        return "Python %d.%d here has no '%s': choose another Python." % (*sys.version_info[:2], top)
    if package:
        return (
            "The model's Python has no '%s'. The package %s brings it: write %s into a requirements.txt in the model's folder; "
            "it is installed when the model is loaded." % (wanted, package.partition("<")[0], package)
        )
    places = "".join("'%s', " % folder for folder in folders)
    return (
        "The module '%s' is not in %sor the packages of the model's Python. If it is a file of yours, put it beside model.py. If a package brings it, write the "
        "name of that package, which may differ from the module's, into a requirements.txt in the model's folder." % (wanted, places)
    )


def _wanted(name, traceback):
    """Returns the longer name that the import statement has which failed with `name`, the part that many packages share."""
    import linecache

    line = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<"):
            line = linecache.getline(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    found = re.search(r"^\s*from\s+(%s[\w.]*)\s+import\s+\(?\s*(\w+)" % re.escape(name), line)
    if found:
        module, member = found.groups()
        return module + "." + member if module in SHARED else module
    found = re.search(r"\bimport\b.*?\b(%s(?:\.\w+)+)" % re.escape(name), line)
    return found[1] if found else name
