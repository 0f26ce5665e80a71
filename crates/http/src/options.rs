//! The options of the HTTP front end.

/// How the HTTP front end behaves; one field per command line flag that concerns it.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// `--http-thread-count`: most threads; no more are started than there are cores.
    pub thread_count: usize,
    /// `--http-max-input-size`: longest request body, in bytes.
    pub max_input_size: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { thread_count: 8, max_input_size: 64 << 20 }
    }
}
