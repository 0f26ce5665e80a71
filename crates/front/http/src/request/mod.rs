//! A request: its route, its sender, its body, and its admission.

pub(crate) mod admission;
mod body;
pub(crate) mod media_types;
pub(crate) mod received_request;
pub(crate) mod route;
pub(crate) mod same_site;
#[cfg(test)]
#[path = "tests/sent_head.rs"]
pub(crate) mod sent_head;
