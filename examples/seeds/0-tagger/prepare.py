"""The trained network and a repository with it; what run.py, its test and the benchmark start from.

Training takes half a minute and is done once: its files stay in target/seeds until one of its sources changes.
It needs PyTorch, which serving does not, and some text; `cargo xtask setup` installs both as Debian packages.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MODELS = HERE / "model_repository"
DEBIAN = ROOT / "target/peers/debian"
TOKENIZATION, TAGGER, VITERBI, ENSEMBLE = (
    f"flair-ner-english-fast{end}" for end in ("-tokenization", "", "-viterbi-decoder", "-ensemble")
)
ONE_MODEL = "ner-english-fast"
SOURCES = [
    HERE / "train.py", HERE / "corpus.py", HERE / "names.py",
    MODELS / TOKENIZATION / "1/embeddings.py", MODELS / VITERBI / "1/viterbi_decoder.py",
]
# What belongs in which version folder, beside what is committed there.
PLACES = {
    "model.pt": [TAGGER],
    "crf_transitions.npy": [VITERBI],
    "model.npz": [ONE_MODEL],
    MODELS / TOKENIZATION / "1/embeddings.py": [VITERBI, ONE_MODEL],
    MODELS / VITERBI / "1/viterbi_decoder.py": [ONE_MODEL],
}


class Missing(Exception):
    """Something to train with is not installed."""


def python_with_torch():
    """An interpreter that can import PyTorch: $TORCH_PYTHON, this one, Debian's."""
    candidates = [os.environ.get("TORCH_PYTHON"), sys.executable, "/usr/bin/python3"]
    for python in filter(None, candidates):
        probe = subprocess.run([python, "-c", "import numpy, torch"], capture_output=True, env=torch_env())
        if probe.returncode == 0:
            return python
    raise Missing("no Python here can import torch and numpy: on Debian `sudo apt-get install python3-torch`, "
                  "or name an interpreter that can in TORCH_PYTHON")


def text():
    """Where the package debian-history was unpacked."""
    folder = next((folder for folder in (DEBIAN, Path("/")) if (folder / "usr/share/doc/debian-history/docs").is_dir()), None)
    if folder is None:
        raise Missing("the text to train on is not here: `cargo xtask setup` unpacks the Debian package debian-history")
    return folder


def torch_env():
    """Debian's PyTorch multiplies with whatever libblas.so.3 is found: the reference one needs ten times as long."""
    fast = next(DEBIAN.glob("usr/lib/*/openblas-pthread"), None)
    path = os.environ.get("LD_LIBRARY_PATH")
    return {
        **os.environ, "OPENBLAS_NUM_THREADS": "1",
        **({"LD_LIBRARY_PATH": f"{fast}:{path}" if path else str(fast)} if fast else {}),
    }


def folder_of_trained():
    mark = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:12]
    return ROOT / "target/seeds" / f"tagger-{mark}"


def trained(say=print):
    """The folder with what train.py writes."""
    folder = folder_of_trained()
    if not folder.is_dir():
        command = [python_with_torch(), "-B", HERE / "train.py", text()]
        making = folder.with_name(f"{folder.name}.{os.getpid()}")
        done = subprocess.run([*command, making], env=torch_env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Missing(f"training failed:\n{done.stdout}")
        say(done.stdout.rstrip())
        try:
            making.rename(folder)
        except OSError:
            # Somebody else trained at the same time.
            shutil.rmtree(making)
    return folder


def assemble(repository, files):
    """Completes a copy of `model_repository` with what was trained."""
    for source, models in PLACES.items():
        for model in models:
            shutil.copy(files / source, repository / model / "1")
