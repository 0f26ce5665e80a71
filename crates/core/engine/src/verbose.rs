//! What the verbose levels say of a request on its way to its model.

use std::fmt;

use galatea_telemetry::logger::VERBOSE_3;
use galatea_types::{PreparedRequest, Tensor};

/// The request fits its model. Level 2 says so, level 3 with the shapes of its inputs; what is in them no level does.
pub(crate) fn prepared(request: &PreparedRequest, version: i64) {
    let prefix = || request.message_prefix();
    log::trace!(
        "{}prepared: model: {}, requested version: {}, actual version: {version}, batch size: {}, inputs: {}, priority: \
         {}, timeout (us): {}",
        prefix(),
        request.model_name,
        request.model_version.unwrap_or(-1),
        request.batch_size(),
        request.inputs.len(),
        request.priority,
        request.timeout.unwrap_or_default().as_micros()
    );
    if !log::log_enabled!(target: VERBOSE_3, log::Level::Trace) {
        return;
    }
    for input in &request.inputs {
        log::trace!(target: VERBOSE_3, "{}input: {}", prefix(), Described(input));
    }
}

/// Name, type, shape and size of a tensor.
struct Described<'t>(&'t Tensor);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tensor { name, data_type, shape, data, .. } = self.0;
        write!(f, "{name}, type: {data_type}, shape: {shape}, {} bytes", data.len())
    }
}
