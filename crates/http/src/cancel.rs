use galatea_types::Cancellation;

/// Cancels a request when it is dropped before the answer came: the client has gone (H-52).
pub(crate) struct CancelOnDrop(Option<Cancellation>);

impl CancelOnDrop {
    pub fn new(cancellation: Cancellation) -> Self {
        Self(Some(cancellation))
    }

    /// The answer is there.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancellation) = &self.0 {
            cancellation.cancel();
        }
    }
}
