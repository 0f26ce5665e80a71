//! The model `identity`: its outputs are its inputs.

use std::{sync::Arc, thread, time::Duration};

use galatea_backend::{Batch, LoadContext, Model, ModelInstance};
use galatea_telemetry::{CustomMetric, CustomMetricKind};
use galatea_types::{ParameterValue, Parameters, Result};

use crate::{model::computing_model, parameter::whole_number, wiring::Wiring};

#[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let config = &context.config;
    let wiring = Arc::new(Wiring::from_config(config)?);
    let execute_delay = Duration::from_millis(whole_number(config, "execute_delay_ms")?);
    let multiplier = whole_number(config, "instance_wise_delay_multiplier")?;
    let multiplier = u32::try_from(multiplier).unwrap_or(u32::MAX);
    let input_bytes = input_byte_counter(context);
    let creation_delay = Duration::from_secs(whole_number(config, "creation_delay_sec")?);
    if !creation_delay.is_zero() {
        thread::sleep(creation_delay);
    }
    computing_model(execute_delay.is_zero(), move |spec| {
        let index = u32::try_from(spec.index).unwrap_or(u32::MAX);
        let delay = execute_delay.saturating_mul(multiplier.saturating_mul(index).max(1));
        Ok(IdentityInstance { wiring: wiring.clone(), delay, input_bytes: input_bytes.clone() })
    })
}

/// Returns every input unchanged: `INPUT0` as `OUTPUT0` and so on. Names without a number are matched in order. The response
/// shares the request's memory. With a `reshape`, the model must see the same shape for both. An optional input that a
/// request omits becomes zeros, one for each variable dimension. Every response has the four parameters of Triton's backend
/// of this name.
///
/// Model parameters, all whole numbers: `creation_delay_sec` delays loading, `execute_delay_ms` each execution, and
/// `instance_wise_delay_multiplier` makes instance `i` take `i` times that many delays (instance 0 takes one). Delays block
/// the instance's thread on purpose.
///
/// The metric `input_byte_size_counter` adds up the bytes of all inputs.
struct IdentityInstance {
    wiring: Arc<Wiring>,
    delay: Duration,
    input_bytes: Option<CustomMetric>,
}

/// Creates the counter. Returns `None` if a model has used the name for another metric.
fn input_byte_counter(context: &LoadContext) -> Option<CustomMetric> {
    let family = context.server.metrics.family(
        "input_byte_size_counter",
        "Cumulative input byte size of all requests received by the model",
        CustomMetricKind::Counter,
    );
    let model = ("model".to_owned(), context.config.name().to_string());
    let version = ("version".to_owned(), context.version.to_string());
    family.ok()?.metric([model, version].into(), None).ok()
}

impl ModelInstance for IdentityInstance {
    #[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
    fn execute(&mut self, batch: &mut Batch) {
        self.count_input(batch);
        batch.mark_input_done();
        if !self.delay.is_zero() {
            thread::sleep(self.delay);
        }
        batch.mark_output_started();
        for index in 0..batch.len() {
            if let Some(request) = batch.request(index) {
                let outputs = self.wiring.answer(request);
                batch.respond_with(index, outputs.map(|outputs| (outputs, example_parameters())));
            }
        }
    }
}

impl IdentityInstance {
    fn count_input(&self, batch: &Batch) {
        let Some(counter) = &self.input_bytes else { return };
        let bytes: usize = batch.requests().flat_map(|r| &r.inputs).map(|t| t.data.len()).sum();
        #[expect(clippy::cast_precision_loss, reason = "a metric is a floating point number")]
        // It fails only for negative values.
        let _ = counter.increment(bytes as f64);
    }
}

/// Returns parameters that clients' tests read.
fn example_parameters() -> Parameters {
    vec![
        ("param0".to_owned(), ParameterValue::String("an example string parameter".to_owned())),
        ("param1".to_owned(), ParameterValue::Int(42)),
        ("param2".to_owned(), ParameterValue::Bool(false)),
        ("param3".to_owned(), ParameterValue::Double(123.123)),
    ]
}
