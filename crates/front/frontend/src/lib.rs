//! The shared base of the HTTP and gRPC front ends.
//!
//! A [`FrontEnd`] accepts connections from a [`Listener`] (TCP or Unix socket) and gives each to the worker thread with
//! the fewest connections. A worker is an OS thread with a single-threaded runtime. A connection and all its requests
//! stay on it, so a request costs no hand-over between threads here. A [`Transport`] turns the accepted socket into the
//! byte stream of a [`Protocol`].
//!
//! Protocols use these parts themselves. [`InFlight`] counts the requests in progress and refuses new ones at shutdown.
//! [`catch_panic`] turns a panic into an answer. [`HeavyWork`] runs work that would delay the other clients of a thread.
//! [`ResponseReceiver`] brings responses to the connection that writes them, and bounds the number that wait for a slow client.
//!
//! The access rules are the same for both protocols. [`RestrictedApis`] says which calls need a secret header,
//! [`Authentication`] who sends a request and what they may do, and [`HeaderForwarding`] which headers reach the model.
//!
//! [`PassedDescriptors`] came with bytes of a client on a Unix socket, if its protocol takes them
//! ([`Stream::accept_descriptors`]).
//!
//! [`CompressionFormat`] compresses and decompresses content, with a bound on how far it may grow.
//!
//! [`Exchange`] records each request of both protocols: its line in the access log, and the log line if it failed.
//!
//! [`ConnectionLimits`] limits, for all front ends of a server together, the number of connections and the time that
//! each may keep the server waiting.
//!
//! TLS is one of the transports: [`Tls`] holds the certificates, and [`TlsReload`] replaces them while the server runs.
//!
//! **Invariants.** Nothing here knows HTTP/1, HTTP/2 or a message format; this is the only crate of the server
//! that opens sockets.

#![warn(missing_docs)]

mod acceptor;
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
mod panic_boundary;
mod passed_descriptors;
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
pub use panic_boundary::{catch_panic, catch_panic_in_poll};
pub use passed_descriptors::{PassedDescriptors, RefusedDescriptors};
pub use protocol::Protocol;
pub use responses::{KeyedResponse, OnOverflow, Overflow, ResponseKey, ResponseReceiver};
pub use socket::Socket;
pub use stage::Closing;
pub use stream::Stream;
pub use tls::{
    Tls, TlsError, TlsFiles, TlsProtocol, TlsReload, TlsReloadRequest, distinguished_name,
};
pub use transport::{Opened, PortTransport, Transport};
