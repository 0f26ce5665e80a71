//! Tensors of the library.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr, slice,
    sync::Arc,
};

use bytes::Bytes;
use galatea_native_library::{buffer_over, check_over, check_texts, push_text, room_for};
use galatea_types::{Buffer, DataType, Error, Result, Shape};
use ort_sys::{ONNXTensorElementDataType as Element, OrtTensorTypeAndShapeInfo, OrtValue};

use super::library::{Library, Owned, non_null, owned};

/// A tensor in the library's form. Immutable once made.
pub(crate) struct Value {
    library: Arc<Library>,
    value: Owned<OrtValue>,
    /// Memory the tensor points into, if it is not its own.
    backing: Option<Bytes>,
    /// The session that computed the tensor: an output may lie in its memory.
    _session: Option<Arc<dyn Send + Sync>>,
}

// SAFETY: nothing is written after construction; reads from several threads are allowed, and releasing
// may happen on any thread.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Value {
    /// Makes a tensor over `data`, which is not copied. `data` must hold exactly `dims` elements of a fixed-size type and
    /// start on a multiple of the element's size.
    pub fn over(
        library: &Arc<Library>,
        data: Bytes,
        dims: &[i64],
        data_type: DataType,
    ) -> Result<Self> {
        check_over(&data, dims, data_type)?;
        let mut value = ptr::null_mut();
        // SAFETY: size and alignment are checked above; the memory lives in `backing` as long as the
        // value. The library only reads inputs, so handing out a mutable pointer is sound.
        library.check(unsafe {
            (library.api.CreateTensorWithDataAsOrtValue)(
                library.cpu_memory.as_ptr(),
                data.as_ptr().cast_mut().cast(),
                data.len(),
                dims.as_ptr(),
                dims.len(),
                element_type(data_type),
                &mut value,
            )
        })?;
        // SAFETY: made just now.
        unsafe { Self::new(library, value, Some(data), None) }
    }

    /// # Safety
    /// `value` is null, or owned by nobody else.
    unsafe fn new(
        library: &Arc<Library>,
        value: *mut OrtValue,
        backing: Option<Bytes>,
        session: Option<Arc<dyn Send + Sync>>,
    ) -> Result<Self> {
        // SAFETY: the caller's word.
        let value = unsafe { owned(value, library.api.ReleaseValue) }?;
        Ok(Self { library: library.clone(), value, backing, _session: session })
    }

    /// Makes a tensor of texts, copied into the library. `dims` must have as many elements as `texts`.
    pub fn texts(library: &Arc<Library>, texts: &[&[u8]], dims: &[i64]) -> Result<Self> {
        check_texts(texts, dims)?;
        let api = library.api;
        let mut value = ptr::null_mut();
        // SAFETY: the shape is valid for the call, the out pointer too.
        library.check(unsafe {
            (api.CreateTensorAsOrtValue)(
                library.allocator.as_ptr(),
                dims.as_ptr(),
                dims.len(),
                Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
                &mut value,
            )
        })?;
        // SAFETY: made just now.
        let value = unsafe { Self::new(library, value, None, None) }?;
        for (index, text) in texts.iter().enumerate() {
            value.set_text(index, text)?;
        }
        Ok(value)
    }

    fn set_text(&self, index: usize, text: &[u8]) -> Result<()> {
        let mut room: *mut c_char = ptr::null_mut();
        let resize = self.library.api.GetResizedStringTensorElementBuffer;
        // SAFETY: the value is a string tensor of more than `index` elements, not yet shared. The room
        // returned holds `text.len()` bytes until the next call on this element.
        unsafe {
            self.library.check(resize(self.as_ptr(), index, text.len(), &mut room))?;
            if !text.is_empty() {
                ptr::copy_nonoverlapping(
                    text.as_ptr(),
                    non_null(room)?.as_ptr().cast(),
                    text.len(),
                );
            }
        }
        Ok(())
    }

    /// Takes over a value that a run of `session` returned.
    ///
    /// # Safety
    /// `value` must be null or come from that run and be owned by nobody else. Memory it shares with an
    /// input must be kept by [`Value::keep_if_shared`].
    pub(super) unsafe fn adopt(
        library: &Arc<Library>,
        session: Arc<dyn Send + Sync>,
        value: *mut OrtValue,
    ) -> Result<Self> {
        // SAFETY: the caller's word.
        unsafe { Self::new(library, value, None, Some(session)) }
    }

    /// Keeps the memory of `input` alive if this output shares it.
    pub(super) fn keep_if_shared(&mut self, input: &Value) {
        let (Some(theirs), Ok(mine)) = (&input.backing, self.raw_data()) else { return };
        let range = theirs.as_ptr_range();
        if !theirs.is_empty() && range.contains(&mine.cast_const()) {
            self.backing = Some(theirs.clone());
        }
    }

    pub(super) fn as_ptr(&self) -> *mut OrtValue {
        self.value.as_ptr()
    }

    /// Returns element type and shape. The type is `None` if no request can carry it.
    pub fn describe(&self) -> Result<(Option<DataType>, Shape)> {
        let mut is_tensor: c_int = 0;
        // SAFETY: the value is alive, the out pointers valid.
        let info = unsafe {
            self.library.check((self.library.api.IsTensor)(self.as_ptr(), &mut is_tensor))?;
            if is_tensor == 0 {
                return Ok((None, Shape::scalar()));
            }
            let mut info = ptr::null_mut();
            let api = self.library.api;
            self.library.check((api.GetTensorTypeAndShape)(self.as_ptr(), &mut info))?;
            owned(info, api.ReleaseTensorTypeAndShapeInfo)?
        };
        // SAFETY: `info` is alive.
        let (element, shape) = unsafe { read_tensor_info(&self.library, info.as_ptr()) }?;
        Ok((from_element_type(element), shape))
    }

    /// Returns the values of a sequence of maps as one tensor of FP32: a row for each map, in the order of its keys.
    ///
    /// # Errors
    /// When the maps have different numbers of keys.
    pub fn rows(&self) -> Result<(Shape, Vec<u8>)> {
        let mut count = 0;
        // SAFETY: the value is alive, the out pointer valid.
        let status = unsafe { (self.library.api.GetValueCount)(self.as_ptr(), &mut count) };
        self.library.check(status)?;
        let (mut width, mut bytes) = (0, Vec::new());
        for index in 0..count {
            // A map has its keys first, then its values.
            let values = self.part(index)?.part(1)?;
            let (_, shape) = values.describe()?;
            let size = shape.byte_size(DataType::Fp32).unwrap_or_default();
            if index > 0 && size != width {
                return Err(Error::internal(
                    "the maps of an output have different numbers of keys",
                ));
            }
            width = size;
            bytes.extend_from_slice(values.bytes(size)?);
        }
        let columns = i64::try_from(width / size_of::<f32>()).unwrap_or(i64::MAX);
        Ok((Shape::from([i64::try_from(count).unwrap_or(i64::MAX), columns]), bytes))
    }

    /// Returns an element of a sequence, or a part of a map.
    fn part(&self, index: usize) -> Result<Self> {
        let mut part = ptr::null_mut();
        let index =
            c_int::try_from(index).map_err(|_| Error::internal("a sequence is too long"))?;
        let (get, allocator) = (self.library.api.GetValue, self.library.allocator.as_ptr());
        // SAFETY: the value is alive, the index below its count, the out pointer valid.
        self.library.check(unsafe { get(self.as_ptr(), index, allocator, &mut part) })?;
        // SAFETY: the library returns a copy.
        unsafe { Self::new(&self.library, part, None, None) }
    }

    fn raw_data(&self) -> Result<*mut u8> {
        let mut data: *mut c_void = ptr::null_mut();
        let get = self.library.api.GetTensorMutableData;
        // SAFETY: the value is alive; the pointer is only read through.
        self.library.check(unsafe { get(self.as_ptr(), &mut data) })?;
        Ok(data.cast())
    }

    /// Returns true if the data can be read as ordinary memory. Runs copy a GPU's results there. Memory that GPUs can reach
    /// directly counts as the GPU's, but has the type of the CPU's.
    fn is_in_main_memory(&self) -> Result<bool> {
        const CPU_DEVICE: c_int = 0;
        const CPU_OUTPUT_MEMORY: c_int = -1;
        let api = self.library.api;
        let mut info = ptr::null();
        let (mut device, mut memory): (c_int, c_int) = (CPU_DEVICE, 0);
        let (device_out, memory_out): (*mut c_int, *mut c_int) = (&mut device, &mut memory);
        // SAFETY: the value is alive, and the info belongs to it; all out pointers are valid. Both kinds are
        // read as numbers, because a newer library may know more of them.
        unsafe {
            self.library.check((api.GetTensorMemoryInfo)(self.as_ptr(), &mut info))?;
            (api.MemoryInfoGetDeviceType)(info, device_out.cast());
            self.library.check((api.MemoryInfoGetMemType)(info, memory_out.cast()))?;
        }
        Ok(device == CPU_DEVICE || memory <= CPU_OUTPUT_MEMORY)
    }

    /// Returns the bytes of a tensor in main memory of fixed-size elements. `describe` gives the `byte_size`.
    pub fn bytes(&self, byte_size: usize) -> Result<&[u8]> {
        if byte_size == 0 {
            return Ok(&[]);
        }
        let data = non_null(self.raw_data()?)?;
        // SAFETY: the tensor holds this many bytes and lives as long as `self`; nobody writes to it.
        Ok(unsafe { slice::from_raw_parts(data.as_ptr(), byte_size) })
    }

    /// Returns the bytes of a tensor of fixed-size elements. `describe` gives the `byte_size`.
    pub fn into_buffer(self, byte_size: usize) -> Result<Buffer> {
        if byte_size == 0 {
            return Ok(Buffer::default());
        }
        if !self.is_in_main_memory()? {
            return Err(Error::internal("ONNX Runtime left an output in the memory of a device"));
        }
        let data = non_null(self.raw_data()?)?;
        // SAFETY: the tensor holds this many bytes as long as it lives; nobody writes to them.
        Ok(unsafe { buffer_over(self, data, byte_size) })
    }

    /// Returns the `count` elements of a text tensor in the wire form: each has a `u32` length and its bytes.
    pub fn to_length_prefixed(&self, count: usize) -> Result<Vec<u8>> {
        let api = self.library.api;
        let mut total = 0;
        // SAFETY: the value is a live string tensor.
        let status = unsafe { (api.GetStringTensorDataLength)(self.as_ptr(), &mut total) };
        self.library.check(status)?;
        let mut content: Vec<u8> = room_for(total, "an output")?;
        content.resize(total, 0);
        let mut offsets: Vec<usize> = room_for(count, "an output")?;
        offsets.resize(count, 0);
        let read = api.GetStringTensorContent;
        let room = content.as_mut_ptr().cast();
        // SAFETY: both areas have the length passed.
        let status = unsafe { read(self.as_ptr(), room, total, offsets.as_mut_ptr(), count) };
        self.library.check(status)?;
        let mut wire = room_for(total.saturating_add(4 * count), "an output")?;
        let ends = offsets.iter().skip(1).copied().chain([total]);
        for (start, end) in offsets.iter().copied().zip(ends) {
            let text = content.get(start..end).unwrap_or_default();
            push_text(&mut wire, text)?;
        }
        Ok(wire)
    }
}

