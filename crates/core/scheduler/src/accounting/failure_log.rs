//! Writes one log line for each request that failed because of the server or the model.

use std::sync::Arc;

use galatea_telemetry::LineLimit;
use galatea_types::{Code, Error, TraceContext};

/// The largest number of bytes of a request id in a log line. Clients choose ids, which may be as long as a request.
const MAX_ID: usize = 128;
/// The largest number of bytes of the message and its causes. A Python traceback, which is cut at 16 KiB, fits.
const MAX_TEXT: usize = 32 << 10;

/// Logs failures of one model version. The number of lines is limited, so that a model that fails under load cannot
/// flood the log. The log says how many lines were suppressed.
pub(super) struct FailureLog {
    model: Arc<str>,
    version: i64,
    limit: LineLimit,
}

impl FailureLog {
    pub fn new(model: Arc<str>, version: i64) -> Self {
        let name = model.clone();
        let limit = LineLimit::new(move |count| {
            log::error!(
                "{count} more requests to model '{name}' version {version} failed, which was not logged"
            );
        });
        Self { model, version, limit }
    }

    /// Logs the failure, if it is one of the server or the model: `Internal` or `Unknown`.
    pub fn failed(&self, request_id: &str, trace: Option<&TraceContext>, error: &Error) {
        if !matches!(error.code(), Code::Internal | Code::Unknown) {
            return;
        }
        if !self.limit.admits() {
            return;
        }
        let trace = trace.map(|trace| format!(", trace {trace}")).unwrap_or_default();
        let text = self.line(request_id, &trace, error);
        let (request_id, _) = shorten(request_id, MAX_ID);
        log::error!(model = *self.model, version = self.version, request_id; "{text}");
    }

    /// Returns the message that the client reads, followed by its causes.
    fn line(&self, request_id: &str, trace: &str, error: &Error) -> String {
        let Self { model, version, .. } = self;
        let id = if request_id.is_empty() { "<id_unknown>" } else { request_id };
        let code = error.code().as_str();
        let text = error.with_causes();
        let (id, id_rest) = shorten(id, MAX_ID);
        let (text, text_rest) = shorten(&text, MAX_TEXT);
        format!(
            "model '{model}' version {version}, request id {id}{id_rest}{trace}: {code}: {text}{text_rest}"
        )
    }
}

/// Returns at most the first `limit` bytes of a text, in whole characters, and "..." if the text is longer.
fn shorten(text: &str, limit: usize) -> (&str, &'static str) {
    let end = text.floor_char_boundary(limit);
    (&text[..end], if end < text.len() { "..." } else { "" })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_line_names_the_request_and_all_causes() {
        let cause =
            Error::internal("worker gave up").with_source(io::Error::other("Traceback ..."));
        let error = Error::internal("no output\n").with_source(cause);
        assert_eq!(
            FailureLog::new("m".into(), 3).line("7", ", trace 00-1-2-01", &error),
            "model 'm' version 3, request id 7, trace 00-1-2-01: Internal: no output: worker gave up: Traceback ..."
        );
        assert_eq!(
            FailureLog::new("m".into(), 3).line("", "", &Error::unknown("odd")),
            "model 'm' version 3, request id <id_unknown>: Unknown: odd"
        );
    }

    #[test]
    fn a_line_is_bounded_whatever_the_client_sends() {
        let (id, text) = ("é".repeat(1 << 20), "x".repeat(1 << 20));
        let log = FailureLog::new("m".into(), 3);
        let line = log.line(&id, "", &Error::internal(text.as_str()));
        assert!(line.len() < MAX_ID + MAX_TEXT + 100, "{} bytes", line.len());
        assert!(line.contains(&format!("request id {}...: Internal: x", "é".repeat(MAX_ID / 2))));
        assert!(line.ends_with("x..."));
    }
}
