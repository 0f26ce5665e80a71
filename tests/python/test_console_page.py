"""The console's page in a browser, with a real server behind it."""

import shutil
import subprocess

import pytest

import repositories

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WRONG = 'name: "broken"\nmax_batch_sise: 8\n'


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The text of a page of a server, as it stands after its scripts have run for some seconds of the page's time."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    profile = tmp_path_factory.mktemp("profile")

    def read(server, path):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--virtual-time-budget=4000"]
        command += ["--dump-dom", f"http://{server.http}{path}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    return read


def test_models_and_failures_are_shown(repository, serve, read):
    repository.add("identity", "identity", repositories.identity_config())
    (repository.path / "broken/1").mkdir(parents=True)
    (repository.path / "broken/config.pbtxt").write_text(WRONG)
    server = serve(repository.path, "--exit-on-error=false")
    page = read(server, "/")
    assert "READY" in page and "UNAVAILABLE" in page
    assert "2 | max_batch_sise: 8\n  | ^" in page
    assert "--model-control-mode=explicit" in page
