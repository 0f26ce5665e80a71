//! Keys that are equal for equal requests.

use std::io::{self, Read};

use galatea_types::{CorrelationId, InferRequest, Tensor};
use ring::digest::{Context, SHA256};

use crate::wire::put_parameter;

/// The version of the form of keys. Change it when the key of a request changes.
const FORM: &[u8] = b"galatea response 1";

/// The models that share keys: a model as it was loaded. Keys of different scopes are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope([u8; 32]);

impl Scope {
    /// Makes a scope from everything that defines the model, part by part.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(FORM);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        Self(bytes_of(context))
    }

    /// Makes a scope from a stream, read to its end.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn of_stream(mut stream: impl Read) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let mut part = vec![0; 1 << 16];
        loop {
            let length = match stream.read(&mut part) {
                Ok(0) => return Ok(Self(bytes_of(context))),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            context.update(part.get(..length).unwrap_or_default());
        }
    }

    /// Returns the bytes, to be a part of another scope.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The key of a response: a SHA-256 of all parts of the request that may change the response. Requests with equal keys are equal,
/// as no two inputs with the same SHA-256 are known.
///
/// It covers the model and its version as loaded; inputs with names, data types, shapes and bytes; the wanted outputs;
/// parameters; the sequence. It leaves out what cannot change the result: id, priority, time-out, the place of the outputs, the
/// sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// Makes the key of a request in this scope; `None` when the host cannot read an input.
    pub fn of(scope: &Scope, request: &InferRequest) -> Option<Self> {
        let mut inputs: Vec<(&Tensor, &[u8])> = Vec::with_capacity(request.inputs.len());
        for input in &request.inputs {
            inputs.push((input, input.data.host().ok()?));
        }
        // Clients send inputs in any order. Inputs of the same name keep their order.
        if !inputs.is_sorted_by(|(a, _), (b, _)| a.name <= b.name) {
            inputs.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        }
        let mut context = Context::new(&SHA256);
        context.update(&scope.0);
        context.update(&description(request, &inputs));
        // The description has the length of each input.
        inputs.iter().for_each(|(_, data)| context.update(data));
        Some(Self(bytes_of(context)))
    }

    /// Makes a key from bytes, for tests and stores.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns all of its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns eight bytes of it, as evenly distributed as the whole.
    pub fn short(&self) -> u64 {
        let [first, ..] = self.0.as_chunks().0 else { return 0 };
        u64::from_le_bytes(*first)
    }
}

/// Writes 64 hexadecimal digits.
impl std::fmt::Display for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

fn bytes_of(context: Context) -> [u8; 32] {
    // A SHA-256 has 32 bytes.
    context.finish().as_ref().try_into().unwrap_or([0; 32])
}

/// Describes a request without the bytes of its inputs. Lists and texts begin with their length, so no two requests read the
/// same.
fn description(request: &InferRequest, inputs: &[(&Tensor, &[u8])]) -> Vec<u8> {
    let mut text = Vec::with_capacity(256);
    number(&mut text, inputs.len() as u64);
    for (input, data) in inputs {
        string(&mut text, &input.name);
        string(&mut text, input.data_type.protocol_name());
        number(&mut text, input.shape.len() as u64);
        input.shape.iter().for_each(|dim| text.extend_from_slice(&dim.to_le_bytes()));
        number(&mut text, data.len() as u64);
    }
    number(&mut text, request.outputs.len() as u64);
    request.outputs.iter().for_each(|output| string(&mut text, output));
    number(&mut text, request.parameters.len() as u64);
    for (name, value) in &request.parameters {
        string(&mut text, name);
        put_parameter(&mut text, value);
    }
    sequence(&mut text, request);
    text
}

fn sequence(text: &mut Vec<u8>, request: &InferRequest) {
    match &request.correlation_id {
        CorrelationId::None => text.push(0),
        CorrelationId::Number(id) => {
            text.push(1);
            number(text, *id);
        }
        CorrelationId::Text(id) => {
            text.push(2);
            string(text, id);
        }
    }
    text.extend_from_slice(&[request.sequence_start.into(), request.sequence_end.into()]);
}

