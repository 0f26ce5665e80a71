# syntax=docker/dockerfile:1
# The server, the load tool and a Python for Python models; runs as an ordinary user.
#
#   docker build -t galatea .
#   docker run --init -p 8000:8000 -p 8001:8001 -p 8002:8002 -v "$PWD/models:/models:ro" \
#     galatea tritonserver --model-repository=/models

FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY fuzz fuzz
COPY xtask xtask
COPY container container
RUN cargo build --release --locked --package galatea
# All that the last image gets beside Debian's packages lies in /image after this.
RUN target/release/galatea runtime install onnxruntime \
    && container/lay-out target/release/galatea "$(target/release/galatea runtime path onnxruntime)" /image

# The stock clients, to try a server from another container.
FROM python:3.13-slim-trixie AS client
RUN pip install --no-cache-dir "tritonclient[http,grpc]==2.73.0" "numpy==2.4.6"
COPY container/try-models.py /usr/local/lib/galatea/try-models.py
USER 10001:10001
ENTRYPOINT ["python", "/usr/local/lib/galatea/try-models.py"]

FROM debian:trixie-slim AS server
# The versions are those of the Debian release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libstdc++6 python3 python3-numpy python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 galatea \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/galatea --shell /usr/sbin/nologin galatea \
    && install -d -o galatea -g galatea /var/lib/galatea
COPY --from=build /image /
# GALATEA_HOME is where environments of Python models are built.
ENV GALATEA_HOME=/var/lib/galatea \
    GALATEA_ONNXRUNTIME_LIB=/opt/galatea/lib/libonnxruntime.so
USER 10001:10001
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=5s --timeout=5s --start-period=10m --start-interval=1s --retries=3 CMD ["galatea-ready"]
ENTRYPOINT ["galatea-entrypoint"]
CMD ["tritonserver", "--model-repository=/models"]
