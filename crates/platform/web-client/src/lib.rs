//! The HTTP client for all that the server fetches: models of remote repositories, packages, the keys of a token issuer.
//!
//! One set of rules applies to all of them. Servers are not trusted: their data is limited in size and time, redirects never
//! lead from an encrypted connection to a plain one, and only the first server gets credentials. [`HttpClient`] sends
//! requests. [`WebClient`] adds the threads for callers that wait, and ends their requests when the program is asked to
//! stop.

#![warn(missing_docs)]

mod address;
mod body;
mod client;
mod failure;
mod get;
mod proxies;
mod roots;
mod web_client;

pub use self::{
    address::{any_uri, checked_uri, is_plain, is_same, shown},
    body::HttpBody,
    client::{ClientSettings, HttpClient, HttpVersion, TimeLimits},
    failure::{HttpFailure, Problem},
    get::{Answer, Get},
    proxies::Proxies,
    roots::{Roots, read_certificates},
    web_client::WebClient,
};
