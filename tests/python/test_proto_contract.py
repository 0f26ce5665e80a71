"""Our protobuf contract against the one compiled into the stock client.

Every file, message, field, enum and service method is compared in both directions by its number, type,
label and containing oneof. What differs on purpose is listed in DELIBERATE, with the reason; a listed
difference that is gone fails too.
"""

from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTORS = ROOT / "crates/shared/proto/src" / "generated" / "descriptors.bin"
PACKAGE = ".inference"

# fact -> (side that has it, reason)
DELIBERATE: dict[str, tuple[str, str]] = {
    ".inference.ServerMetadataResponse.implementation": ("ours", "which program keeps the contract; clients skip the field"),
}

TYPE = descriptor_pb2.FieldDescriptorProto.Type
LABEL = descriptor_pb2.FieldDescriptorProto.Label


def field_fact(field, message):
    oneof = ""
    if field.HasField("oneof_index") and not field.proto3_optional:
        oneof = f" in {message.oneof_decl[field.oneof_index].name}"
    optional = " optional" if field.proto3_optional else ""
    kind = TYPE.Name(field.type).removeprefix("TYPE_").lower()
    label = LABEL.Name(field.label).removeprefix("LABEL_").lower()
    return f"{field.number} {label}{optional} {kind} {field.type_name}{oneof}"


def enum_facts(enum, scope):
    for value in enum.value:
        yield f"{scope}.{enum.name}.{value.name}", str(value.number)


def message_facts(message, scope):
    name = f"{scope}.{message.name}"
    yield name, "map entry" if message.options.map_entry else "message"
    for field in message.field:
        yield f"{name}.{field.name}", field_fact(field, message)
    for enum in message.enum_type:
        yield from enum_facts(enum, name)
    for nested in message.nested_type:
        yield from message_facts(nested, name)


def service_facts(service, scope):
    for method in service.method:
        client = "stream " if method.client_streaming else ""
        server = "stream " if method.server_streaming else ""
        fact = f"{client}{method.input_type} -> {server}{method.output_type}"
        yield f"{scope}.{service.name}/{method.name}", fact


def facts(files):
    found = {}
    for file in files:
        scope = f".{file.package}"
        if scope != PACKAGE:
            continue
        for message in file.message_type:
            found.update(message_facts(message, scope))
        for enum in file.enum_type:
            found.update(enum_facts(enum, scope))
        for service in file.service:
            found.update(service_facts(service, scope))
    return found


def our_files():
    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(DESCRIPTORS.read_bytes())
    return files.file


def client_files():
    for module in (service_pb2, model_config_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        yield file


@pytest.fixture(scope="module")
def both():
    return facts(our_files()), facts(client_files())


def test_we_lack_nothing_of_the_clients_contract(both):
    ours, theirs = both
    missing = {k: v for k, v in theirs.items() if k not in ours and k not in DELIBERATE}
    assert missing == {}


def test_we_add_nothing_to_the_clients_contract(both):
    ours, theirs = both
    extra = {k: v for k, v in ours.items() if k not in theirs and k not in DELIBERATE}
    assert extra == {}


def test_common_parts_of_the_contract_are_equal(both):
    ours, theirs = both
    different = {k: (v, theirs[k]) for k, v in ours.items() if k in theirs and theirs[k] != v}
    assert different == {}


def test_the_listed_differences_exist(both):
    ours, theirs = both
    for name, (side, _reason) in DELIBERATE.items():
        has, lacks = (ours, theirs) if side == "ours" else (theirs, ours)
        assert name in has and name not in lacks, name


def test_the_comparison_reads_fields_and_methods(both):
    ours, _ = both
    assert ours[".inference.ModelInferRequest.raw_input_contents"].startswith("7 repeated bytes")
    assert ours[".inference.GRPCInferenceService/ModelStreamInfer"].startswith("stream ")
    assert len(ours) > 400


def test_the_health_service_is_the_standard_one():
    (health,) = [f for f in our_files() if f.package == "grpc.health.v1"]
    (service,) = health.service
    assert [m.name for m in service.method] == ["Check", "Watch"]
    response = next(m for m in health.message_type if m.name == "HealthCheckResponse")
    values = {v.name: v.number for v in response.enum_type[0].value}
    assert values == {"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3}
