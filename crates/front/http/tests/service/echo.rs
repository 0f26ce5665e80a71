//! A model whose responses have the parameters of their requests.

use galatea_backend::{Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_types::Result;

pub const CONFIG: &str = "backend: \"echo\" \
    input { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 } \
    output { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 }";

pub struct Echo;

impl Backend for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn load(&self, _: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self))
    }
}

impl Model for Echo {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(Self))
    }
}

impl ModelInstance for Echo {
    fn execute(&mut self, batch: &mut Batch) {
        for index in 0..batch.len() {
            if let Some(request) = batch.request(index) {
                let answer = (request.inputs.clone(), request.parameters.clone());
                batch.respond_with(index, Ok(answer));
            }
        }
    }
}