fn number(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(&number.to_le_bytes());
}

fn string(text: &mut Vec<u8>, string: &str) {
    number(text, string.len() as u64);
    text.extend_from_slice(string.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use galatea_types::{DataType, ParameterValue};

    use super::*;

    fn scope(name: &str) -> Scope {
        Scope::of([name.as_bytes()])
    }

    fn request() -> InferRequest {
        InferRequest {
            inputs: vec![
                Tensor::new("A", DataType::Int32, [1, 2], vec![1; 8]),
                Tensor::new("B", DataType::Int32, [1, 2], vec![2; 8]),
            ],
            ..InferRequest::new("m")
        }
    }

    fn key_of(request: &InferRequest) -> CacheKey {
        CacheKey::of(&scope("m"), request).expect("in host memory")
    }

    fn changed(change: impl FnOnce(&mut InferRequest)) -> CacheKey {
        let mut request = request();
        change(&mut request);
        key_of(&request)
    }

    #[test]
    fn everything_that_changes_a_response_changes_the_key() {
        let keys = [
            key_of(&request()),
            CacheKey::of(&scope("n"), &request()).expect("in host memory"),
            changed(|r| r.inputs[0].shape = [2, 1].into()),
            changed(|r| r.inputs[0].data_type = DataType::Uint32),
            changed(|r| r.inputs[0].data = vec![3; 8].into()),
            changed(|r| r.inputs[0].name = "C".into()),
            changed(|r| r.inputs.truncate(1)),
            changed(|r| r.inputs.truncate(0)),
            changed(|r| r.outputs = vec!["X".into()]),
            changed(|r| r.outputs = vec!["Y".into()]),
            changed(|r| r.parameters = vec![("p".into(), ParameterValue::Int(1))]),
            changed(|r| r.parameters = vec![("p".into(), ParameterValue::Uint(1))]),
            changed(|r| r.parameters = vec![("p".into(), ParameterValue::Bool(true))]),
            changed(|r| r.parameters = vec![("p".into(), ParameterValue::Double(1.0))]),
            changed(|r| r.parameters = vec![("p".into(), ParameterValue::String("1".into()))]),
            changed(|r| r.parameters = vec![("q".into(), ParameterValue::Int(1))]),
            changed(|r| r.correlation_id = CorrelationId::Number(1)),
            changed(|r| r.correlation_id = CorrelationId::Text("1".into())),
            changed(|r| r.sequence_start = true),
            changed(|r| r.sequence_end = true),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn the_key_tells_apart_the_bytes_of_neighbouring_inputs() {
        let of = |a: usize, b: usize| {
            changed(|r| {
                r.inputs[0].data = vec![7; a].into();
                r.inputs[1].data = vec![7; b].into();
            })
        };
        assert_ne!(of(3, 5), of(5, 3));
    }

    #[test]
    fn fields_that_do_not_change_a_response_do_not_change_the_key() {
        for key in [
            changed(|r| r.id = "7".into()),
            changed(|r| r.priority = 3),
            changed(|r| r.timeout = Some(Duration::from_secs(1))),
            changed(|r| r.inputs.reverse()),
            changed(|r| r.model_name = Arc::from("named by the scope")),
        ] {
            assert_eq!(key, key_of(&request()));
        }
    }

    #[test]
    fn a_scope_tells_apart_its_parts() {
        let of = |parts: &[&[u8]]| Scope::of(parts.iter().copied());
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab"]), of(&[b"ab", b""]));
    }

    /// Servers of different builds share entries, so the form of a key may not change unseen.
    #[test]
    fn keys_are_the_same_in_every_build() {
        let key = key_of(&request());
        assert_eq!(key.to_string().len(), 64);
        assert_eq!(key.to_string(), KNOWN);
        assert_eq!(key.short().to_le_bytes(), key.as_bytes()[..8]);
        assert_eq!(CacheKey::from_bytes(*key.as_bytes()), key);
    }

    const KNOWN: &str = "a0ef284b9d72da4b46359c817cce895d39b5e3d195c6c5973d80950431b955ff";
}
