//! Runs programs, such as a compiler, that end at once when a stop is requested.

use std::{
    io::{self, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use galatea_types::Stop;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{download::since, progress::Progress};

/// Interval between calls of [`Progress::waits`].
const INTERVAL: Duration = Duration::from_secs(1);

/// Most bytes of a compiler's output that are kept.
const LONGEST_OUTPUT: u64 = 1 << 20;

/// The exit status of a program, and the beginning of its error output.
pub(crate) struct Output {
    pub status: ExitStatus,
    pub errors: String,
}

/// Runs a program to its end. A request to stop kills it with all its child processes.
pub(crate) fn output(
    mut command: Command,
    stop: Option<&Stop>,
    progress: &mut dyn Progress,
) -> io::Result<Output> {
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    if stop.is_some() {
        // Without a stop the terminal's Ctrl-C has to reach it.
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let on_stop = stop.map(|stop| {
        stop.on_request(move || {
            let _ = kill_process_group(group, Signal::KILL);
        })
    });
    let (sender, ended) = mpsc::channel();
    let errors = child.stderr.take();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut errors) = errors.map(BufReader::new) {
            let _ = errors.by_ref().take(LONGEST_OUTPUT).read_to_end(&mut kept);
            let _ = io::copy(&mut errors, &mut io::sink());
        }
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    let errors = loop {
        match ended.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => progress.waits(since(start)),
            ended => break ended.unwrap_or_default(),
        }
    };
    // The child is not reaped before, so its process id still means it.
    drop(on_stop);
    Ok(Output { status: child.wait()?, errors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SilentProgress;

    #[test]
    fn a_stop_request_kills_a_compiler_and_its_children() {
        let stop = Stop::default();
        let folder = tempfile::tempdir().expect("folder");
        let begun = folder.path().join("begun");
        let status = std::process::Command::new("mkfifo").arg(&begun).status().expect("mkfifo");
        assert!(status.success());
        let mut command = Command::new("sh");
        // The child holds the pipe of the errors.
        command.args(["-c", "sleep 600 & echo > \"$0\"; wait"]).arg(&begun);
        let other = stop.clone();
        let asking = thread::spawn(move || {
            std::fs::read_to_string(begun).expect("begun");
            other.request();
        });
        let output = output(command, Some(&stop), &mut SilentProgress).expect("started");
        assert!(!output.status.success());
        asking.join().expect("ended");
    }
}
