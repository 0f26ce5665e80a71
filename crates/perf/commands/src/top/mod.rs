//! `galatea top`: the activity of a server, on a terminal that is refreshed, or printed in intervals.

mod colors;
mod columns;
mod counters;
mod detail;
mod draw;
mod histogram;
mod observer;
mod options;
mod page;
mod plain_output;
mod row;
mod screen;
mod terminal;
mod view;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use tokio::{runtime, task::LocalSet, time};

use crate::{error::CommandError, printing};
use observer::Observer;
use row::Observation;

pub(crate) use columns::duration;
pub(crate) use options::{TopOptions, USAGE};

/// The environment's settings for the terminal.
#[derive(Clone, Copy, Debug)]
pub struct TerminalSettings {
    /// `NO_COLOR` is not set.
    pub has_color: bool,
    /// `TERM` is missing, or names a terminal on which no screen can be drawn.
    pub is_dumb: bool,
    /// Width in columns; `None` if the output is not a terminal.
    pub width: Option<usize>,
}

/// Reads a metrics page as `galatea top` does, and returns the number of models with figures.
#[doc(hidden)]
pub fn read_metrics_page(text: &str) -> usize {
    page::Page::read(text).models.len()
}

pub(crate) fn run(options: &TopOptions, look: TerminalSettings) -> Result<(), CommandError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let observer = Observer::new(options)?;
    let is_plain = options.is_once || options.is_json || look.is_dumb;
    let ended = match is_plain || !io::stdout().is_terminal() {
        true => local.block_on(&runtime, print(observer, options, look.width)),
        false => local.block_on(&runtime, terminal::watch(observer, options, look.has_color)),
    };
    // A thread that waits for a key ends with the process.
    runtime.shutdown_background();
    ended
}

/// Prints each interval's figures after it, also the first.
async fn print(
    mut observer: Observer,
    options: &TopOptions,
    width: Option<usize>,
) -> Result<(), CommandError> {
    let mut ticks = time::interval(Duration::from_secs_f64(options.interval));
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (text, is_measured) = match observer.look().await {
            Ok(seen) if seen.seconds.is_none() => continue,
            Ok(seen) => (text(&seen, options, width), true),
            Err(error) if options.is_once => return Err(error),
            Err(error) if options.is_json => (plain_output::away_json(&error.to_string()), false),
            Err(error) => {
                eprintln!("{}", printing::lines(&error.to_string()));
                continue;
            }
        };
        let mut out = io::stdout();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        // A reader that is gone (`| head`) is not an error.
        if written.is_err() || options.is_once && is_measured {
            return Ok(());
        }
    }
}

fn text(seen: &Observation, options: &TopOptions, width: Option<usize>) -> String {
    let rows = view::shown(&seen.rows, &options.filter, options.sort, false);
    match options.is_json {
        true => plain_output::json(seen, &rows),
        // A blank line separates the tables.
        false if options.is_once => plain_output::table(seen, &rows, options.sort, width),
        false => format!("{}\n", plain_output::table(seen, &rows, options.sort, width)),
    }
}
