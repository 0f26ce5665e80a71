//! The Prometheus text format: families, samples, labels.

use std::fmt::{Display, Write};

use super::ModelMetrics;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

/// Prometheus text exposition format 0.0.4, as it grows.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    pub fn family(&mut self, name: &str, help: &str, kind: Kind) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Rust prints numbers in full, floating-point ones too: no exponent, integers plain.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    pub fn finish(self) -> String {
        self.0
    }
}

/// `{_tag="..",model="..",namespace="..",reason="..",version=".."}`: by name, and `_` comes before every letter.
pub(super) fn labels(model: &ModelMetrics<'_>, reason: Option<&str>) -> String {
    let mut out = String::from("{");
    for (key, value) in model.tags {
        let _ = write!(out, "_{key}=\"");
        push_escaped(&mut out, value);
        out.push_str("\",");
    }
    out.push_str("model=\"");
    push_escaped(&mut out, model.name);
    if !model.namespace.is_empty() {
        out.push_str("\",namespace=\"");
        push_escaped(&mut out, model.namespace);
    }
    if let Some(reason) = reason {
        let _ = write!(out, "\",reason=\"{reason}");
    }
    let _ = write!(out, "\",version=\"{}\"}}", model.version);
    out
}

/// A label's value.
pub(crate) fn push_escaped(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}
