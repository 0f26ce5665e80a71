//! What orchestrators see of a server that starts and that is asked to stop.

use std::thread;

use super::server::{IDENTITY, Repository, infer_body, launch, port_in, post, start};

const SLOW: &str = "parameters { key: \"creation_delay_sec\" value { string_value: \"2\" } }\n";

#[test]
fn liveness_is_answered_while_models_load_and_requests_wait() {
    let repository = Repository::new().with("slow", &format!("{IDENTITY}{SLOW}"));
    let mut server = launch(&repository, &[]);
    server.http = port_in(&server.wait_for("HTTPService listens at "));
    let port = server.http;
    let waiting = thread::spawn(move || post(port, "/v2/models/slow/infer", infer_body()));
    assert!(server.get("/v2/health/live").starts_with("HTTP/1.1 200"));
    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 400"));
    assert!(!server.output().contains("Started"), "{}", server.output());
    let answer = waiting.join().expect("thread");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(port_in(&server.wait_for("Started HTTPService at ")), port);
    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 200"));
    assert_eq!(server.stop("TERM").code, Some(0));
}

#[test]
fn a_shared_port_is_opened_after_models_are_loaded() {
    let repository = Repository::new().with("slow", &format!("{IDENTITY}{SLOW}"));
    let server = start(&repository, &["--reuse-http-port=true"]);
    assert!(!server.output().contains("HTTPService listens at"), "{}", server.output());
    assert!(server.output().contains("GRPCInferenceService listens at"), "{}", server.output());
    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 200"));
}

#[test]
fn requests_waiting_for_an_interrupted_start_are_answered() {
    let repository = Repository::new().with("slow", &format!("{IDENTITY}{SLOW}"));
    let mut server = launch(&repository, &[]);
    server.http = port_in(&server.wait_for("HTTPService listens at "));
    let port = server.http;
    let waiting = thread::spawn(move || post(port, "/v2/models/slow/infer", infer_body()));
    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 400"));
    assert_eq!(server.stop("TERM").code, Some(0));
    let answer = waiting.join().expect("thread");
    // Sent too late to be read, it has no answer at all.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[test]
fn a_stopping_server_serves_during_the_delay_without_being_ready() {
    let repository = Repository::new().with("simple", IDENTITY);
    let server = start(&repository, &["--drain-delay-secs=600"]);
    server.signal("TERM");
    server.wait_for("Serving 600 seconds more while not ready");
    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 503"));
    assert!(server.get("/v2/health/live").starts_with("HTTP/1.1 200"));
    assert!(server.get("/v2/models/simple/ready").starts_with("HTTP/1.1 200"));
    let answer = post(server.http, "/v2/models/simple/infer", infer_body());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let end = server.stop("INT");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stdout.contains("\nSignal (2) received.\n"), "{}", end.stdout);
}

#[test]
fn the_delay_ends_after_its_time() {
    let repository = Repository::new();
    let end = start(&repository, &["--drain-delay-secs=1"]).stop("TERM");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stdout.contains("Serving 1 seconds more"), "{}", end.stdout);
}
