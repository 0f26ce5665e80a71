//! The compiled description of the `ModelConfig` message, which drives the parser and the printer.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor, Value};

/// Returns the descriptor of `inference.ModelConfig`; `None` only when the crate was built with broken descriptors.
pub(crate) fn model_config() -> Option<MessageDescriptor> {
    static DESCRIPTOR: LazyLock<Option<MessageDescriptor>> = LazyLock::new(|| {
        let pool = DescriptorPool::decode(galatea_proto::FILE_DESCRIPTOR_SET).ok()?;
        pool.get_message_by_name("inference.ModelConfig")
    });
    DESCRIPTOR.clone()
}

/// Converts a number to the value of a field of this kind; `None` when it is out of range.
pub(crate) fn integer(kind: &Kind, number: i128) -> Option<Value> {
    let value = match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => number.try_into().map(Value::I32),
        Kind::Enum(_) => number.try_into().map(Value::EnumNumber),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => number.try_into().map(Value::I64),
        Kind::Uint32 | Kind::Fixed32 => number.try_into().map(Value::U32),
        _ => number.try_into().map(Value::U64),
    };
    value.ok()
}

/// Reads the description now, which takes some milliseconds; otherwise the first configuration waits for it.
pub fn prepare() {
    let _ = model_config();
}

/// Most bytes of a configuration; one of a thousand tensors has about 0.1 MiB.
pub(crate) const MAX_SOURCE_SIZE: usize = 4 << 20;

/// Most members of all lists and maps of a configuration together. A short text could have millions of them, and each costs many
/// times its text in memory.
pub(crate) const MAX_ELEMENTS: usize = 1 << 16;

/// The error message for a [`model_config`] of `None`.
pub(crate) const BROKEN: &str = "the built-in description of ModelConfig cannot be read";

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_has_all_fields() {
        let descriptor = super::model_config().unwrap();
        assert_eq!(descriptor.fields().count(), 25);
    }
}
