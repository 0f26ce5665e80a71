//! TLS over both protocols. The certificates are made by `certificates/make.sh`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may panic

use std::{fs, path::PathBuf, sync::Arc};

use crate::support::{listen, run, target, template};
use galatea_client::{Connector, InferMark, KeepResponse, PreparedInfer, Protocol, Target, Tls};
use galatea_types::{Error, Result};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::spawn_local,
};
use tokio_rustls::TlsAcceptor;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

fn acceptor(certificate: &str, asks_for_client: bool, alpn: &str) -> TlsAcceptor {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if asks_for_client {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file("authority.pem")).unwrap()).unwrap();
        let roots = Arc::new(roots);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::new(default_provider()));
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let chain = vec![CertificateDer::from_pem_file(file(&format!("{certificate}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file(&format!("{certificate}.key"))).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Answers every request over HTTP; connections that fail are the client's to report.
fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
    spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = vec![0; 4096];
            if let Ok(1..) = stream.read(&mut bytes).await {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                stream.shutdown().await.unwrap();
            }
        }
    });
}

fn tls() -> Tls {
    Tls { roots: Some(file("authority.pem")), ..Tls::default() }
}

async fn call(target: Target) -> Result<()> {
    let request = PreparedInfer::new(&target, &template("abcd"))?;
    let mut caller = Connector::new(target)?.caller().await?;
    caller.infer(&request, InferMark::default(), KeepResponse::Nothing).await.map(|_| ())
}

async fn try_https(certificate: &str, asks_for_client: bool, tls: Tls) -> Result<()> {
    let (listener, port) = listen().await;
    serve(listener, acceptor(certificate, asks_for_client, "http/1.1"));
    call(Target { tls: Some(tls), ..target(Protocol::Http, port) }).await
}

#[track_caller]
fn assert_names(result: Result<()>, part: &str) -> Error {
    let error = result.unwrap_err();
    assert!(error.message().contains(part), "{error}");
    error
}

#[test]
fn each_certificate_check_can_be_switched_off() {
    // What the server shows, whether its authority is trusted; the result by (skips_peer, skips_host).
    run(async {
        for (certificate, trusted, outcomes) in [
            ("server", true, [true, true, true, true]),
            ("elsewhere", true, [false, true, false, true]),
            ("server", false, [false, false, true, true]),
            ("elsewhere", false, [false, false, false, true]),
        ] {
            let checks = [(false, false), (false, true), (true, false), (true, true)];
            for ((skips_peer, skips_host), expected) in checks.into_iter().zip(outcomes) {
                // A leaf certificate is no authority for another one.
                let roots = Some(file(if trusted { "authority.pem" } else { "client.pem" }));
                let tls = Tls { roots, skips_peer, skips_host, ..tls() };
                let result = try_https(certificate, false, tls).await;
                let what = (certificate, trusted, skips_peer, skips_host);
                assert_eq!(result.is_ok(), expected, "{what:?} {result:?}");
                if let Err(error) = result {
                    assert!(error.message().contains("certificate"), "{error}");
                    assert!(error.message().contains("https://127.0.0.1:"), "{error}");
                }
            }
        }
    });
}

#[test]
fn client_certificates_are_accepted_in_pem_and_der() {
    run(async {
        assert_names(try_https("server", true, tls()).await, "CertificateRequired");
        for (is_der, chain, key) in
            [(false, "client.pem", "client.key"), (true, "client.der", "client.key.der")]
        {
            let tls = Tls {
                certificate_chain: Some(file(chain)),
                certificate_is_der: is_der,
                private_key: Some(file(key)),
                private_key_is_der: is_der,
                ..tls()
            };
            try_https("server", true, tls).await.unwrap();
        }
    });
}

#[test]
fn unusable_files_are_named() {
    let connector =
        |tls| Connector::new(Target { tls: Some(tls), ..target(Protocol::Http, 1) }).map(|_| ());
    let missing = Tls { roots: Some(file("missing.pem")), ..tls() };
    assert_names(connector(missing), "missing.pem");
    let no_pem = Tls { roots: Some(file("client.der")), ..tls() };
    assert_names(connector(no_pem), "client.der");
    let no_key = Tls { certificate_chain: Some(file("client.pem")), ..tls() };
    assert_names(connector(no_key), "needs its private key");
    let of_another = Tls {
        certificate_chain: Some(file("client.pem")),
        private_key: Some(file("server.key")),
        ..tls()
    };
    assert_names(connector(of_another), "client.pem");
    let swapped = Tls {
        certificate_chain: Some(file("client.pem")),
        private_key: Some(file("authority.pem")),
        ..tls()
    };
    assert_names(connector(swapped), "authority.pem");
    assert!(fs::exists(file("authority.pem")).unwrap());
}

#[test]
fn a_port_without_tls_is_reported() {
    run(async {
        let (listener, port) = listen().await;
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        });
        let result = call(Target { tls: Some(tls()), ..target(Protocol::Http, port) }).await;
        assert_names(result, "does this port speak TLS");
    });
}

#[test]
fn grpc_negotiates_http_2() {
    run(async {
        let (listener, port) = listen().await;
        let acceptor = acceptor("server", false, "h2");
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                assert_eq!(request.uri().scheme_str(), Some("https"));
                let head = http::Response::builder().header("grpc-status", "5");
                let head = head.header("grpc-message", "here").body(()).unwrap();
                respond.send_response(head, true).unwrap();
            }
        });
        let result = call(Target { tls: Some(tls()), ..target(Protocol::Grpc, port) }).await;
        assert_eq!(result.unwrap_err().message(), "here");
    });
}
