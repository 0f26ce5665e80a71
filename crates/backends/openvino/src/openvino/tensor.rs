//! Tensors of the library.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use bytes::Bytes;
use galatea_native_library::{Owned, buffer_over, check_over, check_texts};
use galatea_types::{AlignedBlock, Buffer, DataType, Error, Result, Shape};

use super::{
    element,
    functions::{RawShape, Tensor as RawTensor},
    library::{Library, non_null, owned},
    texts,
};

/// Address of an input without elements, which is not null.
const NOWHERE: *mut c_void = ptr::without_provenance_mut(64);
/// Most dimensions of a tensor. A larger number means damaged data.
const MOST_DIMENSIONS: i64 = 256;

/// A tensor in host memory, in the form the library works with.
pub(crate) struct Tensor {
    library: Arc<Library>,
    tensor: Owned<RawTensor>,
    /// Memory of the tensor, if it is not its own.
    _backing: Option<Bytes>,
}

// SAFETY: a tensor is written to by the run it is set for alone, which is over before it changes hands; the library
// counts references atomically.
unsafe impl Send for Tensor {}

impl Tensor {
    /// # Safety
    /// `tensor` must be null or a tensor of host memory that nobody else frees.
    pub(super) unsafe fn adopt(library: &Arc<Library>, tensor: *mut RawTensor) -> Result<Self> {
        // SAFETY: the caller's word.
        let tensor = unsafe { owned(tensor, library.functions.free_tensor) }?;
        Ok(Self { library: library.clone(), tensor, _backing: None })
    }

    /// Makes a tensor over `data`, which is not copied. `data` must hold exactly `dims` elements of a fixed-size type and
    /// start on a multiple of the element's size.
    pub fn over(
        library: &Arc<Library>,
        data: Bytes,
        dims: &[i64],
        data_type: DataType,
    ) -> Result<Self> {
        check_over(&data, dims, data_type)?;
        let address: *mut c_void = match data.is_empty() {
            true => NOWHERE,
            false => data.as_ptr().cast_mut().cast(),
        };
        let mut dims = dims.to_vec();
        let mut tensor = ptr::null_mut();
        let (make, number) = (library.functions.tensor_over, element::number_of(data_type));
        // SAFETY: size and alignment are checked above; the memory lives in `_backing` as long as the tensor. The
        // library only reads inputs, so handing out a mutable pointer is sound. The shape is copied in the call.
        library.check(unsafe { make(number, raw(&mut dims), address, &mut tensor) })?;
        // SAFETY: made just now.
        let tensor = unsafe { Self::adopt(library, tensor) }?;
        Ok(Self { _backing: Some(data), ..tensor })
    }

    /// Makes a tensor of the library's own memory, to be written into.
    pub fn with_room(library: &Arc<Library>, dims: &[i64], data_type: DataType) -> Result<Self> {
        let mut dims = dims.to_vec();
        let mut tensor = ptr::null_mut();
        let (make, number) = (library.functions.create_tensor, element::number_of(data_type));
        // SAFETY: the place is valid, the shape is copied in the call.
        library.check(unsafe { make(number, raw(&mut dims), &mut tensor) })?;
        // SAFETY: made just now.
        unsafe { Self::adopt(library, tensor) }
    }

    /// Makes a tensor of texts, copied into the library. `dims` must have as many elements as `texts`.
    pub fn of_texts(library: &Arc<Library>, texts: &[&[u8]], dims: &[i64]) -> Result<Self> {
        check_texts(texts, dims)?;
        let terminated = texts::terminated(texts)?;
        let pointers: Vec<*const c_char> = terminated.iter().map(|text| text.as_ptr()).collect();
        let mut dims = dims.to_vec();
        let mut tensor = ptr::null_mut();
        let make = library.functions.tensor_of_texts;
        // SAFETY: as many terminated texts as said, which live for the call, in which they are copied.
        library.check(unsafe {
            make(pointers.as_ptr(), pointers.len(), raw(&mut dims), &mut tensor)
        })?;
        // SAFETY: made just now.
        unsafe { Self::adopt(library, tensor) }
    }

    pub(super) fn as_ptr(&self) -> *const RawTensor {
        self.tensor.as_ptr()
    }

