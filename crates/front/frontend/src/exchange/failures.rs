//! The log line of a failed request. A model that keeps failing gets few lines, and so do requests that reach no model.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use galatea_telemetry::LineLimit;
use galatea_types::{Code, LockExt};

/// The most models with their own limits on lines. All other models share one.
const MAX_MODELS: usize = 1024;
/// The most bytes of the reason, which may contain text from clients.
const MAX_REASON: usize = 1024;

/// The severity of a failure, which decides its log level. Lines of one kind never use up the limit of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A failure of the server or the model: level error.
    Fault,
    /// The server cannot do it now: level warning.
    Unavailable,
    /// A mistake of the client: level info.
    Mistake,
}

impl Kind {
    fn of(code: Code) -> Self {
        match code {
            Code::Internal | Code::Unknown => Self::Fault,
            Code::Unavailable | Code::Exhausted => Self::Unavailable,
            Code::NotFound
            | Code::InvalidArg
            | Code::Unsupported
            | Code::AlreadyExists
            | Code::Cancelled => Self::Mistake,
        }
    }

    fn level(self) -> log::Level {
        match self {
            Self::Fault => log::Level::Error,
            Self::Unavailable => log::Level::Warn,
            Self::Mistake => log::Level::Info,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct FailedRequest<'a> {
    /// Empty if the request reached no model.
    pub model: &'a str,
    pub version: Option<i64>,
    /// The id of the request; may be empty.
    pub id: &'a str,
    /// The call: method and path, or the gRPC name.
    pub call: &'a dyn fmt::Display,
    /// The span of the request in its client's trace.
    pub trace: Option<&'a dyn fmt::Display>,
    pub code: Code,
    pub reason: &'a str,
}

#[derive(Debug)]
pub(super) struct Failures {
    others: Limits,
    models: Mutex<HashMap<Box<str>, Arc<Limits>>>,
}

/// The limits of a model, one for each kind.
type Limits = [LineLimit; 3];

/// Returns the limits of a model, or those of requests that reached none if `model` is empty.
fn limits(model: &str) -> Limits {
    [Kind::Fault, Kind::Unavailable, Kind::Mistake].map(|kind| {
        let (model, level) = (Box::<str>::from(model), kind.level());
        LineLimit::new(move |count| log::log!(level, "{}", suppressed_line(&model, count)))
    })
}

impl Default for Failures {
    fn default() -> Self {
        Self { others: limits(""), models: Mutex::default() }
    }
}

impl Failures {
    pub fn log(&self, failed: &FailedRequest<'_>) {
        let kind = Kind::of(failed.code);
        let level = kind.level();
        if !log::log_enabled!(level) {
            return;
        }
        let limits = self.limits_of(failed.model);
        let limits = limits.as_deref().unwrap_or(&self.others);
        if limits[kind as usize].admits() {
            log_line(level, failed);
        }
    }

    fn limits_of(&self, model: &str) -> Option<Arc<Limits>> {
        if model.is_empty() {
            return None;
        }
        let mut models = self.models.lock_unpoisoned();
        if let Some(limits) = models.get(model) {
            return Some(limits.clone());
        }
        let is_new = models.len() < MAX_MODELS;
        is_new
            .then(|| models.entry(model.into()).or_insert_with(|| Arc::new(limits(model))).clone())
    }
}

/// Adds the model, version and request id as fields for JSON logs.
fn log_line(level: log::Level, failed: &FailedRequest<'_>) {
    let FailedRequest { model, version, id, .. } = *failed;
    match version {
        Some(version) if !model.is_empty() => {
            log::log!(level, model, version, request_id = id; "{}", line(failed));
        }
        _ => log::log!(level, request_id = id; "{}", line(failed)),
    }
}

fn suppressed_line(model: &str, count: u64) -> String {
    match model {
        "" => format!("{count} more requests failed before they reached a model (not logged)"),
        model => format!("{count} more requests to model '{model}' failed (not logged)"),
    }
}

fn line(failed: &FailedRequest<'_>) -> String {
    let FailedRequest { model, version, id, call, trace, code, reason } = *failed;
    let id = if id.is_empty() { "<id_unknown>" } else { id };
    // Many texts begin with the id, which the line has already.
    let reason = reason.strip_prefix(&format!("[request id: {id}] ")).unwrap_or(reason);
    let first = reason.lines().map(str::trim_end).find(|line| !line.is_empty()).unwrap_or_default();
    let end = first.floor_char_boundary(MAX_REASON);
    let (reason, rest) = first.split_at(end);
    let rest = if rest.is_empty() { "" } else { "..." };
    let trace = trace.map(|trace| format!(", trace {trace}")).unwrap_or_default();
    let code = code.as_str();
    let whom = match (model, version) {
        ("", _) => call.to_string(),
        (model, Some(version)) => format!("model '{model}' version {version}"),
        (model, None) => format!("model '{model}'"),
    };
    format!("{whom}, request id {id}{trace}: {code}: {reason}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: FailedRequest<'_> = FailedRequest {
        model: "m",
        version: Some(3),
        id: "7",
        call: &"POST /v2/models/m/infer",
        trace: None,
        code: Code::InvalidArg,
        reason: "input 'X' is odd\nand more",
    };

    #[test]
    fn a_line_names_the_request_and_the_first_line_of_the_reason() {
        assert_eq!(
            line(&FAILED),
            "model 'm' version 3, request id 7: Invalid argument: input 'X' is odd"
        );
        let unknown = FailedRequest { model: "", id: "", code: Code::NotFound, ..FAILED };
        assert_eq!(
            line(&unknown),
            "POST /v2/models/m/infer, request id <id_unknown>: Not found: input 'X' is odd"
        );
        let prefixed = FailedRequest { reason: "[request id: 7] input 'X' is odd", ..FAILED };
        assert_eq!(line(&prefixed), line(&FAILED));
        let traced = FailedRequest { version: None, trace: Some(&"00-1-2-01"), ..FAILED };
        assert_eq!(
            line(&traced),
            "model 'm', request id 7, trace 00-1-2-01: Invalid argument: input 'X' is odd"
        );
    }

    #[test]
    fn a_line_is_bounded_for_any_client_data() {
        let reason = "é".repeat(1 << 20);
        let line = line(&FailedRequest { reason: &reason, ..FAILED });
        assert!(line.len() < MAX_REASON + 200 && line.ends_with("é..."), "{} bytes", line.len());
    }

    #[test]
    fn client_errors_do_not_use_up_the_lines_for_server_faults() {
        assert_eq!(Kind::of(Code::Internal).level(), log::Level::Error);
        assert_eq!(Kind::of(Code::Exhausted).level(), log::Level::Warn);
        assert_eq!(Kind::of(Code::InvalidArg).level(), log::Level::Info);
        let failures = Failures::default();
        let limits = failures.limits_of("m").expect("its own");
        while limits[Kind::Mistake as usize].admits() {}
        assert!(limits[Kind::Fault as usize].admits());
        let others = failures.limits_of("n").expect("its own");
        assert!(others[Kind::Mistake as usize].admits());
        assert!(failures.limits_of("").is_none());
    }

    #[test]
    fn the_number_of_models_with_their_own_limits_is_bounded() {
        let failures = Failures::default();
        (0..MAX_MODELS).for_each(|n| drop(failures.limits_of(&n.to_string())));
        assert!(failures.limits_of("one more").is_none());
        assert!(failures.limits_of("7").is_some());
    }
}
