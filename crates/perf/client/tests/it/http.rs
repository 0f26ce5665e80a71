//! The client over HTTP, against servers of a few lines.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may panic

use crate::support::{listen, run, target, template};
use bytes::Bytes;
use galatea_client::{
    Caller, Connector, GetOptions, InferMark, KeepResponse, PreparedInfer, Protocol, Reply, Target,
    get,
};
use galatea_types::{Code, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::spawn_local,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// Reads one request, its head and its body.
async fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    (head, body)
}

/// Answers one request on each connection in turn.
fn answer_each(listener: TcpListener, answers: Vec<&'static str>) {
    spawn_local(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            request(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
}

async fn infer(caller: &mut Caller, target: &Target) -> Result<Reply> {
    let request = PreparedInfer::new(target, &template("abcd"))?;
    caller.infer(&request, InferMark::default(), KeepResponse::Nothing).await
}

#[test]
fn calls_share_a_connection_and_are_timed() {
    run(async {
        let (listener, port) = listen().await;
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for id in 0..3 {
                let (head, body) = request(&mut stream).await;
                assert!(head.starts_with("POST /v2/models/m/infer HTTP/1.1\r\n"), "{head}");
                assert!(head.contains("x-key: value\r\n"), "{head}");
                assert!(body.starts_with(format!("{{\"id\":\"{id}\",").as_bytes()));
                assert!(body.ends_with(b"}abcd"));
                stream.write_all(OK.as_bytes()).await.unwrap();
            }
        });
        let target = target(Protocol::Http, port);
        let prepared = PreparedInfer::new(&target, &template("abcd")).unwrap();
        let mut caller = Connector::new(target).unwrap().caller().await.unwrap();
        for id in 0..3 {
            let mark = InferMark { id: Some(id), sequence: None };
            let times = caller.infer(&prepared, mark, KeepResponse::Nothing).await.unwrap().times;
            assert!(times.start <= times.sent && times.sent <= times.first_byte);
            assert!(times.first_byte <= times.end);
        }
    });
}

#[test]
fn a_closed_idle_connection_is_reopened() {
    run(async {
        let (listener, port) = listen().await;
        answer_each(listener, vec![OK, OK, OK]);
        let target = target(Protocol::Http, port);
        let mut caller = Connector::new(target.clone()).unwrap().caller().await.unwrap();
        for _ in 0..3 {
            infer(&mut caller, &target).await.unwrap();
        }
    });
}

#[test]
fn connection_close_is_honoured() {
    run(async {
        let (listener, port) = listen().await;
        let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        answer_each(listener, vec![close, "HTTP/1.1 200 OK\r\n\r\n{}", OK]);
        let target = target(Protocol::Http, port);
        let mut caller = Connector::new(target.clone()).unwrap().caller().await.unwrap();
        for _ in 0..3 {
            infer(&mut caller, &target).await.unwrap();
        }
    });
}

#[test]
fn a_connection_that_closes_within_a_response_is_an_error() {
    run(async {
        for (answer, expected) in [
            ("", "the server closed the connection"),
            ("HTTP/1.1 200 OK\r\nContent-Len", "it ends early"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "it ends early"),
            ("\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0", "is this the server's HTTP port?"),
        ] {
            let (listener, port) = listen().await;
            // A call on a connection that was never used, or that had answered, is not repeated.
            answer_each(listener, vec![answer, answer]);
            let target = target(Protocol::Http, port);
            let mut caller = Connector::new(target.clone()).unwrap().caller().await.unwrap();
            let error = infer(&mut caller, &target).await.unwrap_err();
            assert_eq!(error.code(), Code::Unavailable);
            assert!(error.message().contains(expected), "{error}");
            assert!(error.message().contains(&format!("http://127.0.0.1:{port}")), "{error}");
        }
    });
}

#[test]
fn error_messages_of_the_server_are_kept() {
    run(async {
        for (answer, code, expected) in [
            (
                "HTTP/1.1 400 Bad Request\r\nContent-Length: 21\r\n\r\n{\"error\":\"no \\\"m\\\"\"}  ",
                Code::InvalidArg,
                "no \"m\"",
            ),
            (
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                Code::NotFound,
                "HTTP status 404 for the inference request",
            ),
            (
                "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nnope",
                Code::Unavailable,
                "HTTP status 502 for the inference request: nope",
            ),
        ] {
            let (listener, port) = listen().await;
            answer_each(listener, vec![answer]);
            let target = target(Protocol::Http, port);
            let mut caller = Connector::new(target.clone()).unwrap().caller().await.unwrap();
            let error = infer(&mut caller, &target).await.unwrap_err();
            assert_eq!((error.code(), error.message()), (code, expected));
        }
    });
}

#[test]
fn large_tensors_are_sent_and_received() {
    run(async {
        let (listener, port) = listen().await;
        let data: Vec<u8> = (0..3 << 20).map(|at: u32| at as u8).collect();
        let expected = Bytes::from(data.clone());
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (head, body) = request(&mut stream).await;
            let length = "Inference-Header-Content-Length: ";
            let length = head.lines().find_map(|line| line.strip_prefix(length)).unwrap();
            let tensor = &body[length.parse().unwrap()..];
            let json = format!(
                r#"{{"outputs":[{{"name":"B","datatype":"UINT8","shape":[1],"parameters":{{"binary_data_size":{}}}}}]}}"#,
                tensor.len()
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\nInference-Header-Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
                json.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            for chunk in [json.as_bytes(), tensor] {
                stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await.unwrap();
                stream.write_all(chunk).await.unwrap();
                stream.write_all(b"\r\n").await.unwrap();
            }
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        });
        let target = target(Protocol::Http, port);
        let prepared = PreparedInfer::new(&target, &template(data)).unwrap();
        let mut caller = Connector::new(target).unwrap().caller().await.unwrap();
        let reply =
            caller.infer(&prepared, InferMark::default(), KeepResponse::Outputs).await.unwrap();
        let [output] = &reply.outputs[..] else { panic!("{}", reply.outputs.len()) };
        assert!(output.data == expected);
    });
}

