//! Responses as they come in pieces from the network.

use proptest::prelude::*;

use super::*;

const SIZED: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nInference-Header-Content-Length: 3\r\n\r\nhello";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
    3\r\nhel\r\n02;name=value\r\nlo\r\n0\r\nTrailer: x\r\n\r\n";
const TO_THE_END: &[u8] = b"HTTP/1.0 200 OK\r\n\r\nhello";
const INTERIM: &[u8] =
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
const REFUSED: &[u8] = b"HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\nhello";

/// Gives the parser the pieces one after another, and then the end.
fn parse<'a>(
    keep: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Response, ParseError> {
    let mut parser = ResponseParser::new(keep);
    let mut buffer = BytesMut::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        match parser.advance(&mut buffer)? {
            ParseProgress::Done(response) => return Ok(response),
            ParseProgress::More(missing) => assert!(missing > 0),
        }
    }
    parser.end(&mut buffer)
}

#[test]
fn responses_are_parsed_at_any_split() {
    for (bytes, status, keep_alive) in [
        (SIZED, 200, true),
        (CHUNKED, 200, true),
        (TO_THE_END, 200, false),
        (INTERIM, 200, false),
        (REFUSED, 400, true),
    ] {
        let header_length = (bytes == SIZED).then_some(3);
        for keep in [true, false] {
            let body = if keep || status != 200 { "hello" } else { "" };
            let expected = Response { status, header_length, keep_alive, body: body.into() };
            for at in 0..=bytes.len() {
                let (one, two) = bytes.split_at(at);
                assert_eq!(parse(keep, [one, two]).as_ref(), Ok(&expected), "{at} {keep}");
            }
            assert_eq!(parse(keep, bytes.chunks(1)).as_ref(), Ok(&expected), "{keep}");
        }
    }
}

#[test]
fn bytes_after_a_response_are_left() {
    for bytes in [SIZED, CHUNKED, REFUSED] {
        let mut buffer = BytesMut::from(bytes);
        buffer.extend_from_slice(b"HTTP/1.1 200");
        let progress = ResponseParser::new(false).advance(&mut buffer);
        assert!(matches!(progress, Ok(ParseProgress::Done(_))), "{progress:?}");
        assert_eq!(buffer, "HTTP/1.1 200");
    }
}

#[test]
fn truncated_responses_are_an_error() {
    for bytes in [SIZED, CHUNKED, INTERIM, REFUSED] {
        for end in 0..bytes.len() {
            assert_eq!(parse(true, [&bytes[..end]]), Err(ParseError::Truncated), "{end}");
        }
    }
}

#[track_caller]
fn refuse(text: &str, expected: &ParseError) {
    assert_eq!(parse(true, [text.as_bytes()]).as_ref(), Err(expected));
}

#[test]
fn malformed_responses_are_named() {
    refuse("\0\0\x12\x04\0\0\0\0\0", &ParseError::Head(httparse::Error::Version));
    let head = "HTTP/1.1 200 OK\r\n";
    for length in ["x", "-1", "+1", "", "99999999999999999999"] {
        refuse(
            &format!("{head}Content-Length: {length}\r\n\r\n"),
            &ParseError::ContentLength(length.into()),
        );
    }
    refuse(
        &format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        &ParseError::ContentLength("2".into()),
    );
    let transfer = |value| format!("{head}Transfer-Encoding: {value}\r\n\r\n");
    refuse(&transfer("gzip"), &ParseError::TransferEncoding("gzip".into()));
    refuse(&format!("{}zz\r\n", transfer("chunked")), &ParseError::ChunkSize);
    refuse(&format!("{}1\r\nab\r\n", transfer("chunked")), &ParseError::ChunkEnd);
    refuse(&format!("{head}A: {}", "b".repeat(MAX_HEAD)), &ParseError::LongHead);
}

#[test]
fn responses_without_a_body_end_at_once() {
    let response = parse(true, [&b"HTTP/1.1 204 No Content\r\n\r\n"[..]]).unwrap();
    assert_eq!((response.status, response.keep_alive, response.body.len()), (204, true, 0));
}

#[test]
fn connection_options_decide_about_reuse() {
    for (version, options, expected) in [
        (1, "keep-alive", true),
        (1, "Close", false),
        (1, "upgrade, close", false),
        (0, "Keep-Alive", true),
        (0, "x", false),
    ] {
        let text = format!(
            "HTTP/1.{version} 200 OK\r\nContent-Length: 0\r\nConnection: {options}\r\n\r\n"
        );
        assert_eq!(parse(true, [text.as_bytes()]).unwrap().keep_alive, expected, "{options}");
    }
}

/// Bytes that look like responses often enough to get past the head.
fn foreign_bytes() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop_oneof![
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"HTTP/1.1 503 \r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Content-Length: 30\r\n".to_vec()),
        Just(b"Inference-Header-Content-Length: 9\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"5\r\n".to_vec()),
        Just(b"ffffffffffffffff\r\n".to_vec()),
        Just(br#"{"outputs":[{"name":"A","datatype":"INT8","shape":[1],"data":[1]}]}"#.to_vec()),
        Just(
            br#"{"outputs":[{"name":"A","datatype":"BYTES","parameters":{"binary_data_size":7}}]}"#
                .to_vec()
        ),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_cause_no_panic(bytes in foreign_bytes(), size in 1usize..40) {
        let _ = parse(true, bytes.chunks(size));
        let _ = parse(false, bytes.chunks(size));
        let _ = crate::decode_infer_response(&bytes);
    }

    #[test]
    fn splits_do_not_change_the_result(bytes in foreign_bytes(), size in 1usize..40) {
        // What the buffer held when an error was found may differ, the response may not.
        if let Ok(whole) = parse(true, [&bytes[..]]) {
            prop_assert_eq!(parse(true, bytes.chunks(size)), Ok(whole));
        }
    }
}
