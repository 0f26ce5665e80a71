//! What is answered, byte for byte, and whether the connection goes on: as it was with hyper, from which it was recorded.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use galatea_types::product;

use crate::Fixture;

/// Pairs of lines: `> ` what is sent, `< ` what comes back and how it ends. `~` is a pause, `LONG` forty kilobytes, `<EOF>`
/// the end of what the client sends.
const RECORDED: &str = include_str!("bytes.txt");
/// So long nothing comes on a connection that goes on.
const QUIET: Duration = Duration::from_millis(1200);
const PAUSE: Duration = Duration::from_millis(40);

fn unescaped(text: &str) -> Vec<u8> {
    let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0");
    let text = text.replace("LONG", &"a".repeat(40 << 10));
    // The one byte that is no UTF-8.
    text.split('ÿ').map(str::as_bytes).collect::<Vec<_>>().join(&0xff)
}

fn said(address: SocketAddr, sent: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(QUIET)).expect("a limit");
    let open = sent.strip_suffix("<EOF>");
    for part in open.unwrap_or(sent).split('~') {
        // The server may have closed already.
        let _ = stream.write_all(&unescaped(part));
        thread::sleep(PAUSE);
    }
    if open.is_some() {
        stream.shutdown(Shutdown::Write).expect("half closed");
    }
    let mut all = Vec::new();
    let end = match stream.read_to_end(&mut all) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => "<open>",
        _ => "<closed>",
    };
    let text = String::from_utf8(all).expect("text");
    let text = text.replace(product::NAME_SLASH_VERSION, "PROGRAM");
    text.replace('\r', "\\r").replace('\n', "\\n") + end
}

#[test]
fn answers_are_the_recorded_ones() {
    let fixture = Fixture::start();
    let lines: Vec<&str> = RECORDED.lines().collect();
    let pairs: Vec<(&str, &str)> =
        lines.chunks(2).map(|pair| (&pair[0][2..], &pair[1][2..])).collect();
    thread::scope(|scope| {
        for (sent, expected) in pairs {
            let address = fixture.address;
            scope.spawn(move || assert_eq!(said(address, sent), expected, "{sent}"));
        }
    });
}
