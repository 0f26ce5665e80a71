"""A package index on this machine that serves wheels from folders, and has the faults of real ones when asked."""

import threading
from pathlib import Path

import servers
from web_server import WebServer

WHEELS = servers.PEERS / "wheels/model-wheels"


class PackageIndex(WebServer):
    """Projects by name, as links. `faults`: what is done with a file, by the beginning of its name."""

    def __init__(self, folder=WHEELS, **faults):
        self.folder, self.faults = Path(folder), faults
        self.asked, self.changed = [], threading.Condition()
        # A stalled answer is held until this is set.
        self.released = threading.Event()
        super().__init__(self.note)

    def environment(self):
        """Variables with which pip, and the program, ask here and nowhere else."""
        return {"PIP_INDEX_URL": f"{self.url}/simple", "PIP_CONFIG_FILE": "/dev/null", "NO_PROXY": "*", "no_proxy": "*", "PIP_DEFAULT_TIMEOUT": "10"}

    def note(self, request):
        with self.changed:
            self.asked.append(request.path)
            self.changed.notify_all()
        self.answer(request)

    def answer(self, request):
        name = request.path.strip("/").rpartition("/")[2]
        if request.path.startswith("/simple/"):
            wheels = sorted(file.name for file in self.folder.glob("*.whl") if file.name.split("-")[0].replace("_", "-") == name)
            page = "".join(f'<a href="/files/{wheel}">{wheel}</a>' for wheel in wheels).encode()
            return self.send(request, 200 if wheels else 404, page)
        content = (self.folder / name).read_bytes()
        fault = self.faults.get(name.split("-")[0])
        if fault == "missing":
            return self.send(request, 404, b"")
        if fault == "wrong":
            content = content[:-1] + bytes([content[-1] ^ 1])
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        self.send(request, 206 if start else 200, content, start, fault)

    def send(self, request, status, content, start=0, fault=None):
        request.send_response(status)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", str(len(content) - start))
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.end_headers()
        body = content[start:]
        if fault == "cut":
            body = body[:100_000]
        if fault == "stalled":
            request.wfile.write(body[:100_000])
            request.wfile.flush()
            self.released.wait(120)
            return
        try:
            request.wfile.write(body)
        except ConnectionError:
            pass  # the client has gone away

    def downloads(self, project):
        return [path for path in self.asked if path.startswith(f"/files/{project}")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.stop()
