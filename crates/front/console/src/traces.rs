//! The last traced requests of a model, as the page asks for them. They have no content of tensors.

use galatea_trace::{RecentTrace, SettingValue, Tracer};
use galatea_trace_timeline::TreeReport;
use galatea_types::{Error, Result};
use serde::Serialize;

use crate::{openapi::model_of_query, words::millis};

/// The settings that say which requests are traced. The others name files of the server.
const SHOWN_SETTINGS: [&str; 3] = ["trace_level", "trace_rate", "trace_count"];

/// The traces of a model, and what is needed to trace more.
#[derive(Debug, Serialize)]
struct TracesDocument<'a> {
    model: &'a str,
    /// The next requests to the model may be traced.
    is_on: bool,
    /// Traces have somewhere to go. Without that, no request is traced.
    has_destination: bool,
    /// The model has settings of its own.
    has_own_settings: bool,
    /// The caller may change the settings.
    may_change: bool,
    trace_level: Vec<String>,
    trace_rate: String,
    trace_count: String,
    /// The newest first.
    traces: Vec<TraceRow>,
}

#[derive(Debug, Serialize)]
struct TraceRow {
    finished_ms: u64,
    #[serde(flatten)]
    tree: TreeReport,
}

/// Reads the name of the model in the query of a URL: `model=NAME`.
///
/// # Errors
/// `InvalidArg` if there is none, or it is not text.
pub fn model_of(query: &str) -> Result<String> {
    let missing =
        || Error::invalid_arg("the query has no model: ask for /console/traces?model=NAME");
    model_of_query(query)?.ok_or_else(missing)
}

/// Returns the last traces of a model as JSON. `may_change`: the caller may change the model's trace settings.
///
/// # Errors
/// `Internal` if they cannot be written.
pub fn document(tracer: &Tracer, model: &str, may_change: bool) -> Result<Vec<u8>> {
    let kept = tracer.recent().map(|recent| recent.of_model(model)).unwrap_or_default();
    let settings = tracer.settings(Some(model));
    let [trace_level, trace_rate, trace_count] = SHOWN_SETTINGS.map(|wanted| {
        let found = settings.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| texts(value)).unwrap_or_default()
    });
    let document = TracesDocument {
        model,
        is_on: tracer.may_trace(model),
        has_destination: tracer.has_destination(),
        has_own_settings: tracer.has_own_settings(model),
        may_change,
        trace_level,
        trace_rate: trace_rate.concat(),
        trace_count: trace_count.concat(),
        traces: kept
            .iter()
            .map(|trace| row(trace))
            .filter(|row| !row.tree.rows.is_empty())
            .collect(),
    };
    let broken = |error| Error::internal(format!("cannot write the traces of '{model}': {error}"));
    serde_json::to_vec(&document).map_err(broken)
}

fn row(trace: &RecentTrace) -> TraceRow {
    TraceRow { finished_ms: millis(trace.finished_at), tree: trace.tree() }
}

fn texts(value: &SettingValue) -> Vec<String> {
    match value {
        SettingValue::One(text) => vec![text.clone()],
        SettingValue::List(names) => names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use galatea_trace::{Levels, Settings, TraceOptions};
    use galatea_types::{InferRequest, Origin, Protocol, RequestStart, Timeline};
    use serde_json::Value;

    use super::*;

    fn read(tracer: &Tracer, model: &str, may_change: bool) -> Value {
        let document = document(tracer, model, may_change).expect("a document");
        serde_json::from_slice(&document).expect("JSON")
    }

    #[test]
    fn the_query_names_the_model() {
        assert_eq!(model_of("a=b&model=x%2Fy").expect("a name"), "x/y");
        assert!(model_of("").is_err() && model_of("model=%ff").is_err());
    }

    #[test]
    fn without_traces_the_document_says_what_is_missing() {
        let shown = read(&Tracer::default(), "m", true);
        assert_eq!((&shown["is_on"], &shown["has_destination"]), (&false.into(), &false.into()));
        assert_eq!(shown["trace_level"], serde_json::json!(["OFF"]));
        assert_eq!((&shown["trace_rate"], &shown["trace_count"]), (&"1000".into(), &"-1".into()));
        assert_eq!(
            (&shown["may_change"], &shown["has_own_settings"]),
            (&true.into(), &false.into())
        );
        assert_eq!(shown["traces"], serde_json::json!([]));
        assert!(shown.get("trace_file").is_none());
    }

    #[test]
    fn a_traced_request_has_its_time_and_its_rows() {
        let folder = tempfile::tempdir().expect("a folder");
        let levels = Levels { timestamps: true, tensors: true };
        let options = TraceOptions {
            settings: Settings { levels, rate: 1, ..Settings::default() },
            file: folder.path().join("traces"),
            keeps_recent: true,
            ..TraceOptions::default()
        };
        let tracer = Arc::new(Tracer::new(options));
        let mut front_end = tracer.begin(Protocol::Http, None).expect("on");
        front_end.set_model("m");
        let observer = front_end.observer().expect("traced");
        let request = InferRequest { id: "<b>".to_owned(), ..InferRequest::new("m") };
        let origin = Origin::default();
        observer.start(&RequestStart { request: &request, version: 1, origin: &origin });
        let now = std::time::Instant::now();
        observer.finish(&Timeline { end: Some(now), ..Timeline::new(now) });
        drop((observer, front_end));
        let shown = read(&tracer, "m", false);
        let [trace] = &shown["traces"].as_array().expect("a list")[..] else { panic!("{shown}") };
        assert!(trace["finished_ms"].as_u64() > Some(1_700_000_000_000));
        assert_eq!(
            (&trace["rows"][0]["request_id"], &trace["rows"][0]["model"]),
            (&"<b>".into(), &"m".into())
        );
        assert!(shown["is_on"] == true && shown["may_change"] == false);
        assert_eq!(read(&tracer, "other", true)["traces"], serde_json::json!([]));
        tracer.close();
    }
}
