//! Shutdown, and clients that go away.

use std::{thread, time::Duration};

use galatea_engine::ControlMode;
use galatea_http::HttpOptions;
use galatea_test_support::eventually;

use crate::{
    Fixture,
    client::{Client, fp32, head},
};

const INFER: &str = "/v2/models/identity_fp32/infer";
const GATED: &str = "/v2/models/with_gate/infer";
const LONG: Duration = Duration::from_secs(20);

fn in_flight(fixture: &Fixture) -> usize {
    fixture.server().requests_in_flight()
}

/// A request that is being answered, and goes on once its body is sent.
fn begin_request(fixture: &Fixture, body: &str) -> Client {
    let mut client = Client::connect(fixture.address);
    client.send(head("POST", INFER, &[("Expect", "100-continue")], body.len()));
    assert_eq!(client.receive(false).status, 100);
    client
}

#[test]
fn a_shutdown_answers_requests_in_progress_and_refuses_later_ones() {
    let mut fixture = Fixture::start();
    let body = fp32("[1]", 1);
    let mut early = begin_request(&fixture, &body);
    let mut late = Client::connect(fixture.address);
    assert_eq!(late.get("/v2/health/live").status, 200);

    fixture.server().refuse_new_requests();
    late.get("/v2/models/slow").check(503, "application/json", r#"{"error":"Server exiting"}"#);
    assert!(late.is_closed());
    let waiting = thread::spawn(move || fixture.shut_down(LONG));
    early.send(body);
    let reply = early.receive(false);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("Connection"), Some("close"));
    assert!(early.is_closed());
    assert_eq!(waiting.join().expect("no panic"), 0, "nothing was cut off");
}

#[test]
fn open_connections_are_served_while_draining_and_then_closed() {
    let mut fixture = Fixture::start();
    let mut idle = Client::connect(fixture.address);
    assert_eq!(idle.get("/v2/health/live").header("Connection"), None);
    let mut silent = Client::connect(fixture.address);
    assert_eq!(silent.get("/v2/health/live").status, 200);
    fixture.server().drain();
    let reply = idle.post(INFER, fp32("[1]", 1));
    assert_eq!((reply.status, reply.header("Connection")), (200, Some("close")));
    assert!(idle.is_closed());
    eventually("nobody listens", || std::net::TcpStream::connect(fixture.address).is_err());
    assert_eq!(fixture.shut_down(LONG), 0);
    assert!(silent.is_closed(), "nobody waits for a client that asks nothing");
}

#[test]
fn the_port_is_closed_after_the_end() {
    let mut fixture = Fixture::start();
    assert_eq!(fixture.shut_down(LONG), 0);
    assert!(std::net::TcpStream::connect(fixture.address).is_err());
}

#[test]
fn idle_connections_do_not_delay_the_end() {
    let mut fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    assert_eq!(client.get("/v2/health/live").status, 200);
    assert_eq!(fixture.server().open_connections(), 1);
    assert_eq!(fixture.shut_down(LONG), 0);
    assert!(client.is_closed());
}

#[test]
fn requests_over_the_deadline_are_cut_off() {
    let mut fixture = Fixture::start();
    let mut client = begin_request(&fixture, "a body that never comes");
    assert_eq!(fixture.shut_down(Duration::ZERO), 1);
    assert!(client.is_closed());
}

#[test]
fn requests_of_a_disconnected_client_are_not_executed() {
    // With one thread, requests reach the queue in the order they came.
    let fixture =
        Fixture::with(ControlMode::None, HttpOptions { thread_count: 1, ..Default::default() });
    let gated = || {
        let entries = fixture.engine.statistics(Some("with_gate"), None).expect("statistics");
        entries[0].statistics.clone()
    };
    let body = fp32("[1]", 1);
    let request = head("POST", GATED, &[], body.len()) + &body;
    // Occupies the one instance, so that the next one waits in the queue.
    let mut first = Client::connect(fixture.address);
    fixture.gates.executions.shut();
    first.send(&request);
    fixture.gates.executions.wait_for_one();
    let mut gone = Client::connect(fixture.address);
    gone.send(&request);
    eventually("the second request waits in the queue", || {
        in_flight(&fixture) == 2 && gated().pending == 1
    });
    drop(gone);
    eventually("the second request is cancelled", || in_flight(&fixture) == 1);
    fixture.gates.executions.open();
    assert_eq!(first.receive(false).status, 200);
    let mut last = Client::connect(fixture.address);
    assert_eq!(last.post(GATED, &body).status, 200);
    assert_eq!(gated().execution_count, 2, "the abandoned request was not run");
}
