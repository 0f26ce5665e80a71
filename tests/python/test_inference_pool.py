"""Pickers of the Gateway API Inference Extension: the files for one, and the figures that it reads, asked for as it asks."""

import re

import pytest
import yaml

import clients
from deploying import CHART, DEPLOY

FILES = DEPLOY / "inferencepool"
# Fields of the API, by the path of the object that has them.
POOL = {
    "": {"selector", "targetPorts", "appProtocol", "endpointPickerRef"},
    "selector": {"matchLabels"},
    "endpointPickerRef": {"group", "kind", "name", "port", "failureMode"},
    "endpointPickerRef.port": {"number"},
}


def picker():
    return yaml.safe_load((FILES / "picker.yaml").read_text())


def engine():
    (extractor,) = [plugin for plugin in picker()["plugins"] if plugin["type"] == "core-metrics-extractor"]
    (only,) = extractor["parameters"]["engineConfigs"]
    assert only["name"] == extractor["parameters"]["defaultEngine"] == "galatea"
    return only


def test_the_pool_selects_the_pods_of_the_chart_at_their_port_of_inference():
    pool, route = yaml.safe_load_all((FILES / "pool.yaml").read_text())
    spec = pool["spec"]
    for path, fields in POOL.items():
        inner = spec
        for key in filter(None, path.split(".")):
            inner = inner[key]
        assert set(inner) <= fields, path
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert spec["targetPorts"] == [{"number": values["service"]["httpPort"]}]
    assert spec["selector"]["matchLabels"] == {"app.kubernetes.io/name": yaml.safe_load((CHART / "Chart.yaml").read_text())["name"]}
    (backend,) = route["spec"]["rules"][0]["backendRefs"]
    assert backend == {"group": pool["apiVersion"].split("/")[0], "kind": pool["kind"], "name": pool["metadata"]["name"]}


def test_each_plugin_that_the_picker_uses_is_there():
    config = picker()
    names = {plugin.get("name", plugin["type"]) for plugin in config["plugins"]}
    used = {use["pluginRef"] for profile in config["schedulingProfiles"] for use in profile["plugins"]}
    for source in config["dataLayer"]["sources"]:
        used |= {source["pluginRef"]} | {one["pluginRef"] for one in source["extractors"]}
    assert used == names


@pytest.mark.parametrize("figure", ["queuedRequestsSpec", "runningRequestsSpec"])
def test_the_picker_finds_one_gauge_without_labels_at_the_port_of_inference(shared, figure):
    """It takes the first series of a family, so there must be no other, and it adds no query."""
    page = clients.ask(shared("--http-metrics=server").http, "GET", "/metrics")[2].decode()
    family = engine()[figure]
    assert f"# TYPE {family} gauge\n" in page
    (series,) = re.findall(rf"^{family}\b.*$", page, re.MULTILINE)
    assert float(series.removeprefix(f"{family} ")) >= 0
