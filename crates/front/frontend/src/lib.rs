//! The server under the protocols: what HTTP and gRPC would otherwise each have for themselves.
//!
//! A [`FrontEnd`] accepts connections from a [`Listener`] (TCP or Unix socket) and gives each to one of a few
//! worker threads, the one with the fewest. A worker is an OS thread with a single-threaded runtime; a
//! connection and all its requests stay on it, so a request costs no hand-over between threads here. A
//! [`Transport`] turns the accepted socket into the byte stream that a [`Protocol`] is spoken on.
//!
//! The parts that a protocol uses itself: [`InFlight`] counts the requests being answered and closes the door at
//! shutdown, [`catch_panic`] turns a panic into an answer, [`HeavyWork`] takes what would hold up the other clients of a thread, and [`ResponseReceiver`] brings the responses of any number of requests to the connection that writes
//! them, with a bound on what may wait for a client that does not read.
//!
//! What the operator allows of the calls of either protocol is decided in one place too: [`RestrictedApis`] says which need
//! a secret header, [`Authentication`] who sends a request and whether they may, [`HeaderForwarding`] which headers reach the
//! model.
//!
//! [`CompressionFormat`] packs and unpacks content, with a bound on how far it may grow.
//!
//! What becomes of each request is told in one place, for both protocols: [`Exchange`] makes its line of the access log, and
//! that of the log where it failed.
//!
//! How many connections there may be and how long each may keep the server waiting is one matter for all front ends
//! of a server: [`ConnectionLimits`].
//!
//! TLS is one of the transports: [`Tls`] has the certificates, [`TlsReload`] takes new ones while the server runs.
//!
//! **Invariants.** Nothing here knows HTTP/1, HTTP/2 or a message format; this is the only crate of the server
//! that opens sockets.

#![warn(missing_docs)]

mod accept;
mod access;
mod client;
mod client_limits;
mod compression;
mod connection;
mod connections;
mod exchange;
mod front_end;
mod heavy_work;
mod in_flight;
mod listener;
mod panics;
mod protocol;
mod repeated_log;
mod responses;
mod socket;
mod stage;
mod stream;
mod tls;
mod transport;
mod worker;

pub use access::{
    ApiCategory, Authentication, Caller, HeaderForwarding, PatternError, RestrictedApis,
    Restriction, RestrictionError,
};
pub use client::{Client, ClientCertificate, Peer};
pub use client_limits::{
    CallAccount, ClientLimitError, ClientLimitSettings, ClientLimits, ConnectionAccount,
    RequestRate,
};
pub use compression::{CompressionFormat, DecompressError};
pub use connection::{Connection, UnexpectedTls};
pub use connections::{
    Activity, CallGuard, ConnectionCounts, ConnectionLimits, ConnectionSettings, Framing,
    ReceivingGuard,
};
pub use exchange::{
    Answer, Call, Exchange, FailedCall, RecentFailures, RequestLog, Subject, recent_failures,
    without_middle,
};
pub use front_end::{FrontEnd, FrontEndOptions};
pub use galatea_access::{AccessError, Action};
pub use heavy_work::{HeavyWork, HeavyWorkError};
pub use in_flight::{InFlight, RequestGuard};
pub use listener::Listener;
pub use panics::{catch_panic, catch_panic_in_poll};
pub use protocol::Protocol;
pub use responses::{KeyedResponse, OnOverflow, Overflow, ResponseKey, ResponseReceiver};
pub use socket::Socket;
pub use stage::Closing;
pub use stream::Stream;
pub use tls::{
    Tls, TlsError, TlsFiles, TlsProtocol, TlsReload, TlsReloadRequest, distinguished_name,
};
pub use transport::{Opened, PortTransport, Transport};
