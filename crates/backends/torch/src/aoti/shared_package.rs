//! The loaded package as the server holds it: what makes instances.

use std::sync::Arc;

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_types::Result;

use super::{instance::PackageInstance, model::PackageModel};
use crate::model::place_of;

/// What the server holds: instances share the model behind it.
pub(crate) struct SharedPackage(pub Arc<PackageModel>);

impl Model for SharedPackage {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let container = self.0.container(place_of(spec))?;
        Ok(Box::new(PackageInstance::new(self.0.clone(), container)))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        self.0.has_room(instances)
    }
}
