//! Reloads certificates that are renewed while the server runs.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, SystemTime},
};

use super::{CurrentConfig, Tls, certificate::date, files::Stamp, load};

/// The time between two checks of the files.
const INTERVAL: Duration = Duration::from_secs(1);

/// A warning is due when less than this is left of a certificate's validity ...
const NEAR_END: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// ... or less than this part of it, for certificates that live for hours.
const NEAR_END_PART: u32 = 5;

/// A thread that checks the files of certificates until this is dropped.
pub struct TlsReload {
    orders: Sender<ReloadOrder>,
}

/// Asks the thread of a [`TlsReload`] to read the files now.
#[derive(Clone)]
pub struct TlsReloadRequest(Sender<ReloadOrder>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadOrder {
    Reload,
    End,
}

impl TlsReload {
    /// Starts the checks.
    pub fn start(watched: Vec<Arc<Tls>>) -> io::Result<Self> {
        let (orders, received) = mpsc::channel();
        let body = move || watch(&received, INTERVAL, watched);
        thread::Builder::new().name("tls-reload".to_owned()).spawn(body)?;
        Ok(Self { orders })
    }

    /// Returns a handle that can ask for a reload at any time, as a signal handler does.
    pub fn request(&self) -> TlsReloadRequest {
        TlsReloadRequest(self.orders.clone())
    }
}

impl Drop for TlsReload {
    fn drop(&mut self) {
        // A thread that has ended receives nothing.
        let _ = self.orders.send(ReloadOrder::End);
    }
}

impl TlsReloadRequest {
    /// Reloads the files, changed or not. One log line names each certificate that is in use then.
    pub fn send(&self) {
        // Once the thread has ended there is nothing to reload.
        let _ = self.0.send(ReloadOrder::Reload);
    }
}

fn watch(orders: &Receiver<ReloadOrder>, interval: Duration, watched: Vec<Arc<Tls>>) {
    let mut looks: Vec<_> = watched.into_iter().map(FilesSnapshot::new).collect();
    looks.iter_mut().for_each(FilesSnapshot::again);
    loop {
        match orders.recv_timeout(interval) {
            Ok(ReloadOrder::Reload) => looks.iter_mut().for_each(FilesSnapshot::reload_now),
            Err(RecvTimeoutError::Timeout) => looks.iter_mut().for_each(FilesSnapshot::again),
            Ok(ReloadOrder::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeLeft {
    Enough,
    Little,
    Nothing,
}

pub(super) struct FilesSnapshot {
    tls: Arc<Tls>,
    /// The stamp at the last check.
    seen: Stamp,
    /// The stamp at the last attempt, successful or not.
    tried: Stamp,
    told: TimeLeft,
}

impl FilesSnapshot {
    pub(super) fn new(tls: Arc<Tls>) -> Self {
        let stamp = tls.current.load().stamp.clone();
        Self { tls, seen: stamp.clone(), tried: stamp, told: TimeLeft::Enough }
    }

    /// Loads the files if they are new and did not change since the last check: certificate and key are written one
    /// after the other.
    pub(super) fn again(&mut self) {
        let now = Stamp::of(&self.tls.files);
        let is_settled = now == self.seen;
        if is_settled && now != self.tried {
            self.tried = now.clone();
            self.reload();
        }
        self.seen = now;
        self.tell_of_the_end();
    }

    fn reload_now(&mut self) {
        self.seen = Stamp::of(&self.tls.files);
        self.tried = self.seen.clone();
        self.reload();
    }

    fn reload(&mut self) {
        match load(&self.tls.files, self.tls.protocol) {
            Ok(current) => {
                let current = Arc::new(current);
                self.tls.current.store(Arc::clone(&current));
                self.told = TimeLeft::Enough;
                // Logged last, so that readers of the line can count on the new certificate.
                current.log("Reloaded");
            }
            Err(error) => log::error!(
                "the new TLS files cannot be used, so the previous certificate stays: {error}"
            ),
        }
    }

    /// Logs once when little time is left, and once when the certificate has expired.
    fn tell_of_the_end(&mut self) {
        let current = self.tls.current.load();
        let left = left(current.not_before, current.not_after, SystemTime::now());
        if left == std::mem::replace(&mut self.told, left) {
            return;
        }
        let CurrentConfig { subject, not_after, .. } = &**current;
        let (file, date) = (self.tls.files.certificates.display(), date(*not_after));
        match left {
            TimeLeft::Enough => {}
            TimeLeft::Little => log::warn!(
                "the TLS certificate in '{file}' ({subject}) expires on {date}: renew it; the server loads the new \
                 one by itself"
            ),
            TimeLeft::Nothing => log::error!(
                "the TLS certificate in '{file}' ({subject}) expired on {date}: clients refuse it; renew it; the \
                 server loads the new one by itself"
            ),
        }
    }
}

fn left(from: SystemTime, until: SystemTime, now: SystemTime) -> TimeLeft {
    let whole = until.duration_since(from).unwrap_or_default();
    match until.duration_since(now) {
        Err(_) => TimeLeft::Nothing,
        Ok(left) if left < NEAR_END.min(whole / NEAR_END_PART) => TimeLeft::Little,
        Ok(_) => TimeLeft::Enough,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn the_warning_time_depends_on_the_validity_period() {
        let from = SystemTime::UNIX_EPOCH;
        for (whole, gone, expected) in [
            (DAY * 365, DAY * 350, TimeLeft::Enough),
            (DAY * 365, DAY * 352, TimeLeft::Little),
            (DAY * 365, DAY * 366, TimeLeft::Nothing),
            (DAY, DAY / 4 * 3, TimeLeft::Enough),
            (DAY, DAY / 10 * 9, TimeLeft::Little),
            (DAY, DAY * 2, TimeLeft::Nothing),
        ] {
            assert_eq!(left(from, from + whole, from + gone), expected, "{gone:?} of {whole:?}");
        }
    }

    #[test]
    fn the_watcher_runs_until_it_is_stopped() {
        let (stop, stopped) = mpsc::channel();
        drop(stop);
        watch(&stopped, Duration::MAX, Vec::new());
    }
}
