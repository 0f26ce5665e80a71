"""Model control for model code: load, unload, readiness; and where the model lies."""

from . import server
from .errors import TritonModelException


def load_model(model_name, config="", files=None):
    """Loads a model; `config` overrides its configuration, `files` its files (path -> bytes)."""
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            "failed to load model '%s', files should be a dictionary of file paths and file contents" % model_name
        )
    import base64

    encoded = {}
    for path, content in (files or {}).items():
        raw = content.encode() if isinstance(content, str) else bytes(content)
        encoded[path] = base64.b64encode(raw).decode()
    server.call_for("Failed to load model", "load_model", name=model_name, config=config, files=encoded)


def unload_model(model_name, unload_dependents=False):
    what = "Failed to unload model"
    server.call_for(what, "unload_model", name=model_name, unload_dependents=bool(unload_dependents))


def is_model_ready(model_name, model_version=""):
    what = "Failed to check model readiness"
    return bool(server.call_for(what, "is_model_ready", name=model_name, version=str(model_version)))


def get_model_dir():
    """The folder of the model's version."""
    return server.session.version_dir
