//! Connections: pipelining, keep-alive, clients that speak no HTTP.

use galatea_test_support::eventually;

use crate::{
    Fixture,
    client::{Client, fp32, head},
};

const INFER: &str = "/v2/models/identity_fp32/infer";

#[test]
fn pipelined_requests_are_answered_in_order() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let bodies: Vec<String> = (0..20).map(|i| fp32(&format!("[{i}]"), 1)).collect();
    let all: String = bodies.iter().map(|b| head("POST", INFER, &[], b.len()) + b).collect();
    client.send(all);
    for i in 0..20 {
        let reply = client.receive(false);
        assert!(reply.text().ends_with(&format!("\"data\":[{i}.0]}}]}}")), "{}", reply.text());
    }
}

#[test]
fn http_1_0_without_keep_alive_closes_the_connection() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let body = fp32("[5]", 1);
    client.send(format!(
        "POST {INFER} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let reply = client.receive(false);
    assert_eq!(reply.status, 200);
    assert!(reply.text().ends_with("\"data\":[5.0]}]}"));
    assert!(client.is_closed());
}

#[test]
fn http_1_0_with_keep_alive_keeps_the_connection() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for _ in 0..2 {
        client.send("GET /v2/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.receive(false).status, 200);
    }
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    let body = fp32("[5]", 1);
    client.send(head("POST", INFER, &[("Expect", "100-continue")], body.len()));
    assert_eq!(client.receive(false).status, 100);
    client.send(body);
    assert_eq!(client.receive(false).status, 200);
}

#[test]
fn a_connection_that_does_not_speak_http_is_closed_alone() {
    let fixture = Fixture::start();
    let mut good = Client::connect(fixture.address);
    assert_eq!(good.get("/v2/health/live").status, 200);
    let mut bad = Client::connect(fixture.address);
    bad.send("\x16\x03\x01 this is no request\r\n\r\n");
    assert_eq!(bad.receive(false).status, 400);
    assert!(bad.is_closed());
    assert_eq!(good.get("/v2/health/live").status, 200);
}

#[test]
fn a_client_that_closes_its_sending_side_gets_its_response() {
    let fixture = Fixture::start();
    let mut done = Client::connect(fixture.address);
    done.send("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    done.end();
    assert_eq!(done.receive(false).status, 200);
    assert!(done.is_closed());
    let mut slow = Client::connect(fixture.address);
    let body = fp32("[1]", 1);
    slow.send(head("POST", "/v2/models/slow/infer", &[], body.len()) + &body);
    slow.end();
    assert!(slow.is_closed(), "it has gone, for all that is known");
}

/// How much of the next request may lie behind one: a byte, what is read at once, and more than that. The end of the
/// connection comes behind all of it, so it must fit into the buffer of the server's socket.
const BEHIND: [usize; 4] = [0, 1, 8 << 10, 32 << 10];
const GATE: &str = "/v2/models/with_gate/infer";

#[test]
fn a_disconnected_client_is_noticed_behind_pipelined_bytes() {
    let fixture = Fixture::start();
    fixture.gates.executions.shut();
    let body = fp32("[1]", 1);
    for behind in BEHIND {
        let mut client = Client::connect(fixture.address);
        client.send(head("POST", GATE, &[], body.len()) + &body + &"a".repeat(behind));
        eventually("the request is in flight", || fixture.server().requests_in_flight() == 1);
        drop(client);
        eventually(&format!("it is given up, with {behind} bytes behind it"), || {
            fixture.server().requests_in_flight() == 0
        });
    }
    fixture.gates.executions.open();
}

#[test]
fn pipelined_bytes_are_read_after_the_response() {
    let fixture = Fixture::start();
    let body = fp32("[1]", 1);
    for behind in BEHIND.into_iter().chain([200 << 10]) {
        fixture.gates.executions.shut();
        let mut client = Client::connect(fixture.address);
        let next = " ".repeat(behind) + &fp32("[5]", 1);
        let next = head("POST", INFER, &[], next.len()) + &next;
        client.send(head("POST", GATE, &[], body.len()) + &body + &next);
        fixture.gates.executions.wait_for_one();
        fixture.gates.executions.open();
        assert_eq!(client.receive(false).status, 200, "{behind}");
        let reply = client.receive(false);
        assert!(reply.text().ends_with("\"data\":[5.0]}]}"), "{behind}: {}", reply.text());
        assert_eq!(client.get("/v2/health/live").status, 200, "{behind}");
    }
}

#[test]
fn a_request_behind_a_long_body_is_read() {
    let fixture = Fixture::start();
    let mut client = Client::connect(fixture.address);
    for length in [8 << 10, 70_000, 3 << 20] {
        let long = " ".repeat(length) + &fp32("[5]", 1);
        let next = head("GET", "/v2/health/ready", &[("X", "y")], 0);
        let all = head("POST", INFER, &[], long.len()) + &long + &next + &next;
        for size in [all.len(), 8191] {
            all.as_bytes().chunks(size).for_each(|part| client.send(part));
            let reply = client.receive(false);
            assert!(reply.text().ends_with("\"data\":[5.0]}]}"), "{length}: {}", reply.text());
            assert_eq!([client.receive(false).status, client.receive(false).status], [200, 200]);
        }
    }
}
