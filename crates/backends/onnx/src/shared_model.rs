//! The loaded model as the server holds it: what makes instances.

use std::{collections::BTreeSet, sync::Arc};

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_types::Result;

use crate::{
    instance::OnnxInstance,
    model::{Device, OnnxModel, no_instance},
    sessions::SessionUse,
};

/// Instances share the model behind it.
pub(crate) struct SharedModel(pub Arc<OnnxModel>);

impl Model for SharedModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let sessions = self.0.sessions.get(&Device::of(spec));
        let sessions = sessions.cloned().ok_or_else(|| no_instance(&self.0.config))?;
        Ok(Box::new(OnnxInstance::new(self.0.clone(), SessionUse::of(sessions))))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        let devices: BTreeSet<Device> = instances.iter().map(Device::of).collect();
        devices.iter().eq(self.0.sessions.keys())
    }

    fn computes_on_any_thread(&self) -> bool {
        !self.0.has_providers && self.0.sessions.keys().eq([&Device::Cpu])
    }
}
