//! The last failed requests, for an operator who looks at the server.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use galatea_types::{Code, Identity, LockExt};

use crate::client::Peer;

/// The number of failed requests that are kept.
const MOST: usize = 100;
/// The most bytes of the call, whose method and path the client chooses.
pub(super) const MAX_CALL: usize = 256;
/// The most bytes of the name of an identity.
const MAX_CLIENT: usize = 256;
/// The most bytes of the reason.
pub(super) const MAX_REASON: usize = 1024;

/// A request that failed. Texts from clients are truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The number of this failure in this process, counted from 1.
    pub sequence: u64,
    /// The time of the answer.
    pub time: SystemTime,
    /// `http` or `grpc`.
    pub protocol: &'static str,
    /// Method and path, or the full name of a gRPC call.
    pub call: Box<str>,
    /// Empty if the request reached no model.
    pub model: Box<str>,
    /// The version that answered, or that was asked for.
    pub version: Option<i64>,
    /// The client's id of the request; empty without one.
    pub id: Box<str>,
    /// The sender: the proven identity, or the address without the port.
    pub client: Box<str>,
    /// The HTTP status or gRPC code; `None` for one of several responses.
    pub status: Option<u16>,
    /// The kind of failure.
    pub code: Code,
    /// The reason, which may have several lines.
    pub reason: Box<str>,
}

/// The last failed requests of all front ends.
#[derive(Debug, Default)]
pub struct RecentFailures(Mutex<KeptFailure>);

#[derive(Debug, Default)]
struct KeptFailure {
    calls: VecDeque<Arc<FailedCall>>,
    count: u64,
}

impl RecentFailures {
    /// Adds a failure and gives it its number.
    pub(super) fn add(&self, mut call: FailedCall) {
        let mut kept = self.0.lock_unpoisoned();
        kept.count += 1;
        call.sequence = kept.count;
        if kept.calls.len() >= MOST {
            kept.calls.pop_front();
        }
        kept.calls.push_back(Arc::new(call));
    }

    /// Returns the number of failures since the start.
    pub fn count(&self) -> u64 {
        self.0.lock_unpoisoned().count
    }

    /// Returns the kept failures with a number above `sequence`, oldest first.
    pub fn since(&self, sequence: u64) -> Vec<Arc<FailedCall>> {
        let kept = self.0.lock_unpoisoned();
        kept.calls.iter().filter(|call| call.sequence > sequence).cloned().collect()
    }
}

/// Returns the sender of a request.
pub(super) fn client(peer: Peer, identity: Option<&Identity>) -> Box<str> {
    match (identity, peer) {
        (Some(identity), _) => beginning(identity.name(), MAX_CLIENT).into(),
        (None, Peer::Tcp(address)) => address.ip().to_canonical().to_string().into(),
        (None, Peer::Unix) => "unix".into(),
    }
}

/// Returns `text` in at most `most` bytes. A longer text keeps its first three quarters and its end, with ` ... `
/// between them.
pub fn without_middle(text: &str, most: usize) -> Cow<'_, str> {
    const GAP: &str = " ... ";
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let room = most.saturating_sub(GAP.len());
    let end = text.ceil_char_boundary(text.len() - room / 4);
    let begin = text.floor_char_boundary(room - room / 4);
    Cow::Owned(
        [text.get(..begin), Some(GAP), text.get(end..)].map(Option::unwrap_or_default).concat(),
    )
}

/// Returns at most the first `most` bytes of a text, cut between characters.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(reason: &str) -> FailedCall {
        FailedCall {
            sequence: 0,
            time: SystemTime::UNIX_EPOCH,
            protocol: "http",
            call: beginning(&"é".repeat(1000), MAX_CALL).into(),
            model: "".into(),
            version: None,
            id: "".into(),
            client: "".into(),
            status: None,
            code: Code::Internal,
            reason: without_middle(reason, MAX_REASON).into(),
        }
    }

    #[test]
    fn the_latest_failures_are_kept_and_all_are_counted() {
        let failures = RecentFailures::default();
        assert!(failures.since(0).is_empty());
        (0..MOST + 5).for_each(|n| failures.add(call(&n.to_string())));
        assert_eq!(failures.count(), 105);
        let kept = failures.since(0);
        let first = kept.first().expect("a hundred");
        assert_eq!((kept.len(), first.sequence, &*first.reason), (MOST, 6, "5"));
        let new: Vec<_> = failures.since(103).iter().map(|call| call.sequence).collect();
        assert_eq!(new, [104, 105]);
    }

    #[test]
    fn texts_are_bounded() {
        let long = call(&"x".repeat(1 << 20));
        assert_eq!((long.call.len(), long.reason.len()), (MAX_CALL, MAX_REASON));
    }

    #[test]
    fn the_advice_at_the_end_of_a_long_reason_is_kept() {
        let advice = "; send it as INT64";
        let long = format!("expected {}{advice}", "é".repeat(2000));
        let short = without_middle(&long, MAX_REASON);
        assert!(short.starts_with("expected é") && short.ends_with(advice), "{short}");
        assert!(short.contains("é ... é") && short.len() <= MAX_REASON, "{short}");
        assert_eq!(without_middle("short", 5), "short");
        assert_eq!(without_middle("longer than that", 0), " ... ");
    }

    #[test]
    fn a_client_is_its_identity_or_its_address() {
        let peer = |address: &str| Peer::Tcp(address.parse().expect("an address"));
        assert_eq!(&*client(peer("10.0.0.7:4000"), None), "10.0.0.7");
        assert_eq!(&*client(peer("[::ffff:10.0.0.7]:4000"), None), "10.0.0.7");
        assert_eq!(&*client(peer("[2001:db8::7]:4000"), None), "2001:db8::7");
        assert_eq!(&*client(Peer::Unix, None), "unix");
        let identity = Identity::new("", "trainer");
        assert_eq!(&*client(Peer::Unix, Some(&identity)), "trainer");
    }
}
