//! `galatea tune`: which engine serves a model fastest on this machine.

mod candidate;
mod command_line;
mod measured;
mod model;
mod report;
mod server;
mod stop;

use std::{io, path::PathBuf, process::ExitCode};

use galatea_perf::probe::{Answers, Failure};
use galatea_serve::model_path::PathError;

use crate::terminal::{fail, print, refuse};

pub use self::command_line::tune_outline;
use self::{
    candidate::{Candidate, candidates},
    command_line::TuneFlags,
    measured::{Measured, measure},
    model::TunedModel,
    report::{Agreement, Outcome, Row},
    stop::Stop,
};

/// The command line is wrong.
const USAGE: u8 = 2;

/// Why a model cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    #[error(transparent)]
    Path(PathError),
    #[error("'{}' is a repository of several models: name one model's folder or file", .0.display())]
    SeveralModels(PathBuf),
    #[error(transparent)]
    Lease(galatea_types::Error),
    #[error("cannot read '{}': {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Config { path: PathBuf, error: galatea_types::Error },
    #[error("'{}' has no version folder: its model lies in a folder '1'", .0.display())]
    NoVersion(PathBuf),
    #[error("there is no '{}'", .0.display())]
    NoFile(PathBuf),
    #[error(
        "the model has the backend '{0}': engines are compared for ONNX models (onnxruntime, openvino)"
    )]
    Backend(String),
    #[error(
        "'{}' is there already, and an earlier configuration is not to be lost: move it away, or leave out --write",
        .0.display()
    )]
    Backup(PathBuf),
    #[error("cannot make a copy of the model's folder: {0}; TMPDIR names another place")]
    Copy(io::Error),
    #[error("cannot start a server: {0}")]
    Start(io::Error),
    #[error("the server did not start; its log ends with:\n{0}")]
    NotStarted(String),
    #[error("interrupted: nothing is known, and nothing is written")]
    Interrupted,
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error("{0}")]
    Measure(Failure),
    #[error("cannot write the configuration: {0}")]
    Write(io::Error),
}

/// `galatea tune`
pub fn run(words: Vec<String>) -> ExitCode {
    let flags = match command_line::read(words) {
        Ok(Some(flags)) => flags,
        Ok(None) => return print(&command_line::help_text()),
        Err(error) => {
            refuse(
                error,
                "galatea tune <model> --engines [options]; `galatea tune --help` says more",
            );
            return ExitCode::from(USAGE);
        }
    };
    tune(&flags).unwrap_or_else(|error| match (fail(&error), error) {
        (_, TuneError::Interrupted) => ExitCode::from(stop::INTERRUPTED),
        (failure, _) => failure,
    })
}

fn tune(flags: &TuneFlags) -> Result<ExitCode, TuneError> {
    let model = TunedModel::open(&flags.model)?;
    if flags.writes && model.has_backup() {
        return Err(TuneError::Backup(model.backup()));
    }
    let rows = rows(&model, flags, &Stop::watch().map_err(TuneError::Signals)?)?;
    print(&format!("{}\n{}", report::table(&rows), report::verdict(&rows)));
    let Some((fastest, _)) = report::fastest(&rows) else { return Ok(ExitCode::FAILURE) };
    if flags.writes && !fastest.is_configured() {
        let path = model.write(&fastest.config, &fastest.lines).map_err(TuneError::Write)?;
        print(&format!("\nWritten to {}.\n", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Every engine, one after the other. Where the first refuses the requests they are wrong for all.
fn rows(model: &TunedModel, flags: &TuneFlags, stop: &Stop) -> Result<Vec<Row>, TuneError> {
    let mut rows: Vec<Row> = Vec::new();
    let completed = model.completed();
    for candidate in candidates(&model.config, &completed, &model.file, flags.allows_bf16) {
        let name = candidate.name;
        let progress = |what: &str| eprintln!("{name}: {what}");
        let outcome = match measure(model, &candidate, flags, stop, &progress) {
            _ if stop.is_asked() => return Err(TuneError::Interrupted),
            Ok(measured) => Ok(compared(measured, &candidate, reference(&rows), flags)),
            Err(TuneError::Measure(failure))
                if rows.is_empty() && failure.exit == galatea_perf::Exit::Option =>
            {
                return Err(TuneError::Measure(failure));
            }
            Err(error) => Err(error.to_string()),
        };
        rows.push(Row { candidate, outcome });
    }
    Ok(rows)
}

/// The answers that others are compared with.
fn reference(rows: &[Row]) -> Option<&Answers> {
    let first = rows.iter().find_map(|row| row.outcome.as_ref().ok())?;
    Some(&first.measured.answers)
}

fn compared(
    measured: Measured,
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
