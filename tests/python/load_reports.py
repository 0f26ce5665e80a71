"""The messages of load reports (ORCA), built from the public contract and not from our files, and calls that get them."""

import base64
import os
import struct
import subprocess

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
STREAM = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
TRAILER = "endpoint-load-metrics-bin"
ASKED = "endpoint-load-metrics-format"
DOUBLES = {"cpu_utilization": 1, "mem_utilization": 2, "rps_fractional": 6, "eps": 7, "application_utilization": 9}
MAPS = {"request_cost": 4, "utilization": 5, "named_metrics": 8}


def _files():
    data = descriptor_pb2.FileDescriptorProto(name="a_load_report.proto", package="xds.data.orca.v3", syntax="proto3")
    report = data.message_type.add(name="OrcaLoadReport")
    for name, number in DOUBLES.items():
        report.field.add(name=name, number=number, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
    report.field.add(name="rps", number=3, type=FIELD.TYPE_UINT64, label=FIELD.LABEL_OPTIONAL)
    for name, number in MAPS.items():
        entry = "".join(word.capitalize() for word in name.split("_")) + "Entry"
        nested = report.nested_type.add(name=entry, options=descriptor_pb2.MessageOptions(map_entry=True))
        nested.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
        nested.field.add(name="value", number=2, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
        kind = f".xds.data.orca.v3.OrcaLoadReport.{entry}"
        report.field.add(name=name, number=number, type=FIELD.TYPE_MESSAGE, label=FIELD.LABEL_REPEATED, type_name=kind)
    service = descriptor_pb2.FileDescriptorProto(name="a_load_service.proto", package="xds.service.orca.v3", syntax="proto3")
    service.dependency.append("google/protobuf/duration.proto")
    request = service.message_type.add(name="OrcaLoadReportRequest")
    request.field.add(name="report_interval", number=1, type=FIELD.TYPE_MESSAGE, label=FIELD.LABEL_OPTIONAL,
                      type_name=".google.protobuf.Duration")
    request.field.add(name="request_cost_names", number=2, type=FIELD.TYPE_STRING, label=FIELD.LABEL_REPEATED)
    return data, service


_pool = descriptor_pool.DescriptorPool()
_duration = descriptor_pb2.FileDescriptorProto()
duration_pb2.DESCRIPTOR.CopyToProto(_duration)
for _file in (_duration, *_files()):
    _pool.Add(_file)
Report = message_factory.GetMessageClass(_pool.FindMessageTypeByName("xds.data.orca.v3.OrcaLoadReport"))
Request = message_factory.GetMessageClass(_pool.FindMessageTypeByName("xds.service.orca.v3.OrcaLoadReportRequest"))


def stream(channel, seconds=None, nanos=0, timeout=30, metadata=()):
    """The reports of a server, one after the other."""
    request = Request()
    if seconds is not None:
        request.report_interval.seconds, request.report_interval.nanos = seconds, nanos
    call = channel.unary_stream(STREAM, request_serializer=Request.SerializeToString, response_deserializer=Report.FromString)
    return call(request, timeout=timeout, metadata=metadata)


def in_trailers(address, method, request, metadata=()):
    """The status of a call and the report in its trailers, if there is one. The C core of gRPC, which Python's library is made
    of, keeps this trailer to itself, so curl calls."""
    message = request.SerializeToString()
    headers = [("te", "trailers"), ("content-type", "application/grpc"), *metadata]
    command = ["curl", "-sS", "--http2-prior-knowledge", "-m", "30", "-D", "-", "-o", os.devnull, "--data-binary", "@-"]
    for name, value in headers:
        command += ["-H", f"{name}: {value}"]
    run = subprocess.run([*command, f"http://{address}/inference.GRPCInferenceService/{method}"], capture_output=True,
                         input=b"\0" + struct.pack(">I", len(message)) + message, check=True)
    found = [line.split(": ", 1) for line in run.stdout.decode().splitlines() if ": " in line]
    assert len({name for name, _ in found}) == len(found), found
    found = dict(found)
    report = found.get(TRAILER)
    return int(found["grpc-status"]), report and Report.FromString(base64.b64decode(report, validate=True))


def figures(report):
    """The report as a dictionary."""
    named = {f"named_metrics.{name}": value for name, value in report.named_metrics.items()}
    return {**{name: getattr(report, name) for name in DOUBLES}, **named}