    /// Returns element type and shape. The type is `None` if no request can carry it.
    pub fn describe(&self) -> Result<(Option<DataType>, Shape)> {
        let functions = &self.library.functions;
        let mut number: c_int = 0;
        let mut shape = RawShape { rank: 0, dims: ptr::null_mut() };
        // SAFETY: the tensor is alive, the place is valid.
        self.library.check(unsafe { (functions.tensor_type)(self.as_ptr(), &mut number) })?;
        let data_type = element::from_number(number);
        // SAFETY: as above.
        let asked = unsafe { (functions.tensor_shape)(self.as_ptr(), &mut shape) };
        if let Err(error) = self.library.check(asked) {
            // The library returns no shape if there are no dimensions.
            return match self.is_one_element(data_type)? {
                true => Ok((data_type, Shape::scalar())),
                false => Err(error),
            };
        }
        let dims = dims_of(&shape);
        // SAFETY: filled by the library just now, freed once.
        self.library.check(unsafe { (functions.free_shape)(&mut shape) })?;
        Ok((data_type, dims?))
    }

    fn is_one_element(&self, data_type: Option<DataType>) -> Result<bool> {
        let size = data_type.map(|data_type| data_type.byte_size().unwrap_or(texts::SIZE));
        Ok(size == Some(self.byte_size()?))
    }

    pub fn byte_size(&self) -> Result<usize> {
        let mut size = 0;
        let get = self.library.functions.tensor_byte_size;
        // SAFETY: the tensor is alive, the place valid.
        self.library.check(unsafe { get(self.as_ptr(), &mut size) })?;
        Ok(size)
    }

    fn data(&self) -> Result<NonNull<u8>> {
        let mut data = ptr::null_mut();
        let get = self.library.functions.tensor_data;
        // SAFETY: the tensor is alive, the place valid.
        self.library.check(unsafe { get(self.as_ptr(), &mut data) })?;
        non_null(data.cast())
    }

    /// Returns the bytes of a tensor of fixed-size elements. `describe` gives the `byte_size`. The tensor becomes their
    /// owner: no run may write into it any more.
    pub fn into_buffer(self, byte_size: usize) -> Result<Buffer> {
        self.has_size(byte_size)?;
        if byte_size == 0 {
            return Ok(Buffer::default());
        }
        let data = self.data()?;
        // SAFETY: the tensor holds this many bytes as long as it lives; nobody writes to them.
        Ok(unsafe { buffer_over(self, data, byte_size) })
    }

    /// Copies the bytes, as [`Tensor::into_buffer`] returns them.
    pub fn copied(&self, byte_size: usize) -> Result<Buffer> {
        self.has_size(byte_size)?;
        if byte_size == 0 {
            return Ok(Buffer::default());
        }
        let data = self.data()?;
        // SAFETY: as many bytes as the tensor has, which nothing writes to now.
        let bytes = unsafe { slice::from_raw_parts(data.as_ptr(), byte_size) };
        let mut block = AlignedBlock::with_capacity(byte_size);
        block.extend_from_slice(bytes);
        Ok(block.freeze())
    }

    /// Replaces the bytes of a tensor of the library's own memory, of fixed-size elements, which no run reads now.
    pub fn fill(&mut self, data: &[u8]) -> Result<()> {
        self.has_size(data.len())?;
        if !data.is_empty() {
            let own = self.data()?;
            // SAFETY: as many bytes as the tensor has, which is not lent to anyone.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), own.as_ptr(), data.len()) };
        }
        Ok(())
    }

    fn has_size(&self, byte_size: usize) -> Result<()> {
        match self.byte_size()? {
            size if size == byte_size => Ok(()),
            size => Err(Error::internal(format!(
                "OpenVINO has {size} bytes where the shape of the output has {byte_size}"
            ))),
        }
    }

    /// Returns the elements of a tensor of `count` texts in the wire form.
    pub fn to_length_prefixed(&self, count: usize) -> Result<Vec<u8>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if !self.library.has_texts {
            let version = &self.library.version;
            return Err(Error::unsupported(format!(
                "texts of OpenVINO {version} cannot be read: they have another form than those of GCC's C++ library"
            )));
        }
        self.has_size(count.saturating_mul(texts::SIZE))?;
        let data = self.data()?;
        // SAFETY: the tensor holds `count` texts, whose form was found to be the known one; it outlives the call.
        unsafe { texts::to_length_prefixed(data, count) }
    }
}

fn raw(dims: &mut Vec<i64>) -> RawShape {
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    RawShape { rank, dims: dims.as_mut_ptr() }
}

fn dims_of(shape: &RawShape) -> Result<Shape> {
    let rank = usize::try_from(shape.rank).unwrap_or(0);
    if shape.rank > MOST_DIMENSIONS {
        return Err(Error::internal(format!(
            "a tensor has more than {MOST_DIMENSIONS} dimensions"
        )));
    }
    if rank == 0 || shape.dims.is_null() {
        return Ok(Shape::scalar());
    }
    // SAFETY: the library filled in as many dimensions as the rank says.
    Ok(Shape::from(unsafe { slice::from_raw_parts(shape.dims, rank) }))
}
