//! Connections with TLS: however its client cuts records and the network cuts their bytes, the answer is the same; and
//! records that are changed end the connection.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{Arc, LazyLock},
};

use arbitrary::{Arbitrary, Unstructured};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use crate::{
    edits::{self, Edit},
    server::{DEADLINE, HTTP, HTTPS},
    session::{Ending, exchange},
    tls_files,
};

/// Two requests in a row; the server closes behind the second.
const REQUESTS: &str = concat!(
    "POST /v2/models/simple/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 179\r\n\r\n",
    r#"{"inputs":[{"name":"INPUT0","shape":[1,4],"datatype":"INT32","data":[1,2,3,4]},"#,
    r#"{"name":"INPUT1","shape":[1,4],"datatype":"INT32","data":[5,6,7,8]}],"#,
    r#""outputs":[{"name":"OUTPUT0"}]}"#,
    "GET /v2/models/simple HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
);

static CLIENT: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let authority =
        CertificateDer::from_pem_file(tls_files::certificate("authority.pem")).expect("PEM");
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("an authority");
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
});

/// What the plain port answers.
static ANSWER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut stream = HTTP.connect();
    stream.write_all(REQUESTS.as_bytes()).expect("sends");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answers");
    answer
});

/// How a client divides what it says.
#[derive(Arbitrary, Debug)]
struct Client {
    /// Lengths of records, in turn.
    records: Vec<u8>,
    /// Lengths of what is sent at once, in turn.
    writes: Vec<u16>,
    /// Changes to the bytes of the records.
    edits: Vec<Edit>,
}

/// Any bytes where a handshake is expected.
pub fn handshake(data: &[u8]) {
    exchange(&HTTPS, data, data.len(), Ending::HalfClose);
}

/// Requests in records, cut anywhere; and then changed.
pub fn records(data: &[u8]) {
    let Ok(client) = Unstructured::new(data).arbitrary::<Client>() else { return };
    let mut stream = HTTPS.connect();
    stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut session = ClientConnection::new(CLIENT.clone(), name).expect("a session");
    while session.is_handshaking() {
        session.complete_io(&mut stream).expect("a handshake");
    }
    let mut records = client.records(&mut session);
    edits::apply(&mut records, &client.edits);
    client.send(&mut stream, &records);
    if !client.edits.is_empty() {
        // A server that waits for the rest of a changed record learns that none comes; it may have closed already.
        let _ = stream.shutdown(Shutdown::Write);
    }
    let answer = receive(&mut session, &mut stream);
    if client.edits.is_empty() {
        assert_eq!(String::from_utf8_lossy(&answer), String::from_utf8_lossy(&ANSWER));
    }
    drop(stream);
    HTTPS.assert_idle();
}

impl Client {
    /// The requests, encrypted.
    fn records(&self, session: &mut ClientConnection) -> Vec<u8> {
        let mut records = Vec::new();
        for piece in pieces(REQUESTS.as_bytes(), self.records.iter().map(|&l| l.into())) {
            session.writer().write_all(piece).expect("into memory");
            while session.wants_write() {
                session.write_tls(&mut records).expect("into memory");
            }
        }
        records
    }

    /// Ends early where the server has closed.
    fn send(&self, stream: &mut UnixStream, bytes: &[u8]) {
        for piece in pieces(bytes, self.writes.iter().map(|&l| l.into())) {
            if stream.write_all(piece).is_err() {
                return;
            }
        }
    }
}

/// All of the bytes, in pieces of these lengths; the rest is the last one.
fn pieces(bytes: &[u8], lengths: impl Iterator<Item = usize>) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for length in lengths.filter(|length| *length > 0) {
        let (piece, more) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// All that the server says. Panics where it does not close in time.
fn receive(session: &mut ClientConnection, stream: &mut UnixStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(count) => {
                let mut received = &buffer[..count];
                while !received.is_empty() && session.read_tls(&mut received).is_ok() {
                    if session.process_new_packets().is_err() {
                        return answer;
                    }
                    // An error says that there is no more for now.
                    let _ = session.reader().read_to_end(&mut answer);
                }
            }
            Err(error) => {
                let is_open = error.kind() == ErrorKind::WouldBlock;
                assert!(!is_open, "the server keeps a connection that its client has ended");
                return answer;
            }
        }
    }
}
