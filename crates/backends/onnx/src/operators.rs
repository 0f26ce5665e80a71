//! Explains what ONNX Runtime lacks for a model: an operator, a kernel for a type, or the type itself.

use std::path::Path;

use galatea_config::Diagnostic;
use galatea_protobuf_file::{
    FieldValue::{self, Bytes, Number},
    Reader, Result, Span,
};

/// Most characters of a name in a message.
const LONGEST: usize = 100;
/// Explains the library's message. Returns `None` if it is about something else.
pub(crate) fn lack(said: &str, path: &Path) -> Option<Diagnostic> {
    unregistered(said)
        .or_else(|| unknown(said))
        .or_else(|| without_kernel(said, path))
        .or_else(|| refused_type(said))
        .or_else(|| unregistered_type(said))
}

/// Explains `com.example:MyOp(-1) is not a registered function/op`.
fn unregistered(said: &str) -> Option<Diagnostic> {
    let (before, _) = said.split_once(" is not a registered function/op")?;
    let (name, _) = before.rsplit([' ']).next()?.rsplit_once('(')?;
    let (domain, operator) = name.split_once(':').unwrap_or(("", name));
    Some(without_operator(operator, domain, ""))
}

/// Explains `No Op registered for NoSuchOp with domain_version of 17`.
fn unknown(said: &str) -> Option<Diagnostic> {
    let (_, rest) = said.split_once("No Op registered for ")?;
    let (operator, rest) = rest.split_once(" with domain_version of ")?;
    let version = rest.split_whitespace().next().unwrap_or_default();
    // The node as the library writes it: `("name", Operator, "domain", -1)`.
    let domain =
        said.split_once(&format!(", {operator}, \"")).and_then(|(_, rest)| rest.split('"').next());
    Some(without_operator(operator, domain.unwrap_or_default(), version))
}

fn without_operator(operator: &str, domain: &str, version: &str) -> Diagnostic {
    let of_version = match version {
        "" => String::new(),
        version => format!(" in opset {}", shown(version)),
    };
    let operator = shown(operator);
    match domain {
        "" | "ai.onnx" => Diagnostic::error(format!("ONNX Runtime has no operator {operator}{of_version}")).with_advice(
            "export the model with an opset that has the operator, or name a newer ONNX Runtime with --onnxruntime-lib",
        ),
        "com.microsoft" => Diagnostic::error(format!(
            "ONNX Runtime has no operator {operator} of its domain 'com.microsoft'{of_version}"
        ))
        .with_advice("name an ONNX Runtime that has it with --onnxruntime-lib, or export the model without it"),
        domain => Diagnostic::error(format!(
            "ONNX Runtime has no operator {operator} of domain '{}'{of_version}",
            shown(domain)
        ))
        .with_advice(
            "a library brings operators of this domain: name its file in config.pbtxt, \
             `model_operations { op_library_filename: \"FILE\" }` (for ai.onnx.contrib that of onnxruntime-extensions), or \
             export the model without them",
        ),
    }
}

/// Explains `Could not find an implementation for Add(14) node with name 'a'`.
fn without_kernel(said: &str, path: &Path) -> Option<Diagnostic> {
    let (_, rest) = said.split_once("Could not find an implementation for ")?;
    let (signature, rest) = rest.split_once(" node with name '")?;
    let (operator, version) = signature.strip_suffix(')')?.rsplit_once('(')?;
    let node = rest.split('\'').next().unwrap_or_default();
    let of_type = match type_of_node(path, operator, node) {
        Some(name) => format!(" for {name}"),
        None => " for the type of its inputs".to_owned(),
    };
    let (operator, version, node) = (shown(operator), shown(version), shown(node));
    let at = if node.is_empty() { String::new() } else { format!(" (node '{node}')") };
    let text = format!("ONNX Runtime cannot compute {operator} of opset {version}{of_type}{at}");
    Some(Diagnostic::error(text).with_advice(another_backend(path)))
}

/// Explains `Type Error: Type 'tensor(bfloat16)' of input parameter (x) of operator (Einsum) in node () is invalid.`.
fn refused_type(said: &str) -> Option<Diagnostic> {
    let (_, rest) = said.split_once("Type Error: Type '")?;
    let (found, rest) = rest.split_once("' of ")?;
    let (_, rest) = rest.split_once(" of operator (")?;
    let operator = rest.split(')').next()?;
    let text = format!("operator {} takes no {}", shown(operator), shown(plain_type(found)));
    let advice = "ONNX has the operator for other types: convert the model, to FP32 for example";
    Some(Diagnostic::error(text).with_advice(advice))
}

/// Explains `MLDataType for: tensor(complex64) is not currently registered or supported`.
fn unregistered_type(said: &str) -> Option<Diagnostic> {
    let (_, rest) = said.split_once("MLDataType for: ")?;
    let (found, _) = rest.split_once(" is not currently registered")?;
    let text = format!("ONNX Runtime has no tensors of {}", shown(plain_type(found)));
    let advice = "export the model without them: complex numbers as two tensors of floats";
    Some(Diagnostic::error(text).with_advice(advice))
}

/// Names another backend that takes the file.
fn another_backend(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "OpenVINO computes some operators and types that ONNX Runtime does not: write `backend: \"openvino\"` and \
         `default_model_filename: \"{}\"`; or convert the model, to FP32 for example",
        shown(&file)
    )
}

