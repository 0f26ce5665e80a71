//! Counts requests: queued, executed, streamed, refused and failed ones, and those of ensembles as a whole.
//! Nothing else counts requests. A failed request is logged here, once.

mod failure_log;
mod request_accounting;
mod stream_accounting;

pub(crate) use request_accounting::RequestAccounting;
pub(crate) use stream_accounting::{StreamAccounting, StreamOrigin};
