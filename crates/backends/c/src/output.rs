//! An output of a response while its library fills it.

use std::{
    ffi::CString,
    sync::{Arc, OnceLock},
};

use galatea_backend::{OutputBuffer, batching::reshape};
use galatea_triton_c::text;
use galatea_types::{
    AlignedBlock, Buffer, DataType, Error, Memory, Result, Shape, Tensor, byte_strings,
};

use crate::{memory, outlet::Outlet, request::split};

/// An output of a response that is not sent yet.
pub(crate) struct OutputDraft {
    pub name: Arc<str>,
    pub data_type: DataType,
    pub shape: Shape,
    text: OnceLock<CString>,
    memory: Option<Draft>,
}

/// The memory of an output, and its size in bytes.
struct Draft {
    place: Place,
    byte_size: usize,
}

enum Place {
    /// Memory of the request's sender, if it has any.
    OfClient(OutputBuffer),
    /// Memory for an output that only the sequence needs, or nobody.
    Own(AlignedBlock),
}

impl OutputDraft {
    pub fn new(name: Arc<str>, data_type: DataType, shape: Shape) -> Self {
        Self { name, data_type, shape, text: OnceLock::new(), memory: None }
    }

    /// Returns the size of its buffer; 0 while it has none.
    pub fn byte_size(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.byte_size)
    }

    /// Returns the name as a text that lives as long as the output.
    pub fn text(&self) -> &CString {
        self.text.get_or_init(|| text::to_c(&self.name))
    }

    /// Gives the output its memory, and returns the address.
    ///
    /// # Errors
    /// It has memory already, there is not so much, or the client's memory is too small.
    pub fn allocate(&mut self, outlet: &Outlet, byte_size: u64) -> Result<*mut u8> {
        if self.memory.is_some() {
            let text = format!("output '{}' has its buffer already", self.name);
            return Err(Error::invalid_arg(text));
        }
        self.check_size(byte_size)?;
        let size = usize::try_from(byte_size).unwrap_or(usize::MAX);
        let place =
            match outlet.head.wants_output(&self.name) && !outlet.config.is_state(&self.name) {
                true => {
                    Place::OfClient(OutputBuffer::of(&outlet.head, &self.name, size, Memory::Host)?)
                }
                false => Place::Own(memory::block(byte_size)?),
            };
        let draft = self.memory.insert(Draft { place, byte_size: size });
        Ok(match &mut draft.place {
            Place::OfClient(buffer) => buffer.as_mut_slice().as_mut_ptr(),
            Place::Own(block) => block.as_mut_slice().as_mut_ptr(),
        })
    }

    /// Refuses sizes that do not fit the output, and those that there is no memory for, before any is taken.
    fn check_size(&self, byte_size: u64) -> Result<()> {
        /// Blocks up to this size are taken without a question: the allocator ends the program only beyond.
        const SMALL: u64 = 16 << 20;
        let expected = self.shape.byte_size(self.data_type);
        let expected = expected.and_then(|size| u64::try_from(size).ok());
        if self.data_type.byte_size().is_some() && expected != Some(byte_size) {
            return Err(Error::invalid_arg(format!(
                "output '{}' of type {} and shape {} needs {} bytes, not {byte_size}",
                self.name,
                self.data_type,
                self.shape,
                expected.map_or_else(|| "too many".to_owned(), |size| size.to_string()),
            )));
        }
        if byte_size > SMALL {
            let size = usize::try_from(byte_size).unwrap_or(usize::MAX);
            AlignedBlock::try_with_capacity(size).map_err(|_| {
                Error::unavailable(format!(
                    "{byte_size} bytes of memory for output '{}' cannot be allocated",
                    self.name
                ))
            })?;
        }
        Ok(())
    }

    /// Returns true if the client or its sequence gets the output.
    pub fn is_wanted(&self, outlet: &Outlet) -> bool {
        outlet.head.wants_output(&self.name) || outlet.config.is_state(&self.name)
    }

    /// Returns the output as a tensor for the client.
    ///
    /// # Errors
    /// It has no buffer, or its texts do not fill its shape.
    pub fn into_tensor(self, outlet: &Outlet) -> Result<Tensor> {
        let shape = self.shape;
        let model = outlet.config.name();
        let data = match self.memory.map(|memory| memory.place) {
            Some(Place::OfClient(buffer)) => buffer.into_buffer(),
            Some(Place::Own(block)) => block.freeze(),
            None if shape.element_count() == Some(0) => Buffer::default(),
            None => {
                return Err(Error::internal(format!(
                    "output '{}' of model '{model}' was sent without data",
                    self.name
                )));
            }
        };
        if self.data_type == DataType::Bytes {
            let texts = byte_strings::count(data.host()?);
            if texts.as_ref().ok() != shape.element_count().as_ref() {
                return Err(Error::internal(format!(
                    "the texts of output '{}' of model '{model}' do not fill its shape {shape}",
                    self.name
                )));
            }
        }
        let shape = for_client(shape, &self.name, outlet);
        Ok(Tensor { name: self.name, data_type: self.data_type, shape, data })
    }
}

/// Converts the dimensions of the model to those that the client expects.
fn for_client(shape: Shape, name: &str, outlet: &Outlet) -> Shape {
    let config = &outlet.config;
    let Some(spec) = config.output(name).filter(|spec| spec.reshape.is_some()) else {
        return shape;
    };
    let (batch, dims) = split(&shape, config.has_batching());
    let dims = reshape::to_client(spec, dims);
    batch.iter().copied().chain(dims.iter().copied()).collect()
}
