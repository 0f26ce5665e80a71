//! The last failed requests, for somebody who looks at the server.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use galatea_types::{Code, Identity, LockExt};

use crate::client::Peer;

/// How many are kept.
const MOST: usize = 100;
/// Most bytes of the call; method and path are the client's.
pub(super) const MAX_CALL: usize = 256;
/// Most bytes of the name of an identity.
const MAX_CLIENT: usize = 256;
/// Most bytes of the reason.
pub(super) const MAX_REASON: usize = 1024;

/// A request that failed. Texts of clients are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// Of the failed requests of this process, counted from 1.
    pub sequence: u64,
    /// When it was answered.
    pub time: SystemTime,
    /// `http` or `grpc`.
    pub protocol: &'static str,
    /// Method and path, or the full name of a gRPC call.
    pub call: Box<str>,
    /// Empty: it reached none.
    pub model: Box<str>,
    /// The one that answered, or was asked for.
    pub version: Option<i64>,
    /// The client's id of it; empty: it has none.
    pub id: Box<str>,
    /// Who sent it: the identity that it has proved, or the address it came from, without the port.
    pub client: Box<str>,
    /// Of HTTP the status, of gRPC the code; `None` of one response of several.
    pub status: Option<u16>,
    /// What kind of failure it is.
    pub code: Code,
    /// Why it failed. May have several lines.
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
    /// Adds one; its number is given here.
    pub(super) fn add(&self, mut call: FailedCall) {
        let mut kept = self.0.lock_unpoisoned();
        kept.count += 1;
        call.sequence = kept.count;
        if kept.calls.len() >= MOST {
            kept.calls.pop_front();
        }
        kept.calls.push_back(Arc::new(call));
    }

    /// How many there were in all.
    pub fn count(&self) -> u64 {
        self.0.lock_unpoisoned().count
    }

    /// Those that are kept and came after the one of this number, oldest first.
    pub fn since(&self, sequence: u64) -> Vec<Arc<FailedCall>> {
        let kept = self.0.lock_unpoisoned();
        kept.calls.iter().filter(|call| call.sequence > sequence).cloned().collect()
    }
}

/// Who sent a request.
pub(super) fn client(peer: Peer, identity: Option<&Identity>) -> Box<str> {
    match (identity, peer) {
        (Some(identity), _) => beginning(identity.name(), MAX_CLIENT).into(),
        (None, Peer::Tcp(address)) => address.ip().to_canonical().to_string().into(),
        (None, Peer::Unix) => "unix".into(),
    }
}

/// Returns `text` as it is, or, where it has more than `most` bytes, its first three quarters and its end with ` ... `
/// between them, in no more than `most` bytes.
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

/// The first `most` bytes of a text, about.
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
    fn the_last_ones_are_kept_and_all_are_counted() {
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
