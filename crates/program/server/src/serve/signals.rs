//! Handles SIGINT, SIGTERM and SIGHUP for a running server.

use std::{io, thread};

use galatea_serve::{Reload, Server, StopHandle};
use galatea_telemetry::logger;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
    low_level,
};

/// Catches the signals from now on. The first SIGINT or SIGTERM asks the server to stop, another one ends the program at once.
/// SIGHUP never ends it. `are_told`: a line reports SIGINT and SIGTERM.
pub fn watch(server: &Server, are_told: bool) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (stop, reload) = (server.stop_handle(), server.reload());
    // A thread of its own, so that the second signal works whatever the others do.
    let watch = move || signals.forever().for_each(|signal| obey(signal, &stop, &reload, are_told));
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map(drop)
}

fn obey(signal: i32, stop: &StopHandle, reload: &Reload, is_told: bool) {
    if signal == SIGHUP {
        return reload.read_again();
    }
    if is_told {
        // Not in the form of a log line: scripts match this text.
        logger::print(log::Level::Info, &format!("Signal ({signal}) received."));
    }
    if !stop.request() {
        log::warn!("Ending at once because of another signal");
        log::logger().flush();
        // The exit status by which shells report a signal. No exit handlers run, because native libraries are at work.
        low_level::exit(128 + signal);
    }
}
