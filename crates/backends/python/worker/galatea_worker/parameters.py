"""Parameters of requests and responses."""

from .errors import TritonModelException


def parameters_json(parameters):
    """The parameters of a request or response as JSON, checked as Triton checks them."""
    if parameters is None:
        return "{}"
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect dict, got %s" % type(parameters))
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException("Expect parameters keys to have type str, found type %s" % type(key))
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )
    import json

    written = json.dumps(parameters)
    # Halves of surrogate pairs cannot be sent.
    json.dumps(parameters, ensure_ascii=False).encode()
    return written