/// Reads the number of the element type, and the dimensions; unknown dimensions are -1.
///
/// # Safety
/// `info` must be alive.
pub(super) unsafe fn read_tensor_info(
    library: &Library,
    info: *const OrtTensorTypeAndShapeInfo,
) -> Result<(c_int, Shape)> {
    let api = library.api;
    let mut element: c_int = 0;
    let mut rank = 0;
    // SAFETY: `info` is alive (caller), out pointers are valid and `dims` has the length passed. The element
    // type is read as a number: a newer library may know types that the enum does not.
    unsafe {
        let out: *mut c_int = &mut element;
        library.check((api.GetTensorElementType)(info, out.cast()))?;
        library.check((api.GetDimensionsCount)(info, &mut rank))?;
        let mut dims = vec![0i64; rank];
        library.check((api.GetDimensions)(info, dims.as_mut_ptr(), rank))?;
        Ok((element, Shape::from(dims)))
    }
}

pub(crate) fn element_type(data_type: DataType) -> Element {
    match data_type {
        DataType::Bool => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        DataType::Uint8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        DataType::Uint16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
        DataType::Uint32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
        DataType::Uint64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
        DataType::Int8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        DataType::Int16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
        DataType::Int32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        DataType::Int64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        DataType::Fp16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        DataType::Fp32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        DataType::Fp64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
        DataType::Bytes => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
        DataType::Bf16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
    }
}

/// Returns the data type, or `None` if the protocol has no name for it (complex, 8-bit and 4-bit floats).
pub(crate) fn from_element_type(element: c_int) -> Option<DataType> {
    DataType::ALL.into_iter().find(|&t| element_type(t) as c_int == element)
}
