//! Whether a SavedModel has variables, whose values lie in a folder beside it.

use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use galatea_protobuf_file::{Field, FieldValue, ReadError, Reader, Span};

/// Operators that make a variable: of TensorFlow 2, and of TensorFlow 1.
const VARIABLES: [&str; 3] = ["VarHandleOp", "VariableV2", "Variable"];

/// Whether a graph of the file has variables and what restores them from files.
pub(crate) fn restores_variables(path: &Path) -> Result<bool, ReadError> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    read_variables(file, length)
}

pub(super) fn read_variables(input: impl Read + Seek, length: u64) -> Result<bool, ReadError> {
    let mut is_any = false;
    Reader::new(input).fields(Span { end: length }, |reader, field| {
        if let Field { number: 2, value: FieldValue::Bytes(span) } = field {
            let (mut has_saver, mut has_variable) = (false, false);
            reader.fields(span, |reader, field| {
                match field {
                    Field { number: 2, value: FieldValue::Bytes(span) } => {
                        has_variable |= has_variable_node(reader, span)?;
                    }
                    Field { number: 3, value: FieldValue::Bytes(_) } => has_saver = true,
                    _ => {}
                }
                Ok(())
            })?;
            is_any |= has_saver && has_variable;
        }
        Ok(())
    })?;
    Ok(is_any)
}

fn has_variable_node<R: Read + Seek>(
    reader: &mut Reader<R>,
    graph: Span,
) -> Result<bool, ReadError> {
    let mut has_variable = false;
    reader.fields(graph, |reader, field| {
        let Field { number: 1, value: FieldValue::Bytes(node) } = field else { return Ok(()) };
        reader.fields(node, |reader, field| {
            if let Field { number: 2, value: FieldValue::Bytes(span) } = field {
                has_variable |= VARIABLES.contains(&reader.text(span)?.as_str());
            }
            Ok(())
        })
    })?;
    Ok(has_variable)
}
