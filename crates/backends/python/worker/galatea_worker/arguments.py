"""Which values the functions of pb_utils take for their arguments: what Triton's binding library converts, and no more.

Its functions are compiled: a text may come as bytes, as the elements of a BYTES tensor do, and a number as anything that
converts itself, as numpy's scalars do.
"""


class Unfit(Exception):
    """The value has a type, or a number a size, that the argument cannot have."""


def text(value):
    """A text: `str`, or `bytes` and `bytearray` in UTF-8."""
    if value.__class__ is str and value.isascii():
        return value
    if isinstance(value, str):
        try:
            # A str of its own class, such as numpy's, becomes a plain one.
            return value.encode().decode()
        except UnicodeEncodeError:
            raise Unfit from None
    if isinstance(value, (bytes, bytearray)):
        return value.decode()
    raise Unfit


def integer(value, low, end):
    """A whole number from `low` up to but without `end`. A `float` is none, another object may convert itself to one."""
    if not isinstance(value, int):
        value = _converted(value)
    if not low <= value < end:
        raise Unfit
    return int(value)


def _converted(value):
    kind = type(value)
    if isinstance(value, float) or not (hasattr(kind, "__index__") or hasattr(kind, "__int__")):
        raise Unfit
    try:
        return int(value)
    except Exception:  # the conversion is code of the object's own
        raise Unfit from None


def number(value):
    """A number: `float`, or an object that converts itself to one."""
    if value.__class__ is float:
        return value
    kind = type(value)
    if not (hasattr(kind, "__float__") or hasattr(kind, "__index__")):
        raise Unfit
    try:
        return float(value)
    except Exception:
        raise Unfit from None


def truth(value):
    """A truth value: `bool`, or an object that converts itself to one; not what is only empty or not."""
    if value is True or value is False:
        return value
    if not hasattr(type(value), "__bool__") or value is None:
        raise Unfit
    try:
        return bool(value)
    except Exception:
        raise Unfit from None


def items(value):
    """A list of the elements of a sequence: lists, tuples, arrays; no text, set or generator."""
    if value.__class__ is list:
        return value
    if isinstance(value, (str, bytes, dict)) or not hasattr(type(value), "__getitem__"):
        raise Unfit
    try:
        return list(value)
    except TypeError:
        raise Unfit from None
