//! A blocking HTTP client that hides nothing: bytes in, headers and chunks out.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

/// A blocking HTTP client that hides nothing.
pub struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Lengths of the chunks, where the body came in chunks.
    pub chunks: Vec<usize>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header_names(&self) -> Vec<&str> {
        self.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[track_caller]
    pub fn check(&self, status: u16, content_type: &str, body: &str) {
        let found = (self.status, self.header("Content-Type"), self.text());
        assert_eq!(found, (status, Some(content_type), body.to_owned()));
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        Self { stream: BufReader::new(stream) }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).expect("sends");
    }

    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        self.send(head(method, path, headers, body.len()));
        self.send(body);
        self.receive(method == "HEAD")
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, &[], b"")
    }

    pub fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.request("POST", path, &[], body.as_ref())
    }

    /// The client sends nothing more, and reads on.
    pub fn end(&self) {
        self.stream.get_ref().shutdown(Shutdown::Write).expect("half closed");
    }

    /// Whether the server has closed the connection, with nothing left to read.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(length) => length == 0,
            // A connection that stays open runs into the time-out, which is an error as well.
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    pub fn send_post(&mut self, path: &str, body: &str) {
        self.send(head("POST", path, &[], body.len()) + body);
    }

    pub fn receive(&mut self, is_head: bool) -> Reply {
        let mut reply = self.receive_head();
        if is_head || reply.status < 200 {
            return reply;
        }
        if reply.header("Transfer-Encoding") == Some("chunked") {
            loop {
                let chunk = self.chunk();
                if chunk.is_empty() {
                    return reply;
                }
                reply.chunks.push(chunk.len());
                reply.body.extend(chunk);
            }
        }
        let length = reply.header("Content-Length").and_then(|v| v.parse().ok()).unwrap_or(0);
        reply.body.resize(length, 0);
        self.stream.read_exact(&mut reply.body).expect("the whole body");
        reply
    }

    /// The next chunk of a body; the one at its end is empty.
    pub fn chunk(&mut self) -> Vec<u8> {
        let size = usize::from_str_radix(&self.line(), 16).expect("a chunk size");
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).expect("the whole chunk");
        assert_eq!(self.line(), "", "the end of a chunk");
        chunk
    }

    pub fn receive_head(&mut self) -> Reply {
        let status_line = self.line();
        let status = status_line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.unwrap_or_else(|| panic!("status line {status_line:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Reply { status, headers, body: Vec::new(), chunks: Vec::new() }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

pub fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let headers: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n")
}

pub const HEADER_LENGTH: &str = "Inference-Header-Content-Length";

/// A JSON request for `INPUT0`.
pub fn fp32(data: &str, count: usize) -> String {
    format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[{count}],"datatype":"FP32","data":{data}}}]}}"#
    )
}
