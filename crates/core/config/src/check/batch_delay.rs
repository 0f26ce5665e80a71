//! The parameter `batch_delay`: it lets the server choose the batch delay.

use std::time::Duration;

use super::mistake::{Result, refuse};
use crate::{DynamicBatching, FieldPath, RawModelConfig, Scheduling};

const PARAMETER: &str = "batch_delay";

/// The longest learned delay when `max_queue_delay_microseconds` sets none.
const LONGEST: Duration = Duration::from_millis(10);

/// Returns whether the server learns the batch delay.
pub(super) fn check(raw: &RawModelConfig, scheduling: &Scheduling) -> Result<bool> {
    let Some(parameter) = raw.parameters.get(PARAMETER) else { return Ok(false) };
    let (model, value) = (&raw.name, &parameter.string_value);
    let subject = format!("parameter 'batch_delay' of model '{model}'");
    let field = FieldPath::from("parameters").named(PARAMETER);
    if value != "auto" {
        let text = format!("{subject} is '{value}': write 'auto', or remove it");
        return refuse(field.field("value"), text, "");
    }
    // Responses that come one by one do not show when a caller is ready for its next request.
    if raw.model_transaction_policy.is_some_and(|policy| policy.decoupled) {
        return refuse(field, format!("{subject} is not for decoupled models: remove it"), "");
    }
    match scheduling {
        Scheduling::Dynamic(_) if raw.max_batch_size > 0 => Ok(true),
        _ => {
            let text = format!(
                "{subject} needs 'dynamic_batching' and a 'max_batch_size' above 0: add them, or remove the parameter"
            );
            refuse(field, text, "")
        }
    }
}

/// Turns on the learned delay; a delay from the configuration is its upper bound.
pub(super) fn apply(dynamic: &mut DynamicBatching) {
    dynamic.learns_delay = true;
    if dynamic.max_queue_delay.is_zero() {
        dynamic.max_queue_delay = LONGEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_text, testing::Host};

    fn checked(text: &str) -> Result<Duration, String> {
        let tensors = "input { name: 'x' data_type: TYPE_FP32 dims: 1 } \
                       output { name: 'y' data_type: TYPE_FP32 dims: 1 }";
        let raw = parse_text(&format!("name: 'm' backend: 'b' {tensors} {text}")).expect("text");
        let config = Host::default().check(raw).map_err(|error| error.message().to_owned())?;
        match config.scheduling() {
            Scheduling::Dynamic(dynamic) => {
                assert!(dynamic.learns_delay);
                Ok(dynamic.max_queue_delay)
            }
            other => panic!("{other:?}"),
        }
    }

    fn parameter(value: &str) -> String {
        format!("parameters {{ key: 'batch_delay' value {{ string_value: '{value}' }} }}")
    }

    #[test]
    fn a_configured_delay_is_the_upper_bound() {
        let auto = parameter("auto");
        assert_eq!(
            checked(&format!("max_batch_size: 8 dynamic_batching {{}} {auto}")),
            Ok(LONGEST)
        );
        let given = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 700 }";
        assert_eq!(checked(&format!("{given} {auto}")), Ok(Duration::from_micros(700)));
    }

    #[test]
    fn invalid_values_and_models_without_batching_are_refused() {
        let decoupled =
            "max_batch_size: 8 dynamic_batching {} model_transaction_policy { decoupled: true }";
        let error = checked(&format!("{decoupled} {}", parameter("auto"))).expect_err("refused");
        assert!(error.contains("not for decoupled models"), "{error}");
        let other = format!("max_batch_size: 8 dynamic_batching {{}} {}", parameter("5"));
        let text = "parameter 'batch_delay' of model 'm' is '5': write 'auto', or remove it";
        assert_eq!(checked(&other), Err(text.to_owned()));
        for text in ["dynamic_batching {}", "max_batch_size: 8"] {
            let error = checked(&format!("{text} {}", parameter("auto"))).expect_err("refused");
            assert!(error.starts_with("parameter 'batch_delay' of model 'm' needs"), "{error}");
        }
    }
}
