//! Progress of a download, as lines of the log.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// Interval between two lines about one download.
const INTERVAL: Duration = Duration::from_secs(5);

/// The progress of one model's download.
#[derive(Debug)]
pub struct Progress {
    what: String,
    size: u64,
    files: usize,
    done: AtomicU64,
    started: Instant,
}

impl Progress {
    /// Starts counting. `what` names the model and its place.
    pub fn start(what: &str, files: usize, size: u64) -> Self {
        log::info!("fetching {what}: {files} files, {}", Bytes(size));
        Self {
            what: what.to_owned(),
            size,
            files,
            done: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Counts bytes that are on disk.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Writes a line at each interval; never ends.
    #[expect(clippy::disallowed_methods, reason = "progress is shown as time passes")]
    pub async fn report(&self) {
        let mut last = 0;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let done = self.done.load(Ordering::Relaxed);
            let rate = Bytes((done - last) / INTERVAL.as_secs());
            let percent = (done as f64 * 100.0 / self.size.max(1) as f64).floor();
            log::info!(
                "fetching {}: {percent} % of {}, {rate} a second",
                self.what,
                Bytes(self.size)
            );
            last = done;
        }
    }

    /// Writes the last line.
    pub fn finish(&self) {
        let seconds = self.started.elapsed().as_secs_f64();
        log::info!(
            "fetched {}: {} files, {} in {seconds:.1} s",
            self.what,
            self.files,
            Bytes(self.size)
        );
    }
}

/// A number of bytes for display.
struct Bytes(u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", value / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", value / 1e6),
            _ => write!(f, "{:.2} GB", value / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_for_people() {
        let shown = [999, 1_500, 90_400_000, 5_370_000_000].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(shown, ["999 B", "1.5 kB", "90.4 MB", "5.37 GB"]);
    }
}
