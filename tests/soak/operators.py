"""Clients that load, reload and unload models, those that use such models meanwhile, and one that watches."""

import http.client
import json
import os
import time

from tally import Refused
from users import TIMEOUT, Http, PythonTexts, must


def touch(path):
    """The file as new, and never half of it."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(path.read_text())
    now = time.time()
    os.utime(fresh, (now, now))
    fresh.rename(path)


class Reloads(Http):
    """reloads of a model that is asked all the time"""

    PAUSE = 0.5
    FILE = "reloaded/config.pbtxt"

    def step(self):
        touch(self.folder / self.FILE)
        model = self.FILE.split("/", 1)[0]
        status, _, content = self.ask("POST", f"/v2/repository/models/{model}/load", {})
        must(status == 200, f"{status} {content[:200]!r}")


class ReloadsPython(Reloads):
    """reloads of a Python model that is asked all the time"""

    PAUSE = 2.0
    FILE = "texts_reloaded/1/model.py"


class OfReloaded(PythonTexts):
    """requests to the models that are reloaded: none may fail"""

    MODEL = "texts_reloaded"

    def step(self):
        if self.chance.random() < 0.7:
            self.pair("reloaded")
        else:
            super().step()


class ComesAndGoes(Http):
    """loads and unloads of a model that is asked all the time"""

    PAUSE = 0.2

    def step(self):
        for what in ("load", "unload"):
            status, _, content = self.ask("POST", f"/v2/repository/models/comes_and_goes/{what}", {})
            must(status == 200, f"{what}: {status} {content[:200]!r}")
            self.stop.wait(0.2)


class OfComesAndGoes(Http):
    """requests to that model: right, or refused as one that is not there"""

    PAUSE = 0.005

    def step(self):
        status, _, content = self.ask("GET", "/v2/models/comes_and_goes")
        must(status in (200, 400, 404), f"{status} {content[:200]!r}")
        try:
            self.pair("comes_and_goes")
        except Exception as error:
            if "Request for unknown model" in str(error) or "is not available" in str(error):
                raise Refused(str(error)) from error
            raise


class FailedLoads(Http):
    """loads that fail: a model that is no Python, a configuration that is none, a path that leads out"""

    PAUSE = 1.0
    CONFIGS = (None, "{", '{"backend": "nowhere"}', '{"backend": "python", "default_model_filename": "../../../etc/passwd"}')

    def step(self):
        config = self.chance.choice(self.CONFIGS)
        body = {"parameters": {"config": config}} if config else {}
        status, _, content = self.ask("POST", "/v2/repository/models/broken/load", body)
        must(status in (400, 500) and json.loads(content)["error"], f"{config}: {status} {content[:200]!r}")


class Observer(Http):
    """index, statistics, liveness and metrics: counters never fall"""

    PAUSE = 0.25

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = 0

    def step(self):
        for method, path in (("POST", "/v2/repository/index"), ("GET", "/v2/models/stats"), ("GET", "/v2"), ("GET", "/v2/health/live")):
            status, _, content = self.ask(method, path)
            must(status == 200, f"{path}: {status} {content[:200]!r}")
        connection = http.client.HTTPConnection(self.server.metrics, timeout=TIMEOUT)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        line = next(line for line in text.splitlines() if line.startswith('nv_inference_request_success{model="simple"'))
        count = float(line.rsplit(" ", 1)[1])
        must(count >= self.seen, f"{line} after {self.seen}")
        self.seen = count
