"""NVIDIA's driver for machines without a GPU, made of the sources in `fake_driver`."""

import functools
import subprocess
from pathlib import Path

import shared_flags

SOURCES = Path(__file__).parent / "fake_driver"
LIBRARIES = {"cuda.c": "libcuda.so.1", "nvml.c": "libnvidia-ml.so.1"}


@functools.cache
def environment():
    """Environment of a server that finds this driver instead of the machine's own."""
    folder = shared_flags.folder() / "driver"
    folder.mkdir()
    for source, library in LIBRARIES.items():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / library, SOURCES / source], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
