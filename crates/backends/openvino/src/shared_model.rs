//! The loaded model as the server holds it: what makes instances.

use std::sync::Arc;

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_config::InstanceKind;
use galatea_types::Result;

use crate::{instance::OpenVinoInstance, model::OpenVinoModel};

/// Instances share the model behind it.
pub(crate) struct SharedModel(pub Arc<OpenVinoModel>);

impl Model for SharedModel {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(OpenVinoInstance::new(self.0.clone())?))
    }

    /// The streams were made for so many.
    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        let model = &self.0;
        let depends = model.settings.streams.is_none() && model.settings.hint.is_none();
        let is_number = u32::try_from(instances.len()).is_ok_and(|n| n == model.instances);
        let is_cpu = instances.iter().all(|spec| spec.kind != InstanceKind::Gpu);
        is_cpu && (is_number || !depends)
    }
}
