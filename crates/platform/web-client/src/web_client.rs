//! The client for callers that wait. It has the threads on which requests run.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use bytes::Bytes;
use galatea_types::Stop;
use http::Response;
use tokio::runtime::{Builder, Runtime};

use crate::{
    client::{ClientSettings, HttpClient},
    failure::{HttpFailure, Problem},
    get::Get,
};

/// Interval between the calls that tell a caller that it still waits.
const INTERVAL: Duration = Duration::from_secs(1);

/// Threads and connections, for as long as this lives.
#[derive(Debug)]
pub struct WebClient {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
    http: HttpClient,
    stop: Stop,
}

impl WebClient {
    /// Starts a client with this number of `threads`, which may also write files. A request to `stop` ends all waits.
    ///
    /// # Errors
    /// When the threads cannot be started, or TLS cannot be used.
    pub fn new(settings: &ClientSettings, threads: usize, stop: Stop) -> Result<Self, HttpFailure> {
        let http = HttpClient::new(settings)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("web client")
            .enable_all()
            .build()
            .map_err(|error| {
                HttpFailure::new(Problem::Local, format!("failed to start threads: {error}"))
            })?;
        Ok(Self { runtime: Some(runtime), http, stop })
    }

    /// Returns the client for requests of any kind.
    pub fn http(&self) -> &HttpClient {
        &self.http
    }

    /// Waits for the response to a request, and for its body after success. `waits` is called each second until both are
    /// there.
    ///
    /// # Errors
    /// When it does not come, or not `within` this time.
    pub fn fetch(
        &self,
        asked: Get,
        within: Duration,
        waits: &mut dyn FnMut(),
    ) -> Result<Response<Bytes>, HttpFailure> {
        let http = self.http.clone();
        let fetched = async move {
            let (head, body) = http.get(&asked).await?.response.into_parts();
            let body = if head.status.is_success() { body.all().await? } else { Bytes::new() };
            Ok(Response::from_parts(head, body))
        };
        let bounded = async move {
            tokio::time::timeout(within, fetched).await.unwrap_or_else(|_| {
                let text = format!("the answer took longer than {} s", within.as_secs());
                Err(HttpFailure::new(Problem::TooSlow, text))
            })
        };
        self.wait_with(bounded, waits)
    }

    /// Waits for the result of `work`, which runs on this client's threads. Any thread may call it.
    ///
    /// # Errors
    /// Those of `work`, a panic in it, and a request to stop.
    pub fn wait<T: Send + 'static, E: From<HttpFailure> + Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        self.wait_with(work, &mut || {})
    }

    /// Waits like [`WebClient::wait`]. `waits` is called each second until the result is there.
    ///
    /// # Errors
    /// Those of [`WebClient::wait`].
    pub fn wait_with<T: Send + 'static, E: From<HttpFailure> + Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
        waits: &mut dyn FnMut(),
    ) -> Result<T, E> {
        let ended = || {
            let stopped = self.stop.is_requested().then(Stop::error);
            let text = stopped.as_ref().map_or("the request panicked", |e| e.message());
            E::from(HttpFailure::new(Problem::Local, text))
        };
        let Some(runtime) = self.runtime.as_ref().filter(|_| !self.stop.is_requested()) else {
            return Err(ended());
        };
        let (done, result) = mpsc::sync_channel(1);
        let working = runtime.spawn(async move {
            // The caller is waiting.
            let _ = done.send(work.await);
        });
        // The sender is dropped with the work.
        let _on_stop = self.stop.on_request(move || working.abort());
        loop {
            match result.recv_timeout(INTERVAL) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => waits(),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }
}

impl Drop for WebClient {
    /// Shuts down without waiting: nobody needs the running work. Dropping a runtime inside another one would panic.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::Environment;

    use super::*;

    fn client(stop: &Stop) -> WebClient {
        let settings = ClientSettings::of(&Environment::default());
        WebClient::new(&settings, 1, stop.clone()).expect("threads")
    }

    #[test]
    fn a_stop_request_ends_a_hanging_call() {
        let stop = Stop::default();
        let client = client(&stop);
        let failed = client.wait::<(), HttpFailure>(async move {
            // On another thread: the act that ends this work is about to be registered.
            std::thread::spawn(move || stop.request());
            std::future::pending().await
        });
        assert_eq!(failed.expect_err("ended").to_string(), Stop::error().message());
        assert!(client.wait(async { Ok::<_, HttpFailure>(1) }).is_err(), "nothing begins any more");
    }

    #[test]
    fn a_panic_is_an_error() {
        let client = client(&Stop::default());
        assert_eq!(client.wait(async { Ok::<_, HttpFailure>(1) }).expect("done"), 1);
        let failed = client.wait::<(), HttpFailure>(async { panic!("on purpose") });
        assert_eq!(failed.expect_err("panicked").to_string(), "the request panicked");
    }
}
