//! Checks of tensors for all libraries, and texts in the wire form.

use galatea_types::{Code, DataType, Error, Result, Shape, byte_strings};

/// Checks that `data` has exactly the elements of a shape, of a type of a fixed size, and has their alignment.
///
/// # Errors
/// When it does not.
pub fn check_over(data: &[u8], dims: &[i64], data_type: DataType) -> Result<()> {
    let size = data_type.byte_size().unwrap_or(1);
    let shape = Shape::from(dims);
    let is_aligned = data.is_empty() || data.as_ptr().addr().is_multiple_of(size);
    if shape.byte_size(data_type) == Some(data.len()) && is_aligned {
        return Ok(());
    }
    Err(no_fit(data, &shape, data_type))
}

/// Makes the error of bytes that do not fit a tensor.
pub fn no_fit(data: &[u8], shape: &Shape, data_type: DataType) -> Error {
    let length = data.len();
    Error::internal(format!(
        "a tensor of shape {shape} and type {data_type} cannot lie over {length} bytes"
    ))
}

/// Checks that a shape has as many elements as there are texts.
///
/// # Errors
/// When the numbers differ.
pub fn check_texts(texts: &[&[u8]], dims: &[i64]) -> Result<()> {
    let (shape, count) = (Shape::from(dims), texts.len());
    if shape.element_count() == Some(count) {
        return Ok(());
    }
    Err(Error::internal(format!("{count} texts do not fill shape {shape}")))
}

/// Appends a text of an output in the wire form: a `u32` length and its bytes.
///
/// # Errors
/// When it is too long.
pub fn push_text(wire: &mut Vec<u8>, text: &[u8]) -> Result<()> {
    byte_strings::push(wire, text)
        .map_err(|_| Error::internal("an output text is longer than 4 GiB"))
}

/// Makes an empty list with room for the elements of a model's tensor (`what`). That may be more than memory allows.
///
/// # Errors
/// When there is not enough memory.
pub fn room_for<T>(count: usize, what: &str) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|cause| {
        let text = format!("there is no memory for the texts of {what}");
        Error::new(Code::Exhausted, text).with_source(cause)
    })?;
    Ok(list)
}
