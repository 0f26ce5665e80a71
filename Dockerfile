# syntax=docker/dockerfile:1
# The server, the load tool and a Python for Python models; runs as any ordinary user.
#
#   docker build -t galatea .                                   for machines without a GPU
#   docker build -t galatea:cuda --target cuda .                on NVIDIA's CUDA libraries
#   docker run --init -p 8000:8000 -p 8001:8001 -p 8002:8002 -v "$PWD/models:/models:ro" \
#     galatea tritonserver --model-repository=/models

FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock LICENSE ./
COPY crates crates
COPY fuzz fuzz
COPY xtask xtask
COPY container container
# What cargo fetches and compiles stays on the building machine for the next build. All that the last image gets beside
# packages lies in /image after this.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --release --locked --package galatea \
    && target/release/galatea runtime install onnxruntime \
    && container/lay-out target/release/galatea "$(target/release/galatea runtime path onnxruntime)" /image

# The stock clients, to try a server from another container.
FROM python:3.13-slim-trixie AS client
RUN pip install --no-cache-dir "tritonclient[http,grpc]==2.73.0" "numpy==2.4.6"
COPY container/try-models.py /usr/local/lib/galatea/try-models.py
USER 10001:10001
ENTRYPOINT ["python", "/usr/local/lib/galatea/try-models.py"]

# ONNX Runtime for GPUs: its library, with those that it opens beside it. 1.32.0 is not published for GPUs yet.
FROM python:3.13-slim-trixie AS gpu-runtime
RUN pip install --no-cache-dir --no-deps --target /packages "onnxruntime-gpu==1.31.1" \
    && install -d /image/opt/galatea/lib \
    && cp /packages/onnxruntime/capi/libonnxruntime_providers_*.so /image/opt/galatea/lib/ \
    && cp /packages/onnxruntime/capi/libonnxruntime.so.1.31.1 /image/opt/galatea/lib/libonnxruntime.so

# The CUDA that this ONNX Runtime was built for. Driver and devices come from the container engine.
FROM nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04 AS cuda
# The versions are those of the Ubuntu release.
# hadolint ignore=DL3008
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libstdc++6 locales python3 python3-numpy python3-venv \
    # Nodes for texts of ONNX models (StringNormalizer) ask for this language unless they are told otherwise.
    && localedef -i en_US -f UTF-8 en_US.UTF-8
COPY --from=build /image /
COPY --from=gpu-runtime /image /
ENV HOME=/var/lib/galatea \
    GALATEA_HOME=/var/lib/galatea \
    GALATEA_ONNXRUNTIME_LIB=/opt/galatea/lib/libonnxruntime.so \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
LABEL org.opencontainers.image.title="galatea" \
    org.opencontainers.image.description="Inference server for Triton's model repositories, on CUDA's libraries" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 10001:0
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=5s --timeout=5s --start-period=10m --start-interval=1s --retries=3 CMD ["galatea-ready"]
ENTRYPOINT ["galatea-entrypoint"]
CMD ["tritonserver", "--model-repository=/models"]

FROM debian:trixie-slim AS cpu
# The versions are those of the Debian release.
# hadolint ignore=DL3008
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libstdc++6 locales python3 python3-numpy python3-venv \
    # Nodes for texts of ONNX models (StringNormalizer) ask for this language unless they are told otherwise.
    && localedef -i en_US -f UTF-8 en_US.UTF-8
COPY --from=build /image /
# Environments of Python models are built in GALATEA_HOME. It belongs to the group 0, whose member every user that a
# platform makes up is; such a user has no entry in /etc/passwd, and so no home but this.
ENV HOME=/var/lib/galatea \
    GALATEA_HOME=/var/lib/galatea \
    GALATEA_ONNXRUNTIME_LIB=/opt/galatea/lib/libonnxruntime.so
LABEL org.opencontainers.image.title="galatea" \
    org.opencontainers.image.description="Inference server for Triton's model repositories" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 10001:0
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=5s --timeout=5s --start-period=10m --start-interval=1s --retries=3 CMD ["galatea-ready"]
ENTRYPOINT ["galatea-entrypoint"]
CMD ["tritonserver", "--model-repository=/models"]
