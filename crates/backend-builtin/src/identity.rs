//! The model `identity`: outputs are the inputs.

use std::{sync::Arc, thread, time::Duration};

use galatea_backend::{Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{ModelConfig, TensorSpec};
use galatea_telemetry::{CustomMetric, CustomMetricKind};
use galatea_types::{DataType, Error, InferRequest, Result, Shape, Tensor};

use crate::{content::check_content, parameter::whole_number};

/// Answers every input as it came: `INPUT0` as `OUTPUT0` and so on; where the names have no number, first
/// input as first output. The answer shares the request's memory.
///
/// Model parameters, all whole numbers: `creation_delay_sec` delays loading, `execute_delay_ms`
/// each execution, and `instance_wise_delay_multiplier` makes instance `i` take `i` times that many delays
/// (instance 0 takes one). Delays block the instance's thread: that is what they are for.
///
/// The metric `input_byte_size_counter` adds up the bytes of all inputs.
#[derive(Debug, Default)]
pub struct IdentityBackend;

impl IdentityBackend {
    /// The backend; it needs nothing.
    pub fn new() -> Self {
        Self
    }
}

impl Backend for IdentityBackend {
    fn name(&self) -> &str {
        "identity"
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let config = &context.config;
        let model = IdentityModel {
            wiring: Arc::new(Wiring::from_config(config)?),
            execute_delay: Duration::from_millis(whole_number(config, "execute_delay_ms")?),
            delay_multiplier: whole_number(config, "instance_wise_delay_multiplier")?,
            input_bytes: input_byte_counter(&context),
        };
        let creation_delay = Duration::from_secs(whole_number(config, "creation_delay_sec")?);
        if !creation_delay.is_zero() {
            thread::sleep(creation_delay);
        }
        Ok(Box::new(model))
    }
}

struct IdentityModel {
    wiring: Arc<Wiring>,
    execute_delay: Duration,
    delay_multiplier: u64,
    input_bytes: Option<CustomMetric>,
}

impl Model for IdentityModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let index = u32::try_from(spec.index).unwrap_or(u32::MAX);
        let multiplier = u32::try_from(self.delay_multiplier).unwrap_or(u32::MAX);
        let delay = self.execute_delay.saturating_mul(multiplier.saturating_mul(index).max(1));
        let input_bytes = self.input_bytes.clone();
        Ok(Box::new(IdentityInstance { wiring: self.wiring.clone(), delay, input_bytes }))
    }
}

struct IdentityInstance {
    wiring: Arc<Wiring>,
    delay: Duration,
    input_bytes: Option<CustomMetric>,
}

/// `None` where a model has taken the name for something else.
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
    fn execute(&mut self, batch: &mut Batch) {
        self.count_input(batch);
        batch.mark_input_done();
        if !self.delay.is_zero() {
            thread::sleep(self.delay);
        }
        batch.mark_output_started();
        for index in 0..batch.len() {
            if let Some(request) = batch.request(index) {
                let result = self.wiring.answer(request);
                batch.respond(index, result);
            }
        }
    }
}

impl IdentityInstance {
    fn count_input(&self, batch: &Batch) {
        let Some(counter) = &self.input_bytes else { return };
        let bytes: usize = batch.requests().flat_map(|r| &r.inputs).map(|t| t.data.len()).sum();
        #[expect(clippy::cast_precision_loss, reason = "a metric is a floating point number")]
        // It refuses only what is negative.
        let _ = counter.increment(bytes as f64);
    }
}

/// Which input each output repeats.
pub(crate) struct Wiring(Vec<Wire>);

struct Wire {
    input: Arc<str>,
    output: Arc<str>,
}

impl Wiring {
    pub fn from_config(config: &ModelConfig) -> Result<Self> {
        let outputs = config.outputs().iter().enumerate();
        let wires = outputs.map(|(i, output)| wire(config, i, output));
        Ok(Self(wires.collect::<Result<_, WiringError>>()?))
    }

    /// The outputs the request wants; an optional input it left out has none.
    pub fn answer(&self, request: &InferRequest) -> Result<Vec<Tensor>> {
        let wanted = self.0.iter().filter(|w| request.wants_output(&w.output));
        wanted
            .filter_map(|wire| Some((wire, request.input(&wire.input)?)))
            .map(|(wire, input)| {
                check_content(input)?;
                Ok(Tensor { name: wire.output.clone(), ..input.clone() })
            })
            .collect()
    }
}

/// A configuration whose outputs are not its inputs.
#[derive(Debug, PartialEq, thiserror::Error)]
enum WiringError {
    #[error("identity model '{model}' has no input for output '{output}'")]
    NoInput { model: String, output: String },
    #[error(
        "identity model '{model}': output '{output}' is {output_type} {output_dims} but input '{input}' is \
         {input_type} {input_dims}"
    )]
    Differs {
        model: String,
        output: String,
        output_type: DataType,
        output_dims: Box<Shape>,
        input: String,
        input_type: DataType,
        input_dims: Box<Shape>,
    },
}

impl From<WiringError> for Error {
    fn from(error: WiringError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

fn wire(config: &ModelConfig, index: usize, output: &TensorSpec) -> Result<Wire, WiringError> {
    let named = output.name.strip_prefix("OUTPUT").map(|n| format!("INPUT{n}"));
    let input = named.and_then(|n| config.input(&n)).or_else(|| config.inputs().get(index));
    let names = || (config.name().to_string(), output.name.to_string());
    let Some(input) = input else {
        let (model, output) = names();
        return Err(WiringError::NoInput { model, output });
    };
    if (input.data_type, &input.dims) != (output.data_type, &output.dims) {
        let (model, output_name) = names();
        return Err(WiringError::Differs {
            model,
            output: output_name,
            output_type: output.data_type,
            output_dims: Box::new(output.dims.clone()),
            input: input.name.to_string(),
            input_type: input.data_type,
            input_dims: Box::new(input.dims.clone()),
        });
    }
    Ok(Wire { input: input.name.clone(), output: output.name.clone() })
}
