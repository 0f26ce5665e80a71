//! Models that consist only of a function to make their instances.

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_types::Result;

struct Maker<F> {
    make: F,
    computes_on_any_thread: bool,
}

/// Returns the model whose instances `make` makes.
pub(crate) fn model<I: ModelInstance + 'static>(
    make: impl Fn(&InstanceSpec) -> Result<I> + Send + Sync + 'static,
) -> Result<Box<dyn Model>> {
    computing_model(false, make)
}

/// Returns such a model with instances that may compute on any thread.
pub(crate) fn computing_model<I: ModelInstance + 'static>(
    computes_on_any_thread: bool,
    make: impl Fn(&InstanceSpec) -> Result<I> + Send + Sync + 'static,
) -> Result<Box<dyn Model>> {
    Ok(Box::new(Maker { make, computes_on_any_thread }))
}

impl<I, F> Model for Maker<F>
where
    I: ModelInstance + 'static,
    F: Fn(&InstanceSpec) -> Result<I> + Send + Sync,
{
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new((self.make)(spec)?))
    }

    fn computes_on_any_thread(&self) -> bool {
        self.computes_on_any_thread
    }
}
