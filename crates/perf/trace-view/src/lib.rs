//! `galatea trace`: reads the files into which servers trace requests, and shows how long each request spent in which part
//! of the server.
//!
//! [`run`] is the whole command. `file` reads the files once, object by object. `traces` keeps a small record of each request
//! and finds the parents of steps and calls. `report` has the figures; `text` prints it, `page` draws it for a browser, and its JSON
//! is for programs. `galatea_trace_timeline` divides the time of a request.
//!
//! **Invariants.** A broken file never stops the command: broken objects are named, and the others are shown. Texts of the
//! files reach neither the terminal nor the page unescaped.

#![warn(missing_docs)]

mod duration;
mod error;
mod file;
mod options;
mod page;
mod report;
mod text;
mod traces;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use galatea_command_line::{OptionOutline, help, read};
use galatea_terminal_text as printing;

pub use self::error::Exit;
use self::{
    error::TraceError,
    file::names::files_of,
    options::{TraceOptions, USAGE},
    report::{Report, Selection},
    traces::Traces,
};

const HELP_WIDTH: usize = 80;

/// The terminal that the command prints to.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Bars may have colours.
    pub has_color: bool,
    /// Width in columns; `None` if the output is not a terminal.
    pub width: Option<usize>,
}

/// Runs `galatea trace` with the words after it.
pub fn run(words: impl Iterator<Item = String>, terminal: Terminal) -> Exit {
    let made = read::<TraceOptions>(words).and_then(|options| match options {
        Some(options) => show(&options, terminal),
        None => Ok(help::<TraceOptions>(USAGE, HELP_WIDTH)),
    });
    match made {
        Ok(text) => {
            // A reader that is gone (`| head`) is not an error.
            let _ = io::stdout().write_all(text.as_bytes());
            Exit::Success
        }
        Err(error) => {
            eprintln!("error: {}", printing::lines(&error.to_string()));
            let exit = error.exit();
            if exit == Exit::CommandLine {
                eprintln!("`galatea trace --help` says more");
            }
            exit
        }
    }
}

/// Returns the options of `galatea trace`, for texts about all commands.
pub fn outline() -> Vec<OptionOutline> {
    galatea_command_line::outline::<TraceOptions>()
}

/// Reads a trace file and returns its report as text and as a page, as a fuzzer needs it; `None` if it has no traced request.
#[doc(hidden)]
pub fn read_and_show(bytes: &[u8]) -> Option<(String, String)> {
    let mut traces = Traces::default();
    traces.add_file("file", bytes).ok()?;
    let selection = Selection { most: 10, ..Selection::default() };
    let report = Report::of(traces, vec!["file".to_owned()], selection).ok()?;
    let terminal = Terminal { has_color: true, width: Some(80) };
    Some((text::report(&report, terminal), page::page(&report).ok()?))
}

fn show(options: &TraceOptions, terminal: Terminal) -> Result<String, TraceError> {
    let (traces, files) = read_files(options)?;
    let (model, id) = (options.model.clone(), options.id.clone());
    let report = Report::of(traces, files, Selection { model, id, most: options.most() })?;
    if let Some(path) = &options.page {
        let page = page::page(&report)?;
        fs::write(path, page).map_err(|reason| TraceError::Write { path: path.clone(), reason })?;
    }
    match (&options.page, options.is_json) {
        (_, true) => Ok(printing::json(&format!("{}\n", serde_json::to_string_pretty(&report)?))),
        (Some(path), false) => {
            let path = printing::line(&path.display().to_string());
            let notes = text::notes(&report, terminal.width);
            Ok(format!(
                "{}wrote {path}: {}\n",
                notes,
                text::counted(report.requests.len(), "request")
            ))
        }
        (None, false) => Ok(text::report(&report, terminal)),
    }
}

fn read_files(options: &TraceOptions) -> Result<(Traces, Vec<String>), TraceError> {
    let mut traces = Traces::default();
    let mut files = Vec::new();
    if options.files.is_empty() {
        return Err(TraceError::NoFile);
    }
    for given in &options.files {
        let (objects, faults) = (traces.object_count, traces.problems.count);
        let failed = |path: &Path, reason| TraceError::Read { path: path.to_owned(), reason };
        for path in files_of(given).map_err(|reason| failed(given, reason))? {
            let file = open(&path).map_err(|reason| failed(&path, reason))?;
            let name = path.display().to_string();
            traces.add_file(&name, file).map_err(|reason| failed(&path, reason))?;
            files.push(name);
        }
        if traces.object_count == objects {
            let problem = traces.problems.first.get(faults as usize);
            let reason = problem.map_or("it is empty".to_owned(), |problem| problem.text.clone());
            return Err(TraceError::NoTraces { path: given.clone(), reason });
        }
    }
    Ok((traces, files))
}

fn open(path: &Path) -> io::Result<File> {
    galatea_regular_files::open(path)
}
