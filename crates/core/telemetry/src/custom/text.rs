//! Families that models define, in Prometheus text form.

use std::{fmt::Write, sync::Arc, sync::atomic::Ordering};

use super::{
    family::{CustomFamily, Labels, Series},
    value::{Histogram, Value},
};
use crate::metrics::{Number, push_escaped};

/// Writes a family. Writing to a `String` cannot fail, so the results are ignored here.
pub(super) fn write_family(out: &mut String, family: &CustomFamily, series: &[Arc<Series>]) {
    if !family.description.is_empty() {
        let _ = write!(out, "# HELP {} ", family.name);
        // Quotes stay as they are in a help text.
        out.push_str(&family.description.replace('\\', "\\\\").replace('\n', "\\n"));
        out.push('\n');
    }
    let _ = writeln!(out, "# TYPE {} {}", family.name, family.kind.name());
    for one in series {
        match &one.value {
            Value::Counter(value) | Value::Gauge(value) => {
                write_sample(
                    out,
                    &family.name,
                    &one.labels,
                    None,
                    &Number(value.get()).to_string(),
                );
            }
            Value::Histogram(histogram) => {
                write_histogram(out, &family.name, &one.labels, histogram);
            }
        }
    }
}

/// Writes count, sum and cumulated buckets. The count is that of the last bucket, even when values are observed meanwhile.
fn write_histogram(out: &mut String, name: &str, labels: &Labels, histogram: &Histogram) {
    let mut cumulated = 0;
    let counts: Vec<u64> = histogram
        .counts
        .iter()
        .map(|count| {
            cumulated += count.load(Ordering::Relaxed);
            cumulated
        })
        .collect();
    let total = cumulated.to_string();
    write_sample(out, &format!("{name}_count"), labels, None, &total);
    write_sample(
        out,
        &format!("{name}_sum"),
        labels,
        None,
        &Number(histogram.sum.get()).to_string(),
    );
    let bucket = format!("{name}_bucket");
    for (bound, count) in histogram.bounds.iter().filter(|b| b.is_finite()).zip(counts) {
        write_sample(out, &bucket, labels, Some(&Number(*bound).to_string()), &count.to_string());
    }
    write_sample(out, &bucket, labels, Some("+Inf"), &total);
}

fn write_sample(out: &mut String, name: &str, labels: &Labels, le: Option<&str>, value: &str) {
    out.push_str(name);
    let mut separator = '{';
    let pairs = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in pairs.chain(le.map(|bound| ("le", bound))) {
        let _ = write!(out, "{separator}{name}=\"");
        push_escaped(out, value);
        out.push('"');
        separator = ',';
    }
    if separator == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}
