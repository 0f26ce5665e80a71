"""AOTInductor packages through the server, equal to PyTorch itself. Only a PyTorch makes such packages, so this needs one:
GALATEA_TEST_TORCH_PYTHON names a Python that has it. The server takes its libtorch as it always does, which must be of
the same version."""

import concurrent.futures
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import clients
import servers
import tiers

MAKER = servers.ROOT / "tests/pytorch/make_pt2.py"
PYTHON = os.environ.get("GALATEA_TEST_TORCH_PYTHON")
RELOADS = 20

pytestmark = [
    tiers.peers,
    pytest.mark.skipif(PYTHON is None, reason="GALATEA_TEST_TORCH_PYTHON names no Python with PyTorch: nothing here makes a .pt2"),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Every package, compiled (a minute)."""
    root = tmp_path_factory.mktemp("pt2")
    # PyTorch takes a folder called triton beside it for a module.
    subprocess.run([PYTHON, MAKER, root / "made"], cwd=root, check=True, timeout=600)
    return root / "made"


@pytest.fixture(scope="module")
def server(packages, tmp_path_factory):
    """All but the one that cannot be served. Packages are unpacked in `server.temporary`."""
    repository = tmp_path_factory.mktemp("repository")
    for name in ("dense", "pictures", "named", "views", "counter"):
        shutil.copytree(packages / name, repository / name)
    temporary = tmp_path_factory.mktemp("temporary")
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    with servers.galatea(repository, *flags, env={"TMPDIR": str(temporary)}) as running:
        running.repository, running.temporary = repository, temporary
        yield running


def expected(packages, model, outputs):
    """Inputs and outputs of the model in PyTorch."""
    arrays = dict(np.load(packages / f"expected/{model}.npz"))
    return {n: a for n, a in arrays.items() if not is_output(n)}, {n: arrays[n] for n in outputs or arrays if is_output(n)}


def is_output(name):
    return name.startswith(("OUTPUT", "RESULT"))


def assert_same(got, wanted):
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model", ["dense", "pictures", "named", "views"])
def test_outputs_equal_pytorchs(server, packages, protocol, model):
    inputs, outputs = expected(packages, model, None)
    with clients.client(server, protocol) as stock:
        assert_same(clients.infer(stock, protocol, model, inputs), outputs)


def test_batches_of_any_size_by_concurrent_clients_are_correct(server, packages):
    inputs, outputs = expected(packages, "dense", None)
    x, y = inputs["INPUT__0"], outputs["OUTPUT__0"]
    before = clients.counts(server, "dense")

    def ask(worker):
        with clients.client(server, "grpc") as stock:
            for n in range(40):
                rows = np.random.default_rng(worker * 100 + n).integers(0, len(x), 1 + n % 5)
                got = clients.infer(stock, "grpc", "dense", {"INPUT__0": x[rows]})["OUTPUT__0"]
                np.testing.assert_allclose(got, y[rows], rtol=1e-5, atol=1e-5)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    after = clients.counts(server, "dense")
    grown = {key: after[key] - before[key] for key in after}
    assert grown["executions"] < grown["success"] == 320, "requests were joined"


def test_instances_do_not_share_state_and_inputs_are_not_modified(server):
    """The model adds what it is given to its state and answers it, then clears its input."""
    x = np.array([1, 2, 3], np.float32)
    with clients.client(server, "http") as stock:
        answers = [clients.infer(stock, "http", "counter", {"ARGS[0]": x})["RESULT"][0] for _ in range(10)]
    first, second = [], []
    for value in answers:
        # Each instance counts from 1 on, whichever takes a request.
        mine = first if value == len(first) + 1 else second
        mine.append(value)
        assert value == len(mine)


def test_shapes_and_types_not_compiled_for_are_refused(packages, tmp_path):
    """The compiled code would read out of bounds."""
    shutil.copytree(packages / "dense", tmp_path / "dense")
    config = tmp_path / "dense/config.pbtxt"
    declared = config.read_text()
    config.write_text(declared.replace("[16]", "[-1]"))
    with servers.galatea(tmp_path) as running, clients.client(running, "http") as stock:
        for shape in ((1, 16), (64, 16)):
            clients.infer(stock, "http", "dense", {"INPUT__0": np.zeros(shape, np.float32)})
        with pytest.raises(Exception, match=r"has shape \[2,3\], and the package takes 16 in dimension 1"):
            clients.infer(stock, "http", "dense", {"INPUT__0": np.zeros((2, 3), np.float32)})
    config.write_text(declared.replace("FP32", "INT64", 1))
    with servers.galatea(tmp_path, "--exit-on-error=false", "--strict-readiness=false") as running:
        _, _, body = clients.ask(running.http, "POST", "/v2/repository/index")
        assert b"input 'INPUT__0' is TYPE_FP32 in the package" in body


def mapped(server):
    """Compiled code in the server's memory: mappings of a package's library."""
    return Path(f"/proc/{server.pid}/maps").read_text().count("galatea-pt2-")


def test_reloads_leave_no_files_or_memory(server, packages):
    inputs, outputs = expected(packages, "dense", None)
    sizes, mappings = [], []
    for _ in range(RELOADS):
        status, _, body = clients.ask(server.http, "POST", "/v2/repository/models/dense/unload", "{}")
        assert status == 200, body
        status, _, body = clients.ask(server.http, "POST", "/v2/repository/models/dense/load", "{}")
        assert status == 200, body
        with clients.client(server, "http") as stock:
            for _ in range(3):
                assert_same(clients.infer(stock, "http", "dense", inputs), outputs)
        sizes.append(server.rss_mb())
        mappings.append(mapped(server))
    # What is let go of is unmapped at the latest when the next one is.
    assert mappings[-1] == mappings[1], mappings
    assert sizes[-1] - sizes[4] < 4, sizes
    # Only models with a state keep their files: more instances may be made from them.
    assert len(list(server.temporary.iterdir())) == 2


def test_missing_parts_of_a_package_are_in_the_error(packages, tmp_path):
    shutil.copytree(packages / "foreign", tmp_path / "foreign")
    shutil.copytree(packages / "dense", tmp_path / "bare")
    (tmp_path / "bare/config.pbtxt").unlink()
    shutil.copytree(packages / "dense", tmp_path / "misnamed")
    config = tmp_path / "misnamed/config.pbtxt"
    config.write_text(config.read_text().replace("INPUT__0", "x"))
    with servers.galatea(tmp_path, "--exit-on-error=false", "--strict-readiness=false") as running:
        _, _, body = clients.ask(running.http, "POST", "/v2/repository/index")
        for text in (
            b"(galatea_test::twice), which is not supported",
            b"model configuration must contain at least one input, none were specified",
            b"input 'x' is not in the package, which has ARGS[0] or INPUT__0",
        ):
            assert text in body, body
