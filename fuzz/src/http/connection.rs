//! Connections of the HTTP front end: the loop, the routes, the bodies, the answers.

use std::io::Write;

use arbitrary::{Arbitrary, Unstructured};
use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};

use super::request::Request;
use crate::{
    edits::{self, Edit},
    server::HTTP,
    session::{Ending, exchange},
};

const METHODS: [&str; 6] = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"];
const PATHS: [&str; 22] = [
    "/v2",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/stats",
    "/v2/models/m",
    "/v2/models/m/ready",
    "/v2/models/m/config",
    "/v2/models/m/stats",
    "/v2/models/m/infer",
    "/v2/models/m/versions/1/infer",
    "/v2/models/m/generate",
    "/v2/models/m/generate_stream",
    "/v2/models/simple/infer",
    "/v2/models/labelled/infer",
    "/v2/models/labelled/versions/99999999999999999999/infer",
    "/v2/models/m/trace/setting",
    "/v2/repository/index",
    "/v2/repository/models/m/load",
    "/v2/repository/models/m/unload",
    "/v2/systemsharedmemory/region/r/register",
    "/v2/cudasharedmemory/status",
    "/v2/logging",
];

/// Any bytes on a connection.
pub fn head(data: &[u8]) {
    exchange(&HTTP, data, data.len(), Ending::HalfClose);
}

/// What a client sends on one connection.
#[derive(Arbitrary, Debug)]
struct Client {
    calls: Vec<Call>,
    edits: Vec<Edit>,
    ending: Ending,
}

#[derive(Arbitrary, Debug)]
struct Call {
    method: u8,
    path: u8,
    suffix: Option<String>,
    body: Body,
    packing: Packing,
    framing: Framing,
    headers: Vec<Header>,
}

#[derive(Arbitrary, Debug)]
enum Body {
    Nothing,
    Bytes(Vec<u8>),
    Infer(Request),
}

#[derive(Arbitrary, Debug)]
enum Packing {
    Plain,
    Gzip,
    Deflate,
    /// The header alone.
    Pretended,
}

#[derive(Arbitrary, Debug)]
enum Framing {
    Length,
    WrongLength(u32),
    Chunked(u8),
    None,
}

#[derive(Arbitrary, Debug)]
enum Header {
    JsonLength(u16),
    AcceptLines,
    AcceptGzip,
    Expect,
    Close,
    Raw(String, String),
    Long(u16),
}

/// Requests that are right, and then changed.
pub fn run(data: &[u8]) {
    let Ok(mut client) = Unstructured::new(data).arbitrary::<Client>() else { return };
    let mut bytes = Vec::new();
    let saved: usize = client.calls.iter_mut().map(|call| call.write(&mut bytes)).sum();
    edits::apply(&mut bytes, &client.edits);
    exchange(&HTTP, &bytes, bytes.len() + saved, client.ending);
}

impl Call {
    /// Returns by how much compression made it shorter.
    fn write(&mut self, bytes: &mut Vec<u8>) -> usize {
        let (body, json_length) = match &mut self.body {
            Body::Nothing => (Vec::new(), None),
            Body::Bytes(bytes) => (bytes.clone(), None),
            Body::Infer(request) => {
                let (body, json_length) = request.encode();
                let has_tail = json_length < body.len();
                (body, has_tail.then_some(json_length))
            }
        };
        let method = METHODS[usize::from(self.method) % METHODS.len()];
        let path = PATHS[usize::from(self.path) % PATHS.len()];
        let suffix = self.suffix.as_deref().unwrap_or_default();
        bytes.extend(format!("{method} {path}{suffix} HTTP/1.1\r\nHost: h\r\n").bytes());
        if let Some(length) = json_length {
            bytes.extend(json_length_header(length).bytes());
        }
        self.headers.iter().for_each(|header| bytes.extend(header.text().bytes()));
        let plain_length = body.len();
        let body = self.packing.write(body, bytes);
        self.framing.write(&body, bytes);
        plain_length.saturating_sub(body.len())
    }
}

impl Packing {
    /// The body as it is sent.
    fn write(&self, body: Vec<u8>, head: &mut Vec<u8>) -> Vec<u8> {
        let name = match self {
            Self::Plain => return body,
            Self::Gzip | Self::Pretended => "gzip",
            Self::Deflate => "deflate",
        };
        head.extend(format!("Content-Encoding: {name}\r\n").bytes());
        match self {
            Self::Gzip => {
                packed(GzEncoder::new(Vec::new(), Compression::fast()), &body, |e| e.finish())
            }
            Self::Deflate => {
                packed(ZlibEncoder::new(Vec::new(), Compression::fast()), &body, |e| e.finish())
            }
            _ => body,
        }
    }
}

fn packed<E: Write>(
    mut encoder: E,
    body: &[u8],
    finish: impl FnOnce(E) -> std::io::Result<Vec<u8>>,
) -> Vec<u8> {
    encoder.write_all(body).expect("into memory");
    finish(encoder).expect("into memory")
}

impl Framing {
    fn write(&self, body: &[u8], bytes: &mut Vec<u8>) {
        match self {
            Self::Length => {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                bytes.extend(body);
            }
            Self::WrongLength(length) => {
                bytes.extend(format!("Content-Length: {length}\r\n\r\n").bytes());
                bytes.extend(body);
            }
            Self::Chunked(size) => {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks(usize::from(*size) + 1) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            }
            Self::None => {
                bytes.extend(b"\r\n");
                bytes.extend(body);
            }
        }
    }
}

impl Header {
    fn text(&self) -> String {
        match self {
            Self::JsonLength(length) => json_length_header((*length).into()),
            Self::AcceptLines => "Accept: application/x-ndjson\r\n".to_owned(),
            Self::AcceptGzip => "Accept-Encoding: gzip\r\n".to_owned(),
            Self::Expect => "Expect: 100-continue\r\n".to_owned(),
            Self::Close => "Connection: close\r\n".to_owned(),
            Self::Raw(name, value) => format!("{name}: {value}\r\n"),
            Self::Long(length) => format!("X: {}\r\n", "x".repeat((*length).into())),
        }
    }
}

fn json_length_header(length: usize) -> String {
    format!("Inference-Header-Content-Length: {length}\r\n")
}
