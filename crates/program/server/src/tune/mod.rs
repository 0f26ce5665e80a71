//! `galatea tune`: finds the engine that serves a model fastest on this machine.

mod candidate;
mod command_line;
mod measured_engine;
mod model;
mod report;
mod server;
mod stop;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use galatea_command_line::help;
use galatea_perf::probe::{Answers, Failure};

use crate::terminal::{HELP_WIDTH, fail, print, refuse};

pub use self::command_line::TuneFlags;
use self::{
    candidate::{Candidate, candidates},
    measured_engine::{MeasuredEngine, measure},
    model::TunedModel,
    report::{Agreement, Outcome, Row},
    stop::Stop,
};

/// Exit code: the command line is wrong.
const USAGE: u8 = 2;

/// A signal ended the measurement.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: nothing was measured or written")]
pub struct Interrupted;

pub fn run(words: Vec<String>) -> ExitCode {
    let flags = match command_line::read(words) {
        Ok(Some(flags)) => flags,
        Ok(None) => return print(&help::<TuneFlags>(command_line::USAGE, HELP_WIDTH)),
        Err(error) => {
            refuse(
                error,
                "galatea tune <model> --engines [options]; `galatea tune --help` says more",
            );
            return ExitCode::from(USAGE);
        }
    };
    tune(&flags).unwrap_or_else(|error| {
        let failure = fail(format_args!("{error:#}"));
        if error.is::<Interrupted>() { ExitCode::from(stop::INTERRUPTED) } else { failure }
    })
}

fn tune(flags: &TuneFlags) -> Result<ExitCode> {
    let model = TunedModel::open(&flags.model)?;
    if flags.writes && model.has_backup() {
        bail!(
            "'{}' exists already and would be overwritten: move it away, or leave out --write",
            model.backup().display()
        );
    }
    let rows = rows(&model, flags, &Stop::watch().context("cannot watch for signals")?)?;
    print(&format!("{}\n{}", report::table(&rows), report::verdict(&rows)));
    let Some((fastest, _)) = report::fastest(&rows) else { return Ok(ExitCode::FAILURE) };
    if flags.writes && !fastest.is_configured() {
        let path = model
            .write(&fastest.config, &fastest.lines)
            .context("cannot write the configuration")?;
        print(&format!("\nWritten to {}.\n", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures every engine, one after the other. If the first refuses the requests, they are wrong for all.
fn rows(model: &TunedModel, flags: &TuneFlags, stop: &Stop) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let completed = model.completed();
    for candidate in candidates(&model.config, &completed, &model.file, flags.allows_bf16) {
        let name = candidate.name;
        let progress = |what: &str| eprintln!("{name}: {what}");
        let outcome = match measure(model, &candidate, flags, stop, &progress) {
            _ if stop.is_asked() => return Err(Interrupted.into()),
            Ok(measured) => Ok(compared(measured, &candidate, reference(&rows), flags)),
            Err(error) if rows.is_empty() && is_wrong_request(&error) => return Err(error),
            Err(error) => Err(format!("{error:#}")),
        };
        rows.push(Row { candidate, outcome });
    }
    Ok(rows)
}

fn is_wrong_request(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|failure: &Failure| failure.exit == galatea_perf::Exit::Option)
}

/// Returns the answers with which others are compared.
fn reference(rows: &[Row]) -> Option<&Answers> {
    let first = rows.iter().find_map(|row| row.outcome.as_ref().ok())?;
    Some(&first.measured.answers)
}

fn compared(
    measured: MeasuredEngine,
    candidate: &Candidate,
    reference: Option<&Answers>,
    flags: &TuneFlags,
) -> Outcome {
    let tolerance = if candidate.is_bf16 { flags.bf16_tolerance } else { flags.tolerance };
    let agreement = match reference.map(|answers| answers.difference(&measured.answers)) {
        None => Agreement::IsCompared,
        Some(Ok(difference)) if difference.share <= tolerance => Agreement::Agrees(difference),
        Some(Ok(difference)) => Agreement::Differs { difference, tolerance },
        Some(Err(reason)) => Agreement::Incomparable(reason),
    };
    Outcome { measured, agreement }
}
