use std::{ffi::CStr, sync::Arc};

use galatea_backend::{Batch, ModelInstance};
use galatea_types::{Error, Result, Tensor};

use crate::{
    gather,
    model::{OnnxModel, Port},
    ort::Value,
    scatter::Share,
};

/// Runs one batch after another on the shared session.
pub(crate) struct OnnxInstance {
    model: Arc<OnnxModel>,
}

impl OnnxInstance {
    pub fn new(model: Arc<OnnxModel>) -> Self {
        Self { model }
    }

    /// Requests that run together: all sound ones, or each by itself where there is no batch dimension
    /// to join them along.
    fn parts(&self, batch: &mut Batch) -> Vec<Vec<usize>> {
        let mut sound = Vec::with_capacity(batch.len());
        for index in 0..batch.len() {
            let Some(request) = batch.request(index) else { continue };
            match gather::check(&self.model, request) {
                Ok(()) => sound.push(index),
                Err(error) => batch.respond(index, Err(error)),
            }
        }
        if self.model.config.has_batching() && !sound.is_empty() {
            return vec![sound];
        }
        sound.into_iter().map(|index| vec![index]).collect()
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
        let is_wanted = |port: &&Port| {
            let name = &port.spec.name;
            part.iter().filter_map(|&i| batch.request(i)).any(|r| r.wants_output(name))
        };
        self.model.outputs.iter().filter(is_wanted).collect()
    }

    fn run(&self, inputs: &[(&CStr, Value)], wanted: &[&Port]) -> Result<Vec<Value>> {
        let model = &*self.model;
        let inputs: Vec<(&CStr, &Value)> = inputs.iter().map(|(n, v)| (*n, v)).collect();
        let outputs: Vec<&CStr> = wanted.iter().map(|p| p.info.c_name.as_c_str()).collect();
        let options = &model.run_options;
        model.sessions.place(|session, mode| session.run(options, &inputs, &outputs, mode))
    }

    /// Hands each request its part of each output it asked for.
    fn respond(
        &self,
        batch: &mut Batch,
        part: &[usize],
        wanted: &[&Port],
        values: Vec<Value>,
    ) -> Result<()> {
        let mut shares: Vec<Share> = Vec::with_capacity(values.len());
        for (port, value) in wanted.iter().zip(values) {
            shares.push(Share::new(&self.model.config, port, value, batch, part)?);
        }
        for (position, &index) in part.iter().enumerate() {
            let Some(request) = batch.request(index) else { continue };
            let outputs: Result<Vec<Tensor>> = shares
                .iter()
                .filter(|share| request.wants_output(share.name()))
                .map(|share| share.part(position))
                .collect();
            batch.respond(index, outputs);
        }
        Ok(())
    }
}

impl ModelInstance for OnnxInstance {
    fn execute(&mut self, batch: &mut Batch) {
        for part in self.parts(batch) {
            if let Err(error) = self.execute_part(batch, &part) {
                fail(batch, &part, &error);
            }
        }
    }
}

fn fail(batch: &mut Batch, part: &[usize], error: &Error) {
    part.iter().for_each(|&index| batch.respond(index, Err(error.clone())));
}
