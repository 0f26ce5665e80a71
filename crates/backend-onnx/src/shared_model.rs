//! The loaded model as the server holds it: what makes instances.

use std::sync::Arc;

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_types::Result;

use crate::{
    instance::OnnxInstance,
    model::{Device, OnnxModel, no_instance},
};

/// Instances share the model behind it.
pub(crate) struct SharedModel(pub Arc<OnnxModel>);

impl Model for SharedModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let sessions = self.0.sessions.get(&Device::of(spec));
        let sessions = sessions.cloned().ok_or_else(|| no_instance(&self.0.config))?;
        Ok(Box::new(OnnxInstance::new(self.0.clone(), sessions)))
    }
}
