"""What to do about the exceptions that most models begin with."""

import errno
import os
import sys

# Packages that are not called as their modules are.
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "Bio": "biopython",
    "cairosvg": "CairoSVG",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "magic": "python-magic",
    "MeCab": "mecab-python3",
    "mpl_toolkits": "matplotlib",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "pkg_resources": "setuptools<81",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "snappy": "python-snappy",
    "umap": "umap-learn",
    "usb": "pyusb",
    "wx": "wxPython",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}


# The level that the server isolates its models at; None: it does not.
isolation = None
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
        return _module(getattr(error, "name", None))
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
    if not isinstance(name, str) or not name or os.path.isabs(name):
        return ""
    return (
        "Relative paths begin in the server's working directory. For files beside the model's code use "
        "os.path.join(os.path.dirname(__file__), ...)."
    )


def _module(name):
    if not isinstance(name, str) or not name:
        return ""
    top = name.partition(".")[0]
    if top in sys.modules and name != top:
        return "The '%s' that is installed has no '%s': require the version that has it." % (top, name)
    if top in getattr(sys, "stdlib_module_names", ()):
        return "Python %d.%d here has no '%s': choose another Python." % (*sys.version_info[:2], top)
    package = _PACKAGES.get(top, top.replace("_", "-"))
    return (
        "The model's Python has no '%s'. Write %s into a requirements.txt beside the model: it is installed when the "
        "model is loaded. If '%s' is a file of yours, put it beside the model's code." % (top, package, top)
    )
