//! A server of its own for each engine: another process of this program, on a free port that only this machine can reach.

use std::{
    collections::VecDeque,
    env,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use galatea_types::LockExt;
use rustix::process::{Pid, Signal, kill_process};

use super::{Interrupted, stop::Stop};

const NOT_STARTED: &str = "cannot start a server";

/// Longest time until a server listens, which it does before it loads anything.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Longest time until a server that was asked to stop has ended.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Number of lines of its log that are kept for an error.
const KEPT_LINES: usize = 8;

/// The longest line of its log that is read, in bytes.
const LONGEST_LINE: u64 = 8192;

/// A running server, which is stopped when this is dropped.
pub struct Server {
    child: Child,
    /// The address of HTTP.
    pub address: String,
    log: Arc<Mutex<VecDeque<String>>>,
    stop: Stop,
}

impl Server {
    /// Starts a server that loads nothing by itself. `words`: more options of `serve`.
    pub fn start(repository: &Path, words: &[String], stop: &Stop) -> Result<Self> {
        let program = env::current_exe().context(NOT_STARTED)?;
        let mut child = Command::new(program)
            .arg("serve")
            .arg(format!("--model-repository={}", repository.display()))
            .args(["--model-control-mode=explicit", "--http-address=127.0.0.1", "--http-port=0"])
            .args(["--allow-grpc=false", "--allow-metrics=false", "--gpu-groups=cpu"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(NOT_STARTED)?;
        let log = Arc::default();
        let (sender, receiver) = channel();
        // The log, and the output before it begins.
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for lines in streams.into_iter().flatten() {
            let (log, sender) = (Arc::clone(&log), sender.clone());
            thread::spawn(move || follow(lines, &log, &sender));
        }
        // Once both threads have ended, so has the server, and nobody waits.
        drop(sender);
        // If this is dropped with an error, the server is stopped too.
        let mut server = Self { child, address: String::new(), log, stop: stop.clone() };
        stop.reach(server.pid());
        if stop.is_asked() {
            return Err(Interrupted.into());
        }
        server.address = receiver.recv_timeout(START_LIMIT).map_err(|_| {
            anyhow!("the server did not start; its log ends with:\n{}", server.last_lines())
        })?;
        Ok(server)
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Returns the end of its log.
    pub fn last_lines(&self) -> String {
        self.log.lock_unpoisoned().iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Returns the memory of the process in bytes, if the system reports it.
    pub fn resident_bytes(&self) -> Option<u64> {
        galatea_system::resident_bytes_of(self.child.id())
    }
}

/// Reads the log to its end, so that the server never waits for a reader.
fn follow(lines: Box<dyn Read + Send>, log: &Mutex<VecDeque<String>>, address: &Sender<String>) {
    let mut lines = BufReader::new(lines);
    loop {
        let mut line = Vec::new();
        match lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if let Some(at) = listening_at(&line) {
            // Nobody waits for a second address.
            let _ = address.send(at.to_owned());
        }
        let mut log = log.lock_unpoisoned();
        if log.len() == KEPT_LINES {
            log.pop_front();
        }
        log.push_back(line);
    }
}

fn listening_at(line: &str) -> Option<&str> {
    let (_, at) = line.split_once("Started HTTPService at ")?;
    at.split(['"', ' ']).next()
}

impl Drop for Server {
    #[expect(
        clippy::disallowed_methods,
        reason = "a child process is looked at, nobody reports its end"
    )]
    fn drop(&mut self) {
        self.stop.reach(None);
        if let Some(pid) = self.pid() {
            // The process may have ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_log() {
        let line = "I1126 07:10:11.123456 42 http.rs:85] \"Started HTTPService at 127.0.0.1:4321\"";
        assert_eq!(listening_at(line), Some("127.0.0.1:4321"));
        assert_eq!(listening_at("I1126 07:10:11 something else"), None);
    }
}
