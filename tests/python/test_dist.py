"""The files of a release, made of the program under test: each is installed into a clean tree, started with an empty home,
and asked for an answer; the time that took is printed."""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

import pytest

import clients
import repositories
import servers
import tiers

CHECKS = servers.PEERS / "dist-checks/bin"
VERSION = "0.1.0"
FLAGS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
pytestmark = tiers.peers
SUMS = {"outputs": list(range(1, 17))}


def xtask():
    return os.environ.get("GALATEA_XTASK", servers.ROOT / "target/debug/xtask")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=120, **more)
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


def make(folder):
    command = [xtask(), "dist", "--program", servers.galatea_binary(), "--out", folder, "--compression", "1"]
    return run(*command, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """The folder with the files of a release."""
    folder = tmp_path_factory.mktemp("dist")
    print(make(folder))
    return folder


@pytest.fixture(scope="module")
def one(release):
    """Finds the one file of the release with this ending."""

    def find(ending):
        (file,) = release.glob(f"*{ending}")
        return file

    return find


@pytest.fixture(scope="module")
def wheel_home(one, tmp_path_factory):
    """A clean virtual environment with the wheel in it."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--isolated", "--python", home / "bin/python"]
    run(*pip, "install", "--quiet", "--no-index", one(".whl"))
    return home


@contextlib.contextmanager
def served(what, program, home, **variables):
    """A server of the example models by an installed `tritonserver`, in an environment that knows nothing else."""
    home.mkdir()
    began = time.monotonic()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), **servers.onnx_runtime(), **variables}
    command = [program, f"--model-repository={repositories.EXAMPLES}", "--model-control-mode=explicit", "--load-model=simple", *FLAGS]
    cleared = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    with servers.Server([*cleared, *command]) as server:
        status, _, body = clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())
        assert status == 200 and json.loads(body)["outputs"][0]["data"] == SUMS["outputs"]
        print(f"{what}: installed program to first answer {time.monotonic() - began:.2f} s")
        yield server


def test_checksums_are_right_and_builds_are_reproducible(release, tmp_path):
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=release)
    listed = {line.split("  ")[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    assert listed == {file.name for file in release.iterdir()} - {"SHA256SUMS"} and len(listed) == 4
    make(tmp_path)
    assert (tmp_path / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


def test_the_archive_is_unpacked_and_serves(one, tmp_path):
    with tarfile.open(one(".tar.gz")) as archive:
        assert {member.mtime for member in archive} == {1700000000}
        assert {(member.uid, member.gid) for member in archive} == {(0, 0)}
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert run(folder / "bin/galatea", "--version") == f"galatea {VERSION}\n"
    assert "--concurrency-range" in run(folder / "bin/perf_analyzer", "--help")
    assert (folder / "share/man/man1/galatea.1").read_text().startswith(".TH GALATEA 1")
    run("bash", "-n", folder / "share/bash-completion/completions/galatea")
    with served("archive", folder / "bin/tritonserver", tmp_path / "home"):
        pass


def test_the_wheel_is_installed_and_serves(wheel_home, tmp_path):
    assert run(wheel_home / "bin/galatea", "--version") == f"galatea {VERSION}\n"
    assert run(wheel_home / "bin/python", "-m", "galatea", "--version") == f"galatea {VERSION}\n"
    assert "--concurrency-range" in run(wheel_home / "bin/perf_analyzer", "--help")
    found = run(wheel_home / "bin/python", "-c", "import galatea; print(galatea.program())").strip()
    assert found == str(wheel_home / "bin/galatea")
    assert (wheel_home / "share/man/man1/galatea.1").exists()
    with served("wheel", wheel_home / "bin/tritonserver", tmp_path / "home") as server:
        assert os.readlink(f"/proc/{server.pid}/exe") == found, "Python made way for the program"


def test_a_wheel_installed_into_a_folder_finds_its_program(one, tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--isolated"]
    run(*pip, "install", "--quiet", "--no-index", "--target", tmp_path, one(".whl"))
    version = run(sys.executable, "-m", "galatea", "--version", env={"PYTHONPATH": str(tmp_path)})
    assert version == f"galatea {VERSION}\n"
    (tmp_path / "bin/galatea").unlink()
    gone = subprocess.run([sys.executable, "-m", "galatea"], env={"PYTHONPATH": str(tmp_path)}, text=True, capture_output=True)
    assert "install the package galatea-server again" in gone.stderr


def test_the_wheel_declares_its_needs(one):
    wheel = one(".whl")
    assert f"manylinux{wheel.stem.split('manylinux')[1]}" in run(CHECKS / "auditwheel", "show", wheel).replace("\n", " ")
    with zipfile.ZipFile(wheel) as archive:
        record = archive.read(f"galatea_server-{VERSION}.dist-info/RECORD").decode()
        assert len(record.splitlines()) == len(archive.namelist())


def test_the_debian_package_is_installed_and_serves(one, tmp_path):
    """dpkg installs into a folder with its own database; scripts do not run, because the folder has no shell."""
    root = tmp_path / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    package = one(".deb")
    fields = run("dpkg-deb", "--field", package, "Package", "Version", "Architecture", "Depends")
    assert f"Version: {VERSION}-1" in fields and "libc6 (>= 2." in fields
    if os.geteuid() == 0:
        unpacked = ["dpkg", "--root", root, "--force-depends", "--force-script-chrootless", "--force-not-root"]
        run(*unpacked, "--unpack", package)
        assert "Status: install ok unpacked" in run("dpkg", "--root", root, "--status", "galatea")
    else:
        run("dpkg-deb", "-x", package, root)
    manual = gzip.decompress((root / "usr/share/man/man1/galatea.1.gz").read_bytes())
    assert manual.startswith(b".TH GALATEA 1")
    with served("Debian package", root / "usr/bin/tritonserver", tmp_path / "home"):
        pass
    for script in ("postinst", "prerm", "postrm"):
        text = run("dpkg-deb", "--info", package, script)
        run("sh", "-n", "-c", text)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_packages_unit_is_valid_and_hardened(one, tmp_path):
    run("dpkg-deb", "-x", one(".deb"), tmp_path)
    unit = tmp_path / "usr/lib/systemd/system/galatea.service"
    text = unit.read_text()
    assert "EnvironmentFile=-/etc/default/galatea" in text and (tmp_path / "etc/default/galatea").exists()
    # The unit names the program where the package puts it, which is not where it lies here.
    unit.write_text(text.replace("/usr/bin/galatea", str(tmp_path / "usr/bin/galatea")))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=false", unit], text=True, capture_output=True, timeout=60)
    assert checked.returncode == 0 and "galatea.service" not in checked.stderr, checked.stderr
    # From 0, nothing is exposed, to 100.
    run("systemd-analyze", "security", "--offline=true", "--threshold=25", unit)


def test_the_unit_starts_the_server_and_reload_reopens_its_log(one, tmp_path):
    """Runs the unit's command with other folders and free ports, then does what ExecReload does."""
    run("dpkg-deb", "-x", one(".deb"), tmp_path / "root")
    text = (tmp_path / "root/usr/lib/systemd/system/galatea.service").read_text().replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    words = [word for word in line.removeprefix("ExecStart=").split() if word != "$GALATEA_OPTIONS"]
    for folder in ("lib/galatea/models", "log/galatea"):
        (tmp_path / folder).mkdir(parents=True)
    words = [word.replace("/var/", f"{tmp_path}/") for word in words]
    ports = [flag for flag in FLAGS if "port" in flag]
    log = tmp_path / "log/galatea/access.log"
    with servers.Server([tmp_path / "root/usr/bin/galatea", *words[1:], *ports], {"HOME": str(tmp_path)}) as server:
        assert "kill -HUP $MAINPID" in text
        assert clients.ask(server.http, "GET", "/v2")[0] == 200
        log.rename(log.with_suffix(".1"))
        server.process.send_signal(1)
        deadline = time.monotonic() + 30
        while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
            assert clients.ask(server.http, "GET", "/v2")[0] == 200
        assert log.stat().st_size


def test_the_bill_of_materials_is_valid_and_complete(one, release):
    from_schema = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
"""
    file = one(".cdx.json")
    run(CHECKS / "python", "-c", from_schema, file)
    parts = {part["name"]: part for part in json.loads(file.read_text())["components"]}
    assert {"tokio", "hyper", "tonic", "tikv-jemalloc-sys", "galatea-engine"} <= set(parts)
    assert not {"pytest", "shuttle", "proptest"} & set(parts), "only tests need them"
    assert all("licenses" in part for part in parts.values())
    assert all("hashes" in part for name, part in parts.items() if not name.startswith("galatea"))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert f"{digest}  {file.name}" in (release / "SHA256SUMS").read_text()


def test_wrong_options_are_refused_with_the_reason(tmp_path):
    for words, said in (
        (["--target", "riscv"], "there is x86_64 and aarch64"),
        (["--compression", "10"], "from 0 to 9"),
        (["--program", "/bin/sh", "--out", tmp_path], "completions"),
        (["--program", __file__, "--out", tmp_path], "not an ELF file"),
    ):
        refused = subprocess.run([xtask(), "dist", *words], text=True, capture_output=True)
        assert refused.returncode == 1 and said in refused.stderr, refused.stderr


def test_workflows_are_valid_with_minimal_permissions():
    workflows = sorted((servers.ROOT / ".github/workflows").glob("*.yml"))
    run(CHECKS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    run(CHECKS / "zizmor", "--offline", "--no-progress", "--persona=regular", servers.ROOT / ".github")
    for file in workflows:
        text = file.read_text()
        assert "\npermissions: {}\n" in text and text.count("timeout-minutes:") == text.count("runs-on:")
    (release,) = [file for file in workflows if file.stem == "release"]
    assert "cargo xtask dist --target" in release.read_text()
    (checks,) = [file for file in workflows if file.stem == "ci"]
    assert ".ci/run" in checks.read_text() and os.access(servers.ROOT / ".ci/run", os.X_OK)
