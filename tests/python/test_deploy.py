"""The files of `deploy/`: rendered by the real helm and kustomize, checked against the schemas of all they describe, and their
command lines given to a real server, whose health checks the probes then ask."""

import json
import re
import shutil
import signal
import tomllib
from pathlib import Path

import pytest
import yaml

import clients
import repositories
import servers
import tiers
from deploying import CHART, CHECKS, DEPLOY, HELM, ROOT, VERSIONS, built, faults, helm, rendered

VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
KSERVE = [one for path in sorted((DEPLOY / "kserve").glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
EVERYTHING = {
    "gpu": {"count": 2},
    "autoscaling": {"enabled": True, "targetCPU": 80},
    "monitoring": {"kind": "ServiceMonitor", "alerts": True, "dashboard": True, "labels": {"release": "prometheus"}},
    "args": ["--model-control-mode=explicit", "--load-model=simple"],
    "env": [{"name": "OMP_NUM_THREADS", "value": "2"}],
    "envFrom": [{"secretRef": {"name": "index"}}],
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "priorityClassName": "high",
    "runtimeClassName": "nvidia",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "serviceAccount": {"annotations": {"e": "f"}},
    "service": {"headless": True, "annotations": {"g": "h"}},
    "models": {"subPath": "repository"},
    "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 443}]}]},
}
FETCH = {"models": {"fetch": {"image": "fetcher:1", "command": ["fetch"], "args": ["/models"], "env": [{"name": "FROM", "value": "x"}]}}}
# Null takes a default away: the platform chooses the user.
OPENSHIFT = {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}}
VALUES = {
    "default": {},
    "everything": EVERYTHING,
    "keda and a PodMonitor": {"autoscaling": {"enabled": True, "kind": "keda"}, "monitoring": {"kind": "PodMonitor"}},
    "fetched": FETCH,
    "host": {"models": {"volume": {"hostPath": {"path": "/srv/models", "type": "Directory"}}}},
    "openshift": OPENSHIFT,
    "least": {
        "podDisruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False}, "serviceAccount": {"create": False, "name": "own"},
        "image": {"repository": "registry:5000/galatea", "tag": "sha256:" + "0" * 64},
    },
}


def pod(objects):
    return objects["Deployment"]["spec"]["template"]["spec"]


def container(objects):
    (only,) = pod(objects)["containers"]
    return only


@pytest.fixture(autouse=True)
def tools(request):
    """The tests of the tier peers call helm, kubectl and the schemas of everything that they make."""
    if request.node.get_closest_marker("peers") and not (HELM.exists() and (CHECKS / "schemas").exists()):
        pytest.skip("helm or the schemas are not installed: `cargo xtask setup`")


# --- the chart -----------------------------------------------------------------------------------------------------


@tiers.peers
def test_the_chart_passes_the_linter(tmp_path):
    done = helm("lint", CHART, "--strict", home=tmp_path)
    assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done.stdout + done.stderr


@tiers.peers
@pytest.mark.parametrize("name", VALUES)
def test_rendered_charts_are_valid_in_every_kubernetes_version(name, tmp_path):
    for version in VERSIONS:
        objects = rendered(VALUES[name], tmp_path, version)
        assert not faults(list(objects.values()), version)
        assert all(one["metadata"].get("labels") for one in objects.values())


@tiers.peers
def test_an_oci_image_can_be_the_repository(tmp_path):
    """Kubernetes has this kind of volume since 1.31."""
    values = {"models": {"volume": {"image": {"reference": "models:3", "pullPolicy": "IfNotPresent"}}}}
    objects = list(rendered(values, tmp_path).values())
    assert not faults(objects, "1.31", "1.37")
    assert "image" in faults(objects, "1.30")[0]


@tiers.peers
def test_invalid_values_are_refused(tmp_path):
    wrong = {
        "replicas=3": "replicas",
        "service.httpPort=0": "/service/httpPort",
        "autoscaling.targetLoad=0": "/autoscaling/targetLoad",
        "autoscaling.kind=vpa": "/autoscaling/kind",
        "monitoring.kind=Monitor": "/monitoring/kind",
        "drain.delaySeconds=-1": "/drain/delaySeconds",
        "args={model-control-mode=poll}": "/args/0",
        "models.claimName=": "no models: set models.claimName",
        "models.volume.nfs.path=/,models.volume.hostPath.path=/": "/models/volume",
    }
    for value, told in wrong.items():
        done = helm("template", "my", CHART, "--set", value, home=tmp_path)
        assert done.returncode != 0 and told in done.stderr, f"{value}: {done.stderr}"


@tiers.peers
def test_every_value_is_in_the_schema_and_used():
    """Compares names: a value that no template mentions has no effect."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    for name, value in values.items():
        inner = value if "properties" in schema["properties"][name] else {}
        assert set(inner) <= set(schema["properties"][name].get("properties", {})), name
        for path in [f"{name}.{key}" for key in inner if key not in ("requests", "limits")] or [name]:
            assert f".Values.{path}" in templates, path


@tiers.peers
def test_the_pod_runs_as_an_ordinary_user_with_a_read_only_root(tmp_path):
    for values in (VALUES["default"], EVERYTHING, FETCH):
        objects = rendered(values, tmp_path)
        spec = pod(objects)
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False and objects["ServiceAccount"]["automountServiceAccountToken"] is False
        for one in [*spec["containers"], *spec.get("initContainers", [])]:
            assert one["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert "/tmp" in [mount["mountPath"] for mount in one["volumeMounts"]]
    assert set(pod(rendered(OPENSHIFT, tmp_path))["securityContext"]) == {"runAsNonRoot", "fsGroupChangePolicy", "seccompProfile"}


@tiers.peers
def test_the_pod_has_time_to_drain_after_probes_notice(tmp_path):
    objects = rendered({"drain": {"delaySeconds": 15, "exitTimeoutSeconds": 60}}, tmp_path)
    assert {"--drain-delay-secs=15", "--exit-timeout-secs=60"} <= set(container(objects)["args"])
    assert pod(objects)["terminationGracePeriodSeconds"] == 85
    for objects in (rendered({}, tmp_path), built(DEPLOY / "kustomize/base")):
        delay, limit = (int(re.search(rf"{flag}=(\d+)", " ".join(container(objects)["args"]))[1]) for flag in ("drain-delay-secs", "exit-timeout-secs"))
        ready = container(objects)["readinessProbe"]
        assert delay > ready["periodSeconds"] * ready["failureThreshold"]
        assert pod(objects)["terminationGracePeriodSeconds"] >= delay + limit + 5


@tiers.peers
def test_models_come_from_a_volume_or_are_fetched(tmp_path):
    objects = rendered({"models": {"path": "/srv", "subPath": "a", "claimName": "mine"}}, tmp_path)
    assert {"name": "models", "persistentVolumeClaim": {"claimName": "mine", "readOnly": True}} in pod(objects)["volumes"]
    assert "--model-repository=/srv" in container(objects)["args"]
    assert {"name": "models", "mountPath": "/srv", "readOnly": True, "subPath": "a"} in container(objects)["volumeMounts"]
    objects = rendered(FETCH, tmp_path)
    (first,) = pod(objects)["initContainers"]
    assert {"name": "models", "mountPath": "/models"} in first["volumeMounts"] and first["image"] == "fetcher:1"
    assert {"name": "models", "emptyDir": {"sizeLimit": "20Gi"}} in pod(objects)["volumes"]


@tiers.peers
def test_gpus_change_image_and_resources(tmp_path):
    assert container(rendered({}, tmp_path))["image"] == f"galatea:{VERSION}"
    objects = rendered({"gpu": {"count": 2}}, tmp_path)
    assert container(objects)["image"] == f"galatea:{VERSION}-cuda"
    for part in ("requests", "limits"):
        assert container(objects)["resources"][part]["nvidia.com/gpu"] == "2"
    assert container(objects)["resources"]["requests"]["cpu"] == "2", "the others are still there"


@tiers.peers
def test_autoscalers_read_the_load(tmp_path):
    objects = rendered({"autoscaling": {"enabled": True, "targetLoad": 0.85}}, tmp_path)
    assert "replicas" not in objects["Deployment"]["spec"]
    (metric,) = objects["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert metric["pods"] == {"metric": {"name": "galatea_load"}, "target": {"type": "AverageValue", "averageValue": "850m"}}
    objects = rendered({"autoscaling": {"enabled": True, "kind": "keda"}, "monitoring": {"kind": "PodMonitor"}}, tmp_path)
    (trigger,) = objects["ScaledObject"]["spec"]["triggers"]
    assert trigger["metadata"]["query"] == 'sum(galatea_load{namespace="models",job="my-galatea"})'
    (endpoint,) = objects["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert {"targetLabel": "job", "replacement": "my-galatea"} in endpoint["relabelings"], "the job that the query names"
    adapter = yaml.safe_load((DEPLOY / "prometheus/adapter-values.yaml").read_text())
    assert adapter["rules"]["custom"][0]["name"]["as"] == "galatea_load"


@tiers.peers
def test_alerts_and_dashboard_of_the_chart_equal_the_files(tmp_path):
    objects = rendered(EVERYTHING, tmp_path)
    assert objects["PrometheusRule"]["spec"] == yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())
    assert json.loads(objects["ConfigMap"]["data"]["galatea.json"]) == json.loads((DEPLOY / "grafana/galatea.json").read_text())
    assert objects["ConfigMap"]["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert objects["ServiceMonitor"]["metadata"]["labels"]["release"] == "prometheus"


@tiers.peers
def test_selectors_find_the_pods(tmp_path):
    objects = rendered(EVERYTHING, tmp_path)
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    found = [
        objects["Service"]["spec"]["selector"], objects["Deployment"]["spec"]["selector"]["matchLabels"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"], objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in found:
        assert selector and selector.items() <= labels
    assert objects["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items() <= objects["Service"]["metadata"]["labels"].items()
    names = {port["name"] for port in container(objects)["ports"]}
    assert {port["targetPort"] for port in objects["Service"]["spec"]["ports"]} == names
    allowed = {port["port"] for rule in objects["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]}
    assert allowed == names
    assert objects["ServiceMonitor"]["spec"]["endpoints"][0]["port"] == "metrics"


@tiers.peers
def test_the_notes_show_how_to_send_a_request(tmp_path):
    done = helm("install", "my", CHART, "--dry-run=client", "--namespace=models", "--set", "autoscaling.enabled=true", home=tmp_path)
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    assert "port-forward service/my-galatea 8000:8000" in notes and "namespaces/models/pods/*/galatea_load" in notes


# --- kustomize -----------------------------------------------------------------------------------------------------


@tiers.peers
@pytest.mark.parametrize("name", ["base", "production"])
def test_kustomize_output_is_valid(name):
    objects = built(DEPLOY / "kustomize" / name)
    assert not faults(list(objects.values()), *VERSIONS)
    selector = objects["Deployment"]["spec"]["selector"]["matchLabels"]
    assert objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == selector == objects["Service"]["spec"]["selector"]
    assert objects["NetworkPolicy"]["spec"]["ingress"][0]["from"] == [{"podSelector": {}}], "all of the namespace may ask"
    assert ("HorizontalPodAutoscaler" in objects) == (name == "production") == ("replicas" not in objects["Deployment"]["spec"])


@tiers.peers
def test_kustomize_and_helm_run_the_same_pod(tmp_path):
    ours, theirs = pod(built(DEPLOY / "kustomize/base")), pod(rendered({}, tmp_path))
    for spec in (ours, theirs):
        spec.pop("serviceAccountName")
    theirs.pop("topologySpreadConstraints")
    theirs["containers"][0].pop("imagePullPolicy")
    assert ours == theirs


# --- KServe --------------------------------------------------------------------------------------------------------


@tiers.peers
def test_kserve_accepts_every_field():
    assert {one["kind"] for one in KSERVE} == {"ClusterServingRuntime", "ServingRuntime", "InferenceService"}
    assert not faults(KSERVE, *VERSIONS)


def test_the_serving_runtime_replaces_tritons():
    """Compares with KServe's own kserve-tritonserver; Galatea adds options."""
    runtime = next(one for one in KSERVE if one["kind"] == "ClusterServingRuntime")["spec"]
    (only,) = runtime["containers"]
    assert only["name"] == "kserve-container"
    assert only["args"][:6] == ["tritonserver", "--model-store=/mnt/models", "--grpc-port=9000", "--http-port=8080", "--allow-grpc=true", "--allow-http=true"]
    assert runtime["protocolVersions"] == ["v2", "grpc-v2"]
    assert runtime["annotations"] == {"prometheus.kserve.io/port": "8002", "prometheus.kserve.io/path": "/metrics"}
    assert only["securityContext"]["runAsUser"] == 1000 and only["securityContext"]["readOnlyRootFilesystem"]
    # Triton's have the priority 1.
    formats = {one["name"]: one for one in runtime["supportedModelFormats"]}
    assert set(formats) == {"triton", "onnx", "pytorch", "tensorflow", "openvino"} and formats["triton"]["priority"] > 1
    assert not any("autoSelect" in formats[by_name] for by_name in ("pytorch", "tensorflow", "openvino"))
    for service in (one["spec"]["predictor"] for one in KSERVE if one["kind"] == "InferenceService"):
        # Knative, which scales to zero, has a runtime with one port.
        assert service["model"]["runtime"] == ("kserve-galatea-http" if service.get("minReplicas") == 0 else "kserve-galatea")
    delay, limit = (int(re.search(rf"{flag}=(\d+)", " ".join(only["args"]))[1]) for flag in ("drain-delay-secs", "exit-timeout-secs"))
    assert delay + limit < 30, "what a pod has by default"


def protocol_by_default(runtime):
    """The protocol of an InferenceService that names none: KServe knows Triton by an annotation, or by the runtime's name."""
    annotation = runtime["metadata"].get("annotations", {}).get("serving.kserve.io/server-type")
    return "v2" if annotation == "tritonserver" or runtime["metadata"]["name"] == "kserve-tritonserver" else "v1"


def route_of(runtime, path, content_type):
    """The port to which KServe's route of the Gateway API leads a request of a runtime with two ports."""
    ports = runtime["spec"]["containers"][0]["ports"]
    (grpc,) = [port for port in ports if "grpc" in port["name"] or "h2c" in port["name"]]
    (rest,) = [port for port in ports if port is not grpc]
    is_grpc = re.match(r"^/inference\.GRPCInferenceService/.*$", path) or re.match(r"application/grpc.*", content_type)
    return (grpc if is_grpc else rest)["containerPort"]


def test_kserve_knows_the_runtimes_as_triton():
    runtimes = [one for one in KSERVE if one["kind"] != "InferenceService"]
    assert [protocol_by_default(one) for one in runtimes] == ["v2", "v2", "v2"]
    assert protocol_by_default(changed(runtimes[0], ("metadata", "annotations"), {})) == "v1", "the annotation decides"
    (knative,) = [one for one in runtimes if one["metadata"]["name"] == "kserve-galatea-http"]
    assert [port["containerPort"] for port in knative["spec"]["containers"][0]["ports"]] == [8080], "it takes one port"
    for runtime in (one for one in runtimes if one is not knative):
        args = dict(word.removeprefix("--").split("=", 1) for word in runtime["spec"]["containers"][0]["args"] if "port=" in word)
        assert route_of(runtime, "/v2/models/simple/infer", "application/json") == int(args["http-port"])
        assert route_of(runtime, "/inference.GRPCInferenceService/ModelInfer", "application/grpc") == int(args["grpc-port"])


# --- the checks themselves -----------------------------------------------------------------------------------------


def changed(one, path, value):
    copy = json.loads(json.dumps(one))
    *parents, last = path
    inner = copy
    for key in parents:
        inner = inner[key]
    inner[last] = value
    return copy


@tiers.peers
def test_wrong_fields_are_detected(tmp_path):
    objects = rendered(EVERYTHING, tmp_path) | rendered({"autoscaling": {"enabled": True, "kind": "keda"}, "monitoring": {"kind": "PodMonitor"}}, tmp_path)
    kserve = {one["kind"]: one for one in reversed(KSERVE)}
    container_of = ("spec", "containers", 0)
    wrong = [
        changed(objects["Deployment"], ("spec", "template", "spec", "containers", 0, "livenessprobe"), {}),
        changed(objects["Service"], ("spec", "ports", 0, "port"), "x"),
        changed(objects["HorizontalPodAutoscaler"], ("spec", "minReplica"), 1),
        changed(objects["PodDisruptionBudget"], ("spec", "maxUnavailable"), 1.5),
        changed(objects["NetworkPolicy"], ("spec", "ingress", 0, "ports", 0, "portt"), 1),
        changed(objects["ServiceMonitor"], ("spec", "endpoints", 0, "relabellings"), []),
        changed(objects["PodMonitor"], ("spec", "podMetricsEndpoints", 0, "intervall"), "1s"),
        changed(objects["PrometheusRule"], ("spec", "groups", 0, "rules", 0, "exp"), "1"),
        changed(objects["ScaledObject"], ("spec", "minReplicas"), 1),
        changed(kserve["ClusterServingRuntime"], ("spec", "protocols"), []),
        changed(kserve["ClusterServingRuntime"], (*container_of, "arg"), []),
        changed(kserve["ServingRuntime"], (*container_of, "readinessProbe", "httpGet", "pathh"), "/"),
        changed(kserve["InferenceService"], ("spec", "predictor", "model", "storageURI"), "x"),
        changed(kserve["InferenceService"], ("spec", "predictor", "minReplicas"), "x"),
    ]
    for one in wrong:
        assert len(faults([one], "1.34")) == 1, one


def test_names_and_versions_are_consistent():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == VERSION
    (image,) = yaml.safe_load((DEPLOY / "kustomize/base/kustomization.yaml").read_text())["images"]
    assert image == {"name": "galatea", "newTag": VERSION}
    for one in (one for one in KSERVE if one["kind"] != "InferenceService"):
        (only,) = one["spec"]["containers"]
        assert only["image"] in (f"galatea:{VERSION}", f"galatea:{VERSION}-cuda")


def test_every_file_is_linked_in_the_documentation():
    page = (ROOT / "docs/kubernetes.md").read_text() + (ROOT / "docs/alerts.md").read_text() + (ROOT / "docs/operations.md").read_text()
    page += (ROOT / "docs/fleet.md").read_text()
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\((\.\./[^)#]+)", page)}
    whole = [path.parent for path in linked if path.name in ("Chart.yaml", "kustomization.yaml")]
    for file in (path for path in DEPLOY.rglob("*") if path.is_file()):
        assert file in linked or any(file.is_relative_to(folder) for folder in whole), file


# --- on a real server ----------------------------------------------------------------------------------------------


def started(args, models):
    """A server by the arguments of a container, with models in the place of the volume; options that are given last count."""
    # The name of the program in the image.
    assert args[0] == "tritonserver"
    words = [re.sub(r"=(/mnt)?/models$", f"={models}", word) for word in args[1:]]
    ours = ["--allow-grpc=true", "--http-port=0", "--grpc-port=0", "--metrics-port=0", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
    return servers.Server([servers.galatea_binary(), "serve", *words, *ours], servers.onnx_runtime())


def command_lines(tmp_path):
    for runtime in KSERVE:
        if runtime["kind"] != "InferenceService":
            yield runtime["metadata"]["name"], runtime["spec"]["containers"][0]
    yield "helm", container(rendered({}, tmp_path))
    yield "kustomize", container(built(DEPLOY / "kustomize/base"))


@tiers.peers
def test_each_command_line_starts_a_server_that_answers_the_probes(tmp_path):
    repositories.copy_example(tmp_path / "models", "simple")
    for name, one in command_lines(tmp_path):
        # As little patience as a test has.
        args = [re.sub(r"(drain-delay-secs)=\d+", r"\1=1", word) for word in one["args"]]
        server = started(args, tmp_path / "models")
        try:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe in one:
                    status, _, _ = clients.ask(server.http, "GET", one[probe]["httpGet"]["path"])
                    assert status == 200, (name, probe)
            assert clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())[0] == 200
            assert "galatea_load" in clients.ask(server.metrics, "GET", "/metrics")[2].decode()
            server.process.send_signal(signal.SIGTERM)
            path = one["readinessProbe"]["httpGet"]["path"]
            while clients.ask(server.http, "GET", path)[0] == 200:
                pass
            assert clients.ask(server.http, "GET", one["livenessProbe"]["httpGet"]["path"])[0] == 200, "it drains, and is not to be killed"
            assert clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())[0] == 200
        finally:
            assert server.stop() == 0


@tiers.peers
def test_a_packaged_chart_is_self_contained(tmp_path):
    """Alerts and dashboard are links to files outside the chart; a package must contain them."""
    done = helm("package", CHART, f"--destination={tmp_path}", home=tmp_path)
    assert done.returncode == 0, done.stderr
    shutil.unpack_archive(tmp_path / f"galatea-{VERSION}.tgz", tmp_path / "unpacked")
    for name in ("alerts.yaml", "dashboard.json"):
        file = Path(tmp_path / "unpacked/galatea/files" / name)
        assert not file.is_symlink() and file.read_bytes() == (CHART / "files" / name).read_bytes()
