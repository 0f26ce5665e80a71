"""Server reflection, as tools like grpcurl use it: with the stock library, and whatever version of the service it asks for."""

import grpc
import pytest
from google.protobuf import descriptor_pool, json_format, message_factory
from tritonclient.grpc import service_pb2

import repositories

reflection = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database", reason="`cargo xtask setup` installs it")
from grpc_reflection.v1alpha import reflection_pb2  # noqa: E402

SERVICES = {"inference.GRPCInferenceService", "grpc.health.v1.Health", "xds.service.orca.v3.OpenRcaService"}


@pytest.fixture
def server(shared):
    """test_security_access asks one that restricts it."""
    running = shared()
    running.place("vector", "identity", repositories.identity_config())
    return running


def test_a_client_without_proto_files_finds_and_calls_everything(server):
    with grpc.insecure_channel(server.grpc) as channel:
        database = reflection.ProtoReflectionDescriptorDatabase(channel)
        assert set(database.get_services()) >= SERVICES
        pool = descriptor_pool.DescriptorPool(database)
        for name in SERVICES:
            service = pool.FindServiceByName(name)
            assert all(method.input_type and method.output_type for method in service.methods)
        found = pool.FindServiceByName("inference.GRPCInferenceService")
        known = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
        assert {method.name for method in found.methods} == {method.name for method in known.methods}
        method = found.FindMethodByName("ModelReady")
        request = message_factory.GetMessageClass(method.input_type)(name="vector")
        answer = message_factory.GetMessageClass(method.output_type)
        call = channel.unary_unary(
            f"/{found.full_name}/{method.name}", request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString
        )
        assert json_format.MessageToDict(call(request, timeout=20)) == {"ready": True}


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_both_versions_of_the_reflection_service_agree(server, version):
    """Their messages are the same but for the package."""
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="inference.ModelInferRequest"),
        reflection_pb2.ServerReflectionRequest(file_by_filename="kserve.proto"),
    ]
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=lambda m: m.SerializeToString(), response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        services, by_symbol, by_name = call(iter(requests), timeout=20)
        names = {service.name for service in services.list_services_response.service}
        assert names == SERVICES | {f"grpc.reflection.{version}.ServerReflection"}
        assert by_symbol.file_descriptor_response == by_name.file_descriptor_response
        with pytest.raises(grpc.RpcError) as error:
            list(call(iter([reflection_pb2.ServerReflectionRequest(file_by_filename="nope.proto")]), timeout=20))
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
