//! The assignment of inputs to the outputs that repeat them, with the shapes.

use std::{fmt::Display, sync::Arc};

use galatea_backend::batching::reshape;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Buffer, DataType, Error, InferRequest, Result, Shape, Tensor};

use crate::content::check_content;

/// The input that each output repeats.
pub(crate) struct Wiring {
    wires: Vec<Wire>,
    /// Number of dimensions in front of those of the configuration: 1 with a batch.
    leading: usize,
}

struct Wire {
    input: TensorSpec,
    output: TensorSpec,
}

impl Wiring {
    pub fn from_config(config: &ModelConfig) -> Result<Self> {
        let outputs = config.outputs().iter().enumerate();
        let wires = outputs.map(|(i, output)| wire(config, i, output));
        let wires = wires.collect::<Result<_>>()?;
        Ok(Self { wires, leading: usize::from(config.has_batching()) })
    }

    /// Returns the requested outputs.
    pub fn answer(&self, request: &InferRequest) -> Result<Vec<Tensor>> {
        let wanted = self.wires.iter().filter(|w| request.wants_output(&w.output.name));
        wanted.map(|wire| self.output(wire, request)).collect()
    }

    fn output(&self, Wire { input, output }: &Wire, request: &InferRequest) -> Result<Tensor> {
        let name = output.name.clone();
        let Some(tensor) = request.input(&input.name) else {
            let rows = request.inputs.first().and_then(|t| t.shape.first()).copied().unwrap_or(1);
            let batch = (self.leading > 0).then_some(rows);
            let dims = input.reshape.as_ref().unwrap_or(&input.dims);
            let seen = dims.iter().map(|&d| d.max(1)).collect::<Shape>();
            let dims = reshape::to_client(output, &seen);
            let shape = batch.into_iter().chain(dims.iter().copied()).collect();
            return zeros(name, input.data_type, shape);
        };
        check_content(tensor)?;
        if input.reshape.is_none() && output.reshape.is_none() {
            return Ok(Tensor { name, ..tensor.clone() });
        }
        let (batch, dims) = tensor.shape.split_at(self.leading.min(tensor.shape.len()));
        let seen = reshape::to_model(input, false, dims);
        let dims = reshape::to_client(output, &seen);
        let shape = batch.iter().chain(dims.iter()).copied().collect();
        Ok(Tensor { name, shape, ..tensor.clone() })
    }
}

/// Returns a tensor of zeros. For BYTES these are empty texts: four zero bytes each.
fn zeros(name: Arc<str>, data_type: DataType, shape: Shape) -> Result<Tensor> {
    let size = match data_type {
        DataType::Bytes => shape.element_count().and_then(|count| count.checked_mul(4)),
        _ => shape.byte_size(data_type),
    };
    let too_large = || Error::invalid_arg(format!("output '{name}' of shape {shape} is too large"));
    let mut data = Vec::new();
    let size = size.ok_or_else(too_large)?;
    data.try_reserve_exact(size).map_err(|_| too_large())?;
    data.resize(size, 0);
    Ok(Tensor::new(name, data_type, shape, Buffer::from(data)))
}

/// Finds the input for an output. Texts begin as Triton's.
fn wire(config: &ModelConfig, index: usize, output: &TensorSpec) -> Result<Wire> {
    let named = output.name.strip_prefix("OUTPUT").map(|n| format!("INPUT{n}"));
    let input = named.and_then(|n| config.input(&n)).or_else(|| config.inputs().get(index));
    let name = &output.name;
    let input = input.ok_or_else(|| {
        let text = "model configuration must have equal input/output pairs";
        Error::invalid_arg(format!("{text}: output '{name}' has no input"))
    })?;
    let differ = |what, input: &dyn Display, output: &dyn Display| {
        let text = format!("expected input and output {what} to match, got {input} and {output}");
        Err(Error::invalid_arg(format!("{text} for '{name}'")))
    };
    if input.data_type != output.data_type {
        return differ("datatype", &input.data_type, &output.data_type);
    }
    let seen = |spec: &TensorSpec| spec.reshape.as_ref().unwrap_or(&spec.dims).clone();
    let shapes = (seen(input), seen(output));
    if shapes.0 != shapes.1 {
        return differ("shape", &shapes.0, &shapes.1);
    }
    Ok(Wire { input: input.clone(), output: output.clone() })
}
