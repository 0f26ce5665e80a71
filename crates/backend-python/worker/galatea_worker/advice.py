"""What to do about the exceptions that most models begin with."""

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


# Exceptions that there may be advice for.
ADVISED = (ModuleNotFoundError, FileNotFoundError, AttributeError)


def advice(error):
    """One line that says what to do about an exception of these classes, or nothing where that is not known."""
    if isinstance(error, ModuleNotFoundError):
        return _module(getattr(error, "name", None))
    if isinstance(error, FileNotFoundError):
        return _file(error.filename)
    if error.args and str(error.args[0]) == "'NoneType' object has no attribute 'as_numpy'":
        return "pb_utils.get_input_tensor_by_name gives None where the request has no input of that name."
    return ""


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
