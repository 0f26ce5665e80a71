//! The front end on a Unix socket.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
};

use galatea_http::{HttpOptions, serve};

use crate::{
    Fixture,
    client::{fp32, head},
};

#[test]
fn inference_works_over_a_unix_socket() {
    let fixture = Fixture::start();
    let folder = tempfile::tempdir().expect("temp dir");
    let path = folder.path().join("http");
    let listener = UnixListener::bind(&path).expect("binds");
    let server = serve(listener, &fixture.engine, &HttpOptions::default()).expect("serves");
    let mut client = UnixStream::connect(&path).expect("connects");
    let body = fp32("[5]", 1);
    let headers = [("Connection", "close")];
    let request = head("POST", "/v2/models/identity_fp32/infer", &headers, body.len()) + &body;
    client.write_all(request.as_bytes()).expect("sends");
    let mut reply = String::new();
    client.read_to_string(&mut reply).expect("a reply");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    assert!(reply.ends_with("\"data\":[5.0]}]}"), "{reply}");
    assert_eq!(server.local_addr(), None);
}
