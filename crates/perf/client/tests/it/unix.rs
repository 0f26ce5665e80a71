//! The client over Unix sockets, and descriptors that it passes.

use std::{
    fs::File,
    io::{self, IoSliceMut, Read, Seek},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use galatea_client::{
    Connector, Endpoint, InferMark, KeepResponse, PreparedInfer, Protocol, Target,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{UnixListener, UnixStream},
    task::spawn_local,
};

use crate::support::{run, target, template};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn unix(protocol: Protocol, path: &Path) -> Target {
    Target { endpoint: Endpoint::Unix(path.to_owned()), ..target(protocol, 1) }
}

/// A folder, and a socket in it on which a test listens.
fn listen() -> (tempfile::TempDir, UnixListener, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    (folder, UnixListener::bind(&path).unwrap(), path)
}

/// Reads what there is now, with the descriptors that came with it.
async fn receive(stream: &UnixStream, bytes: &mut [u8]) -> (usize, Vec<OwnedFd>) {
    let mut receive = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(bytes)];
        let message = recvmsg(stream, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        Ok((message.bytes, descriptors.collect()))
    };
    loop {
        stream.readable().await.unwrap();
        match stream.try_io(Interest::READABLE, &mut receive) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result.unwrap(),
        }
    }
}

/// Reads a request up to the end of its JSON body; returns its text and the descriptors that came with its first byte.
async fn request(stream: &mut UnixStream) -> (String, Vec<OwnedFd>) {
    let mut first = [0];
    let (count, descriptors) = receive(stream, &mut first).await;
    assert_eq!(count, 1);
    let mut text = first.to_vec();
    while text.last() != Some(&b'}') {
        text.push(stream.read_u8().await.unwrap());
    }
    (String::from_utf8(text).unwrap(), descriptors)
}

fn memory(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    io::Write::write_all(&mut file, content).unwrap();
    file
}

#[test]
fn both_protocols_reach_a_unix_socket() {
    run(async {
        let (_folder, listener, path) = listen();
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (text, descriptors) = request(&mut stream).await;
            assert!(text.starts_with("POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n"));
            assert!(descriptors.is_empty());
            stream.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(OK).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let (request, mut respond) = connection.accept().await.unwrap().unwrap();
            assert_eq!(request.uri().authority().unwrap(), "localhost");
            let trailers = http::Response::builder().header("grpc-status", "14");
            respond.send_response(trailers.body(()).unwrap(), true).unwrap();
            while connection.accept().await.is_some() {}
        });
        for protocol in [Protocol::Http, Protocol::Grpc] {
            let target = unix(protocol, &path);
            let prepared = PreparedInfer::new(&target, &template("abcd")).unwrap();
            let mut caller = Connector::new(target).unwrap().caller().await.unwrap();
            let mark = InferMark::default();
            let reply = caller.infer(&prepared, mark, KeepResponse::Nothing).await;
            match protocol {
                Protocol::Http => assert!(reply.is_ok(), "{reply:?}"),
                Protocol::Grpc => {
                    assert!(reply.unwrap_err().message().contains("status 14 (UNAVAILABLE)"));
                }
            }
        }
    });
}

#[test]
fn memory_goes_with_the_first_bytes_of_its_registration() {
    run(async {
        let (_folder, listener, path) = listen();
        let server = spawn_local(async move {
            let mut contents = Vec::new();
            // The second connection replaces the first, which closes while it is idle.
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (text, descriptors) = request(&mut stream).await;
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(
                    head.starts_with(
                        "POST /v2/systemsharedmemory/region/a%2Fb/register HTTP/1.1\r\n"
                    ),
                    "{head}"
                );
                assert!(head.contains("x-key: value\r\n"), "{head}");
                assert_eq!(body, r#"{"byte_size":5,"offset":0}"#);
                let [descriptor] = <[OwnedFd; 1]>::try_from(descriptors).unwrap();
                let (mut file, mut content) = (File::from(descriptor), String::new());
                file.rewind().unwrap();
                file.read_to_string(&mut content).unwrap();
                contents.push(content);
                stream.write_all(OK).await.unwrap();
            }
            contents
        });
        let mut admin = Connector::new(unix(Protocol::Http, &path)).unwrap().admin().await.unwrap();
        for content in ["first", "again"] {
            let memory = memory(content.as_bytes());
            admin.register_passed_region("a/b", memory.as_fd(), 5).await.unwrap();
        }
        assert_eq!(server.await.unwrap(), ["first", "again"]);
    });
}

#[test]
fn memory_is_passed_only_over_http_on_a_unix_socket() {
    run(async {
        let memory = memory(b"abc");
        let (listener, port) = crate::support::listen().await;
        let tcp = target(Protocol::Http, port);
        let mut admin = Connector::new(tcp).unwrap().admin().await.unwrap();
        let error = admin.register_passed_region("r", memory.as_fd(), 3).await.unwrap_err();
        assert!(
            error
                .message()
                .contains(&format!("http://127.0.0.1:{port} is none; expected unix:PATH"))
        );
        drop(listener);
        let (_folder, listener, path) = listen();
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            h2::server::handshake(stream).await.unwrap().accept().await;
        });
        let mut admin = Connector::new(unix(Protocol::Grpc, &path)).unwrap().admin().await.unwrap();
        let error = admin.register_passed_region("r", memory.as_fd(), 3).await.unwrap_err();
        assert!(error.message().ends_with("only over HTTP on a Unix socket"), "{error}");
    });
}

#[test]
fn a_socket_that_is_not_there_is_named() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        for (protocol, name) in [(Protocol::Http, "HTTP"), (Protocol::Grpc, "gRPC")] {
            let connected = Connector::new(unix(protocol, &path)).unwrap().admin().await;
            let error = connected.map(|_| ()).unwrap_err();
            let expected = format!("failed to connect to unix:{}: No such file", path.display());
            assert!(error.message().starts_with(&expected), "{error}");
            assert!(error.message().ends_with(&format!("is this the path of its {name} socket?")));
        }
    });
}
