//! Compressed messages, made by hand: bounds on what they become, and responses of every level.

use bytes::{Buf, Bytes};
use galatea_frontend::CompressionFormat;
use galatea_grpc::{GrpcOptions, ResponseCompression};
use galatea_proto::inference as pb;
use galatea_types::MemoryBudget;
use http_body_util::BodyExt;
use prost::Message as _;
use tonic::{Code, Status, body::Body, codegen::Service as _};

use crate::support::*;

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";
const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";
const FORMATS: [(CompressionFormat, &str); 2] =
    [(CompressionFormat::Gzip, "gzip"), (CompressionFormat::Deflate, "deflate")];

fn flagged(format: CompressionFormat, message: Vec<u8>) -> Vec<u8> {
    let packed = format.compress(&[Bytes::from(message)]).expect("in memory");
    [&[1][..], &(packed.len() as u32).to_be_bytes(), &packed].concat()
}

/// The messages of the answer with their flags, and its status.
async fn call(
    f: &Fixture,
    path: &str,
    body: Vec<u8>,
    headers: &[(&str, &str)],
) -> (Vec<(bool, Bytes)>, Status) {
    let mut channel = f.channel().await;
    let uri = format!("http://{}{path}", f.address());
    let mut request = http::Request::post(uri)
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for &(name, value) in headers {
        request = request.header(name, value);
    }
    let body = http_body_util::Full::from(body);
    let request = request.body(Body::new(body)).expect("a request");
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.expect("ready");
    let response = channel.call(request).await.expect("a response");
    if let Some(status) = Status::from_header_map(response.headers()) {
        return (Vec::new(), status);
    }
    let body = response.into_body().collect().await.expect("a body");
    let trailers = body.trailers().cloned().expect("trailers");
    let mut bytes = body.to_bytes();
    let mut messages = Vec::new();
    while bytes.has_remaining() {
        let is_compressed = bytes.get_u8() == 1;
        let length = bytes.get_u32() as usize;
        messages.push((is_compressed, bytes.split_to(length)));
    }
    (messages, Status::from_header_map(&trailers).expect("a status"))
}

fn unpacked(format: CompressionFormat, message: &Bytes) -> Vec<u8> {
    let mut content = Vec::new();
    let all = format.decompress(&message[..], message.len(), |piece| {
        content.extend_from_slice(&piece);
        Ok::<_, ()>(())
    });
    assert!(all.expect("good"), "nothing follows");
    content
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_of_any_length_are_compressed_in_both_directions() {
    for (format, name) in FORMATS {
        let level = match format {
            CompressionFormat::Gzip => ResponseCompression::Low,
            CompressionFormat::Deflate => ResponseCompression::High,
        };
        let options = GrpcOptions { response_compression: level, ..GrpcOptions::default() };
        let f = Fixture::with_options(&options);
        let headers = [("grpc-encoding", name), ("grpc-accept-encoding", "gzip,deflate")];
        for count in [100, 1_000_000] {
            let values = vec![1.5; count];
            let body = flagged(format, vector("identity_fp32", "x", &values).encode_to_vec());
            let (messages, status) = call(&f, INFER, body.clone(), &headers).await;
            assert_eq!(
                (status.code(), messages.len(), messages[0].0),
                (Code::Ok, 1, true),
                "{status}"
            );
            let message = unpacked(format, &messages[0].1);
            let answer = pb::ModelInferResponse::decode(&message[..]).expect("a response");
            assert_eq!(answer.raw_output_contents, [floats(&values)]);
            let (messages, status) = call(&f, STREAM, body.repeat(3), &headers).await;
            assert_eq!((status.code(), messages.len()), (Code::Ok, 3), "{status}");
            for (is_compressed, message) in messages {
                assert!(is_compressed);
                let message = unpacked(format, &message);
                let answer = pb::ModelStreamInferResponse::decode(&message[..]).expect("good");
                let response = answer.infer_response.expect("a response");
                assert_eq!(response.raw_output_contents, [floats(&values)]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_decompressed_message_over_the_limit_is_refused() {
    let f =
        Fixture::with_options(&GrpcOptions { max_message_size: 1 << 20, ..GrpcOptions::default() });
    for (format, name) in FORMATS {
        let bomb = flagged(format, vec![0; 32 << 20]);
        for path in [INFER, STREAM, "/inference.GRPCInferenceService/RepositoryModelLoad"] {
            let (_, status) = call(&f, path, bomb.clone(), &[("grpc-encoding", name)]).await;
            assert_eq!(status.code(), Code::ResourceExhausted, "{path}: {status}");
            let text = "or more when decompressed vs. 1048576). Use --grpc-max-message-size to";
            assert!(status.message().contains(text), "{path}: {status}");
        }
        let (_, status) = call(&f, LIVE, bomb.clone(), &[("grpc-encoding", name)]).await;
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains("vs. 65536)"), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn decompression_over_the_memory_budget_is_refused_and_releases_its_memory() {
    let memory = MemoryBudget::new(4 << 20);
    let f =
        Fixture::with_options(&GrpcOptions { memory: memory.clone(), ..GrpcOptions::default() });
    for (format, name) in FORMATS {
        let bomb = flagged(format, vec![0; 32 << 20]);
        for path in [INFER, STREAM] {
            let (_, status) = call(&f, path, bomb.clone(), &[("grpc-encoding", name)]).await;
            assert_eq!(status.code(), Code::ResourceExhausted, "{path}: {status}");
            assert!(status.message().contains("--memory-budget"), "{path}: {status}");
        }
    }
    eventually("everything is given back", || memory.used() == 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_that_expands_a_hundredfold_is_refused() {
    let f =
        Fixture::with_options(&GrpcOptions { max_message_size: 1 << 30, ..GrpcOptions::default() });
    for (format, name) in FORMATS {
        let bomb = flagged(format, vec![0; 32 << 20]);
        let (_, status) = call(&f, INFER, bomb, &[("grpc-encoding", name)]).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains("100 times its size"), "{status}");
    }
}
