//! The report for people: a row for each engine, and a recommendation.

use std::time::Duration;

use galatea_perf::probe::{AnswerDifference, Figures};
use galatea_serve::Table;

use super::{candidate::Candidate, measured_engine::MeasuredEngine};

/// An engine, and its outcome.
pub struct Row {
    pub candidate: Candidate,
    pub outcome: Result<Outcome, String>,
}

/// The outcome of an engine that was measured.
pub struct Outcome {
    pub measured: MeasuredEngine,
    pub agreement: Agreement,
}

/// The result of comparing its answers with those of the first engine that could be measured.
pub enum Agreement {
    /// The engine with which others are compared.
    IsCompared,
    /// The difference is within the tolerance.
    Agrees(AnswerDifference),
    /// The difference is above the tolerance.
    Differs { difference: AnswerDifference, tolerance: f64 },
    /// The answers have other outputs, types or shapes.
    Incomparable(String),
}

impl Agreement {
    fn is_fine(&self) -> bool {
        matches!(self, Self::IsCompared | Self::Agrees(_))
    }

    fn text(&self) -> String {
        match self {
            Self::IsCompared => "compared with".to_owned(),
            Self::Agrees(difference) => format!("{:.1e}", difference.share),
            Self::Differs { difference, tolerance } => format!(
                "{:.1e} of '{}': more than {tolerance:e}",
                difference.share, difference.output
            ),
            Self::Incomparable(reason) => reason.clone(),
        }
    }
}

/// Returns the engine with the highest throughput among those whose answers are right.
pub fn fastest(rows: &[Row]) -> Option<(&Candidate, &MeasuredEngine)> {
    let fine = rows.iter().filter_map(|row| {
        let outcome = row.outcome.as_ref().ok().filter(|outcome| outcome.agreement.is_fine())?;
        Some((&row.candidate, &outcome.measured))
    });
    fine.max_by(|(_, one), (_, other)| one.most.throughput.total_cmp(&other.most.throughput))
}

/// Returns the table of all engines, with a line break at both ends.
pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new([
        "Engine",
        "Alone: p50 ms",
        "p99 ms",
        "Most: inferences/s",
        "Memory MiB",
        "Load s",
        "Largest difference",
    ]);
    for Row { candidate, outcome } in rows {
        let own = if candidate.is_configured() { " (configured)" } else { "" };
        let name = format!("{}{own}", candidate.name);
        table.row(match outcome {
            Ok(Outcome { measured, agreement }) => cells(name, measured, agreement.text()),
            Err(reason) => {
                let none = || "-".to_owned();
                [name, none(), none(), none(), none(), none(), format!("not measured: {reason}")]
            }
        });
    }
    table.text(usize::MAX)
}

fn cells(name: String, measured: &MeasuredEngine, difference: String) -> [String; 7] {
    let MeasuredEngine { alone, most, memory, load_time, .. } = measured;
    [
        name,
        milliseconds(alone.p50),
        milliseconds(alone.p99),
        format!(
            "{} with {} at a time{}",
            number(most.throughput),
            most.concurrency,
            unsteady(most)
        ),
        memory.map_or("?".to_owned(), |bytes| (bytes >> 20).to_string()),
        format!("{:.2}", load_time.as_secs_f64()),
        difference,
    ]
}

fn unsteady(figures: &Figures) -> &'static str {
    if figures.is_stable { "" } else { " (unsteady)" }
}

fn milliseconds(time: Duration) -> String {
    number(time.as_secs_f64() * 1e3)
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns the fastest engine, its lead, and the lines that choose it.
pub fn verdict(rows: &[Row]) -> String {
    let Some((candidate, measured)) = fastest(rows) else {
        return "No engine could be measured.\n".to_owned();
    };
    let own = rows.iter().find(|row| row.candidate.is_configured());
    let own = own.and_then(|row| Some((row.candidate.name, row.outcome.as_ref().ok()?)));
    let name = candidate.name;
    let gain = own.filter(|_| !candidate.is_configured()).map(|(configured, outcome)| {
        let throughput = measured.most.throughput / outcome.measured.most.throughput;
        let latency = outcome.measured.alone.p50.as_secs_f64() / measured.alone.p50.as_secs_f64();
        format!(": {throughput:.2} times the throughput of {configured}, {latency:.2} times as fast alone")
    });
    let head = format!("Fastest: {name}{}", gain.unwrap_or_default());
    match candidate.is_configured() {
        true => format!("{head}, as the model is configured.\n"),
        false => format!(
            "{head}.\nIn config.pbtxt, instead of `backend` and `platform`:\n\n{}",
            candidate.lines
        ),
    }
}

#[cfg(test)]
mod tests {
    use galatea_config::RawModelConfig;
    use galatea_perf::probe::Answers;

    use super::*;

    fn row(name: &'static str, lines: &str, throughput: f64, agreement: Agreement) -> Row {
        let figures = Figures {
            concurrency: 4,
            throughput,
            p50: Duration::from_micros(1500),
            p99: Duration::from_millis(20),
            is_stable: true,
        };
        let measured = MeasuredEngine {
            load_time: Duration::from_millis(1234),
            memory: Some(100 << 20),
            alone: figures,
            most: figures,
            answers: Answers::default(),
        };
        let candidate = Candidate {
            name,
            config: RawModelConfig::default(),
            lines: lines.to_owned(),
            is_bf16: false,
        };
        Row { candidate, outcome: Ok(Outcome { measured, agreement }) }
    }

    fn difference(share: f64) -> AnswerDifference {
        AnswerDifference { share, output: "y".to_owned() }
    }

    #[test]
    fn the_fastest_correct_candidate_is_chosen() {
        let wrong = Agreement::Differs { difference: difference(0.5), tolerance: 1e-3 };
        let rows = [
            row("ONNX Runtime", "", 100.0, Agreement::IsCompared),
            row(
                "OpenVINO f32",
                "backend: \"openvino\"\n",
                150.0,
                Agreement::Agrees(difference(1e-6)),
            ),
            row("OpenVINO bf16", "backend: \"x\"\n", 900.0, wrong),
        ];
        let text = verdict(&rows);
        let expected = "Fastest: OpenVINO f32: 1.50 times the throughput of ONNX Runtime, 1.00 times as fast alone.\n\
                        In config.pbtxt, instead of `backend` and `platform`:\n\nbackend: \"openvino\"\n";
        assert_eq!(text, expected);
        let table = table(&rows);
        for part in [
            "| ONNX Runtime (configured) | 1.50          | 20.0   | 100 with 4 at a time | 100        | 1.23   | compared with",
            "1.0e-6",
            "5.0e-1 of 'y': more than 1e-3",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }

    #[test]
    fn the_configured_engine_may_be_the_fastest() {
        let mut rows = vec![
            row("ONNX Runtime", "", 100.0, Agreement::IsCompared),
            row(
                "OpenVINO f32",
                "backend: \"openvino\"\n",
                99.0,
                Agreement::Agrees(difference(0.0)),
            ),
        ];
        assert_eq!(verdict(&rows), "Fastest: ONNX Runtime, as the model is configured.\n");
        rows.iter_mut().for_each(|row| row.outcome = Err("no library".to_owned()));
        assert_eq!(verdict(&rows), "No engine could be measured.\n");
        assert!(table(&rows).contains("not measured: no library"));
    }
}
