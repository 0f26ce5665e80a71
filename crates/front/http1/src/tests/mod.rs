//! Heads and bodies as they come, however they are cut.

mod refusals;

use http::{Method, StatusCode};
use proptest::prelude::*;

use super::*;

/// A request as it was read: head and content.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    line: (String, String, Option<String>),
    headers: Vec<(String, Vec<u8>)>,
    flags: (Version, bool, bool),
    content: Vec<u8>,
    chunks: u32,
}

/// The requests of a stream that comes in these pieces, up to the first fault, and whether there was one.
pub(crate) fn requests_of(pieces: &[&[u8]]) -> (Vec<Read>, Option<String>) {
    let (mut found, mut waiting, mut seen) = (Vec::new(), Vec::new(), 0);
    let mut open: Option<(BodyDecoder, Read)> = None;
    for piece in pieces {
        waiting.extend_from_slice(piece);
        loop {
            if let Some((decoder, read)) = &mut open {
                let step = match decoder.step(&waiting) {
                    Ok(step) => step,
                    Err(fault) => return (found, Some(fault.to_string())),
                };
                let end = step.skipped + step.data;
                read.content.extend_from_slice(&waiting[step.skipped..end]);
                waiting.drain(..end);
                read.chunks = decoder.chunks();
                let is_finished = decoder.is_finished();
                if is_finished {
                    found.extend(open.take().map(|(_, read)| read));
                } else if waiting.is_empty() {
                    break;
                }
                continue;
            }
            let mut head = RequestHead::default();
            match head.read(&waiting, seen) {
                Err(error) => return (found, Some(error.to_string())),
                Ok(None) => {
                    seen = waiting.len();
                    break;
                }
                Ok(Some(length)) => {
                    waiting.drain(..length);
                    seen = 0;
                    open = Some((BodyDecoder::new(head.framing()), read(&head)));
                }
            }
        }
    }
    (found, None)
}

fn read(head: &RequestHead) -> Read {
    let headers = head.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Read {
        line: (head.method().to_string(), head.path().to_owned(), head.query().map(str::to_owned)),
        headers: headers.collect(),
        flags: (head.version(), head.keeps_alive(), head.expects_continue()),
        content: Vec::new(),
        chunks: 0,
    }
}

fn one(text: &str) -> Read {
    let (mut found, fault) = requests_of(&[text.as_bytes()]);
    assert_eq!((found.len(), fault), (1, None), "{text:?}");
    found.remove(0)
}

pub(crate) fn fault_of(text: &str) -> String {
    requests_of(&[text.as_bytes()]).1.unwrap_or_else(|| panic!("{text:?} was taken"))
}

#[test]
fn a_request_head_is_parsed() {
    let read = one(
        "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nX-Two:  1 \r\nx-two:\r\ncontent-LENGTH: 3\r\n\r\nabc",
    );
    assert_eq!(read.line, ("POST".to_owned(), "/a/b".to_owned(), Some("c=d".to_owned())));
    let names: Vec<_> = read.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Host", "X-Two", "x-two", "content-LENGTH"]);
    assert_eq!((read.content, read.flags), (b"abc".to_vec(), (Version::Http11, true, false)));
    let mut head = RequestHead::default();
    let text = b"GET http://h:1/p?q#f HTTP/1.0\r\nA: 1\r\na: 2\r\nEmpty:\r\n\r\n";
    assert_eq!(head.read(text, 0), Ok(Some(text.len())));
    assert_eq!((head.path(), head.query()), ("/p", Some("q")));
    assert_eq!(head.get("A"), Some(&b"1"[..]));
    assert_eq!(head.get_all("a").collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!((head.get("empty"), head.get("b")), (Some(&b""[..]), None));
    assert_eq!((head.version(), head.keeps_alive()), (Version::Http10, false));
}

#[test]
fn a_reused_head_shows_nothing_of_the_previous_one() {
    let mut head = RequestHead::default();
    let long = b"POST /long?q HTTP/1.0\r\nA: 1\r\nExpect: x\r\nContent-Length: 7\r\n\r\n";
    let short = b"GET /s HTTP/1.1\r\nHost: x\r\n\r\n";
    for _ in 0..2 {
        assert_eq!(head.read(long, 0), Ok(Some(long.len())));
        assert_eq!(head.read(short, 0), Ok(Some(short.len())));
        assert_eq!((head.path(), head.query(), head.get("a")), ("/s", None, None));
        assert_eq!((head.framing(), head.keeps_alive()), (Framing::Length(0), true));
    }
}

/// Each request is refused or is the last one read, so no second request can hide in its body.
#[test]
fn contradictory_body_lengths_are_refused() {
    let post = |headers: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n0\r\n\r\n");
    for (headers, fault) in [
        ("Content-Length: ten", "invalid content-length parsed"),
        ("Content-Length: +5", "invalid content-length parsed"),
        ("Content-Length: -5", "invalid content-length parsed"),
        ("Content-Length: 5, 5", "invalid content-length parsed"),
        ("Content-Length:", "invalid content-length parsed"),
        ("Content-Length: 5\r\nContent-Length: 6", "invalid content-length parsed"),
        ("Content-Length: 18446744073709551616", "invalid content-length parsed"),
        ("Content-Length: 18446744073709551615", "message head is too large"),
        ("Transfer-Encoding: gzip", "invalid transfer-encoding parsed"),
        ("Transfer-Encoding: chunked, gzip", "invalid transfer-encoding parsed"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
            "invalid transfer-encoding parsed",
        ),
        ("Transfer-Encoding: chunke\u{e9}d", "invalid transfer-encoding parsed"),
        ("A: b\r\n c", "invalid HTTP header parsed"),
        ("Content-Length : 5", "invalid HTTP header parsed"),
    ] {
        assert_eq!(fault_of(&post(headers)), fault, "{headers}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(fault_of(old), "unexpected transfer-encoding parsed");
    let both = [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\ncontent-length: x",
    ];
    for headers in both {
        let read = one(&post(headers));
        assert_eq!(read.flags, (Version::Http11, false, false), "the last one");
        assert_eq!(read.headers.len(), 2, "a length that does not hold is not shown");
    }
    let twice =
        one("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!((twice.content, twice.headers.len()), (b"ab".to_vec(), 2));
}

#[test]
fn malformed_heads_have_their_own_errors() {
    for (text, status) in [
        ("G@T / HTTP/1.1\r\nHost: x\r\n\r\n", Some(400)),
        ("GET a/b HTTP/1.1\r\nHost: x\r\n\r\n", Some(400)),
        ("GET / HTTP/1.2\r\n\r\n", Some(400)),
        ("GET /\r\n\r\n", Some(400)),
        ("PRI * HTTP/2.0\r\n\r\n", Some(400)),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
        (&format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(MAX_HEAD)), Some(431)),
        (
            &format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1)),
            Some(431),
        ),
        (&"a".repeat(MAX_HEAD), Some(431)),
    ] {
        let error = RequestHead::default().read(text.as_bytes(), 0).expect_err(text);
        assert_eq!(error.status().map(|status| status.as_u16()), status, "{error}");
    }
    let most = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS - 1));
    assert_eq!(one(&most).headers.len(), MAX_HEADERS);
}

