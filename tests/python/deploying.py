"""The tools that the files of `deploy/` are checked with, and a Prometheus that reads servers of the tests."""

import json
import os
import subprocess
import urllib.parse
from pathlib import Path

import yaml

import clients
import servers
import waiting

ROOT = servers.ROOT
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/galatea"
CHECKS = servers.PEERS / "deploy-checks"
HELM = servers.PEERS / "deploy-tools/helm/helm"
KUBECTL = servers.PEERS / "deploy-tools/kubectl/kubectl"
PROMETHEUS = servers.PEERS / "prometheus/usr/bin/prometheus"
PROMTOOL = servers.PEERS / "prometheus/usr/bin/promtool"
# What clusters run: the oldest that the chart takes, some on the way, and the newest of the schemas.
VERSIONS = ("1.25", "1.28", "1.31", "1.34", "1.37")


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def helm(task, *words, home, **options):
    """What helm prints, and its status; it keeps nothing outside of a folder of the test's own."""
    folders = {f"HELM_{what}_HOME": str(home / what) for what in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run([HELM, task, *map(str, words)], env={**os.environ, **folders}, text=True, capture_output=True, timeout=120, **options)


def rendered(values, home, version=VERSIONS[-1]):
    """The objects of the chart, by kind, with values of one's own."""
    given = home / "values.yaml"
    given.write_text(json.dumps(values))
    done = helm("template", "my", CHART, "--namespace=models", f"--values={given}", f"--kube-version={version}.0", home=home)
    assert done.returncode == 0, done.stderr
    return by_kind(done.stdout)


def built(folder):
    """The objects of a kustomization, by kind."""
    return by_kind(output(KUBECTL, "kustomize", folder))


def by_kind(text):
    found = [document for document in yaml.safe_load_all(text) if document]
    kinds = {document["kind"]: document for document in found}
    assert len(kinds) == len(found), "two objects of a kind"
    return kinds


def faults(objects, *versions):
    """What the schemas do not know of objects."""
    script = Path(__file__).parent / "deploy_schemas.py"
    text = yaml.safe_dump_all(objects)
    done = subprocess.run([CHECKS / "bin/python", script, "check", CHECKS / "schemas", *versions], input=text, text=True, capture_output=True, timeout=120)
    lines = done.stdout.split("\n")
    assert done.stderr == "" and f"{len(objects)} objects" in lines, done.stdout + done.stderr
    return [line for line in lines if line and not line.endswith(" objects")]


class Prometheus:
    """One that reads the servers of these addresses, twice a second, by the name of their job."""

    def __init__(self, folder, targets, rules=None):
        (port,) = servers.free_ports(1)
        self.address = f"127.0.0.1:{port}"
        jobs = [
            {"job_name": job, "scrape_interval": "500ms", "scrape_timeout": "500ms", "static_configs": [{"targets": [target]}]}
            for job, target in targets.items()
        ]
        configuration = {"global": {"evaluation_interval": "1s"}, "scrape_configs": jobs, "rule_files": [str(rules)] if rules else []}
        (folder / "prometheus.yaml").write_text(json.dumps(configuration))
        self.log = open(folder / "prometheus.log", "w")
        command = [PROMETHEUS, f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={self.address}"]
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        self.until(lambda: self.get("/-/ready") is not None, "Prometheus to be ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def get(self, path):
        try:
            status, _, body = clients.ask(self.address, "GET", path)
        except OSError:
            return None
        return body if status == 200 else None

    def query(self, expression):
        """The series of an expression: [(labels, value)]."""
        status, _, body = clients.ask(self.address, "GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        answer = json.loads(body)
        assert status == 200 and answer["status"] == "success", f"{expression}: {answer}"
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def rules(self):
        groups = json.loads(self.get("/api/v1/rules"))["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def until(self, is_right, what):
        def look():
            assert self.process.poll() is None, "Prometheus has ended"
            return is_right()

        return waiting.eventually(what, look)
