//! Runs a program to its end, reads its lines as they come, and limits its time.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, BufRead, BufReader, PipeReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, Instant},
};

use galatea_types::Stop;
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};

/// Lines kept for an error message.
const LAST_LINES: usize = 20;

/// Most bytes of a line that are kept, which bounds the memory for a program's output.
const LONGEST_LINE: u64 = 1 << 20;

/// Longest wait for the output of a program that has ended: its children may hold the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval between the calls of `runs`.
const RUNS_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait for the signal to this program after a child's end by signal. A supervisor may send it to both.
const OWN_SIGNAL_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Failure {
    pub kind: FailureKind,
    /// The last lines of its output, the newest last.
    pub lines: Vec<String>,
}

#[derive(Debug)]
pub(super) enum FailureKind {
    NotStarted(io::Error),
    TimedOut(Duration),
    /// The program was killed because this one was asked to stop.
    Stopped,
    Ended(ExitStatus),
}

impl Failure {
    /// Returns the last line that reports an error, as pip, uv and Python write it.
    fn reason(&self) -> Option<&str> {
        let is_error = |line: &str| {
            let word = line.split(':').next().unwrap_or_default();
            line.contains(": ") && (word.eq_ignore_ascii_case("error") || is_exception(word))
        };
        self.lines.iter().rev().map(|line| line.trim()).find(|line| is_error(line))
    }

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

/// Matches `ModuleNotFoundError` and `subprocess.CalledProcessError`.
fn is_exception(word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    word.ends_with("Error") && word.chars().all(is_name)
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FailureKind::NotStarted(e) => write!(f, "cannot be started: {e}")?,
            FailureKind::TimedOut(limit) => write!(f, "took longer than {} s", limit.as_secs())?,
            FailureKind::Stopped => return f.write_str("was interrupted"),
            FailureKind::Ended(status) => write!(f, "failed ({status})")?,
        }
        if let Some(reason) = self.reason() {
            write!(f, ": {reason}")?;
        }
        if !self.lines.is_empty() {
            write!(f, "; its last lines:\n{}", self.lines.join("\n"))?;
        }
        Ok(())
    }
}

pub(super) trait ProgramFollower {
    fn line(&mut self, line: &str);

    /// Called about once a second while the program runs.
    fn runs(&mut self) {}
}

impl<F: FnMut(&str)> ProgramFollower for F {
    fn line(&mut self, line: &str) {
        self(line);
    }
}

enum Event {
    Line(String),
    /// All writers have closed the output.
    Closed,
    Ended,
    Stopped,
}

/// The limits after which a program is killed with all its child processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Longest run time.
    pub time: Duration,
    /// Ends the program at once when it is requested.
    pub stop: &'a Stop,
}

/// Runs `command` with empty input, and passes each line of its output and errors to `follower`. The kernel kills the
/// program when this process dies.
pub(super) fn run(
    mut command: Command,
    limits: Limits<'_>,
    follower: &mut dyn ProgramFollower,
) -> Result<(), Failure> {
    let mut lines = VecDeque::new();
    let kind = match follow(&mut command, limits, &mut LastLines { lines: &mut lines, follower }) {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) if was_ended_by_request(status, limits.stop) => FailureKind::Stopped,
        Ok(status) => FailureKind::Ended(status),
        Err(kind) => kind,
    };
    Err(Failure { kind, lines: lines.into() })
}

/// Returns true if the signal that asks this program to stop has reached the child first. A supervisor sends it to all
/// processes of a service.
fn was_ended_by_request(status: ExitStatus, stop: &Stop) -> bool {
    let number = status.signal().or(status.code().map(|code| code - 128));
    let asks = [Signal::INT, Signal::TERM].map(Signal::as_raw);
    number.is_some_and(|number| asks.contains(&number)) && stop.wait(OWN_SIGNAL_TIMEOUT)
}

struct LastLines<'a> {
    lines: &'a mut VecDeque<String>,
    follower: &'a mut dyn ProgramFollower,
}

impl LastLines<'_> {
    fn keep(&mut self, line: String) {
        self.follower.line(&line);
        if self.lines.len() == LAST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

fn follow(
    command: &mut Command,
    limits: Limits<'_>,
    kept: &mut LastLines<'_>,
) -> Result<ExitStatus, FailureKind> {
    let deadline = Instant::now() + limits.time;
    let (mut child, output) = start(command).map_err(FailureKind::NotStarted)?;
    let group = Pid::from_child(&child);
    let (sender, events) = watch(group, output);
    let on_stop = limits.stop.on_request(move || {
        // Here and not in the loop below: the program may end right after the request.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = sender.send(Event::Stopped);
    });
    let mut is_closed = false;
    let end = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match events.recv_timeout(left.min(RUNS_INTERVAL)) {
            Ok(Event::Line(line)) => kept.keep(line),
            Ok(Event::Closed) => is_closed = true,
            Ok(Event::Ended) => break None,
            Ok(Event::Stopped) => break Some(FailureKind::Stopped),
            Err(_) if left > RUNS_INTERVAL => kept.follower.runs(),
            Err(_) => break Some(FailureKind::TimedOut(limits.time)),
        }
    };
    // Kills processes that a finished program left, too. The child is not reaped before, so its process id still means it.
    let _ = kill_process_group(group, Signal::KILL);
    drop(on_stop);
    let status = child.wait().map_err(FailureKind::NotStarted)?;
    while !is_closed {
        match events.recv_timeout(DRAIN_TIMEOUT) {
            Ok(Event::Line(line)) => kept.keep(line),
            Ok(Event::Ended | Event::Stopped) => {}
            Ok(Event::Closed) | Err(_) => is_closed = true,
        }
    }
    match end {
        None if limits.stop.is_requested() && !status.success() => Err(FailureKind::Stopped),
        None => Ok(status),
        Some(kind) => Err(kind),
    }
}

