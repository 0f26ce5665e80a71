//! The client over gRPC, against servers on the same HTTP/2 library.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may panic

use std::{cell::Cell, io::Read, rc::Rc};

use crate::support::{listen, run, target, template};
use bytes::{Bytes, BytesMut};
use galatea_client::{
    Compression, Connector, InferMark, KeepResponse, PreparedInfer, Protocol, SequenceMark, Target,
};
use galatea_proto::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
    ServerMetadataResponse, infer_parameter::ParameterChoice,
    model_infer_response::InferOutputTensor,
};
use galatea_types::Code;
use h2::{RecvStream, server::SendResponse};
use http::{HeaderMap, Request, Response};
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
    task::spawn_local,
};

type Answer = SendResponse<Bytes>;

/// Serves each call with `handler`, on any number of connections, and counts those.
fn serve<F>(
    listener: TcpListener,
    handler: impl Fn(Request<RecvStream>, Answer) -> F + Clone + 'static,
) -> Rc<Cell<usize>>
where
    F: Future<Output = ()> + 'static,
{
    let connections = Rc::new(Cell::new(0));
    let counted = Rc::clone(&connections);
    spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counted.set(counted.get() + 1);
            let handler = handler.clone();
            spawn_local(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    spawn_local(handler(request, respond));
                }
            });
        }
    });
    connections
}

async fn body(request: Request<RecvStream>) -> BytesMut {
    let mut body = request.into_body();
    let mut bytes = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    bytes
}

fn framed(flag: u8, message: &[u8]) -> Bytes {
    let mut bytes = vec![flag];
    bytes.extend((message.len() as u32).to_be_bytes());
    bytes.extend(message);
    bytes.into()
}

fn head() -> Response<()> {
    Response::builder().header("content-type", "application/grpc").body(()).unwrap()
}

fn trailers(status: &'static str, message: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    trailers.insert("grpc-message", message.parse().unwrap());
    trailers
}

/// Answers with `message`, as frames of at most `size` bytes.
fn answer(respond: &mut Answer, head: Response<()>, message: Bytes, size: usize) {
    let mut stream = respond.send_response(head, false).unwrap();
    for piece in message.chunks(size) {
        stream.send_data(Bytes::copy_from_slice(piece), false).unwrap();
    }
    stream.send_trailers(trailers("0", "")).unwrap();
}

fn response(data: Bytes) -> ModelInferResponse {
    let shape = vec![data.len() as i64];
    let output = InferOutputTensor {
        name: "B".into(),
        datatype: "UINT8".into(),
        shape,
        ..Default::default()
    };
    ModelInferResponse {
        outputs: vec![output],
        raw_output_contents: vec![data],
        ..Default::default()
    }
}

fn grpc(port: u16) -> Target {
    target(Protocol::Grpc, port)
}

#[test]
fn calls_carry_path_metadata_and_message() {
    run(async {
        let (listener, port) = listen().await;
        serve(listener, |request, mut respond| async move {
            assert_eq!(request.uri().path(), "/inference.GRPCInferenceService/ModelInfer");
            let value =
                |name: &str| request.headers().get(name).unwrap().to_str().unwrap().to_owned();
            assert_eq!(value("te"), "trailers");
            assert_eq!(value("content-type"), "application/grpc");
            assert_eq!(value("x-key"), "value");
            let message = ModelInferRequest::decode(body(request).await.split_off(5)).unwrap();
            assert_eq!((message.model_name.as_str(), message.id.as_str()), ("m", "9"));
            assert_eq!(message.parameters.len(), 3);
            let message = response(message.raw_input_contents[0].clone()).encode_to_vec();
            answer(&mut respond, head(), framed(0, &message), 3);
        });
        let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
        let mut caller = Connector::new(grpc(port)).unwrap().caller().await.unwrap();
        let sequence = Some(SequenceMark { id: 1, start: true, end: true });
        let mark = InferMark { id: Some(9), sequence };
        let reply = caller.infer(&prepared, mark, KeepResponse::Outputs).await.unwrap();
        assert_eq!(reply.outputs[0].data, "abcd");
        let times = reply.times;
        assert!(times.start <= times.sent && times.sent <= times.first_byte);
        assert!(times.first_byte <= times.end);
        assert!(
            caller.infer(&prepared, mark, KeepResponse::Nothing).await.unwrap().outputs.is_empty()
        );
    });
}

