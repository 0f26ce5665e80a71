"""Compiles the libraries in `libraries`, which are made for Triton's C interfaces, into the folders where servers look for them."""

import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "libraries"
# The begin of the file's name by the kind of library, which is the name of its source too.
KINDS = {"cache": "libtritoncache", "agent": "libtritonrepoagent"}


def compile_library(folder, kind, name):
    """The library of that name in a folder that has a folder for each."""
    library = library_file(folder, kind, name)
    command = ["cc", "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o", library, SOURCES / f"{kind}.c"]
    made = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert made.returncode == 0, made.stderr
    return library


def library_file(folder, kind, name):
    """The place of a library, in a folder of its own that exists."""
    (Path(folder) / name).mkdir(parents=True, exist_ok=True)
    return Path(folder) / name / f"{KINDS[kind]}_{name}.so"
