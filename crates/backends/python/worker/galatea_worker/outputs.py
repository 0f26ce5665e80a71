"""What a model returns, beside the outputs that its configuration declares."""

import json

from . import log

# Names that are told of; a model that makes up names gets no line for each.
_MOST = 16


class DeclaredOutputs:
    """The outputs of the configuration; tells once of each other name that a model returns.

    The server passes on what no other worker of the model has told it."""

    def __init__(self, settings):
        self._file = settings["model_py"]
        self._model = settings.get("args", {}).get("model_name", "")
        self._config = settings.get("args", {}).get("model_config", "")
        self._names = None
        self._told = set()

    def note(self, response):
        """Tells of the outputs of a response that no client can get. As in Triton they are left out without an error."""
        if self._names is None:
            self._names = [output["name"] for output in json.loads(self._config or "{}").get("output", ())]
        for tensor in response._outputs:
            name = tensor._name
            if name not in self._names and name not in self._told and len(self._told) < _MOST:
                self._told.add(name)
                log.emit(log.LogLevel.WARNING, self._text(name), self._file, 0, {"once_of_output": name})

    def _text(self, name):
        import difflib

        near = difflib.get_close_matches(name, self._names, 1, 0.5)
        if not near:
            declared = ", ".join("'%s'" % output for output in self._names)
            hint = "declared are %s" % declared if declared else "none is declared"
        else:
            hint = "did you mean '%s'?" % near[0]
        return "model '%s' returns an output '%s' that its configuration does not declare: clients do not get it; %s" % (
            self._model, name, hint,
        )
