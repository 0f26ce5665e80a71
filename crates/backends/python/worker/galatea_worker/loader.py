"""Finds and imports a model's code."""

import importlib.util
import os
import sys

from .errors import WorkerError


def _insert(folders):
    """Puts folders in front of site-packages, behind the standard library: a model's own files win over packages
    of the same name, but a `queue.py` or `types.py` of a model cannot break the interpreter."""
    if "" not in sys.path:
        # The server's working directory, as in Triton, but last: no file there takes the place of an installed package.
        sys.path.append("")
    place = next((i for i, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages"))), None)
    if place is None:
        place = len(sys.path)
    for folder in reversed(folders):
        if folder not in sys.path:
            sys.path.insert(place, folder)


def load(model_py, version_dir, model_dir):
    """The class TritonPythonModel of the file `model_py`.

    A model's module is `{version}.{file}` as in Triton, importable from the model's folder: relative imports
    and pickled classes find it. Code outside of the version folder is a module of its own.
    """
    model_py = os.path.abspath(model_py)
    folder, file = os.path.split(model_py)
    stem, extension = os.path.splitext(file)
    if extension != ".py":
        raise WorkerError("Model name must end with '.py'. Model name is \"%s\"." % file)
    if not os.path.exists(model_py):
        raise WorkerError("Python model file not found in '%s'" % model_py)
    own = os.path.realpath(folder) == os.path.realpath(version_dir)
    name = "%s.%s" % (os.path.basename(folder), stem) if own else stem
    _insert([folder, os.path.dirname(folder)] if own else [folder, version_dir, model_dir])
    module = _import(name, model_py)
    try:
        return module.TritonPythonModel
    except AttributeError:
        text = "AttributeError: module '%s' has no attribute 'TritonPythonModel'%s"
        raise WorkerError(text % (name, _instead(module))) from None


def _instead(module):
    """Which class may have been meant."""
    import difflib

    own = [name for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__]
    near = difflib.get_close_matches("TritonPythonModel", own, 1, 0.7)
    if near:
        return "; should '%s' have that name?" % near[0]
    return "; '%s' must have that name" % own[0] if len(own) == 1 else "; the model's code must define a class of that name"


def _import(name, path):
    """Imports by name when that leads to the file, else from the file (a folder name such as `1.2` or one that an
    installed package shadows)."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is not None and found.origin and os.path.realpath(found.origin) == os.path.realpath(path):
        __import__(name)  # without the frames of `import_module` in the traceback of what the model raises
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
