//! The start of an instance, which is warmed up before it counts as one that works.

use galatea_backend::ModelInstance;
use galatea_types::Result;

use super::{
    context::ModelContext,
    slot::{InstanceSlot, discard},
    warm_up::warm_up,
};

/// Starts an instance and warms it up: from then on it counts as one that works.
pub(super) fn start(slot: &InstanceSlot, context: &ModelContext) -> Result<Box<dyn ModelInstance>> {
    let mut instance = slot.new_instance(&context.name, &*context.model)?;
    if let Err(error) = warm_up(slot, context, &mut *instance) {
        discard(instance);
        return Err(error);
    }
    slot.queue.instance_started(slot.index);
    Ok(instance)
}
