//! The model `add_sub`.

use std::sync::Arc;

use galatea_backend::{Batch, InstanceSpec, LoadContext, Model, ModelInstance, OutputBuffer};
use galatea_config::ModelConfig;
use galatea_types::{DataType, Error, InferRequest, Memory, Result, Shape, Tensor};

use crate::{
    arithmetic::{Operation, apply, is_supported},
    content::check_content,
};

/// Configurations and requests that do not have the tensors of an `add_sub` model.
#[derive(Debug, thiserror::Error)]
enum TensorsError {
    #[error("add_sub model '{model}' needs one data type for all tensors, other than BOOL")]
    Types { model: String },
    #[error("add_sub model '{model}' needs INPUT0, INPUT1, OUTPUT0 and OUTPUT1")]
    Names { model: String },
    #[error("the request has no input '{name}'")]
    NoInput { name: &'static str },
    #[error("INPUT0 is {} {} but INPUT1 is {} {}", first.0, first.1, second.0, second.1)]
    Differ { first: Box<(DataType, Shape)>, second: Box<(DataType, Shape)> },
}

impl From<TensorsError> for Error {
    fn from(error: TensorsError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    check(&context.config)?;
    Ok(Box::new(AddSubModel))
}

/// Answers `OUTPUT0 = INPUT0 + INPUT1` and `OUTPUT1 = INPUT0 - INPUT1`, element by element, for every type
/// but `BOOL`. Integers wrap around; `BYTES` elements are decimal whole numbers.
struct AddSubModel;

impl Model for AddSubModel {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(AddSubInstance {
            outputs: [("OUTPUT0".into(), Operation::Add), ("OUTPUT1".into(), Operation::Subtract)],
        }))
    }

    fn computes_on_any_thread(&self) -> bool {
        true
    }
}

struct AddSubInstance {
    outputs: [(Arc<str>, Operation); 2],
}

impl ModelInstance for AddSubInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batch.mark_input_done();
        for index in 0..batch.len() {
            if batch.request(index).is_some() {
                let result = self.answer(batch, index);
                batch.respond(index, result);
            }
        }
        batch.mark_output_started();
    }
}

impl AddSubInstance {
    fn answer(&self, batch: &Batch, index: usize) -> Result<Vec<Tensor>> {
        let taken = || Error::internal(format!("request {index} is not in the batch"));
        let request = batch.request(index).ok_or_else(taken)?;
        let (a, b) = (input(request, "INPUT0")?, input(request, "INPUT1")?);
        if (a.data_type, &a.shape) != (b.data_type, &b.shape) {
            let [first, second] =
                [a, b].map(|tensor| Box::new((tensor.data_type, tensor.shape.clone())));
            return Err(TensorsError::Differ { first, second }.into());
        }
        let wanted = self.outputs.iter().filter(|(name, _)| request.wants_output(name));
        let compute = |(name, operation): &(Arc<str>, Operation)| {
            let buffer = |size| OutputBuffer::of(request, name, size, Memory::Host);
            let data = apply(*operation, a.data_type, a.host()?, b.host()?, buffer)?.into_buffer();
            Ok(Tensor::new(name.clone(), a.data_type, a.shape.clone(), data))
        };
        wanted.map(compute).collect()
    }
}

fn input<'a>(request: &'a InferRequest, name: &'static str) -> Result<&'a Tensor> {
    let tensor = request.input(name).ok_or(TensorsError::NoInput { name })?;
    check_content(tensor)?;
    Ok(tensor)
}

fn check(config: &ModelConfig) -> Result<(), TensorsError> {
    let model = config.name().to_string();
    let all = [config.input("INPUT0"), config.input("INPUT1")]
        .into_iter()
        .chain([config.output("OUTPUT0"), config.output("OUTPUT1")]);
    let types: Option<Vec<DataType>> = all.map(|t| t.map(|t| t.data_type)).collect();
    match types.as_deref() {
        Some([first, rest @ ..]) if rest.iter().all(|t| t == first) && is_supported(*first) => {
            Ok(())
        }
        Some(_) => Err(TensorsError::Types { model }),
        None => Err(TensorsError::Names { model }),
    }
}
