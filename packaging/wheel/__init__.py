"""Galatea, an inference server: this package holds its program, for Python programs that start it.

The commands `galatea`, `tritonserver` and `perf_analyzer` are installed with it, `python -m galatea` is the first of them.
"""

import os
import sys
import sysconfig
from pathlib import Path


def program():
    """The path of the program that was installed with this package; FileNotFoundError if it is gone."""
    schemes = {sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")}
    folders = [Path(sysconfig.get_path("scripts", scheme)) for scheme in sorted(schemes)]
    # `pip install --target` puts it beside the package.
    folders.insert(0, Path(__file__).resolve().parents[1] / "bin")
    for folder in folders:
        if os.access(folder / "galatea", os.X_OK):
            return str(folder / "galatea")
    searched = ", ".join(map(str, folders))
    raise FileNotFoundError(f"the program galatea is in none of {searched}: install the package galatea-server again")


def run(name="galatea"):
    """Goes on as the program, started under this name with the arguments of this process."""
    os.execv(program(), [name, *sys.argv[1:]])


def tritonserver():
    """The command `tritonserver`."""
    run("tritonserver")


def perf_analyzer():
    """The command `perf_analyzer`."""
    run("perf_analyzer")
