//! What happens to a request whose client has gone.

use galatea_types::Cancellation;

/// Cancels a request when it is dropped before the answer came, as it is when the client closes the connection.
#[derive(Debug)]
pub struct CancelOnDrop(Option<Cancellation>);

impl CancelOnDrop {
    /// Guards the request that `cancellation` belongs to.
    pub fn new(cancellation: Cancellation) -> Self {
        Self(Some(cancellation))
    }

    /// The answer is there: nothing is left to cancel.
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
