"""Prepares what a test needs beside our server: `@pytest.mark.needs("engines")`, by `cargo xtask setup engines`."""

import functools
import os
import subprocess

import pytest

import servers


@functools.cache
def prepare(part):
    """Has xtask install a part of the setup; it returns at once where that was done before."""
    xtask = os.environ.get("GALATEA_XTASK", servers.ROOT / "target/debug/xtask")
    done = subprocess.run([xtask, "setup", part], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if done.returncode == 0 else done.stdout


def prepare_for(item):
    """Prepares all that the marks `needs` of a test name. A part that cannot be had fails the test."""
    for mark in item.iter_markers("needs"):
        for part in mark.args:
            trouble = prepare(part)
            if trouble:
                pytest.fail(f"cargo xtask setup {part} failed:\n{trouble}", pytrace=False)
