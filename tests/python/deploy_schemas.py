"""Checks objects of Kubernetes against schemas, strictly: a field that nobody knows is a fault. Run by the Python of
target/peers/deploy-checks, which has the schemas:

    python deploy_schemas.py write FOLDER      what is not part of Kubernetes itself, once
    python deploy_schemas.py check FOLDER VERSION ...    the objects on standard input, as YAML, for each version
    python deploy_schemas.py board FILE    a board of Grafana

KServe's schemas are made of the classes of its Python package, which KServe generates from the same source as its CRDs, and
of the definitions of Kubernetes; those of the Prometheus operator and of KEDA are written by classes that are made from their
CRDs."""

import ast
import importlib
import importlib.util
import json
import re
import sys
from pathlib import Path

KSERVE = {
    "ClusterServingRuntime": "V1alpha1ClusterServingRuntime",
    "ServingRuntime": "V1alpha1ServingRuntime",
    "InferenceService": "V1beta1InferenceService",
}
OTHERS = {
    "ServiceMonitor": "cloudcoil.models.prometheus_operator.v1",
    "PodMonitor": "cloudcoil.models.prometheus_operator.v1",
    "PrometheusRule": "cloudcoil.models.prometheus_operator.v1",
    "ScaledObject": "cloudcoil.models.keda.v1alpha1",
}
# The definitions of Kubernetes that schemas of others refer to.
KUBERNETES = "https://kubernetes.io/api/_definitions.json"
PLAIN = {
    "str": {"type": "string"}, "int": {"type": "integer"}, "bool": {"type": "boolean"}, "float": {"type": "number"},
    "object": {}, "datetime": {"type": "string"},
    "ResourceQuantity": {"type": ["string", "number"]}, "V1beta1MetricQuantity": {"type": ["string", "number"]},
}


def folder_of(package):
    return Path(importlib.util.find_spec(package).origin).parent


def definitions(version):
    schemas = folder_of("kubernetes_validate") / "kubernetes-json-schema"
    (found,) = schemas.glob(f"v{version}.*-local-strict/_definitions.json")
    return json.loads(found.read_text())


# --- KServe --------------------------------------------------------------------------------------------------------


def kserve_classes():
    """{class: ({field: type}, [required field])} of the package; nothing of it is run."""
    # The package itself is not installed with what it imports.
    models = next(Path(place) for place in importlib.util.find_spec("kserve").submodule_search_locations) / "models"
    found = {}
    for file in models.glob("v1*.py"):
        tree = ast.parse(file.read_text())
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                tables = {t.targets[0].id: ast.literal_eval(t.value) for t in node.body if isinstance(t, ast.Assign) and t.targets[0].id in ("openapi_types", "attribute_map")}
                names = tables["attribute_map"]
                required = re.findall(r"Invalid value for `(\w+)`, must not be `None`", file.read_text())
                found[node.name] = ({names[key]: kind for key, kind in tables["openapi_types"].items()}, [names[key] for key in required])
    return found


def kserve_schema(kind, classes):
    used = {}

    def schema(name):
        if item := re.fullmatch(r"list\[(.*)\]", name):
            return {"type": "array", "items": schema(item[1])}
        if item := re.fullmatch(r"dict\(\w+, (.*)\)", name):
            return {"type": "object", "additionalProperties": schema(item[1])}
        if name in PLAIN:
            return PLAIN[name]
        if name not in classes:
            return {"$ref": f"{KUBERNETES}#/$defs/{kubernetes_name(name)}"}
        if name not in used:
            used[name] = None
            fields, required = classes[name]
            properties = {field: schema(kind) for field, kind in fields.items()}
            used[name] = {"type": "object", "additionalProperties": False, "properties": properties, "required": required}
        return {"$ref": f"#/$defs/{name}"}

    top = schema(KSERVE[kind])
    return {**top, "$defs": used}


def kubernetes_name(name):
    """The definition that a class of Kubernetes' Python client is made of."""
    if name == "V1ObjectMeta":
        return "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    if spelled := re.fullmatch(r"K8sIoApi([A-Z][a-z]+)V(\d)(\w+)", name):
        return f"io.k8s.api.{spelled[1].lower()}.v{spelled[2]}.{spelled[3]}"
    return f"io.k8s.api.core.v1.{name.removeprefix('V1')}"


# --- others --------------------------------------------------------------------------------------------------------


def strict(schema):
    """The schema, with no other fields than those it names."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(part) for key, part in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    classes = kserve_classes()
    schemas = {kind: kserve_schema(kind, classes) for kind in KSERVE}
    for kind, module in OTHERS.items():
        schemas[kind] = strict(getattr(importlib.import_module(module), kind).model_json_schema())
    for kind, schema in schemas.items():
        (folder / f"{kind}.json").write_text(json.dumps(schema))


def faults(document, folder, versions):
    import jsonschema
    import kubernetes_validate
    from referencing import Registry, Resource

    name = f"{document['kind']} {document['metadata']['name']}"
    own = folder / f"{document['kind']}.json"
    for version in versions:
        if own.exists():
            registry = Resource.from_contents(definitions(version)) @ Registry()
            validator = jsonschema.Draft202012Validator(json.loads(own.read_text()), registry=registry)
            found = jsonschema.exceptions.best_match(validator.iter_errors(document))
        else:
            found = None
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                found = error
            except kubernetes_validate.SchemaNotFoundError as error:
                yield f"{name}, {version}: {error.message}"
        if found is not None:
            yield f"{name}, {version}: {'.'.join(map(str, found.absolute_path))}: {found.message[:300]}"


# --- boards --------------------------------------------------------------------------------------------------------


def lost(before, after, path="board"):
    """What is in one value and not, or otherwise, in another."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after)):
            yield from lost(*pair, f"{path}[{index}]")
    elif before != after:
        yield path


def check_board(file):
    """Reads it into the classes of Grafana's own kit, which know the options of each kind of panel, and writes it again."""
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import dashboard

    plugins.register_default_plugins()
    before = json.loads(file.read_text())
    after = json.loads(JSONEncoder().encode(dashboard.Dashboard.from_json(before)))
    found = list(lost(before, after))
    print(*found, sep="\n")
    sys.exit(1 if found else 0)


def main():
    import yaml

    if sys.argv[1] == "board":
        return check_board(Path(sys.argv[2]))
    task, folder, versions = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if task == "write":
        return write(folder)
    documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
    found = [fault for document in documents for fault in faults(document, folder, versions)]
    print(*found, sep="\n")
    print(f"{len(documents)} objects")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
