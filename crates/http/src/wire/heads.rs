//! The heads of requests as they were sent: the parser gives the names of headers in lower case.

use http::{HeaderMap, Request};
use memchr::memmem;

/// So much of what was read last is kept: the longest head, and what may be read with it.
const KEPT: usize = 128 << 10;
const MAX_HEADERS: usize = 100;

/// What was read and belongs to no head that was taken yet.
#[derive(Debug, Default)]
pub(super) struct Heads {
    bytes: Vec<u8>,
}

/// Names, as they were sent, and values of a request's headers, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SentHeaders(Vec<(String, Vec<u8>)>);

impl SentHeaders {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Whether these are the headers that the parser has found. Anything else was not the head of this request.
    fn are(&self, parsed: &HeaderMap) -> bool {
        self.0.len() == parsed.len()
            && self.0.iter().all(|(name, value)| {
                parsed.get_all(name.as_str()).iter().any(|known| known.as_bytes() == value)
            })
    }
}

impl Heads {
    pub fn read(&mut self, bytes: &[u8]) {
        let new = bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or_default();
        let surplus = (self.bytes.len() + new.len()).saturating_sub(KEPT);
        self.bytes.drain(..surplus.min(self.bytes.len()));
        self.bytes.extend_from_slice(new);
    }

    /// The headers of a request, whose head must lie in what was read. What comes before it is dropped with it.
    pub fn take<B>(&mut self, request: &Request<B>) -> Option<SentHeaders> {
        let line = format!("{} {} HTTP/1.", request.method(), request.uri());
        let found = memmem::find_iter(&self.bytes, line.as_bytes());
        let (end, headers) = found
            .filter_map(|start| Some((start, parsed(self.bytes.get(start..)?)?)))
            .find(|(_, (_, headers))| headers.are(request.headers()))
            .map(|(start, (length, headers))| (start + length, headers))?;
        self.bytes.drain(..end);
        Some(headers)
    }
}

/// Length and headers of the head that stands here.
fn parsed(bytes: &[u8]) -> Option<(usize, SentHeaders)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request.parse(bytes).ok()? else { return None };
    let owned = request.headers.iter().map(|h| (h.name.to_owned(), h.value.to_owned()));
    Some((length, SentHeaders(owned.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let builder = Request::post(path);
        let built =
            headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
        built.body(()).expect("good")
    }

    fn names(found: Option<SentHeaders>) -> Option<Vec<String>> {
        Some(found?.iter().map(|(name, _)| name.to_owned()).collect())
    }

    #[test]
    fn names_are_as_they_were_sent_in_their_order() {
        let mut heads = Heads::default();
        heads.read(b"POST /a HTTP/1.1\r\nX-One:  1 \r\nho");
        heads.read(b"st: h\r\nx-oNE: 2\r\n\r\n{}");
        let sent = request("/a", &[("host", "h"), ("x-one", "1"), ("x-one", "2")]);
        let found = names(heads.take(&sent)).expect("there");
        assert_eq!(found, ["X-One", "host", "x-oNE"]);
        assert_eq!(heads.bytes, b"{}");
    }

    #[test]
    fn requests_in_one_read_each_have_their_own() {
        let mut heads = Heads::default();
        heads.read(b"POST /a HTTP/1.1\r\nX-One: 1\r\n\r\nPOST /a HTTP/1.1\r\nx-ONE: 1\r\n\r\n");
        let sent = request("/a", &[("x-one", "1")]);
        assert_eq!(names(heads.take(&sent)).expect("first"), ["X-One"]);
        assert_eq!(names(heads.take(&sent)).expect("second"), ["x-ONE"]);
        assert_eq!(heads.take(&sent), None);
    }

    #[test]
    fn a_body_that_looks_like_a_head_gives_no_header_that_was_not_parsed() {
        let mut heads = Heads::default();
        heads.read(b"..POST /a HTTP/1.1\r\nX-User: root\r\n\r\n");
        heads.read(b"POST /a HTTP/1.1\r\nX-User: me\r\n\r\n");
        let found = heads.take(&request("/a", &[("x-user", "me")])).expect("the second");
        assert_eq!(found.iter().collect::<Vec<_>>(), [("X-User", &b"me"[..])]);
    }

    #[test]
    fn only_the_last_bytes_are_kept() {
        let mut heads = Heads::default();
        (0..100).for_each(|_| heads.read(&[b'x'; 50_000]));
        assert_eq!(heads.bytes.len(), KEPT);
        heads.read(&vec![b'y'; 2 * KEPT]);
        assert!(heads.bytes == vec![b'y'; KEPT]);
    }
}
