//! `--auth-policy`: the policy is read at the start, and again whenever its files change; the keys that sign tokens are
//! fetched and kept up to date.

mod fetch;
mod key_source;
mod watched_file;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use galatea_access::{Gate, KeySet, MAX_POLICY, Policy, Role};
use galatea_frontend::Authentication;
use galatea_telemetry::metrics::{FigureSource, families};

use self::{key_source::Keys, watched_file::WatchedFile};
use crate::options::ServeOptions;

/// Between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(250);

/// Reads the policy, if there is to be one, and gives it to all front ends.
pub fn open(options: &mut ServeOptions) -> Result<Option<AppliedPolicy>> {
    let Some(path) = &options.auth_policy else {
        if options.is_hardened {
            give(
                options,
                Gate::new(Policy::for_anybody(&HARDENED_ROLES), KeySet::default()).into(),
            );
        }
        return Ok(None);
    };
    let applied = AppliedPolicy::read(path).context("the policy of --auth-policy is not taken")?;
    tell(&applied.gate.policy(), "applied");
    give(options, applied.gate.clone());
    Ok(Some(applied))
}

/// What clients may do where `--hardened` is given and no policy: nothing that changes the server.
const HARDENED_ROLES: [Role; 2] = [Role::Infer, Role::Read];

fn give(options: &mut ServeOptions, gate: Arc<Gate>) {
    let authentication = Authentication::by(gate);
    options.http_options.authentication = authentication.clone();
    options.grpc_options.authentication = authentication;
}

/// How often somebody was refused.
pub fn figures(policy: &AppliedPolicy) -> FigureSource {
    let gate = policy.gate.clone();
    Box::new(move |figures| {
        for (reason, count) in gate.failures() {
            figures.set_labelled(&families::AUTH_FAILURES, reason, count);
        }
    })
}

/// A policy from a file, which `galatea check` reads too.
pub fn read_policy(path: &Path) -> Result<Policy> {
    let text = read_text(path, MAX_POLICY)?;
    Ok(Policy::parse(&path.display().to_string(), &text)?)
}

/// Whether the file of keys that the policy in `path` names is good, if it names one.
pub fn check_key_file(policy: &Policy, path: &Path) -> Result<()> {
    Keys::of(policy, path).first().map(drop)
}

/// A file that is not longer than `most`.
pub fn read_text(path: &Path, most: usize) -> Result<String> {
    let read = || -> io::Result<String> {
        let mut text = String::new();
        let limit = most as u64 + 1;
        io::Read::read_to_string(&mut io::Read::take(fs::File::open(path)?, limit), &mut text)?;
        Ok(text)
    };
    read().with_context(|| format!("failed to read '{}'", path.display()))
}

fn tell(policy: &Policy, what: &str) {
    log::info!("authentication: policy {what}: {}", policy.summary());
    policy.warnings().iter().for_each(|warning| log::warn!("authentication: {warning}"));
}

/// A thread that keeps the policy up to date until this is dropped.
pub struct PolicyWatch {
    /// Its end is what the thread waits for; `None` once it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PolicyWatch {
    /// Starts it.
    pub fn start(mut policy: AppliedPolicy) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread =
            thread::Builder::new().name("policy".to_owned()).spawn(move || policy.run(&stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for PolicyWatch {
    fn drop(&mut self) {
        self.stop = None;
        // Not waited for: it may be in a fetch. It holds nothing that the exit needs.
        drop(self.thread.take());
    }
}

/// A policy that holds, and where it came from.
pub struct AppliedPolicy {
    gate: Arc<Gate>,
    path: PathBuf,
    policy: WatchedFile,
    keys: Keys,
}

impl AppliedPolicy {
    /// What changes while this reads is seen as a change later.
    fn read(path: &Path) -> Result<Self> {
        let file = WatchedFile::applied(path);
        let policy = read_policy(path)?;
        let keys = Keys::of(&policy, path);
        let first = keys.first()?;
        let gate = Arc::new(Gate::new(policy, first));
        Ok(Self { gate, path: path.to_owned(), policy: file, keys })
    }

    fn run(&mut self, stopped: &Receiver<()>) {
        loop {
            self.look_at_policy();
            let unknown = self.gate.unknown_signing_keys();
            if let Some(keys) = self.keys.look(Instant::now(), unknown) {
                let count = keys.len();
                self.gate.replace_keys(keys);
                // Said when it is so.
                log::info!("authentication: {count} keys of the issuer of tokens");
            }
            if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// A policy that is broken changes nothing.
    fn look_at_policy(&mut self) {
        if !self.policy.has_changed() {
            return;
        }
        let read = read_policy(&self.path).and_then(|policy| {
            let keys = Keys::of(&policy, &self.path);
            if keys.is_same_source(&self.keys) {
                return Ok((policy, None));
            }
            let first = keys.first()?;
            Ok((policy, Some((keys, first))))
        });
        match read {
            Ok((policy, keys)) => self.apply(policy, keys),
            Err(error) => {
                log::error!(
                    "authentication: the changed policy is not taken, the one before goes on: {error:#}"
                );
            }
        }
    }

    fn apply(&mut self, policy: Policy, keys: Option<(Keys, KeySet)>) {
        match keys {
            None => self.gate.replace_policy(policy),
            Some((keys, first)) => {
                self.keys = keys;
                self.gate.replace(policy, first);
            }
        }
        tell(&self.gate.policy(), "changed");
    }
}

#[cfg(test)]
mod tests;
