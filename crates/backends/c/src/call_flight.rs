//! A request of a library while the server has it: its responses, and its return.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use galatea_triton_c::{abi, abi::flag};
use galatea_types::{Cancellation, Response, ResponseSink};

use crate::{
    call_response,
    call_target::{Destination, ReleaseCallback, UserData},
};

/// The object of a request that its library gets back.
pub(crate) trait Returnable: Send + Sync {
    /// Notes that the server has the request no more.
    fn land(&self);
}

/// A request in the hands of the server. When the last user of its inputs and its responder are gone, the library gets it back.
pub(crate) struct Flight {
    request: UserData,
    call: Arc<dyn Returnable>,
    release: ReleaseCallback,
    /// True if the library has not lost the request, because the server refused it.
    is_kept: AtomicBool,
}

impl Flight {
    pub fn new(
        request: *mut abi::InferenceRequest,
        call: Arc<dyn Returnable>,
        release: ReleaseCallback,
    ) -> Self {
        Self { request: UserData(request.cast()), call, release, is_kept: AtomicBool::new(false) }
    }

    /// Leaves the request with the library.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.call.land();
        if self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        let ReleaseCallback { function, data } = self.release;
        // SAFETY: the library's own function and data; nothing here uses the request's memory any more.
        unsafe { function(self.request.0.cast(), flag::RELEASE_ALL, data.0) };
    }
}

/// Passes responses to the library.
pub(crate) struct Sink {
    destination: Destination,
    cancellation: Cancellation,
    _flight: Arc<Flight>,
}

impl Sink {
    pub fn new(destination: Destination, cancellation: Cancellation, flight: Arc<Flight>) -> Self {
        Self { destination, cancellation, _flight: flight }
    }
}

impl ResponseSink for Sink {
    /// Calls the library, on the thread of the model that responds.
    fn respond(&mut self, response: Response) {
        let flags = if response.is_final { flag::RESPONSE_FINAL } else { 0 };
        let handle = match response.result {
            Some(result) => call_response::give(result, &self.destination),
            None => std::ptr::null_mut(),
        };
        // SAFETY: the library's own function and data.
        unsafe { (self.destination.respond)(handle, flags, self.destination.data.0) };
    }

    fn is_closed(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}
