//! SIGINT, SIGTERM and SIGHUP of a program that serves.

use std::{io, thread};

use galatea_serve::{Reload, Server, StopHandle};
use galatea_telemetry::logger;
use signal_hook::low_level;
use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
};

/// Catches the signals from now on. The first SIGINT or SIGTERM asks the server to stop, a further one ends the program at
/// once, whatever it does; SIGHUP never ends it. `are_told`: whether a line tells of SIGINT and SIGTERM.
pub fn watch(server: &Server, are_told: bool) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let guard = runtime.enter();
    let caught = Caught {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        hangup: signal(SignalKind::hangup())?,
    };
    drop(guard);
    let (stop, reload) = (server.stop_handle(), server.reload());
    // A thread of its own: the second signal is obeyed whatever the others do.
    let watch = move || runtime.block_on(caught.obey(&stop, &reload, are_told));
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map(drop)
}

/// The signals that this program handles.
struct Caught {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Caught {
    async fn obey(mut self, stop: &StopHandle, reload: &Reload, are_told: bool) {
        loop {
            let number = tokio::select! {
                _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
                _ = self.hangup.recv() => {
                    reload.read_again();
                    continue;
                }
            };
            if are_told {
                // Without the form of a log line: scripts match this text.
                logger::print(log::Level::Info, &format!("Signal ({number}) received."));
            }
            if !stop.request() {
                log::warn!("Ending at once, because a further signal came");
                log::logger().flush();
                // As shells report a program that a signal has ended. Nothing runs at the exit: native libraries are at work.
                low_level::exit(128 + number);
            }
        }
    }
}
