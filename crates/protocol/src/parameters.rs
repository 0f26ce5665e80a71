//! Rules for request parameters that hold for both protocols.

use galatea_types::{CorrelationId, Error, Result};

/// Refuses the name of a custom parameter that is reserved for the server.
pub fn check_custom_name(name: &str) -> Result<()> {
    if name.starts_with("triton_") {
        return Err(Error::invalid_arg(
            "parameter keys starting with 'triton_' are reserved for Triton usage and should not be \
             specified.",
        ));
    }
    Ok(())
}

/// 0 names no sequence.
pub fn numeric_correlation_id(id: u64) -> CorrelationId {
    if id == 0 { CorrelationId::None } else { CorrelationId::Number(id) }
}

/// The empty string names no sequence.
pub fn text_correlation_id(id: String) -> CorrelationId {
    if id.is_empty() { CorrelationId::None } else { CorrelationId::Text(id) }
}
