//! The line about shared memory after the results. perf_analyzer's report does not have it.

use galatea_perf_types::{settings::SharedMemory, summary::TensorBytes};

/// Writes the bytes that did not go through the socket; empty without shared memory.
pub fn shared_memory(kind: SharedMemory, bytes: &TensorBytes) -> String {
    if kind == SharedMemory::None {
        return String::new();
    }
    let TensorBytes { inputs_per_request, outputs_per_response, uncounted_outputs } = bytes;
    let more = match uncounted_outputs.as_slice() {
        [] => String::new(),
        names => {
            format!(" The bytes of {} are not counted, as their number is open.", names.join(", "))
        }
    };
    format!(
        "Shared memory ({}): {inputs_per_request} bytes of inputs per request and {outputs_per_response} bytes of outputs per response did not go through the socket.{more}\n",
        kind.name()
    )
}
