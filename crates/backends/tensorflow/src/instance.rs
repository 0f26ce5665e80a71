//! One instance of a model.

use std::sync::Arc;

use galatea_backend::{
    InstanceSpec, Model, ModelInstance,
    batching::{Content, GroupRunner, JoinedInput, ModelOutput, missing, other_type},
};
use galatea_config::{InstanceKind, ModelConfig};
use galatea_types::{DataType, Result};

use crate::{
    model::TensorFlowModel,
    sessions::{SessionUse, Sessions},
    tensorflow::{Point, Tensor},
};

/// Runs one batch after another on a session that other instances may use too.
pub(crate) struct TensorFlowInstance {
    model: Arc<TensorFlowModel>,
    session: SessionUse,
}

impl TensorFlowInstance {
    fn tensor(&self, data_type: DataType, joined: JoinedInput<'_>) -> Result<Tensor> {
        let library = &self.model.library;
        let over = |data| Tensor::over(library, data, &joined.shape, data_type);
        match joined.content {
            Content::Elements(data) => over(data),
            Content::OnDevice(data) => over(data.to_host()?),
            Content::Texts(texts) => Tensor::texts(library, &texts, &joined.shape),
        }
    }
}

impl GroupRunner for TensorFlowInstance {
    type Inputs = Vec<(Point, Tensor)>;
    type Outputs = Vec<Tensor>;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    fn is_scalar(&self, input: usize) -> bool {
        self.session.scalars.get(input).copied().unwrap_or(false)
    }

    /// Makes the inputs. A graph has no value of its own for an input.
    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<Self::Inputs> {
        let specs = self.model.config.execution_inputs().iter().zip(&self.session.inputs);
        specs
            .zip(joined)
            .map(|((spec, &point), joined)| {
                let joined = joined.ok_or_else(|| missing(spec))?;
                Ok((point, self.tensor(spec.data_type, joined)?))
            })
            .collect()
    }

    fn run(&self, inputs: Self::Inputs, wanted: &[usize]) -> Result<Vec<Tensor>> {
        let points: Vec<Point> =
            wanted.iter().filter_map(|&number| self.session.outputs.get(number).copied()).collect();
        self.model.placement.place(|place| self.session.session.run(&inputs, &points, place))
    }

    fn outputs(&self, outputs: Vec<Tensor>, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        let specs =
            wanted.iter().filter_map(|&number| self.model.config.model_outputs().get(number));
        specs
            .zip(outputs)
            .map(|(spec, tensor)| {
                if tensor.data_type() != Some(spec.data_type) {
                    return Err(other_type(&self.model.config, spec));
                }
                let shape = tensor.shape();
                let data = tensor.into_buffer(&shape)?;
                Ok(ModelOutput { shape, data })
            })
            .collect()
    }
}

pub(crate) struct SharedModel {
    pub model: Arc<TensorFlowModel>,
    pub sessions: Sessions,
}

impl Model for SharedModel {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let session = self.sessions.take(|| self.model.open_session())?;
        Ok(Box::new(TensorFlowInstance { model: self.model.clone(), session }))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        instances.iter().all(|spec| spec.kind != InstanceKind::Gpu)
    }
}
