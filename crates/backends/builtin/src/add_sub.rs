//! The model `add_sub`.

use std::sync::Arc;

use galatea_backend::{Batch, LoadContext, Model, ModelInstance, OutputBuffer};
use galatea_config::ModelConfig;
use galatea_types::{DataType, Error, InferRequest, Memory, Result, Tensor};

use crate::{
    arithmetic::{Operation, apply, is_supported},
    content::check_content,
    model::computing_model,
};

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    check(&context.config)?;
    computing_model(true, |_| {
        let outputs = [("OUTPUT0", Operation::Add), ("OUTPUT1", Operation::Subtract)];
        Ok(AddSubInstance { outputs: outputs.map(|(name, operation)| (name.into(), operation)) })
    })
}

/// Answers `OUTPUT0 = INPUT0 + INPUT1` and `OUTPUT1 = INPUT0 - INPUT1`, element by element, for every type
/// but `BOOL`. Integers wrap around; `BYTES` elements are decimal whole numbers.
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
            return Err(Error::invalid_arg(format!(
                "INPUT0 is {} {} but INPUT1 is {} {}",
                a.data_type, a.shape, b.data_type, b.shape
            )));
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
    let missing = || Error::invalid_arg(format!("the request has no input '{name}'"));
    let tensor = request.input(name).ok_or_else(missing)?;
    check_content(tensor)?;
    Ok(tensor)
}

fn check(config: &ModelConfig) -> Result<()> {
    let needs = |what| {
        let model = config.name();
        Err(Error::invalid_arg(format!("add_sub model '{model}' needs {what}")))
    };
    let all = [config.input("INPUT0"), config.input("INPUT1")]
        .into_iter()
        .chain([config.output("OUTPUT0"), config.output("OUTPUT1")]);
    let types: Option<Vec<DataType>> = all.map(|t| t.map(|t| t.data_type)).collect();
    match types.as_deref() {
        Some([first, rest @ ..]) if rest.iter().all(|t| t == first) && is_supported(*first) => {
            Ok(())
        }
        Some(_) => needs("one data type for all tensors, other than BOOL"),
        None => needs("INPUT0, INPUT1, OUTPUT0 and OUTPUT1"),
    }
}
