//! Headers that become parameters: under the names that the client has sent.

use galatea_engine::ControlMode;
use galatea_frontend::HeaderForwarding;
use galatea_http::HttpOptions;

use crate::{
    Fixture,
    client::{Client, fp32, head},
};

/// Answers with the parameters that it was given.
const SHOWS: &str = "/v2/models/parameters/infer";

fn start() -> Fixture {
    let header_forwarding = HeaderForwarding::matching("^(x-|my)").expect("an expression");
    Fixture::with(ControlMode::None, HttpOptions { header_forwarding, ..Default::default() })
}

fn request(headers: &[(&str, &str)], body: &str) -> String {
    head("POST", SHOWS, headers, body.len()) + body
}

#[test]
fn header_names_keep_their_case() {
    let fixture = start();
    let mut client = Client::connect(fixture.address);
    let body = fp32("[1]", 1);
    for names in [["X-One", "MY_two"], ["x-one", "my_TWO"]] {
        client.send(request(&[(names[0], "1"), ("Other", "3"), (names[1], "2")], &body));
        let expected = format!(r#""parameters":{{"{}":"1","{}":"2"}}"#, names[0], names[1]);
        let reply = client.receive(false);
        assert!(reply.text().contains(&expected), "{} {}", reply.status, reply.text());
    }
}

#[test]
fn pipelined_requests_keep_their_own_header_names() {
    let fixture = start();
    let mut client = Client::connect(fixture.address);
    let body = fp32("[1]", 1);
    let names = ["X-A", "x-a", "X-a"];
    client.send(names.map(|name| request(&[(name, "1")], &body)).concat());
    for name in names {
        let reply = client.receive(false);
        assert!(reply.text().contains(&format!(r#"{{"{name}":"1"}}"#)), "{}", reply.text());
    }
}

#[test]
fn header_names_are_kept_behind_a_long_body_and_in_a_split_head() {
    let fixture = start();
    let mut client = Client::connect(fixture.address);
    let long = format!("{}{}", " ".repeat(1 << 20), fp32("[1]", 1));
    let sent = request(&[("X-Long", "1")], &long) + &request(&[("X-Next", "1")], &fp32("[1]", 1));
    sent.as_bytes().chunks(50_001).for_each(|part| client.send(part));
    for name in ["X-Long", "X-Next"] {
        let reply = client.receive(false);
        assert!(reply.text().contains(&format!(r#"{{"{name}":"1"}}"#)), "{}", reply.text());
    }
}

#[test]
fn a_head_within_a_body_is_ignored() {
    let fixture = start();
    let mut client = Client::connect(fixture.address);
    let body = fp32("[1]", 1);
    let forged = format!("{}{body}", request(&[("X-User", "root")], ""));
    client.send(request(&[("X-First", "1")], &forged));
    assert_eq!(client.receive(false).status, 500, "the body is no JSON");
    client.send(request(&[("x-user", "me")], &body));
    let reply = client.receive(false);
    assert!(reply.text().contains(r#"{"x-user":"me"}"#), "{}", reply.text());
}
