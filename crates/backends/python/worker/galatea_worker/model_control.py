"""Model control for model code: load, unload, readiness; and where the model lies."""

from . import server
from .arguments import Unfit, text, truth
from .errors import TritonModelException, incompatible


def load_model(model_name, config="", files=None):
    """Loads a model; `config` overrides its configuration, `files` its files (path -> bytes)."""
    try:
        name, configuration = text(model_name), text(config)
    except Unfit:
        wanted = "(model_name: str, config: str = '', files: object = None) -> None"
        raise incompatible("load_model", wanted, (model_name, config)) from None
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            "failed to load model '%s', files should be a dictionary of file paths and file contents" % name
        )
    what = "Failed to load model"
    server.call_for(what, "load_model", name=name, config=configuration, files=_encoded(files or {}))


def _encoded(files):
    import base64

    encoded = {}
    for path, content in files.items():
        if not isinstance(content, bytes):
            raise TypeError("Object of type '%s' is not an instance of 'bytes'" % type(content).__name__)
        encoded[_path(path)] = base64.b64encode(content).decode()
    return encoded


def _path(path):
    try:
        return text(path)
    except Unfit:
        raise TypeError("the path of a file must be text, found %r" % (path,)) from None


def unload_model(model_name, unload_dependents=False):
    try:
        name, dependents = text(model_name), truth(unload_dependents)
    except Unfit:
        wanted = "(model_name: str, unload_dependents: bool = False) -> None"
        raise incompatible("unload_model", wanted, (model_name, unload_dependents)) from None
    server.call_for("Failed to unload model", "unload_model", name=name, unload_dependents=dependents)


def is_model_ready(model_name, model_version=""):
    try:
        name, version = text(model_name), text(model_version)
    except Unfit:
        wanted = "(model_name: str, model_version: str = '') -> bool"
        raise incompatible("is_model_ready", wanted, (model_name, model_version)) from None
    return bool(server.call_for("Failed to check model readiness", "is_model_ready", name=name, version=version))


def get_model_dir():
    """The folder of the model's version."""
    return server.session.version_dir
