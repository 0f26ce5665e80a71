//! The one place where requests are counted: what is queued, executed, streamed, refused and failed, and what an
//! ensemble did as a whole. It is also where a failed request is logged, once.

mod failure_log;
mod request_accounting;
mod stream_accounting;

pub(crate) use request_accounting::RequestAccounting;
pub(crate) use stream_accounting::{StreamAccounting, StreamOrigin};
