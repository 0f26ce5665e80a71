//! What is answered, byte for byte, and whether the connection goes on: as it was with hyper, from which it was recorded, but
//! for what RFC 9112 has refused and hyper takes: no Host or two, line feeds alone, codings that are not known.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
};

use galatea_engine::ControlMode;
use galatea_http::HttpOptions;
use galatea_test_support::{PATIENCE, eventually};
use galatea_types::product;

use crate::{Fixture, client::Client};

/// Pairs of lines: `> ` what is sent, `< ` what comes back and how it ends. `~`: the server has read what was sent before
/// the rest is; `LONG` forty kilobytes, `<EOF>` the end of what the client sends.
const RECORDED: &str = include_str!("bytes.txt");
const ESTABLISHED: &str = "01";

fn unescaped(text: &str) -> Vec<u8> {
    let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0");
    let text = text.replace("LONG", &"a".repeat(40 << 10));
    // The one byte that is no UTF-8.
    text.split('ÿ').map(str::as_bytes).collect::<Vec<_>>().join(&0xff)
}

/// Whether the server has taken everything from its end of the connection, or has closed it.
fn has_read_all(stream: &TcpStream) -> bool {
    let in_table = |address: SocketAddr| match address {
        SocketAddr::V4(v4) => {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(v4.ip().octets()), v4.port())
        }
        SocketAddr::V6(_) => panic!("the tests listen on IPv4"),
    };
    // A connection that the server has reset has no other end any more.
    let Ok(server) = stream.peer_addr() else { return true };
    let server = in_table(server);
    let client = in_table(stream.local_addr().expect("connected"));
    let table = fs::read_to_string("/proc/net/tcp").expect("the table of connections");
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row[1] == server && row[2] == client && row[3] == ESTABLISHED);
    row.is_none_or(|row| row[4].ends_with(":00000000"))
}

fn send(stream: &mut TcpStream, sent: &str) {
    let open = sent.strip_suffix("<EOF>");
    for part in open.unwrap_or(sent).split('~') {
        // The server may have closed already.
        let _ = stream.write_all(&unescaped(part));
        eventually("the server has read what was sent", || has_read_all(stream));
    }
    if open.is_some() {
        stream.shutdown(Shutdown::Write).expect("half closed");
    }
}

/// Everything that comes in answer to `sent`, and whether the connection goes on then.
fn said(address: SocketAddr, sent: &str, expected: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    send(&mut stream, sent);
    let mut all = Vec::new();
    if let Some(answer) = expected.strip_suffix("<open>") {
        let length = unescaped(&answer.replace("PROGRAM", product::NAME_SLASH_VERSION)).len();
        (&stream).take(length as u64).read_to_end(&mut all).expect("an answer of that length");
        // One thread serves all connections: once it has answered another client twice, it has done all that there was to
        // do for this one.
        let mut other = Client::connect(address);
        for _ in 0..2 {
            assert_eq!(other.get("/v2/health/live").status, 200);
        }
        stream.set_nonblocking(true).expect("set");
    }
    let end = match stream.read_to_end(&mut all) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => "<open>",
        _ => "<closed>",
    };
    let text = String::from_utf8(all).expect("text");
    let text = text.replace(product::NAME_SLASH_VERSION, "PROGRAM");
    text.replace('\r', "\\r").replace('\n', "\\n") + end
}

#[test]
fn responses_equal_the_recorded_ones() {
    let options = HttpOptions { thread_count: 1, ..Default::default() };
    let fixture = Fixture::with(ControlMode::None, options);
    let lines: Vec<&str> = RECORDED.lines().collect();
    let pairs: Vec<(&str, &str)> =
        lines.chunks(2).map(|pair| (&pair[0][2..], &pair[1][2..])).collect();
    thread::scope(|scope| {
        for (sent, expected) in pairs {
            let address = fixture.address;
            scope.spawn(move || assert_eq!(said(address, sent, expected), expected, "{sent}"));
        }
    });
}
