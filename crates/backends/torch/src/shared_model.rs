//! The loaded model as the server holds it: what makes instances.

use std::sync::Arc;

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_types::Result;

use crate::{
    instance::TorchInstance,
    model::{TorchModel, place_of},
};

/// What the server holds: instances share the model behind it.
pub(crate) struct SharedModel(pub Arc<TorchModel>);

impl Model for SharedModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let module = self.0.module(place_of(spec))?;
        Ok(Box::new(TorchInstance::new(self.0.clone(), module)))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        self.0.has_places(instances)
    }
}
