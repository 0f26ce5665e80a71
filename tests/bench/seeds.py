"""The first seed document's pipeline (examples/seeds/0-tagger) as it is served there; ours alone.

The document's own figure, 93 infer/s at concurrency 4 on a GPU, is another network on another machine: no goal.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import measure
import servers

EXAMPLE = servers.ROOT / "examples/seeds/0-tagger"
sys.path.insert(0, str(EXAMPLE))

import prepare  # noqa: E402


def fast_matrices():
    """Debian's libtorch multiplies with the libblas.so.3 that is found first."""
    return {name: value for name, value in prepare.torch_env().items() if name == "LD_LIBRARY_PATH"}


def tagger(args):
    """The three steps at concurrency 4 and 16, and the form with one model and 32 sentences a request."""
    rows, raw = [], []
    try:
        files = prepare.trained()
    except prepare.Missing as missing:
        print(f"left out: {missing}", file=sys.stderr)
        return rows, raw
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "model_repository"
        shutil.copytree(EXAMPLE / "model_repository", repository)
        prepare.assemble(repository, files)
        with servers.galatea(repository, env=fast_matrices()) as server:
            for what, case in cases(server, repository, args.seconds).items():
                medians, runs = measure.interleaved(args.rounds, {"galatea": case})
                rows.append({"what": what, "server": "galatea", **medians["galatea"]})
                raw.append({"what": what, "runs": runs})
    return rows, raw


def cases(server, repository, seconds):
    data = repository / prepare.ENSEMBLE / "1/perf_analyzer_data.json"
    steps = ["--input-data", data, "--shape", "sentence_bytes:70"]
    found = {
        f"tagger of example 0, three steps, grpc, concurrency {concurrency}":
            lambda c=concurrency: measure.perf(server, prepare.ENSEMBLE, "grpc", c, seconds, *steps)
        for concurrency in (4, 16)
    }
    sentence = ["--string-data", "NVIDIA is founded by Jensen Huang, Chris Malachowsky and Curtis Priem.", "--shape", "INPUT_0:1"]
    found["the same, one Python model, 32 sentences a request, grpc, concurrency 4"] = (
        lambda: measure.perf(server, prepare.ONE_MODEL, "grpc", 4, seconds, *sentence, "-b", "32")
    )
    return found