#[test]
fn grpc_statuses_become_errors_in_headers_and_trailers() {
    run(async {
        let (listener, port) = listen().await;
        let is_first = Rc::new(Cell::new(true));
        serve(listener, move |_, mut respond: Answer| {
            let alone = is_first.replace(false);
            async move {
                if alone {
                    let mut head = head();
                    head.headers_mut().extend(trailers("5", "no%20%22m%22"));
                    respond.send_response(head, true).unwrap();
                } else {
                    let mut stream = respond.send_response(head(), false).unwrap();
                    stream.send_trailers(trailers("3", "wrong")).unwrap();
                }
            }
        });
        let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
        let mut caller = Connector::new(grpc(port)).unwrap().caller().await.unwrap();
        for (code, text) in [(Code::NotFound, "no \"m\""), (Code::InvalidArg, "wrong")] {
            let error = caller
                .infer(&prepared, InferMark::default(), KeepResponse::Nothing)
                .await
                .unwrap_err();
            assert_eq!((error.code(), error.message()), (code, text));
        }
    });
}

/// The message as it was, or compressed, as `encoding` has it.
fn recoded(encoding: &str, message: &[u8], compress: bool) -> Vec<u8> {
    use flate2::{Compression, read};
    let level = Compression::default();
    let mut reader: Box<dyn Read> = match (encoding, compress) {
        ("gzip", true) => Box::new(read::GzEncoder::new(message, level)),
        ("gzip", false) => Box::new(read::GzDecoder::new(message)),
        ("deflate", true) => Box::new(read::ZlibEncoder::new(message, level)),
        ("deflate", false) => Box::new(read::ZlibDecoder::new(message)),
        _ => Box::new(message),
    };
    let mut result = Vec::new();
    reader.read_to_end(&mut result).unwrap();
    result
}

#[test]
fn large_and_compressed_messages_are_sent_and_received() {
    run(async {
        for compression in [Compression::None, Compression::Gzip, Compression::Deflate] {
            let (listener, port) = listen().await;
            serve(listener, |request, mut respond| async move {
                let mut head = head();
                let encoding = request.headers().get("grpc-encoding").cloned();
                let flag = u8::from(encoding.is_some());
                let name = encoding.as_ref().map_or("", |value| value.to_str().unwrap()).to_owned();
                head.headers_mut().extend(
                    encoding.map(|value| (http::HeaderName::from_static("grpc-encoding"), value)),
                );
                let mut bytes = body(request).await;
                let message = recoded(&name, &bytes.split_off(5), false);
                assert_eq!(bytes[0], flag);
                let request = ModelInferRequest::decode(&message[..]).unwrap();
                let message = response(request.raw_input_contents[0].clone()).encode_to_vec();
                let message = framed(flag, &recoded(&name, &message, true));
                answer(&mut respond, head, message, 1 << 20);
            });
            let target = Target { compression, ..grpc(port) };
            let data: Vec<u8> = (0..5 << 20).map(|at: u32| (at >> 3) as u8).collect();
            let prepared = PreparedInfer::new(&target, &template(data.clone())).unwrap();
            let mut caller = Connector::new(target).unwrap().caller().await.unwrap();
            let mark = InferMark::default();
            let reply = caller.infer(&prepared, mark, KeepResponse::Outputs).await.unwrap();
            assert!(reply.outputs[0].data == data, "{compression:?}");
            caller.infer(&prepared, mark, KeepResponse::Nothing).await.unwrap();
        }
    });
}

#[test]
fn six_callers_share_a_connection() {
    run(async {
        let (listener, port) = listen().await;
        let connections = serve(listener, |request, mut respond| async move {
            body(request).await;
            answer(&mut respond, head(), framed(0, &[]), 5);
        });
        let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
        let connector = Connector::new(grpc(port)).unwrap();
        let mut callers = Vec::new();
        for count in 1..=13 {
            callers.push(connector.caller().await.unwrap());
            for caller in &mut callers {
                caller.infer(&prepared, InferMark::default(), KeepResponse::Nothing).await.unwrap();
            }
            assert_eq!(connections.get(), usize::div_ceil(count, 6));
        }
        // A place that has become free is used again.
        callers.pop();
        callers.truncate(11);
        callers.push(connector.caller().await.unwrap());
        assert_eq!(connections.get(), 3);
    });
}

