"""What to install for a module that cannot be imported."""

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


def advice(error):
    """One line that says how to have the module, or nothing where that is not known."""
    name = getattr(error, "name", None)
    if not isinstance(error, ModuleNotFoundError) or not isinstance(name, str) or not name:
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
