"""docs/from-your-framework.md: each part runs as it stands there, by a Python that has the framework of the part."""

import re
from pathlib import Path

import pytest

import doc_pages
import servers

PAGE = "docs/from-your-framework.md"
MODELS = servers.PEERS / "models-venv"
KERAS = servers.PEERS / "engines"
# Debian's PyTorch is that of the system's Python.
SYSTEM = Path("/usr")
DEBIAN_TORCH = SYSTEM / "lib/python3/dist-packages/torch"
# A part, and where its Python is.
PARTS = {
    "scikit-learn": MODELS,
    "XGBoost and LightGBM": MODELS,
    "PyTorch": SYSTEM,
    "Keras": KERAS,
}
needs = {
    "PyTorch": pytest.mark.skipif(not DEBIAN_TORCH.exists() or not servers.has_libtorch(), reason="the system's Python has no PyTorch"),
    "Keras": pytest.mark.skipif(not (KERAS / "bin/python").exists(), reason="TensorFlow is offered for x86_64 alone"),
}


def part_of(block):
    """The heading that the block stands under."""
    before = (doc_pages.ROOT / PAGE).read_text().split(block.text, 1)[0]
    return re.findall(r"^## (.+)$", before, re.M)[-1]


@pytest.mark.parametrize("part", [pytest.param(part, marks=needs.get(part, ())) for part in PARTS])
def test_the_commands_of_a_part_run(part, tmp_path):
    blocks = [block for block in doc_pages.blocks(PAGE) if part_of(block) == part]
    assert {"sh", "console"} <= {block.kind for block in blocks}
    (tmp_path / "place").mkdir()
    place = doc_pages.Place(tmp_path / "place", tmp_path / "tools")
    (tmp_path / "tools/python").write_text(f'#!/bin/sh\nexec "{PARTS[part]}/bin/python3" "$@"\n')
    (tmp_path / "tools/python").chmod(0o755)
    place.environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
    try:
        for block in blocks:
            place.run(block)
    finally:
        place.stop()


def test_every_block_belongs_to_a_tested_part():
    assert {part_of(block) for block in doc_pages.blocks(PAGE)} == set(PARTS)
