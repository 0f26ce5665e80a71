#!/bin/sh
# Python's gRPC client cannot call a Rust server at unix:/path with its default settings. grpcio sends the path, percent-encoded,
# as the authority of each call (tmp%2Fgrpc for unix:/tmp/grpc). The grammar of RFC 3986 allows percent-encoding in a host, but
# the crate http, by which h2 checks the authority, does not, and h2 resets the stream with PROTOCOL_ERROR. The program on top of
# h2 never sees the call; that holds for tonic and hyper too.
#
# The client can set the channel's option grpc.default_authority to localhost. A relative path without a slash works as well.
# Both sides are known: grpc/grpc issue 38142 (closed) and hyperium/http issue 836 (open).
#
# grpcio 1.85.1, h2 0.4.20, http 1.5.0, CPython 3.11 or later, Rust 1.95. Seen:
#   unix:/.../grpc                                           INTERNAL, Received RST_STREAM with error code 1
#   unix:/.../grpc with grpc.default_authority = localhost   OK
#   unix:./grpc                                              INTERNAL, Received RST_STREAM with error code 1
#   unix:grpc                                                OK
# tonic 0.14.9 with tonic-health 0.14.5 gives the same answers.
set -eu
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" || true; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$folder"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "server"
version = "0.0.0"
edition = "2024"

[dependencies]
h2 = "=0.4.20"
http = "=1.5.0"
tokio = { version = "=1.54.1", features = ["macros", "net", "rt"] }
tracing = { version = "=0.1.44", default-features = false }
tracing-subscriber = { version = "=0.3.23", default-features = false, features = ["fmt"] }
TOML
cat > src/main.rs <<'RUST'
//! Answers each gRPC call on the Unix socket `grpc` with an empty message, and prints what h2 logs.
use http::{HeaderMap, HeaderName, HeaderValue, Response};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false).init();
    let listener = tokio::net::UnixListener::bind("grpc").unwrap();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut connection = h2::server::handshake(socket).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                tracing::info!("answering authority {}", request.uri().authority().unwrap());
                let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
                let mut stream = respond.send_response(head, false).unwrap();
                stream.send_data(vec![0; 5].into(), false).unwrap();
                let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
                stream.send_trailers(HeaderMap::from_iter([status])).unwrap();
            }
        });
    }
}
RUST
cargo build --quiet --target-dir target
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check grpcio==1.85.1 typing-extensions==4.16.0
target/debug/server > log &
server=$!
venv/bin/python - <<'PYTHON'
import os
import tomllib

import grpc

with open("Cargo.lock", "rb") as file:
    crates = {crate["name"]: crate["version"] for crate in tomllib.load(file)["package"]}
print(f"grpcio {grpc.__version__}, h2 {crates['h2']}, http {crates['http']}")


def call(address, **options):
    """The status and its details of a call on a new channel, and what the server logged about its authority."""
    with open("log") as log:
        log.seek(0, os.SEEK_END)
        with grpc.insecure_channel(address, [(f"grpc.{key}", value) for key, value in options.items()]) as channel:
            try:
                reply = channel.unary_unary("/demo.Demo/Call")(b"", timeout=30, wait_for_ready=True)
                assert reply == b"", reply
                status, details = "OK", ""
            except grpc.RpcError as error:
                status, details = error.code().name, error.details()
        (line,) = [line for line in log if "authority" in line]
    logged = line[line.index("malformed" if "malformed" in line else "answering") :].strip()
    print(address.replace(os.getcwd(), "/..."), options, "->", status, details, "| server:", logged)
    return status, details, logged


path = f"unix:{os.getcwd()}/grpc"
for address in (path, "unix:./grpc"):
    status, details, logged = call(address)
    assert status == "INTERNAL" and "RST_STREAM with error code 1" in details, (status, details)
    assert "malformed authority" in logged and "%2Fgrpc" in logged, logged
assert call(path, default_authority="localhost") == ("OK", "", "answering authority localhost")
assert call("unix:grpc") == ("OK", "", "answering authority grpc")
PYTHON
