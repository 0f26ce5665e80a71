//! A front end with TLS: what its protocol learns of clients, and how much a write becomes on the wire.

// The lint knows #[test] functions only; this is what they are made of.
#![allow(clippy::expect_used)]

use std::{
    fs,
    io::{self, BufRead, BufReader, IoSlice, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use galatea_frontend::{
    Activity, Client, Closing, ConnectionLimits, ConnectionSettings, Framing, FrontEnd,
    FrontEndOptions, InFlight, PortTransport, Protocol, Stream, Tls, TlsError, TlsFiles,
    TlsProtocol,
};
use galatea_types::MemoryBudget;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

/// Says who the client is, in pieces of one vectored write.
#[derive(Default)]
struct WhoAmI(Arc<InFlight>);

impl Protocol for WhoAmI {
    type Error = io::Error;

    fn in_flight(&self) -> &Arc<InFlight> {
        &self.0
    }

    fn framing(&self) -> Framing {
        Framing::Sequential
    }

    async fn serve(
        &self,
        mut stream: impl Stream,
        client: Client,
        _: Arc<Activity>,
        _: Closing,
    ) -> io::Result<()> {
        let subject = client.certificate.map_or("nobody".into(), |shown| shown.subject.clone());
        assert!(stream.is_write_vectored());
        let pieces =
            [IoSlice::new(b"you are "), IoSlice::new(subject.as_bytes()), IoSlice::new(b"\n")];
        let whole: usize = pieces.iter().map(|piece| piece.len()).sum();
        assert_eq!(stream.write_vectored(&pieces).await?, whole);
        stream.flush().await?;
        stream.shutdown().await
    }
}

/// Certificates made here, with openssl: an authority, and what it has signed.
struct Made(TempDir);

impl Made {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().expect("a folder"));
        let request = ["req", "-x509", "-nodes", "-subj", "/CN=authority", "-days", "2"];
        made.openssl(&[&request[..], KEY, &["-keyout", "ca.key", "-out", "ca.pem"]].concat());
        made
    }

    fn openssl(&self, arguments: &[&str]) {
        let run = Command::new("openssl").args(arguments).current_dir(self.0.path()).output();
        let run = run.expect("openssl is installed");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }

    fn issue(&self, name: &str, subject: &str) {
        let file = |end: &str| format!("{name}.{end}");
        fs::write(self.path("san"), "subjectAltName=DNS:localhost").expect("writes");
        let (key, csr, pem) = (file("key"), file("csr"), file("pem"));
        let request = ["req", "-nodes", "-subj", subject, "-keyout", &key, "-out", &csr];
        self.openssl(&[&request[..], KEY].concat());
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &csr,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "san",
            "-out",
            &pem,
        ]);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn files(&self, name: &str, is_mutual: bool) -> TlsFiles {
        TlsFiles {
            certificates: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
            client_roots: is_mutual.then(|| self.path("ca.pem")),
        }
    }
}

const KEY: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];

fn start(tls: Arc<Tls>) -> FrontEnd {
    let options = FrontEndOptions {
        name: "who",
        thread_count: 1,
        accepts_while_draining: false,
        limits: ConnectionLimits::new(ConnectionSettings::default(), MemoryBudget::unlimited()),
        uses_reserve: false,
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let transport = PortTransport::new(Some(tls));
    FrontEnd::start(listener.into(), transport, WhoAmI::default(), options).expect("starts")
}

/// Counts what is read from the network.
struct Counted(TcpStream, Vec<u8>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The first line, and all bytes that came.
fn ask(front_end: &FrontEnd, made: &Made, shows: Option<&str>) -> io::Result<(String, Vec<u8>)> {
    let read = |file: &Path| fs::read(file).expect("there");
    let certificates = |file: &str| {
        let all =
            CertificateDer::pem_slice_iter(&read(&made.path(file))).collect::<Result<Vec<_>, _>>();
        all.expect("certificates")
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates("ca.pem"));
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).expect("versions");
    let builder = builder.with_root_certificates(roots);
    let config = match shows {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let key = read(&made.path(&format!("{name}.key")));
            let key = PrivateKeyDer::from_pem_slice(&key).expect("a key");
            let chain = certificates(&format!("{name}.pem"));
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    let socket = TcpStream::connect(front_end.local_addr().expect("TCP"))?;
    let name = "localhost".try_into().expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = BufReader::new(StreamOwned::new(connection, Counted(socket, Vec::new())));
    let mut line = String::new();
    stream.read_line(&mut line)?;
    Ok((line, stream.into_inner().sock.1))
}

/// Records with data of the application.
fn data_records(mut bytes: &[u8]) -> usize {
    let mut found = 0;
    while let [kind, _, _, high, low, rest @ ..] = bytes {
        found += usize::from(*kind == 23);
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        bytes = rest.get(length..).unwrap_or_default();
    }
    found
}

#[test]
fn a_client_is_identified_by_its_certificate_and_a_write_is_one_record() {
    let made = Made::new();
    made.issue("server", "/CN=localhost");
    made.issue("client", "/O=Acme, Inc./CN=trainer");
    let mutual = Tls::open(made.files("server", true), TlsProtocol::Http).expect("good files");
    assert!(mutual.asks_for_client_certificates());
    let front_end = start(mutual);
    let (line, bytes) = ask(&front_end, &made, Some("client")).expect("is let in");
    assert_eq!(line, "you are CN=trainer,O=Acme\\, Inc.\n");
    assert_eq!(data_records(&bytes), 1, "the pieces of a write share a record");
    assert!(ask(&front_end, &made, None).is_err(), "without a certificate");
    let open = Tls::open(made.files("server", false), TlsProtocol::Http).expect("good files");
    let (line, _) = ask(&start(open), &made, None).expect("is let in");
    assert_eq!(line, "you are nobody\n");
}

#[test]
fn mismatched_tls_files_are_refused() {
    let made = Made::new();
    made.issue("server", "/CN=localhost");
    made.issue("other", "/CN=other");
    let mut files = made.files("server", false);
    files.key = made.path("other.key");
    let error = Tls::open(files.clone(), TlsProtocol::Grpc).expect_err("another's key");
    assert!(matches!(error, TlsError::WrongKey { .. }), "{error}");
    files.key = made.path("none.key");
    let error = Tls::open(files, TlsProtocol::Grpc).expect_err("no file");
    assert!(error.to_string().contains("none.key"), "{error}");
}
