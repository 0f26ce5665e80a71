//! The Prometheus text format: families, samples, labels.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
};

use crate::distributions::{Histogram, Summary};
use crate::families::Family;

/// Prometheus text exposition format 0.0.4, as it grows. Writing to a `String` cannot fail.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    pub fn family(&mut self, family: &Family) {
        let Family { name, help, kind, .. } = family;
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
    }

    /// Writes a sample. Rust prints numbers in full, also floating-point ones: no exponent, integers plain.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Writes a family with one sample and no labels.
    pub fn single(&mut self, family: &Family, value: impl Display) {
        self.family(family);
        self.sample(family.name, "", value);
    }

    pub fn of_model(&mut self, family: &Family, labels: &Labels, value: impl Display) {
        self.part(family, "", labels, value);
    }

    /// Writes a sample as [`of_model`](Self::of_model) does, with a label `reason`.
    pub fn with_reason(&mut self, family: &Family, labels: &Labels, reason: &str, value: u64) {
        let Labels { head, tail } = labels;
        let _ = writeln!(self.0, "{}{head},reason=\"{reason}\"{tail}}} {value}", family.name);
    }

    /// Writes count, sum and cumulated buckets, in Triton's order.
    pub fn histogram(&mut self, family: &Family, labels: &Labels, histogram: &Histogram, sum: f64) {
        let total = histogram.count();
        self.part(family, "_count", labels, total);
        self.part(family, "_sum", labels, sum);
        for (bound, count) in histogram.cumulated() {
            self.bucket(family, labels, Number(bound), count);
        }
        self.bucket(family, labels, Number(f64::INFINITY), total);
    }

    fn bucket(&mut self, family: &Family, labels: &Labels, le: Number, count: u64) {
        let Labels { head, tail } = labels;
        let _ = writeln!(self.0, "{}_bucket{head}{tail},le=\"{le}\"}} {count}", family.name);
    }

    /// Writes count, sum and quantiles, in Triton's order.
    pub fn summary(
        &mut self,
        family: &Family,
        labels: &Labels,
        summary: &Summary,
        quantiles: &[f64],
    ) {
        self.part(family, "_count", labels, summary.count);
        self.part(family, "_sum", labels, summary.micros);
        let (name, Labels { head, tail }) = (family.name, labels);
        for (quantile, value) in quantiles.iter().zip(&summary.quantiles) {
            let _ = write!(self.0, "{name}{head}{tail},quantile=\"{}\"}} ", Number(*quantile));
            let _ = match value {
                Some(value) => writeln!(self.0, "{value}"),
                // As Triton's library writes it.
                None => writeln!(self.0, "Nan"),
            };
        }
    }

    fn part(&mut self, family: &Family, part: &str, labels: &Labels, value: impl Display) {
        let Labels { head, tail } = labels;
        let _ = writeln!(self.0, "{}{part}{head}{tail}}} {value}", family.name);
    }

    /// Appends the samples of a family with its head, or nothing when there are no samples.
    pub fn append_family(&mut self, family: &Family, samples: Text) {
        if !samples.0.is_empty() {
            self.family(family);
            self.0.push_str(&samples.0);
        }
    }

    pub fn finish(self) -> String {
        self.0
    }
}

/// A number printed in full, without exponent; infinities have their sign.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub f64);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => value.fmt(f),
        }
    }
}

/// The labels of a model, without the closing brace: `{_tag="..",model="..",namespace=".."` and `,version=".."`. Sorted by name,
/// `reason` goes between them, and `_` comes before every letter.
pub(super) struct Labels {
    head: String,
    tail: String,
}

impl Labels {
    /// Makes the labels. An empty `namespace` gives no such label.
    pub fn new(
        tags: &BTreeMap<String, String>,
        model: &str,
        namespace: &str,
        version: i64,
    ) -> Self {
        let mut head = String::from("{");
        for (key, value) in tags {
            let _ = write!(head, "_{key}=\"");
            push_escaped(&mut head, value);
            head.push_str("\",");
        }
        head.push_str("model=\"");
        push_escaped(&mut head, model);
        if !namespace.is_empty() {
            head.push_str("\",namespace=\"");
            push_escaped(&mut head, namespace);
        }
        head.push('"');
        Self { head, tail: format!(",version=\"{version}\"") }
    }

    /// Makes the labels of a version without tags; `None` when the version is not known.
    pub fn of_version(model: &str, namespace: &str, version: Option<i64>) -> Self {
        let own = Self::new(&BTreeMap::new(), model, namespace, version.unwrap_or_default());
        match version {
            Some(_) => own,
            None => Self { tail: ",version=\"\"".to_owned(), ..own },
        }
    }

    /// Returns the labels with braces.
    pub fn text(&self) -> String {
        format!("{}{}}}", self.head, self.tail)
    }
}

/// Appends a label's value.
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