#[test]
fn a_closed_connection_is_reopened() {
    run(async {
        let (listener, port) = listen().await;
        spawn_local(async move {
            loop {
                // One call each, then the connection is closed.
                let (stream, _) = listener.accept().await.unwrap();
                let mut connection = h2::server::handshake(stream).await.unwrap();
                let (request, mut respond) = connection.accept().await.unwrap().unwrap();
                spawn_local(async move {
                    body(request).await;
                    answer(&mut respond, head(), framed(0, &[]), 5);
                });
                connection.graceful_shutdown();
                while let Some(Ok(_)) = connection.accept().await {}
            }
        });
        let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
        let mut caller = Connector::new(grpc(port)).unwrap().caller().await.unwrap();
        for _ in 0..4 {
            caller.infer(&prepared, InferMark::default(), KeepResponse::Nothing).await.unwrap();
        }
    });
}

#[test]
fn a_server_that_does_not_speak_http_2_is_reported() {
    run(async {
        for answer in [&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], b""] {
            let (listener, port) = listen().await;
            spawn_local(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    stream.read_u8().await.unwrap();
                    stream.write_all(answer).await.unwrap();
                }
            });
            let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
            let mut caller = Connector::new(grpc(port)).unwrap().caller().await.unwrap();
            let reply = caller.infer(&prepared, InferMark::default(), KeepResponse::Nothing).await;
            let error = reply.unwrap_err();
            assert_eq!(error.code(), Code::Unavailable);
            let expected = format!("failed while calling grpc://127.0.0.1:{port}: ");
            assert!(error.message().starts_with(&expected), "{error}");
            assert!(error.message().contains("is this the server's gRPC port?"), "{error}");
        }
    });
}

#[test]
fn an_http_2_server_without_grpc_is_reported() {
    run(async {
        let (listener, port) = listen().await;
        serve(listener, |_, mut respond: Answer| async move {
            respond.send_response(Response::builder().status(404).body(()).unwrap(), true).unwrap();
        });
        let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
        let mut caller = Connector::new(grpc(port)).unwrap().caller().await.unwrap();
        let error =
            caller.infer(&prepared, InferMark::default(), KeepResponse::Nothing).await.unwrap_err();
        assert!(error.message().contains("HTTP status 404"), "{error}");
    });
}

#[test]
fn admin_calls_are_decoded() {
    run(async {
        let (listener, port) = listen().await;
        serve(listener, |request, mut respond| async move {
            assert_eq!(request.uri().path(), "/inference.GRPCInferenceService/ServerMetadata");
            let message = ServerMetadataResponse {
                name: "s".into(),
                version: "1".into(),
                extensions: vec!["statistics".into()],
                implementation: String::new(),
            };
            answer(&mut respond, head(), framed(0, &message.encode_to_vec()), 100);
        });
        let mut admin = Connector::new(grpc(port)).unwrap().admin().await.unwrap();
        let metadata = admin.server_metadata().await.unwrap();
        assert_eq!((metadata.name.as_str(), metadata.extensions.len()), ("s", 1));
    });
}

fn streamed(id: &str, is_final: bool, error: &str) -> Bytes {
    let flag = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(is_final)) };
    let mut inner = if is_final { ModelInferResponse::default() } else { response("x".into()) };
    inner.id = id.into();
    inner.parameters.insert("triton_final_response".into(), flag);
    let message =
        ModelStreamInferResponse { error_message: error.into(), infer_response: Some(inner) };
    framed(0, &message.encode_to_vec())
}