#[test]
fn a_response_before_the_whole_request_is_read_is_used() {
    run(async {
        let (listener, port) = listen().await;
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig";
            stream.write_all(answer.as_bytes()).await.unwrap();
            // The rest is read to the end, or the reset may overtake the answer.
            let mut rest = vec![0; 1 << 20];
            while stream.read(&mut rest).await.unwrap() > 0 {}
        });
        let target = target(Protocol::Http, port);
        let prepared = PreparedInfer::new(&target, &template(vec![1; 1 << 20])).unwrap();
        let mut caller = Connector::new(target).unwrap().caller().await.unwrap();
        let error =
            caller.infer(&prepared, InferMark::default(), KeepResponse::Nothing).await.unwrap_err();
        assert_eq!(error.message(), "HTTP status 413 for the inference request: big");
    });
}

#[test]
fn an_unreachable_server_is_named() {
    run(async {
        let (listener, port) = listen().await;
        drop(listener);
        let connector = Connector::new(target(Protocol::Http, port)).unwrap();
        let error = connector.caller().await.err().unwrap();
        let url = format!("http://127.0.0.1:{port}");
        assert!(error.message().starts_with(&format!("failed to connect to {url}: ")), "{error}");
        assert!(error.message().ends_with("is the server running, and is this its HTTP port?"));
    });
}

#[test]
fn prepared_requests_of_the_other_protocol_are_refused() {
    run(async {
        let (_listener, port) = listen().await;
        let prepared = PreparedInfer::new(&target(Protocol::Grpc, port), &template("a")).unwrap();
        let connector = Connector::new(target(Protocol::Http, port)).unwrap();
        let mut caller = connector.caller().await.unwrap();
        let reply = caller.infer(&prepared, InferMark::default(), KeepResponse::Nothing).await;
        assert_eq!(reply.unwrap_err().code(), Code::InvalidArg);
        assert_eq!(connector.stream().await.err().unwrap().code(), Code::Unsupported);
    });
}

/// Each call of the admin interface requests its path.
#[test]
fn admin_calls_use_their_paths() {
    run(async {
        let (listener, port) = listen().await;
        let served = spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = Vec::new();
            for _ in 0..9 {
                let (head, body) = request(&mut stream).await;
                let line = head.lines().next().unwrap().to_owned();
                seen.push((line, String::from_utf8(body).unwrap()));
                stream.write_all(OK.as_bytes()).await.unwrap();
            }
            seen
        });
        let connector = Connector::new(target(Protocol::Http, port)).unwrap();
        let mut admin = connector.admin().await.unwrap();
        admin.server_metadata().await.unwrap();
        admin.model_metadata("m", "").await.unwrap();
        admin.model_config("m", "3").await.unwrap();
        admin.statistics("", "").await.unwrap();
        admin.statistics("m", "").await.unwrap();
        let fields = [
            ("trace_level".to_owned(), vec!["TIMESTAMPS".to_owned()]),
            ("trace_rate".to_owned(), vec!["5".to_owned()]),
        ];
        admin.set_trace("", &fields).await.unwrap();
        admin.register_system_region("r", "/key", 64).await.unwrap();
        admin.unregister_system_region("r").await.unwrap();
        admin.unregister_system_region("").await.unwrap();
        let seen = served.await.unwrap();
        let expected = [
            ("GET /v2 ", ""),
            ("GET /v2/models/m ", ""),
            ("GET /v2/models/m/versions/3/config ", ""),
            ("GET /v2/models/stats ", ""),
            ("GET /v2/models/m/stats ", ""),
            ("POST /v2/trace/setting ", r#"{"trace_level":["TIMESTAMPS"],"trace_rate":"5"}"#),
            (
                "POST /v2/systemsharedmemory/region/r/register ",
                r#"{"byte_size":64,"key":"/key","offset":0}"#,
            ),
            ("POST /v2/systemsharedmemory/region/r/unregister ", "{}"),
            ("POST /v2/systemsharedmemory/unregister ", "{}"),
        ];
        assert_eq!(seen.len(), expected.len());
        for ((line, body), (start, text)) in seen.iter().zip(expected) {
            assert!(line.starts_with(start), "{line}");
            assert_eq!(body, text, "{line}");
        }
    });
}

#[test]
fn get_returns_status_and_body() {
    run(async {
        let (listener, port) = listen().await;
        answer_each(listener, vec!["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nx 1\n"]);
        let url = format!("127.0.0.1:{port}/metrics");
        let (status, body) = get(&url, GetOptions::default()).await.unwrap();
        assert_eq!((status, &body[..]), (200, &b"x 1\n"[..]));
    });
}

#[test]
fn responses_are_read_up_to_a_limit() {
    run(async {
        let length = OK.len();
        for (limit, is_read) in [(length, true), (length - 1, false)] {
            let (listener, port) = listen().await;
            answer_each(listener, vec![OK]);
            let connector =
                Connector::with_response_limit(target(Protocol::Http, port), limit).unwrap();
            let metadata = connector.admin().await.unwrap().server_metadata().await;
            assert_eq!(metadata.is_ok(), is_read, "{metadata:?}");

            let (listener, port) = listen().await;
            answer_each(listener, vec![OK]);
            let fetched = get(
                &format!("127.0.0.1:{port}/metrics"),
                GetOptions { limit, ..GetOptions::default() },
            )
            .await;
            assert_eq!(fetched.is_ok(), is_read, "{fetched:?}");
        }
    });
}
