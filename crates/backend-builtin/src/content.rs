use galatea_types::{Error, Result, Tensor};

/// Checks that a tensor holds as many elements as its shape says.
pub(crate) fn check_content(tensor: &Tensor) -> Result<()> {
    let is_whole = match tensor.shape.byte_size(tensor.data_type) {
        Some(size) => size == tensor.data.len(),
        None => texts(&tensor.data).map(|t| t.len()) == tensor.shape.element_count(),
    };
    if is_whole {
        return Ok(());
    }
    let (name, size) = (&tensor.name, tensor.data.len());
    let (data_type, shape) = (tensor.data_type, &tensor.shape);
    Err(Error::invalid_arg(format!("input '{name}' of {size} bytes is not {data_type} {shape}")))
}

/// The elements of a `BYTES` tensor; `None` when the lengths do not come out even.
pub(crate) fn texts(mut data: &[u8]) -> Option<Vec<&[u8]>> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (text, rest) = rest.split_at_checked(length)?;
        texts.push(text);
        data = rest;
    }
    data.is_empty().then_some(texts)
}
