//! A model before compilation: its inputs and outputs, which may be given other types and shapes.

use std::{ffi::c_int, ptr, slice, sync::Arc};

use galatea_native_library::Owned;
use galatea_types::{DataType, Error, Result};

use super::{
    element,
    functions::{Model as RawModel, OK, Port, RawDimension, RawPartialShape, Status},
    library::{Library, owned},
};

/// Most dimensions of a tensor. A larger number means damaged data.
const MOST_DIMENSIONS: i64 = 256;

/// An input or output as the model declares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorInfo {
    /// Name. Empty: the model gives it none.
    pub name: String,
    /// Data type. `None`: no request can carry it.
    pub data_type: Option<DataType>,
    /// Dimensions, with -1 for open ones. `None`: their number is open.
    pub dims: Option<Vec<i64>>,
}

/// A new type for an input or output, which is named by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retyping {
    pub is_input: bool,
    pub index: usize,
    pub data_type: DataType,
}

/// A model before compilation, used by one thread.
pub(crate) struct Model {
    pub(super) library: Arc<Library>,
    model: Owned<RawModel>,
}

impl Model {
    /// # Safety
    /// `model` must be null or a model that nobody else frees.
    pub(super) unsafe fn adopt(library: &Arc<Library>, model: *mut RawModel) -> Result<Self> {
        // SAFETY: the caller's word.
        let model = unsafe { owned(model, library.functions.free_model) }?;
        Ok(Self { library: library.clone(), model })
    }

    pub(super) fn as_ptr(&self) -> *const RawModel {
        self.model.as_ptr()
    }

    pub fn inputs(&self) -> Result<Vec<TensorInfo>> {
        let functions = &self.library.functions;
        self.infos(functions.input_count, functions.input)
    }

    pub fn outputs(&self) -> Result<Vec<TensorInfo>> {
        let functions = &self.library.functions;
        self.infos(functions.output_count, functions.output)
    }

    fn infos(
        &self,
        count: unsafe extern "C" fn(*const RawModel, *mut usize) -> Status,
        port: unsafe extern "C" fn(*const RawModel, usize, *mut *mut Port) -> Status,
    ) -> Result<Vec<TensorInfo>> {
        let mut total = 0;
        // SAFETY: the model is alive, the place valid.
        self.library.check(unsafe { count(self.as_ptr(), &mut total) })?;
        let info = |index| {
            let mut found = ptr::null_mut();
            // SAFETY: as above.
            self.library.check(unsafe { port(self.as_ptr(), index, &mut found) })?;
            // SAFETY: returned just now, to nobody else.
            let port = unsafe { owned(found, self.library.functions.free_port) }?;
            OwnedPort { library: &self.library, port }.info()
        };
        (0..total).map(info).collect()
    }

    /// Changes the shapes of inputs, by their numbers; -1 leaves a dimension open.
    pub fn reshape(&self, shapes: &[(usize, Vec<i64>)]) -> Result<()> {
        let indices: Vec<usize> = shapes.iter().map(|(index, _)| *index).collect();
        let mut dims: Vec<Vec<RawDimension>> = shapes
            .iter()
            .map(|(_, dims)| dims.iter().map(|&dim| dimension(dim)).collect())
            .collect();
        let raw: Vec<RawPartialShape> = dims.iter_mut().map(partial_shape).collect();
        let reshape = self.library.functions.reshape;
        // SAFETY: as many numbers as shapes, whose dimensions live in `dims` for the call.
        let apply = || unsafe { reshape(self.as_ptr(), indices.as_ptr(), raw.as_ptr(), raw.len()) };
        let status = self.library.faults.run_once(apply)?;
        self.library.check(status)
    }
}

fn dimension(size: i64) -> RawDimension {
    match size {
        ..0 => RawDimension { min: 0, max: -1 },
        size => RawDimension { min: size, max: size },
    }
}

fn partial_shape(dims: &mut Vec<RawDimension>) -> RawPartialShape {
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    RawPartialShape { rank: RawDimension { min: rank, max: rank }, dims: dims.as_mut_ptr() }
}

struct OwnedPort<'l> {
    library: &'l Library,
    port: Owned<Port>,
}

impl OwnedPort<'_> {
    fn info(&self) -> Result<TensorInfo> {
        let mut number: c_int = 0;
        let get = self.library.functions.port_type;
        // SAFETY: the port is alive, the place valid. The type is read as a number: newer ones may be unknown here.
        self.library.check(unsafe { get(self.port.as_ptr(), &mut number) })?;
        let data_type = element::from_number(number);
        Ok(TensorInfo { name: self.name(), data_type, dims: self.dims()? })
    }

    /// Returns the name. The library returns an error if there is none.
    fn name(&self) -> String {
        let mut name = ptr::null_mut();
        // SAFETY: the port is alive, the place valid.
        let status = unsafe { (self.library.functions.port_name)(self.port.as_ptr(), &mut name) };
        match status {
            OK => self.library.take_text(name).unwrap_or_default(),
            _ => String::new(),
        }
    }

    fn dims(&self) -> Result<Option<Vec<i64>>> {
        let none = RawDimension { min: 0, max: 0 };
        let mut shape = RawPartialShape { rank: none, dims: ptr::null_mut() };
        let functions = &self.library.functions;
        // SAFETY: the port is alive, the place valid.
        self.library.check(unsafe { (functions.port_shape)(self.port.as_ptr(), &mut shape) })?;
        let dims = read(&shape);
        // SAFETY: filled by the library just now, freed once.
        unsafe { (functions.free_partial_shape)(&mut shape) };
        dims
    }
}

fn read(shape: &RawPartialShape) -> Result<Option<Vec<i64>>> {
    if shape.rank.min != shape.rank.max {
        return Ok(None);
    }
    let rank = usize::try_from(shape.rank.max.min(MOST_DIMENSIONS + 1)).unwrap_or(0);
    if shape.rank.max > MOST_DIMENSIONS {
        return Err(Error::internal(format!(
            "a tensor has more than {MOST_DIMENSIONS} dimensions"
        )));
    }
    if rank == 0 || shape.dims.is_null() {
        return Ok(Some(Vec::new()));
    }
    // SAFETY: the library filled in as many dimensions as the rank says.
    let dims = unsafe { slice::from_raw_parts(shape.dims, rank) };
    Ok(Some(dims.iter().map(|dim| if dim.min == dim.max { dim.min } else { -1 }).collect()))
}
