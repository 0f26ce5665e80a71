//! Finds out if a SavedModel has variables, whose values lie in a folder beside it.

use std::path::Path;

use galatea_protobuf_file::{FieldValue::Bytes, Reader, Result, Span};

/// Operators that make a variable: those of TensorFlow 2, and of TensorFlow 1.
const VARIABLES: [&str; 3] = ["VarHandleOp", "VariableV2", "Variable"];

/// Returns true if a graph of the file has variables and operations that restore them from files.
pub(crate) fn restores_variables(path: &Path) -> Result<bool> {
    read_variables(Reader::open(path)?)
}

pub(super) fn read_variables(mut reader: Reader<'_>) -> Result<bool> {
    let mut is_any = false;
    reader.all_fields(|reader, field, value| {
        if let (2, Bytes(span)) = (field, value) {
            let (mut has_saver, mut has_variable) = (false, false);
            reader.fields(span, |reader, field, value| {
                match (field, value) {
                    (2, Bytes(span)) => {
                        has_variable |= has_variable_node(reader, span)?;
                    }
                    (3, Bytes(_)) => has_saver = true,
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

fn has_variable_node(reader: &mut Reader<'_>, graph: Span) -> Result<bool> {
    let mut has_variable = false;
    reader.fields(graph, |reader, field, value| {
        let (1, Bytes(node)) = (field, value) else { return Ok(()) };
        reader.fields(node, |reader, field, value| {
            if let (2, Bytes(span)) = (field, value) {
                has_variable |= VARIABLES.contains(&reader.text(span)?.as_str());
            }
            Ok(())
        })
    })?;
    Ok(has_variable)
}
