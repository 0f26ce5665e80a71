//! What all repositories in the network share: the threads their requests run on, and the HTTP client.

use std::{fmt, sync::mpsc};

use galatea_runtimes::Environment;
use tokio::runtime::{Builder, Runtime};

use crate::{
    error::{FailureKind, RemoteError},
    http_client::HttpClient,
};

/// They also write what comes to disk, so that there are a few.
const THREADS: usize = 4;

/// Threads, connections and variables of the process, for as long as a repository needs them.
pub struct Network {
    /// Taken at the end.
    runtime: Option<Runtime>,
    http: HttpClient,
    environment: Environment,
}

impl Network {
    /// # Errors
    /// When no threads can be started, or the certificates that the environment names cannot be read.
    pub fn new(environment: Environment) -> Result<Self, RemoteError> {
        let http = HttpClient::new(&environment)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("repository")
            .enable_all()
            .build()
            .map_err(|error| {
                let text = format!("failed to start the threads of remote repositories: {error}");
                RemoteError::new(FailureKind::Local, text)
            })?;
        Ok(Self { runtime: Some(runtime), http, environment })
    }

    /// For requests of any kind.
    pub fn http(&self) -> &HttpClient {
        &self.http
    }

    /// The variables of the process.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Waits for what `work` comes to, on any thread: `work` runs on those of this value.
    ///
    /// # Errors
    /// Those of `work`; a panic in it is one.
    pub fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RemoteError>> + Send + 'static,
    ) -> Result<T, RemoteError> {
        let ended = || RemoteError::new(FailureKind::Local, "the request ended by a panic");
        let Some(runtime) = &self.runtime else { return Err(ended()) };
        let (done, result) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // Whoever asked is waiting.
            let _ = done.send(work.await);
        });
        result.recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Network {
    /// Without waiting, for what still runs nobody waits for: a runtime that is dropped as others are panics in one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Without the variables, among which there are secrets.
impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let network = Network::new(Environment::default()).expect("threads");
        assert_eq!(network.wait(async { Ok(1) }).expect("done"), 1);
        let failed = network.wait::<()>(async { panic!("on purpose") });
        assert_eq!(failed.expect_err("panicked").to_string(), "the request ended by a panic");
    }
}