fn start(command: &mut Command) -> io::Result<(Child, PipeReader)> {
    let (output, input) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).process_group(0);
    galatea_system::end_with_parent(command);
    let child = command.spawn()?;
    // The command keeps the writing ends. While they are open here the output does not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((child, output))
}

fn watch(child: Pid, output: PipeReader) -> (Sender<Event>, Receiver<Event>) {
    let (sender, events) = mpsc::channel();
    let (lines, end) = (sender.clone(), sender.clone());
    thread::spawn(move || read_lines(output, &lines));
    thread::spawn(move || {
        wait_without_reaping(child);
        end.send(Event::Ended)
    });
    (sender, events)
}

fn read_lines(output: PipeReader, sender: &Sender<Event>) {
    let mut output = BufReader::new(output);
    while let Ok(Some(line)) = next_line(&mut output) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !text.is_empty() && sender.send(Event::Line(text)).is_err() {
            return;
        }
    }
    let _ = sender.send(Event::Closed);
}

/// Reads the next line. Only its first [`LONGEST_LINE`] bytes are kept.
fn next_line(output: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let found = output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    if found as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
        output.skip_until(b'\n')?;
    }
    Ok((found > 0).then_some(line))
}

/// Waits until the child has ended. It stays a zombie, so that its process id still means its process group.
fn wait_without_reaping(child: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(child), options) {}
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    fn python(code: &str) -> Command {
        let mut command = Command::new("python3");
        command.args(["-c", code]);
        command
    }

    fn limits(milliseconds: u64) -> Limits<'static> {
        static STOP: LazyLock<Stop> = LazyLock::new(Stop::default);
        Limits { time: Duration::from_millis(milliseconds), stop: &STOP }
    }

    #[test]
    fn a_stop_request_kills_a_program_and_its_children() {
        // The grandchild holds the pipe as well.
        let code = "import subprocess, sys\n\
                    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n\
                    print(child.pid, flush=True)\nchild.wait()";
        let stop = Stop::default();
        let mut grandchild = None;
        let mut on_line = |line: &str| {
            grandchild = line.parse().ok().and_then(Pid::from_raw);
            stop.request();
        };
        let limits = Limits { time: Duration::from_secs(600), stop: &stop };
        let failure = run(python(code), limits, &mut on_line).expect_err("interrupted");
        assert!(matches!(failure.kind, FailureKind::Stopped), "{failure}");
        assert_eq!(failure.to_string(), "was interrupted");
        let pid = grandchild.expect("told");
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        galatea_test_support::eventually("the grandchild has ended", || {
            let state = state();
            state.is_empty() || state.contains(") Z ")
        });
    }

    #[test]
    fn a_child_killed_by_the_same_signal_counts_as_interrupted() {
        let stop = Stop::default();
        stop.request();
        let code = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)";
        let failure = run(python(code), limits(60_000), &mut |_: &str| {}).expect_err("killed");
        assert!(
            matches!(failure.kind, FailureKind::Ended(_)),
            "nobody asked this program: {failure}"
        );
        let FailureKind::Ended(status) = failure.kind else { return };
        assert!(was_ended_by_request(status, &stop));
    }

    #[test]
    fn the_error_line_comes_first_in_a_failure() {
        let code = "print('Collecting x\\nERROR: No matching distribution found for x\\nnotice: a newer pip')\nexit(1)";
        let failure = run(python(code), limits(60_000), &mut |_: &str| ()).expect_err("fails");
        let text = failure.to_string();
        let start = "failed (exit status: 1): ERROR: No matching distribution found for x; its last lines:\nCollecting";
        assert!(text.starts_with(start), "{text}");
        let failure = run(python("int('x')"), limits(60_000), &mut |_: &str| ());
        let text = failure.expect_err("fails").to_string();
        assert!(text.starts_with("failed (exit status: 1): ValueError: invalid literal"), "{text}");
    }

    #[test]
    fn lines_of_stdout_and_stderr_keep_their_order() {
        let mut lines = Vec::new();
        let code =
            "import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr, flush=True)\nprint()";
        run(python(code), limits(60_000), &mut |line: &str| lines.push(line.to_owned()))
            .expect("done");
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn a_failure_quotes_the_last_lines_of_output() {
        let code = "for i in range(50): print(i)\nraise SystemExit(3)";
        let failure = run(python(code), limits(60_000), &mut |_: &str| {}).expect_err("fails");
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
        let failure = run(python(code), limits(1500), &mut |_: &str| {}).expect_err("fails");
        assert!(matches!(failure.kind, FailureKind::TimedOut(_)), "{failure}");
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let failure = run(Command::new("/nowhere/x"), limits(1000), &mut |_: &str| {});
        assert!(failure.expect_err("fails").to_string().starts_with("cannot be started: "));
    }
}
