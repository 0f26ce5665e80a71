//! Options of a session. TensorFlow reads them as a `ConfigProto`.

/// Settings of a session. 0 and `None` leave the choice to TensorFlow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionOptions {
    /// Threads that compute one operation together.
    pub intra_op_threads: i32,
    /// Threads that compute operations side by side. Negative: only the caller's thread.
    pub inter_op_threads: i32,
    /// True if the second kind of threads belongs to the session alone.
    pub has_own_threads: bool,
    /// True if operations without a kernel for their device run on another one.
    pub soft_placement: bool,
    /// Value of `optimization.graph.level`: below 0 nothing is optimized, above it XLA compiles parts of the graph.
    pub graph_level: Option<i32>,
}

impl SessionOptions {
    /// Encodes the options in the wire form.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // No GPUs: an entry of the map `device_count`.
        let mut no_gpu = Vec::new();
        message(&mut no_gpu, 1, b"GPU");
        number(&mut no_gpu, 2, 0);
        message(&mut bytes, 1, &no_gpu);
        number(&mut bytes, 2, self.intra_op_threads);
        number(&mut bytes, 5, self.inter_op_threads);
        number(&mut bytes, 7, self.soft_placement.into());
        number(&mut bytes, 9, self.has_own_threads.into());
        if let Some(level) = self.graph_level {
            message(&mut bytes, 10, &graph_options(level));
        }
        bytes
    }
}

/// Encodes `GraphOptions` of a level.
fn graph_options(level: i32) -> Vec<u8> {
    let mut optimizer = Vec::new();
    match level {
        // L0
        ..0 => number(&mut optimizer, 3, -1),
        0 => {}
        // ON_1, ON_2
        level => number(&mut optimizer, 5, level.min(2)),
    }
    let mut options = Vec::new();
    message(&mut options, 3, &optimizer);
    options
}

/// Returns the `RunOptions` that keep a run on the calling thread.
pub(super) fn on_calling_thread() -> Vec<u8> {
    let mut bytes = Vec::new();
    number(&mut bytes, 3, -1);
    bytes
}

fn number(bytes: &mut Vec<u8>, field: u64, value: i32) {
    varint(bytes, field << 3);
    varint(bytes, i64::from(value).cast_unsigned());
}

fn message(bytes: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(bytes, field << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_encoded_like_protobuf() {
        let options = SessionOptions {
            intra_op_threads: 300,
            soft_placement: true,
            graph_level: Some(-1),
            ..SessionOptions::default()
        };
        let mut expected = vec![0x0a, 7, 0x0a, 3, b'G', b'P', b'U', 0x10, 0];
        expected.extend([0x10, 0xac, 0x02, 0x28, 0, 0x38, 1, 0x48, 0]);
        expected.extend([0x52, 13, 0x1a, 11, 0x18]);
        expected.extend([0xff; 9]);
        expected.push(1);
        assert_eq!(options.to_bytes(), expected);
        assert_eq!(on_calling_thread().first(), Some(&0x18));
    }
}
