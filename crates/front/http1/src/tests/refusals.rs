//! What RFC 9112 has a server refuse, sentence by sentence, and what others do there.
//!
//! The last two columns tell what others do: nginx 1.22.1 in front of a server, tried with each of these, and hyper 1.12 with
//! httparse 1.10, as its sources say (`role.rs`, `decode.rs`): a status, `taken`, `waits` for more, or `refused` where the reader
//! of a body fails. `None`: not checked.

use super::fault_of;

/// What is refused.
struct Refusal {
    section: &'static str,
    what: &'static str,
    /// A request; the body alone of one in chunks where it begins with [`CHUNKED`].
    sent: &'static str,
    fault: &'static str,
    nginx: &'static str,
    hyper: Option<&'static str>,
}

const CHUNKED: &str = "CHUNKED";
const HEAD: &str = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

#[rustfmt::skip]
const REFUSALS: &[Refusal] = &[
    Refusal { section: "2.2", what: "a line feed ends a line alone", nginx: "taken", hyper: Some("taken"),
        sent: "GET / HTTP/1.1\nHost: x\n\n",
        fault: "invalid line end parsed" },
    Refusal { section: "2.2", what: "a line feed before the request", nginx: "taken", hyper: Some("taken"),
        sent: "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        fault: "invalid line end parsed" },
    Refusal { section: "2.2", what: "a carriage return within a value", nginx: "400", hyper: Some("400"),
        sent: "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
        fault: "invalid HTTP header parsed" },
    Refusal { section: "2.2", what: "white space before the first header", nginx: "400", hyper: Some("400"),
        sent: "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        fault: "invalid HTTP header parsed" },
    Refusal { section: "3", what: "two spaces in the request line", nginx: "taken", hyper: Some("400"),
        sent: "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        fault: "invalid URI" },
    Refusal { section: "3.2", what: "no Host", nginx: "400", hyper: Some("taken"),
        sent: "GET / HTTP/1.1\r\nA: b\r\n\r\n",
        fault: "invalid host parsed" },
    Refusal { section: "3.2", what: "two Hosts", nginx: "400", hyper: Some("taken"),
        sent: "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        fault: "invalid host parsed" },
    Refusal { section: "3.2", what: "a Host that is none", nginx: "400", hyper: Some("taken"),
        sent: "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",
        fault: "invalid host parsed" },
    Refusal { section: "3.2", what: "a port that is none", nginx: "taken", hyper: Some("taken"),
        sent: "GET / HTTP/1.1\r\nHost: x:y\r\n\r\n",
        fault: "invalid host parsed" },
    Refusal { section: "5.1", what: "white space before the colon", nginx: "400", hyper: Some("400"),
        sent: "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
        fault: "invalid HTTP header parsed" },
    Refusal { section: "5.1", what: "a line without a colon", nginx: "taken", hyper: Some("400"),
        sent: "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n",
        fault: "invalid HTTP header parsed" },
    Refusal { section: "5.2", what: "a value that goes on in the next line", nginx: "400", hyper: Some("400"),
        sent: "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
        fault: "invalid HTTP header parsed" },
    Refusal { section: "6.1", what: "an unknown coding before the chunks", nginx: "501", hyper: Some("taken"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        fault: "unknown transfer-encoding parsed" },
    Refusal { section: "6.1", what: "the same on two lines", nginx: "400", hyper: Some("taken"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        fault: "unknown transfer-encoding parsed" },
    Refusal { section: "6.1", what: "chunks twice", nginx: "501", hyper: Some("taken"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        fault: "invalid transfer-encoding parsed" },
    Refusal { section: "6.1", what: "chunks of HTTP/1.0", nginx: "400", hyper: Some("400"),
        sent: "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        fault: "unexpected transfer-encoding parsed" },
    Refusal { section: "6.3", what: "another coding after the chunks", nginx: "501", hyper: Some("400"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        fault: "invalid transfer-encoding parsed" },
    Refusal { section: "6.3", what: "no chunks at all", nginx: "501", hyper: Some("400"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        fault: "invalid transfer-encoding parsed" },
    Refusal { section: "6.3", what: "a length that is no number", nginx: "400", hyper: Some("400"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n0",
        fault: "invalid content-length parsed" },
    Refusal { section: "6.3", what: "lengths that differ", nginx: "400", hyper: Some("400"),
        sent: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n0",
        fault: "invalid content-length parsed" },
    Refusal { section: "7.1", what: "white space before a size", nginx: "400", hyper: Some("refused"),
        sent: "CHUNKED 1\r\na\r\n0\r\n\r\n",
        fault: "invalid chunk size" },
    Refusal { section: "7.1", what: "a line feed alone behind a size", nginx: "taken", hyper: Some("refused"),
        sent: "CHUNKED1\na\r\n0\r\n\r\n",
        fault: "invalid chunk size" },
    Refusal { section: "7.1", what: "a size that overflows", nginx: "400", hyper: Some("refused"),
        sent: "CHUNKED10000000000000000\r\n",
        fault: "invalid chunk size: overflow" },
    Refusal { section: "7.1", what: "a line feed alone behind a chunk", nginx: "taken", hyper: Some("refused"),
        sent: "CHUNKED1\r\na\n0\r\n\r\n",
        fault: "invalid chunk end" },
    Refusal { section: "7.1.1", what: "a line feed in an extension", nginx: "waits", hyper: Some("refused"),
        sent: "CHUNKED1;a\nb\r\na\r\n0\r\n\r\n",
        fault: "invalid chunk extension contains newline" },
    Refusal { section: "7.1.2", what: "a line feed ends a trailer alone", nginx: "taken", hyper: None,
        sent: "CHUNKED0\r\nX: a\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        fault: "invalid chunk trailers" },
    Refusal { section: "7.1.2", what: "a line feed ends the trailers alone", nginx: "taken", hyper: None,
        sent: "CHUNKED0\r\n\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        fault: "invalid chunk trailers" },
    Refusal { section: "7.1.2", what: "a trailer that is no header", nginx: "taken", hyper: None,
        sent: "CHUNKED0\r\nno colon\r\n\r\n",
        fault: "invalid chunk trailers" },
];

#[test]
fn requests_refused_by_rfc_9112_are_refused() {
    for Refusal { section, what, sent, fault, nginx, hyper } in REFUSALS {
        let sent = sent.replace(CHUNKED, HEAD);
        let others = format!("nginx: {nginx:?}, hyper: {hyper:?}");
        assert_eq!(fault_of(&sent), *fault, "{section}, {what}: {sent:?} ({others})");
    }
}

#[test]
fn requests_accepted_by_rfc_9112_are_accepted() {
    for host in ["", "x", "x:", "x:80", "[::1]:80", "a_b.c-d", "%41", "1.2.3.4"] {
        let sent = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(super::tests::requests_of(&[sent.as_bytes()]).1, None, "{host}");
    }
    for codings in ["Chunked", ", chunked", "chunked\r\nTransfer-Encoding:"] {
        let sent =
            format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {codings}\r\n\r\n0\r\n\r\n");
        assert_eq!(super::tests::requests_of(&[sent.as_bytes()]).1, None, "{codings}");
    }
    let old = super::tests::requests_of(&[b"GET / HTTP/1.0\r\n\r\n"]);
    assert_eq!((old.0.len(), old.1), (1, None), "HTTP/1.0 had no Host");
}