#[test]
fn streams_carry_several_requests_at_once() {
    run(async {
        let (listener, port) = listen().await;
        serve(listener, |request, mut respond: Answer| async move {
            assert_eq!(request.uri().path(), "/inference.GRPCInferenceService/ModelStreamInfer");
            // All requests are taken before the first answer, and it comes in pieces of two bytes.
            let requests = body(request).await;
            let mut answers = BytesMut::new();
            for piece in [
                streamed("2", false, ""),
                streamed("1", false, ""),
                streamed("1", true, ""),
                streamed("2", true, "failed"),
            ] {
                answers.extend_from_slice(&piece);
            }
            assert_eq!(requests.windows(4).filter(|bytes| bytes == b"abcd").count(), 2);
            answer(&mut respond, head(), answers.freeze(), 2);
        });
        let prepared = PreparedInfer::new(&grpc(port), &template("abcd")).unwrap();
        let connector = Connector::new(grpc(port)).unwrap();
        let (mut sender, mut receiver) = connector.stream().await.unwrap();
        for id in [1, 2] {
            let mark = InferMark { id: Some(id), sequence: None };
            sender.send(&prepared, mark).await.unwrap();
        }
        sender.finish();
        let mut seen = Vec::new();
        while let Some(reply) = receiver.next(KeepResponse::Outputs).await {
            let reply = reply.unwrap();
            assert_eq!(reply.is_empty, reply.outputs.is_empty());
            seen.push((reply.id.unwrap(), reply.is_final, reply.is_empty, reply.error));
        }
        let expected = [
            (2, false, false, None),
            (1, false, false, None),
            (1, true, true, None),
            (2, true, true, Some("failed".to_owned())),
        ];
        assert_eq!(seen, expected);
        assert!(receiver.next(KeepResponse::Nothing).await.is_none());
    });
}

#[test]
fn a_failed_stream_reports_the_error_and_ends() {
    run(async {
        let (listener, port) = listen().await;
        serve(listener, |_, mut respond: Answer| async move {
            let mut stream = respond.send_response(head(), false).unwrap();
            stream.send_data(streamed("1", false, ""), false).unwrap();
            stream.send_trailers(trailers("14", "going%20away")).unwrap();
        });
        let connector = Connector::new(grpc(port)).unwrap();
        let (_sender, mut receiver) = connector.stream().await.unwrap();
        assert_eq!(receiver.next(KeepResponse::Nothing).await.unwrap().unwrap().id, Some(1));
        let error = receiver.next(KeepResponse::Nothing).await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::Unavailable, "going away"));
        assert!(receiver.next(KeepResponse::Nothing).await.is_none());
    });
}

/// A server that does not read makes the sender wait, within a limit; sent messages are not lost.
#[test]
fn streams_wait_for_a_server_that_does_not_read() {
    run(async {
        let (listener, port) = listen().await;
        let (go, gate) = oneshot::channel::<()>();
        let gate = Rc::new(Cell::new(Some(gate)));
        let (length_sender, received) = oneshot::channel();
        let length_sender = Rc::new(Cell::new(Some(length_sender)));
        serve(listener, move |request, mut respond: Answer| {
            let (gate, length_sender) = (gate.take().unwrap(), length_sender.take().unwrap());
            async move {
                gate.await.unwrap();
                length_sender.send(body(request).await.len()).unwrap();
                answer(&mut respond, head(), Bytes::new(), 1);
            }
        });
        let prepared =
            Rc::new(PreparedInfer::new(&grpc(port), &template(vec![1; 40_000])).unwrap());
        let connector = Connector::new(grpc(port)).unwrap();
        let (mut sender, mut receiver) = connector.stream().await.unwrap();
        let count = Rc::new(Cell::new(0));
        let sent = Rc::clone(&count);
        let sending = spawn_local(async move {
            for _ in 0..100 {
                sender.send(&prepared, InferMark::default()).await.unwrap();
                sent.set(sent.get() + 1);
            }
            sender.finish();
        });
        // Everything that can run has run once the window is used up and nothing was added for a while.
        let mut before = usize::MAX;
        while before != count.get() || before == 0 {
            before = count.get();
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
        }
        assert!(before < 20, "{before} requests were taken");
        go.send(()).unwrap();
        sending.await.unwrap();
        assert!(receiver.next(KeepResponse::Nothing).await.is_none());
        assert!(received.await.unwrap() > 100 * 40_000);
    });
}
