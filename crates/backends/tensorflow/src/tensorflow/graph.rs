//! A graph: its operations, with their names and outputs.

use std::{ffi::CString, sync::Arc};

use galatea_native_library::Owned;
use galatea_types::{Error, Result, Shape};

use super::{
    functions::{RawBuffer, RawGraph, RawOperation, RawOutput},
    library::{Library, owned},
};

/// The graph of a session; freed with the last session that uses it.
pub(crate) struct Graph {
    pub(super) library: Arc<Library>,
    pub(super) graph: Owned<RawGraph>,
}

// SAFETY: the library guards graphs with a lock of their own.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// One output of an operation: a point where a tensor enters or leaves a graph. Valid as long as the graph.
#[derive(Clone, Copy)]
pub(crate) struct Point(pub(super) RawOutput);

// SAFETY: the operation belongs to a graph, is never changed, and is only named to the library.
unsafe impl Send for Point {}
// SAFETY: as above.
unsafe impl Sync for Point {}

/// An operation that is run for its effect.
#[derive(Clone, Copy)]
pub(crate) struct Operation(pub(super) *mut RawOperation);

impl Graph {
    pub fn new(library: &Arc<Library>) -> Result<Self> {
        let functions = &library.functions;
        // SAFETY: makes an object that is ours.
        let graph = unsafe { owned((functions.new_graph)(), functions.delete_graph) }?;
        Ok(Self { library: library.clone(), graph })
    }

    /// Adds the content of `bytes`, a `GraphDef`.
    pub fn import(&self, bytes: &[u8]) -> Result<()> {
        let functions = &self.library.functions;
        let buffer = RawBuffer { data: bytes.as_ptr().cast(), length: bytes.len(), free: None };
        // SAFETY: the options are made, used and freed here; the bytes live during the call.
        self.library.checked(|status| unsafe {
            let options = (functions.new_import_options)();
            (functions.import_graph)(self.graph.as_ptr(), &buffer, options, status);
            (functions.delete_import_options)(options);
        })
    }

    /// Returns the point of a tensor's name, `operation:index` or `operation` for its first output, or `None` if it is
    /// missing.
    pub fn point(&self, name: &str) -> Option<Point> {
        let (operation, index) = match name.rsplit_once(':') {
            Some((operation, index)) => (operation, index.parse().ok()?),
            None => (name, 0),
        };
        let Operation(operation) = self.operation(operation)?;
        // SAFETY: the operation is of this graph.
        let outputs = unsafe { (self.library.functions.operation_outputs)(operation) };
        (0..outputs).contains(&index).then_some(Point(RawOutput { operation, index }))
    }

    pub fn operation(&self, name: &str) -> Option<Operation> {
        let name = CString::new(name).ok()?;
        // SAFETY: the graph is alive, the name terminated.
        let found = unsafe {
            (self.library.functions.operation_by_name)(self.graph.as_ptr(), name.as_ptr())
        };
        (!found.is_null()).then_some(Operation(found))
    }

    /// Returns TensorFlow's number of the type at a point.
    pub fn type_at(&self, point: Point) -> i32 {
        // SAFETY: the point is of this graph.
        unsafe { (self.library.functions.output_type)(point.0) }
    }

    /// Returns the shape that TensorFlow infers at a point, with -1 for open dimensions, or `None` if the rank is unknown.
    pub fn shape_at(&self, point: Point) -> Result<Option<Shape>> {
        let functions = &self.library.functions;
        let graph = self.graph.as_ptr();
        // SAFETY: the point is of this graph.
        let rank = self
            .library
            .checked(|status| unsafe { (functions.tensor_rank)(graph, point.0, status) })?;
        let Ok(size) = usize::try_from(rank) else { return Ok(None) };
        let mut dims = vec![-1; size];
        // SAFETY: as above; there is room for this many dimensions.
        self.library.checked(|status| unsafe {
            (functions.tensor_shape)(graph, point.0, dims.as_mut_ptr(), rank, status);
        })?;
        Ok(Some(Shape::from(dims)))
    }

    /// Returns the operations of these names, or an error that names a missing one.
    pub(super) fn operations(&self, names: &[String]) -> Result<Vec<Operation>> {
        let find = |name: &String| {
            let missing = || Error::invalid_arg(format!("the graph has no operation '{name}'"));
            self.operation(name).ok_or_else(missing)
        };
        names.iter().map(find).collect()
    }
}
