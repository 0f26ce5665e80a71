//! `--auth-policy`: reads the policy at start and whenever its files change. Fetches the keys that sign tokens and keeps them
//! up to date.

mod fetch;
mod key_source;
mod watched_file;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use galatea_access::{Gate, KeySet, MAX_POLICY, Policy, Role};
use galatea_frontend::Authentication;
use galatea_telemetry::{families, metrics::FigureSource};
use galatea_types::Environment;

use self::{key_source::KeyOrigin, watched_file::WatchedFile};
use crate::options::ServeOptions;

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(250);

/// Reads the policy, if the options have one, and gives it to all front ends.
pub fn open(options: &mut ServeOptions) -> Result<Option<AppliedPolicy>> {
    let Some(path) = &options.auth_policy else {
        if options.is_hardened {
            let policy = Policy::for_anybody(&HARDENED_ROLES);
            give(options, Gate::new(policy, KeySet::default()).into());
        }
        return Ok(None);
    };
    let applied = AppliedPolicy::read(path, &options.runtimes.environment)
        .context("the policy of --auth-policy cannot be used")?;
    tell(&applied.gate.policy(), "applied");
    give(options, applied.gate.clone());
    Ok(Some(applied))
}

/// Roles of clients with `--hardened` and no policy: nothing that changes the server.
const HARDENED_ROLES: [Role; 2] = [Role::Infer, Role::Read];

fn give(options: &mut ServeOptions, gate: Arc<Gate>) {
    let authentication = Authentication::by(gate);
    options.http_options.authentication = authentication.clone();
    options.grpc_options.authentication = authentication;
}

/// Returns the figures of refused requests.
pub fn figures(policy: &AppliedPolicy) -> FigureSource {
    let gate = policy.gate.clone();
    Box::new(move |figures| {
        for (reason, count) in gate.failures() {
            figures.set_labelled(&families::AUTH_FAILURES, reason, count);
        }
    })
}

/// Reads a policy from a file; `galatea check` uses it too.
pub fn read_policy(path: &Path) -> Result<Policy> {
    let text = read_text(path, MAX_POLICY)?;
    Ok(Policy::parse(&path.display().to_string(), &text)?)
}

/// Checks the file of keys, if the policy in `path` names one.
pub fn check_key_file(policy: &Policy, path: &Path) -> Result<()> {
    KeyOrigin::of(policy, path).first().map(drop)
}

/// Reads a regular file that is not longer than `most`.
pub fn read_text(path: &Path, most: usize) -> Result<String> {
    let read = galatea_regular_files::read_text(path, most as u64);
    read.with_context(|| format!("failed to read '{}'", path.display()))
}

fn tell(policy: &Policy, what: &str) {
    log::info!("authentication: policy {what}: {}", policy.summary());
    policy.warnings().iter().for_each(|warning| log::warn!("authentication: {warning}"));
}

/// A thread that keeps the policy up to date until this is dropped.
pub struct PolicyWatch {
    orders: Sender<ReloadOrder>,
}

/// Asks the thread of a [`PolicyWatch`] to read the policy and its keys now.
#[derive(Clone)]
pub struct PolicyReload(Sender<ReloadOrder>);

/// An order to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadOrder {
    Reload,
    End,
}

impl PolicyWatch {
    /// Starts the thread.
    pub fn start(mut policy: AppliedPolicy) -> io::Result<Self> {
        let (orders, received) = mpsc::channel();
        thread::Builder::new().name("policy".to_owned()).spawn(move || policy.run(&received))?;
        Ok(Self { orders })
    }

    /// Returns a handle that can ask at any time, such as from a signal handler.
    pub fn reload(&self) -> PolicyReload {
        PolicyReload(self.orders.clone())
    }
}

impl PolicyReload {
    /// Asks to read the policy, even if its file has not changed. One log line reports the outcome.
    pub fn send(&self) {
        // An error means that the thread has ended: there is nothing to reload.
        let _ = self.0.send(ReloadOrder::Reload);
    }
}

impl Drop for PolicyWatch {
    fn drop(&mut self) {
        // Nobody waits for the thread: it may be in a fetch, and holds nothing that the exit needs.
        let _ = self.orders.send(ReloadOrder::End);
    }
}

/// A policy in force, and its source.
pub struct AppliedPolicy {
    gate: Arc<Gate>,
    policy: WatchedFile,
    keys: KeyOrigin,
    /// The environment, which names the proxies to an issuer of keys.
    environment: Environment,
}

impl AppliedPolicy {
    /// Reads the policy. A change of the file during this counts as a later change.
    fn read(path: &Path, environment: &Environment) -> Result<Self> {
        let file = WatchedFile::applied(path);
        let policy = read_policy(path)?;
        let keys = KeyOrigin::of(&policy, path);
        let first = keys.first()?;
        let gate = Arc::new(Gate::new(policy, first));
        Ok(Self { gate, policy: file, keys, environment: environment.clone() })
    }

    fn run(&mut self, orders: &Receiver<ReloadOrder>) {
        loop {
            self.look_at_policy();
            let unknown = self.gate.unknown_signing_keys();
            if let Some(keys) = self.keys.look(Instant::now(), unknown, &self.environment) {
                let count = keys.len();
                self.gate.replace_keys(keys);
                // Logged after the keys are in force.
                log::info!("authentication: {count} keys of the issuer of tokens");
            }
            match orders.recv_timeout(INTERVAL) {
                Ok(ReloadOrder::Reload) => self.reload(),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(ReloadOrder::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look_at_policy(&mut self) {
        if self.policy.has_changed() {
            self.read_again();
        }
    }

    /// Reads the policy, even if its file has not changed. Keys from an address are fetched at the next look.
    fn reload(&mut self) {
        self.policy = WatchedFile::applied(self.policy.path());
        self.keys.expire();
        self.read_again();
    }

    /// Reads the policy again. A broken policy changes nothing.
    fn read_again(&mut self) {
        let read = read_policy(self.policy.path()).and_then(|policy| {
            let keys = KeyOrigin::of(&policy, self.policy.path());
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
                    "authentication: the new policy cannot be used, so the previous one stays: {error:#}"
                );
            }
        }
    }

    fn apply(&mut self, policy: Policy, keys: Option<(KeyOrigin, KeySet)>) {
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