#[test]
fn keep_alive_follows_version_and_connection_header() {
    for (version, connection, keeps_alive) in [
        ("1.1", "x", true),
        ("1.1", "close", false),
        ("1.1", "x, Close", false),
        ("1.1", "close\r\nConnection: keep-alive", false),
        ("1.0", "x", false),
        ("1.0", "Keep-Alive", true),
        ("1.0", "keep-alive\r\nConnection: close", false),
        ("1.1", "clos\u{e9}, close", true),
    ] {
        let read =
            one(&format!("GET / HTTP/{version}\r\nHost: x\r\nConnection: {connection}\r\n\r\n"));
        assert_eq!(read.flags.1, keeps_alive, "{version} {connection}");
    }
    for (version, expectation, waits) in
        [("1.1", "100-Continue", true), ("1.0", "100-continue", false), ("1.1", "x", false)]
    {
        let read =
            one(&format!("GET / HTTP/{version}\r\nHost: x\r\nExpect: {expectation}\r\n\r\n"));
        assert_eq!(read.flags.2, waits, "{version} {expectation}");
    }
}

fn chunked(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn chunks_are_joined_without_their_framing() {
    let read = one(&chunked("3\r\nabc\r\n0A ;x=1\r\n0123456789\r\n000\r\nA: b\r\nC:\r\n\r\n"));
    assert_eq!((read.content, read.chunks), (b"abc0123456789".to_vec(), 2));
    let long = "a".repeat(20 << 10);
    for (body, fault) in [
        ("zz\r\n", "invalid chunk size"),
        ("\r\n", "invalid chunk size"),
        ("5\nhello", "invalid chunk size"),
        ("5 1\r\n", "invalid chunk size"),
        ("5\rx", "invalid chunk size"),
        ("fffffffffffffffff\r\n", "invalid chunk size: overflow"),
        ("5\r\nhello!\r\n", "invalid chunk end"),
        ("5\r\nhello\n", "invalid chunk end"),
        ("5\r\nhello\rx", "invalid chunk end"),
        ("5;a\nb\r\n", "invalid chunk extension contains newline"),
        (&format!("5;{long}"), "chunk extensions over limit"),
        (&format!("5{}", " ".repeat(20 << 10)), "chunk extensions over limit"),
        (&format!("5\r\nhello\r\n{}5\r\n", "0".repeat(16)), "invalid chunk size: overflow"),
        ("0\r\nno colon\r\n\r\n", "invalid chunk trailers"),
        ("0\r\nA: b\rc\r\n\r\n", "invalid chunk trailers"),
        ("0\r\n\rx", "invalid chunk end"),
        (&format!("0\r\nA: {long}{long}"), "chunk trailers over limit"),
        (&format!("0\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1)), "chunk trailers over limit"),
    ] {
        assert_eq!(fault_of(&chunked(body)), fault, "{body:.40}");
    }
}

#[test]
fn lengths_may_have_leading_zeros() {
    let body = "0000000000000001\r\na\r\n".repeat(3) + "0000000000000000\r\n\r\n";
    assert_eq!(one(&chunked(&body)).content, b"aaa");
}

#[test]
fn a_slow_head_is_not_parsed_again_with_each_byte() {
    let text = b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut head = RequestHead::default();
    for end in 1..text.len() {
        assert_eq!(head.read(&text[..end], end - 1), Ok(None), "{end}");
    }
    assert_eq!(head.read(text, text.len() - 1), Ok(Some(text.len())));
}

fn written(version: Version, method: Method, head: &ResponseHead, length: Option<u64>) -> String {
    let mut text = Vec::new();
    head.write(version, &method, length, &mut text);
    String::from_utf8(text).expect("text")
}

#[test]
fn heads_of_responses_give_the_body_length() {
    use Version::{Http10, Http11};
    let ok = ResponseHead::new(StatusCode::OK);
    for (version, method, length, line, encoding) in [
        (Http11, Method::GET, Some(3), "Content-Length: 3\r\n", Encoding::Plain),
        (Http11, Method::HEAD, Some(3), "Content-Length: 3\r\n", Encoding::Nothing),
        (Http11, Method::GET, Some(0), "Content-Length: 0\r\n", Encoding::Nothing),
        (Http11, Method::HEAD, Some(0), "", Encoding::Nothing),
        (Http11, Method::GET, None, "Transfer-Encoding: chunked\r\n", Encoding::Chunked),
        (Http11, Method::HEAD, None, "", Encoding::Nothing),
        (Http10, Method::GET, None, "", Encoding::UntilClose),
    ] {
        let text = written(version, method.clone(), &ok, length);
        assert!(text.ends_with(&format!(" 200 OK\r\n{line}\r\n")), "{text}");
        assert_eq!(Encoding::of(version, &method, ok.status, length), encoding, "{text}");
    }
    let known = ResponseHead::new(StatusCode::NOT_MODIFIED);
    let text = written(Http10, Method::GET, &known, Some(3));
    assert_eq!(text, "HTTP/1.0 304 Not Modified\r\n\r\n");
    let encoding = Encoding::of(Http11, &Method::GET, known.status, None);
    assert_eq!(encoding, Encoding::Nothing);
}

#[test]
fn headers_are_written_in_order_and_replaced_in_place() {
    let mut head = ResponseHead::new(StatusCode::UNAUTHORIZED);
    head.set(names::CONTENT_TYPE, "text/plain");
    head.add(names::WWW_AUTHENTICATE, "a");
    head.add(names::WWW_AUTHENTICATE, "b");
    head.set(names::RETRY_AFTER, 7);
    head.set(names::CONTENT_TYPE, String::from("x"));
    head.set(names::SERVER, "s");
    assert_eq!(head.remove(names::SERVER), Some("s".into()));
    assert_eq!(
        written(Version::Http11, Method::GET, &head, Some(0)),
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: x\r\nWww-Authenticate: a\r\nWww-Authenticate: b\r\n\
         Retry-After: 7\r\nContent-Length: 0\r\n\r\n"
    );
}

#[test]
fn chunk_sizes_are_hexadecimal() {
    for length in [1, 9, 10, 15, 16, 255, 256, 65_535, 1 << 20, usize::MAX] {
        let mut text = Vec::new();
        write_chunk_size(length, &mut text);
        assert_eq!(String::from_utf8(text).expect("text"), format!("{length:X}\r\n"));
    }
}

/// Requests that are right, of all framings.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(any::<u8>(), 0..40);
    let request = (body, 0..4_u8, 1..9_usize).prop_map(|(body, framing, size)| {
        let mut bytes = b"POST /p?q HTTP/1.1\r\nHost: x\r\nX-A: b\r\n".to_vec();
        match framing {
            0 => bytes.extend(b"\r\n"),
            1 | 2 => {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                bytes.extend(&body);
            }
            _ => {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks(size) {
                    bytes.extend(format!("{:x};e\r\n", chunk.len()).bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\nT: u\r\n\r\n");
            }
        }
        bytes
    });
    prop::collection::vec(request, 1..4).prop_map(|requests| requests.concat())
}

fn cut<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn requests_are_the_same_at_any_network_split(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let whole = requests_of(&[&bytes]);
        prop_assert!(!whole.0.is_empty() && whole.1.is_none());
        prop_assert_eq!(requests_of(&cut(&bytes, &cuts)), whole);
    }

    #[test]
    fn damaged_requests_are_the_same_up_to_their_error(
        bytes in stream(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut bytes = bytes;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (whole, pieces) = (requests_of(&[&bytes]), requests_of(&cut(&bytes, &cuts)));
        prop_assert_eq!(&pieces.0, &whole.0);
        // A fault in a head that comes in pieces is told once the head may be complete.
        prop_assert!(pieces.1 == whole.1 || pieces.1.is_none());
    }
}
