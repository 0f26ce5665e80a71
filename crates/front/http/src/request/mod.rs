//! A request: its route, its sender, its body, and its admission.

pub(crate) mod accepted;
pub(crate) mod admission;
mod body;
pub(crate) mod received;
pub(crate) mod route;
pub(crate) mod same_site;
#[cfg(test)]
#[path = "tests/sent_head.rs"]
pub(crate) mod sent_head;
