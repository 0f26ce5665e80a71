//! Heads of requests for tests.

use galatea_http1::RequestHead;

/// The head of a request with these headers.
pub(crate) fn with(headers: &[(&str, &str)]) -> RequestHead {
    let lines: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut head = RequestHead::default();
    let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = if has_host { "" } else { "Host: x\r\n" };
    let text = format!("GET / HTTP/1.1\r\n{host}{lines}\r\n");
    assert_eq!(head.read(text.as_bytes(), 0), Ok(Some(text.len())));
    head
}
