//! Running a program to its end, with its lines as they come and a limit on its time.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, BufRead, BufReader, PipeReader},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal,
        waitid,
    },
};

/// Lines kept for an error message.
const LAST_LINES: usize = 20;

/// How long the output of a program is read after it has ended: its children may hold the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Failure {
    pub kind: FailureKind,
    /// The last lines it wrote, the newest last.
    pub lines: Vec<String>,
}

#[derive(Debug)]
pub(super) enum FailureKind {
    NotStarted(io::Error),
    TimedOut(Duration),
    Ended(ExitStatus),
}

impl Failure {
    pub fn is_disk_full(&self) -> bool {
        let reports_it = |line: &String| {
            line.contains("No space left on device") || line.contains("Disk quota exceeded")
        };
        match &self.kind {
            FailureKind::NotStarted(e) => super::space::is_full(e),
            _ => self.lines.iter().any(reports_it),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FailureKind::NotStarted(e) => write!(f, "cannot be started: {e}")?,
            FailureKind::TimedOut(limit) => write!(f, "took longer than {} s", limit.as_secs())?,
            FailureKind::Ended(status) => write!(f, "failed ({status})")?,
        }
        if !self.lines.is_empty() {
            write!(f, "; its last lines:\n{}", self.lines.join("\n"))?;
        }
        Ok(())
    }
}

enum Event {
    Line(String),
    /// All writers have closed the output.
    Closed,
    Ended,
}

/// Runs `command` with nothing to read, and gives each line of its output and errors to `on_line`. When it is
/// not done after `timeout` it is killed with all its child processes; the kernel kills it when this process dies.
pub(super) fn run(
    mut command: Command,
    timeout: Duration,
    on_line: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let mut lines = VecDeque::new();
    let mut keep = |line: String| {
        on_line(&line);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    };
    let kind = match follow(&mut command, timeout, &mut keep) {
        Ok(Some(status)) if status.success() => return Ok(()),
        Ok(Some(status)) => FailureKind::Ended(status),
        Ok(None) => FailureKind::TimedOut(timeout),
        Err(e) => FailureKind::NotStarted(e),
    };
    Err(Failure { kind, lines: lines.into() })
}

/// The exit status, or `None` when the time was over first.
fn follow(
    command: &mut Command,
    timeout: Duration,
    keep: &mut dyn FnMut(String),
) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout;
    let (mut child, output) = start(command)?;
    let group = Pid::from_child(&child);
    let events = watch(group, output);
    let mut is_closed = false;
    let is_in_time = loop {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Line(line)) => keep(line),
            Ok(Event::Closed) => is_closed = true,
            Ok(Event::Ended) => break true,
            Err(_) => break false,
        }
    };
    // Also processes that a finished program left. The child is not reaped before, so its number still means it.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait()?;
    while !is_closed {
        match events.recv_timeout(DRAIN_TIMEOUT) {
            Ok(Event::Line(line)) => keep(line),
            Ok(Event::Ended) => {}
            Ok(Event::Closed) | Err(_) => is_closed = true,
        }
    }
    Ok(is_in_time.then_some(status))
}

fn start(command: &mut Command) -> io::Result<(Child, PipeReader)> {
    let (output, input) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).process_group(0);
    // SAFETY: between fork and exec only `prctl` runs, which is a bare system call.
    unsafe {
        command.pre_exec(|| {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
    let child = command.spawn()?;
    // The command keeps the writing ends; while they are open here the output does not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((child, output))
}

fn watch(child: Pid, output: PipeReader) -> Receiver<Event> {
    let (sender, events) = mpsc::channel();
    let lines = sender.clone();
    thread::spawn(move || read_lines(output, &lines));
    thread::spawn(move || {
        wait_without_reaping(child);
        sender.send(Event::Ended)
    });
    events
}

fn read_lines(output: PipeReader, sender: &Sender<Event>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else { break };
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !text.is_empty() && sender.send(Event::Line(text)).is_err() {
            return;
        }
    }
    let _ = sender.send(Event::Closed);
}

/// Until the child has ended. It stays a zombie, so that its number still means its process group.
fn wait_without_reaping(child: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(child), options) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(code: &str) -> Command {
        let mut command = Command::new("python3");
        command.args(["-c", code]);
        command
    }

    #[test]
    fn lines_of_both_streams_come_in_order() {
        let mut lines = Vec::new();
        let code =
            "import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr, flush=True)\nprint()";
        run(python(code), Duration::from_secs(60), &mut |line| lines.push(line.to_owned()))
            .expect("done");
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn a_failure_has_the_last_lines() {
        let code = "for i in range(50): print(i)\nraise SystemExit(3)";
        let failure = run(python(code), Duration::from_secs(60), &mut |_| {}).expect_err("fails");
        assert_eq!(failure.lines.len(), LAST_LINES);
        assert_eq!(failure.lines.last().map(String::as_str), Some("49"));
        assert!(failure.to_string().starts_with("failed (exit status: 3); its last lines:\n30\n"));
    }

    #[test]
    fn a_program_that_times_out_is_killed_with_its_children() {
        // The grandchild holds the pipe; its own pipe to us closes when it dies.
        let code = "import subprocess, sys\n\
                    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n\
                    print('started', flush=True)\nimport time; time.sleep(600)";
        let limit = Duration::from_millis(1500);
        let failure = run(python(code), limit, &mut |_| {}).expect_err("fails");
        assert!(matches!(failure.kind, FailureKind::TimedOut(_)), "{failure}");
    }

    #[test]
    fn a_missing_program_cannot_be_started() {
        let failure = run(Command::new("/nowhere/x"), Duration::from_secs(1), &mut |_| {});
        assert!(failure.expect_err("fails").to_string().starts_with("cannot be started: "));
    }
}
