//! Limits of clients, on a clock that is handed in.

use std::time::Duration;

use super::*;
use crate::client::Peer;

fn client(address: &str) -> Client {
    Client { peer: Peer::Tcp(address.parse().expect("an address")), certificate: None }
}

fn limits(settings: ClientLimitSettings) -> ClientLimits {
    ClientLimits::new(settings)
}

fn account(limits: &ClientLimits, address: &str) -> CallAccount {
    limits.account(&client(address), &limits.connection(), None).expect("there are limits")
}

const fn requests(requests: usize) -> ShareLimits {
    ShareLimits { requests, ..ShareLimits::NONE }
}

#[test]
fn without_limits_clients_are_not_counted() {
    let limits = limits(ClientLimitSettings::default());
    assert!(limits.account(&client("10.0.0.1:1"), &limits.connection(), None).is_none());
    assert_eq!(limits.refused().count(), 0);
}

#[test]
fn one_client_cannot_use_the_share_of_another() {
    let limits = limits(ClientLimitSettings { client: requests(2), ..Default::default() });
    let (one, again) = (account(&limits, "10.0.0.1:1"), account(&limits, "10.0.0.1:2"));
    let held = [one.begin(1).expect("may"), again.begin(1).expect("may")];
    let error = one.begin(1).expect_err("enough");
    assert!(
        error.to_string().contains("2 requests in progress (--client-max-concurrent-requests)"),
        "{error}"
    );
    assert_eq!(error.wait_seconds(), 1);
    assert!(account(&limits, "10.0.0.2:1").begin(1).is_ok());
    drop(held);
    assert!(one.begin(1).is_ok());
    assert_eq!(limits.refused().next(), Some(("client_requests", 1)));
}

#[test]
fn bytes_are_counted_by_client_and_by_connection() {
    let settings = ClientLimitSettings {
        client: ShareLimits { bytes: 100, ..ShareLimits::NONE },
        connection: ShareLimits { bytes: 60, ..ShareLimits::NONE },
        rate: None,
    };
    let limits = limits(settings);
    let (one, other) = (account(&limits, "10.0.0.1:1"), account(&limits, "10.0.0.1:2"));
    let mut held = one.begin(50).expect("may");
    let error = one.begin(20).expect_err("too many on the connection");
    assert!(
        error
            .to_string()
            .contains("60 bytes of requests in progress (--connection-max-request-bytes)"),
        "{error}"
    );
    let error = other.begin(51).expect_err("too many of the client");
    assert!(
        error
            .to_string()
            .contains("100 bytes of requests in progress (--client-max-request-bytes)"),
        "{error}"
    );
    assert!(one.grow(&mut held, 10).is_ok());
    let error = one.grow(&mut held, 1).expect_err("too many on the connection");
    assert!(error.to_string().contains("--connection-max-request-bytes"), "{error}");
}

#[test]
fn a_rate_allows_a_burst_and_then_one_request_at_a_time() {
    let rate = RequestRate { per_second: 10.0, burst: 5.0 };
    let limits = limits(ClientLimitSettings { rate: Some(rate), ..Default::default() });
    let (one, start) = (account(&limits, "10.0.0.1:1"), Instant::now());
    for _ in 0..5 {
        assert!(one.begin_at(0, start).is_ok());
    }
    let error = one.begin_at(0, start).expect_err("the burst is over");
    assert_eq!((error.wait(), error.wait_seconds()), (Duration::from_millis(100), 1));
    assert!(error.to_string().contains("10 requests a second"), "{error}");
    assert!(one.begin_at(0, start + error.wait()).is_ok(), "as was said");
    assert!(account(&limits, "10.0.0.2:1").begin_at(0, start).is_ok());
    let later = start + Duration::from_secs(3600);
    assert_eq!((0..20).filter(|_| one.begin_at(0, later).is_ok()).count(), 5);
}

#[test]
fn a_request_refused_by_another_limit_does_not_count_against_the_rate() {
    let rate = RequestRate { per_second: 1.0, burst: 2.0 };
    let limits =
        limits(ClientLimitSettings { client: requests(1), rate: Some(rate), ..Default::default() });
    let (one, now) = (account(&limits, "10.0.0.1:1"), Instant::now());
    let held = one.begin_at(0, now).expect("may");
    for _ in 0..5 {
        assert!(one.begin_at(0, now).is_err());
    }
    drop(held);
    assert!(one.begin_at(0, now).is_ok());
}
