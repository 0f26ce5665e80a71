//! The refusal of a request whose client has reached its limits.

use std::time::Duration;

use galatea_types::{Code, Error, OverShare};

use super::token_bucket::RequestRate;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    ClientRequests,
    ClientBytes,
    ConnectionRequests,
    ConnectionBytes,
    Rate,
}

galatea_types::names! {
    /// Returns the name of the limit in the metrics.
    pub Limit::name {
        ClientRequests = "client_requests", ClientBytes = "client_bytes",
        ConnectionRequests = "connection_requests", ConnectionBytes = "connection_bytes", Rate = "client_rate",
    }
}

/// The error for a client that has reached a limit: 429, RESOURCE_EXHAUSTED.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ClientLimitError {
    limit: Limit,
    text: String,
    wait: Duration,
}

/// The advised pause when the time is unknown: the limit is free when another request of the client ends.
const SOON: Duration = Duration::from_secs(1);

impl ClientLimitError {
    pub(super) fn over(over: OverShare, is_of_client: bool) -> Self {
        let whose = if is_of_client { "client" } else { "connection" };
        let (limits, most, what, option) = match over {
            OverShare::Requests(most) => (
                (Limit::ClientRequests, Limit::ConnectionRequests),
                most,
                "requests",
                "max-concurrent-requests",
            ),
            OverShare::Bytes(most) => (
                (Limit::ClientBytes, Limit::ConnectionBytes),
                most,
                "bytes of requests",
                "max-request-bytes",
            ),
        };
        let limit = if is_of_client { limits.0 } else { limits.1 };
        let text = format!(
            "this {whose} has reached its limit of {most} {what} in progress (--{whose}-{option}); try again when one of its requests \
             is answered"
        );
        Self { limit, text, wait: SOON }
    }

    pub(super) fn rate(rate: RequestRate, wait: Duration) -> Self {
        let text = format!(
            "this client sends more than its limit of {} requests a second (--client-requests-per-second); try again \
             later",
            rate.per_second
        );
        Self { limit: Limit::Rate, text, wait }
    }

    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// Returns the time to wait before another attempt.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns the wait in whole seconds, at least one, which is the form in HTTP.
    pub fn wait_seconds(&self) -> u64 {
        (self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)).max(1)
    }

    /// Returns the limit error that caused `error`, if one did.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl From<ClientLimitError> for Error {
    fn from(error: ClientLimitError) -> Self {
        Error::new(Code::Exhausted, error.to_string()).with_source(error)
    }
}
