//! A package index on loopback with one project and one file, and the faults of real ones.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next answer with the file ends after so many bytes.
    CutAfter(usize),
    /// Ranges are passed over.
    NoRanges,
    /// The file is said to be longer than any disk.
    Endless,
    /// The file is another one.
    WrongContent,
    /// The project page comes as JSON.
    JsonPage,
    /// The project page lists nothing.
    EmptyPage,
    /// There is no such project.
    NotFound,
}

struct Site {
    filename: &'static str,
    content: Vec<u8>,
    faults: Vec<Fault>,
    cuts: Mutex<VecDeque<usize>>,
    requests: Mutex<Vec<String>>,
}

pub struct Server {
    port: u16,
    site: Arc<Site>,
}

impl Server {
    pub fn start(filename: &'static str, content: Vec<u8>, faults: &[Fault]) -> Self {
        let cuts = faults.iter().filter_map(|f| match f {
            Fault::CutAfter(count) => Some(*count),
            _ => None,
        });
        let site = Arc::new(Site {
            filename,
            content,
            faults: faults.to_vec(),
            cuts: Mutex::new(cuts.collect()),
            requests: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = site.clone();
        // Ends with the process: each test has its own.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = served.clone();
                thread::spawn(move || site.serve(stream));
            }
        });
        Self { port, site }
    }

    pub fn index(&self) -> String {
        format!("http://127.0.0.1:{}/simple", self.port)
    }

    /// Heads of all requests so far, in lower case but for the first line.
    pub fn requests(&self) -> Vec<String> {
        self.site.requests.lock().unwrap().clone()
    }
}

/// A port nothing listens on.
pub fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Site {
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        reader.read_line(&mut head).unwrap();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
                break;
            }
            head.push_str(&line.to_ascii_lowercase());
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        self.requests.lock().unwrap().push(head.clone());
        // A client that hangs up early has what it wanted.
        let _ = match path.as_str() {
            "/simple/thing/" if !self.has(Fault::NotFound) => self.send_page(stream),
            p if p.ends_with(self.filename) => self.send_file(stream, &head),
            _ => send(stream, "404 Not Found", "", b""),
        };
    }

    fn send_page(&self, stream: TcpStream) -> std::io::Result<()> {
        let name = self.filename;
        let (kind, page) = if self.has(Fault::EmptyPage) {
            ("text/html", String::new())
        } else if self.has(Fault::JsonPage) {
            let page = format!(r#"{{"files":[{{"filename":"{name}","url":"/files/{name}"}}]}}"#);
            ("application/vnd.pypi.simple.v1+json", page)
        } else {
            ("text/html", format!("<a href=\"../../files/{name}#sha256=0\">{name}</a>"))
        };
        send(stream, "200 OK", &format!("Content-Type: {kind}\r\n"), page.as_bytes())
    }

    fn send_file(&self, mut stream: TcpStream, head: &str) -> std::io::Result<()> {
        let mut content = self.content.clone();
        if self.has(Fault::WrongContent) {
            content[0] ^= 1;
        }
        let start = head
            .lines()
            .find_map(|l| l.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok())
            .filter(|_| !self.has(Fault::NoRanges))
            .unwrap_or(0usize);
        let total = content.len();
        if start >= total {
            return send(stream, "416 Range Not Satisfiable", "", b"");
        }
        let body = &content[start..];
        let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
        let range = format!("Content-Range: bytes {start}-{}/{total}\r\n", total - 1);
        let range = if start > 0 { range } else { String::new() };
        if self.has(Fault::Endless) {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX / 2)?;
            return stream.write_all(body);
        }
        let Some(cut) = self.cuts.lock().unwrap().pop_front() else {
            return send(stream, status, &range, body);
        };
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\n{range}Content-Length: {length}\r\n\r\n")?;
        stream.write_all(&body[..cut])
    }
}

fn send(mut stream: TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}
