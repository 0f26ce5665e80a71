"""Sets of flags that several files of tests share a running server by; each names what the server is for."""

import functools
import tempfile
from pathlib import Path

import processes


@functools.cache
def folder():
    """Where the logs and the data of these servers lie, for as long as this process runs."""
    kept = tempfile.TemporaryDirectory(prefix="shared-")
    folder.kept = kept
    return Path(kept.name)


def access_log():
    return folder() / "access.log"


def observed():
    """Flags and environment of a server with every metric, an access log in a file, and a cache of responses."""
    flags = (
        "--metrics-config=histogram_latencies=true", "--metrics-config=summary_latencies=true",
        f"--access-log={access_log()}", "--cache-config=local,size=67108864",
    )
    return flags, {**processes.offline(), "GALATEA_HOME": str(folder() / "home")}


# The most that shared memory may hold where a server has `LIMITED`.
SHARED_MEMORY = 32 << 20
# Python models with little time and little shared memory.
LIMITED = ("--backend-config=python,execution-timeout-secs=2", f"--backend-config=python,shm-max-byte-size={SHARED_MEMORY}")

# Instance groups for GPUs where there is none, on the CPU; the backend add_sub isolates its models.
WITHOUT_GPUS = ("--gpu-groups=cpu", "--backend-config=add_sub,isolation=process")
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def narrow_log():
    return folder() / "narrow.log"


def narrow():
    """Little memory for requests and short documents, and an access log of what is refused for it. Clients may bring memory."""
    return "--memory-budget=32M", "--http-max-input-size=1000", f"--access-log={narrow_log()}", "--allow-client-shm=true"


def in_json():
    """Both logs as JSON."""
    return "--log-format=json", f"--access-log={folder() / 'json.log'}"


def trace_file():
    return folder() / "trace.json"


def traced():
    """Traces in a file, which models turn on for themselves, and a cache of responses."""
    return f"--trace-config=triton,file={trace_file()}", "--cache-config=local,size=1048576"
