use std::{ffi::CStr, sync::Arc};

use galatea_backend::{Batch, ModelInstance, batching};
use galatea_types::Result;

use crate::{
    gather,
    model::{OnnxModel, Port},
    ort::Value,
    scatter,
    sessions::Sessions,
};

/// Runs one batch after another on the session shared by the instances of a device.
pub(crate) struct OnnxInstance {
    model: Arc<OnnxModel>,
    /// Those of the device this instance is for.
    sessions: Arc<Sessions>,
}

impl OnnxInstance {
    pub fn new(model: Arc<OnnxModel>, sessions: Arc<Sessions>) -> Self {
        Self { model, sessions }
    }

    fn parts(&self, batch: &mut Batch) -> Vec<Vec<usize>> {
        let specs = || self.model.inputs.iter().map(|port| &port.spec);
        batching::parts(batch, self.model.config.has_batching(), |request| {
            batching::check(specs(), request)
        })
    }

    fn execute_part(&self, batch: &mut Batch, part: &[usize]) -> Result<()> {
        let inputs = gather::inputs(&self.model, batch, part)?;
        let wanted = self.wanted_outputs(batch, part);
        batch.mark_input_done();
        let values = self.run(&inputs, &wanted)?;
        batch.mark_output_started();
        self.respond(batch, part, &wanted, values)
    }

    /// Outputs that some request of the batch asks for; the library keeps the others to itself.
    fn wanted_outputs(&self, batch: &Batch, part: &[usize]) -> Vec<&Port> {
        let is_wanted = |port: &&Port| batching::is_wanted(batch, part, &port.spec.name);
        self.model.outputs.iter().filter(is_wanted).collect()
    }

    fn run(&self, inputs: &[(&CStr, Value)], wanted: &[&Port]) -> Result<Vec<Value>> {
        let model = &*self.model;
        let inputs: Vec<(&CStr, &Value)> = inputs.iter().map(|(n, v)| (*n, v)).collect();
        let outputs: Vec<&CStr> = wanted.iter().map(|p| p.info.c_name.as_c_str()).collect();
        let options = &model.run_options;
        self.sessions.place(|session, mode| session.run(options, &inputs, &outputs, mode))
    }

    fn respond(
        &self,
        batch: &mut Batch,
        part: &[usize],
        wanted: &[&Port],
        values: Vec<Value>,
    ) -> Result<()> {
        let sizes = batching::sizes(batch, part);
        let share = |(port, value): (&&Port, Value)| {
            scatter::share(&self.model.config, port, value, &sizes)
        };
        let shares = wanted.iter().zip(values).map(share).collect::<Result<Vec<_>>>()?;
        batching::respond(batch, part, &shares);
        Ok(())
    }
}

impl ModelInstance for OnnxInstance {
    fn execute(&mut self, batch: &mut Batch) {
        for part in self.parts(batch) {
            if let Err(error) = self.execute_part(batch, &part) {
                batching::fail(batch, &part, &error);
            }
        }
    }
}