fn plain_type(found: &str) -> &str {
    found.strip_prefix("tensor(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(found)
}

fn shown(name: &str) -> String {
    name.chars().flat_map(char::escape_debug).take(LONGEST).collect()
}

/// Returns the name of an element type of ONNX, in the form of configurations if they have one.
pub(crate) fn type_name(number: u64) -> Option<&'static str> {
    /// Names from number 1 on.
    const NAMES: &str = "FP32 UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FP16 FP64 UINT32 UINT64 COMPLEX64 COMPLEX128 BF16 \
         FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ UINT4 INT4 FLOAT4E2M1";
    NAMES.split(' ').nth(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// Returns the type of a node's first input if the file declares it. Reads the file twice and skips its weights.
fn type_of_node(path: &Path, operator: &str, node: &str) -> Option<&'static str> {
    let mut inputs = Vec::new();
    in_graph(path, |reader, field, value| {
        if let (1, Bytes(span)) = (field, value)
            && inputs.is_empty()
        {
            let found = read_node(reader, span)?;
            if found.operator == operator && found.name == node {
                inputs = found.inputs;
            }
        }
        Ok(())
    })
    .ok()?;
    let mut types = vec![0; inputs.len()];
    in_graph(path, |reader, field, value| {
        let Bytes(span) = value else { return Ok(()) };
        let (name, number) = match field {
            5 => read_weights(reader, span)?,
            11..=13 => read_declared(reader, span)?,
            _ => return Ok(()),
        };
        let fitting = inputs.iter().zip(&mut types).filter(|(input, _)| **input == name);
        fitting.for_each(|(_, known)| *known = number);
        Ok(())
    })
    .ok()?;
    types.into_iter().find_map(type_name)
}

/// Calls `each` with the fields of the graph of a model's file.
fn in_graph(
    path: &Path,
    mut each: impl FnMut(&mut Reader<'_>, u64, FieldValue) -> Result<()>,
) -> Result<()> {
    Reader::open(path)?.all_fields(|reader, field, value| match (field, value) {
        (7, Bytes(graph)) => reader.fields(graph, &mut each),
        _ => Ok(()),
    })
}

#[derive(Default)]
struct Node {
    inputs: Vec<String>,
    name: String,
    operator: String,
}

/// Most inputs of a node that are read.
const MOST_INPUTS: usize = 64;

fn read_node(reader: &mut Reader<'_>, span: Span) -> Result<Node> {
    let mut node = Node::default();
    reader.fields(span, |reader, field, value| {
        let Bytes(span) = value else { return Ok(()) };
        match field {
            1 if node.inputs.len() < MOST_INPUTS => node.inputs.push(reader.text(span)?),
            3 => node.name = reader.text(span)?,
            4 => node.operator = reader.text(span)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(node)
}

/// Reads name and element type of weights.
fn read_weights(reader: &mut Reader<'_>, span: Span) -> Result<(String, u64)> {
    let (mut name, mut number) = (String::new(), 0);
    reader.fields(span, |reader, field, value| {
        match (field, value) {
            (2, Number(found)) => number = found,
            (8, Bytes(span)) => name = reader.text(span)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, number))
}

/// Reads name and element type of a declared tensor.
fn read_declared(reader: &mut Reader<'_>, span: Span) -> Result<(String, u64)> {
    let (mut name, mut number) = (String::new(), 0);
    reader.fields(span, |reader, field, value| match (field, value) {
        (1, Bytes(span)) => {
            name = reader.text(span)?;
            Ok(())
        }
        (2, Bytes(kind)) => reader.fields(kind, |reader, field, value| match (field, value) {
            (1, Bytes(tensor)) => reader.fields(tensor, |_, field, value| {
                if let (1, Number(found)) = (field, value) {
                    number = found;
                }
                Ok(())
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    Ok((name, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, text: &str, advice: &str) {
        let lack = lack(said, Path::new("/nowhere")).expect(said);
        assert_eq!(lack.text, text);
        assert!(lack.advice.as_deref().is_some_and(|found| found.contains(advice)), "{lack:?}");
    }

    #[test]
    fn operator_errors_of_the_library_get_advice() {
        check(
            "onnx runtime error 1: Load model from /m/1/model.onnx failed:Fatal error: com.example:MyOp(-1) is not a registered function/op",
            "ONNX Runtime has no operator MyOp of domain 'com.example'",
            "op_library_filename",
        );
        let node = "failed:This is an invalid model. In Node, (\"n\", NoSuchOp, \"\", -1) : (\"x\": tensor(float),) -> (\"y\": \
                    tensor(float),) , Error No Op registered for NoSuchOp with domain_version of 17";
        check(node, "ONNX Runtime has no operator NoSuchOp in opset 17", "--onnxruntime-lib");
        let node = node.replace("\"\", -1", "\"com.microsoft\", -1");
        let text =
            "ONNX Runtime has no operator NoSuchOp of its domain 'com.microsoft' in opset 17";
        check(&node, text, "--onnxruntime-lib");
        check(
            "onnx runtime error 9: Could not find an implementation for Add(14) node with name 'a'",
            "ONNX Runtime cannot compute Add of opset 14 for the type of its inputs (node 'a')",
            "backend: \"openvino\"",
        );
        check(
            "Type Error: Type 'tensor(bfloat16)' of input parameter (x) of operator (Einsum) in node () is invalid.",
            "operator Einsum takes no bfloat16",
            "convert the model",
        );
        check(
            "Exception during loading: MLDataType for: tensor(complex64) is not currently registered or supported",
            "ONNX Runtime has no tensors of complex64",
            "two tensors of floats",
        );
    }

    #[test]
    fn unrelated_errors_get_no_advice() {
        for said in [
            "",
            "Protobuf parsing failed.",
            " is not a registered function/op",
            "No Op registered for x",
            "MLDataType for: ",
        ] {
            assert_eq!(lack(said, Path::new("/nowhere")), None, "{said}");
        }
        assert_eq!((type_name(0), type_name(16), type_name(99)), (None, Some("BF16"), None));
    }
}
