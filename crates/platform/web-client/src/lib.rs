//! The HTTP client of all that the server fetches: models of remote repositories, packages, the keys of an issuer of tokens.
//!
//! One set of rules holds for all of them. Servers are strangers: what they send is bounded in size and time, redirects never
//! lead from an encrypted connection to a plain one, and credentials go to the first server alone. [`HttpClient`] sends
//! requests; [`WebClient`] has the threads that it needs, for callers that wait, and ends what they wait for when the program
//! is asked to stop.

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
    address::{checked_uri, is_plain, is_same, shown},
    body::HttpBody,
    client::{ClientSettings, HttpClient, TimeLimits},
    failure::{HttpFailure, Problem},
    get::{Answer, Get},
    proxies::Proxies,
    roots::{Roots, read_certificates},
    web_client::WebClient,
};
