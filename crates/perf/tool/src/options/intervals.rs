//! Reader of the file of `--request-intervals`: one pause per line, in whole microseconds.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IntervalsError {
    #[error("failed to open file '{file}': {error}")]
    Unreadable {
        file: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{file}:{line}: expected a whole number of microseconds, got '{text}'")]
    NotANumber {
        file: PathBuf,
        /// Line number, from 1.
        line: usize,
        text: String,
    },
    #[error("file '{0}' is empty")]
    Empty(PathBuf),
    #[error("file '{0}' has no interval over 0")]
    AllZero(PathBuf),
}

/// Reads the pauses. Empty lines are skipped.
pub fn read(path: &Path) -> Result<Vec<Duration>, IntervalsError> {
    let file = path.to_owned();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return Err(IntervalsError::Unreadable { file, error }),
    };
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let intervals: Vec<Duration> =
        lines.map(|(index, line)| interval(path, index, line)).collect::<Result<_, _>>()?;
    if intervals.is_empty() {
        return Err(IntervalsError::Empty(file));
    }
    if intervals.iter().all(Duration::is_zero) {
        return Err(IntervalsError::AllZero(file));
    }
    Ok(intervals)
}

fn interval(path: &Path, index: usize, line: &str) -> Result<Duration, IntervalsError> {
    line.parse().map(Duration::from_micros).map_err(|_| IntervalsError::NotANumber {
        file: path.to_owned(),
        line: index + 1,
        text: line.to_owned(),
    })
}
