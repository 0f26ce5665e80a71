//! The loaded model as the server holds it: what makes instances.

use std::sync::Arc;

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_config::InstanceKind;
use galatea_types::Result;

use crate::{instance::TensorFlowInstance, model::TensorFlowModel, sessions::Sessions};

/// Instances share the model behind it.
pub(crate) struct SharedModel {
    pub model: Arc<TensorFlowModel>,
    pub sessions: Sessions,
}

impl Model for SharedModel {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let session = self.sessions.take(|| self.model.open_session())?;
        Ok(Box::new(TensorFlowInstance::new(self.model.clone(), session)))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        instances.iter().all(|spec| spec.kind != InstanceKind::Gpu)
    }
}
