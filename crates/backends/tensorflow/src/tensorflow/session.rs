//! Sessions: graphs with the values of their variables.

use std::{
    ffi::{CString, c_int},
    path::Path,
    ptr::{self, NonNull},
    sync::Arc,
};

use galatea_types::{Error, Result};

use super::{
    functions::{RawBuffer, RawOutput, RawSession, RawSessionOptions},
    graph::{Graph, Operation, Point},
    library::{Library, non_null, owned},
    options::{SessionOptions, on_calling_thread},
    tensor::Tensor,
};

/// The place where the operations of a run are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPlace {
    /// The thread that asks for the run.
    Here,
    /// The threads of the session, several at once.
    OnThreads,
}

pub(crate) struct Session {
    library: Arc<Library>,
    session: NonNull<RawSession>,
    pub graph: Graph,
    /// Options of a run on the calling thread.
    here: Vec<u8>,
}

// SAFETY: a session may be used by any thread, by several at once.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        let session = self.session.as_ptr();
        // SAFETY: no run is under way, as each borrows the session; closed and freed once. The graph goes after it.
        let closed = self.library.checked(|status| unsafe {
            (functions.close_session)(session, status);
            (functions.delete_session)(session, status);
        });
        if let Err(error) = closed {
            log::warn!("TensorFlow could not close a session: {error}");
        }
    }
}

impl Session {
    /// Loads the graph with this tag from a SavedModel folder, restores its variables and runs its initialization.
    pub fn of_saved_model(
        library: &Arc<Library>,
        folder: &Path,
        tag: &str,
        options: SessionOptions,
    ) -> Result<Self> {
        let zero = |_| Error::invalid_arg("a path or tag holds a zero byte");
        let folder = CString::new(folder.as_os_str().as_encoded_bytes()).map_err(zero)?;
        let tag = CString::new(tag).map_err(zero)?;
        let graph = Graph::new(library)?;
        let load = |options: *mut RawSessionOptions| {
            let tags = [tag.as_ptr()];
            // SAFETY: all texts are terminated and live during the call; the graph is empty.
            library.checked(|status| unsafe {
                (library.functions.load_saved_model)(
                    options,
                    ptr::null(),
                    folder.as_ptr(),
                    tags.as_ptr(),
                    1,
                    graph.graph.as_ptr(),
                    ptr::null_mut(),
                    status,
                )
            })
        };
        let session = library.faults.run_once(|| with_options(library, options, load))??;
        Self::new(library, session, graph)
    }

    /// Loads a `GraphDef`, whose variables are constants.
    pub fn of_graph(library: &Arc<Library>, bytes: &[u8], options: SessionOptions) -> Result<Self> {
        let graph = Graph::new(library)?;
        graph.import(bytes)?;
        let session = with_options(library, options, |options| {
            // SAFETY: graph and options are alive.
            library.checked(|status| unsafe {
                (library.functions.new_session)(graph.graph.as_ptr(), options, status)
            })
        })?;
        Self::new(library, session, graph)
    }

    fn new(library: &Arc<Library>, session: *mut RawSession, graph: Graph) -> Result<Self> {
        let session = non_null(session)?;
        Ok(Self { library: library.clone(), session, graph, here: on_calling_thread() })
    }

    /// Computes the tensors at `outputs`. All points must be of this session's graph.
    pub fn run(
        &self,
        inputs: &[(Point, Tensor)],
        outputs: &[Point],
        place: RunPlace,
    ) -> Result<Vec<Tensor>> {
        // A failed run is not repeated to see if another run caused its fault: a run may change variables.
        self.library.faults.run_once(|| self.run_all(inputs, outputs, &[], place))?
    }

    /// Runs operations for their effects, one after the other.
    pub fn run_operations(&self, names: &[String]) -> Result<()> {
        for operation in self.graph.operations(names)? {
            let run = || self.run_all(&[], &[], &[operation], RunPlace::OnThreads);
            self.library.faults.run_once(run)??;
        }
        Ok(())
    }

    fn run_all(
        &self,
        inputs: &[(Point, Tensor)],
        outputs: &[Point],
        operations: &[Operation],
        place: RunPlace,
    ) -> Result<Vec<Tensor>> {
        let points: Vec<RawOutput> = inputs.iter().map(|(point, _)| point.0).collect();
        let values: Vec<_> = inputs.iter().map(|(_, tensor)| tensor.as_ptr()).collect();
        let wanted: Vec<RawOutput> = outputs.iter().map(|point| point.0).collect();
        let operations: Vec<_> = operations.iter().map(|o| o.0.cast_const()).collect();
        let mut results = vec![ptr::null_mut(); outputs.len()];
        let here =
            RawBuffer { data: self.here.as_ptr().cast(), length: self.here.len(), free: None };
        let options = match place {
            RunPlace::Here => &raw const here,
            RunPlace::OnThreads => ptr::null(),
        };
        // SAFETY: every list has the length passed and lives during the call; tensors and points are alive, the
        // latter of this session's graph as the caller says.
        let ran = self.library.checked(|status| unsafe {
            (self.library.functions.run)(
                self.session.as_ptr(),
                options,
                points.as_ptr(),
                values.as_ptr(),
                count(points.len()),
                wanted.as_ptr(),
                results.as_mut_ptr(),
                count(wanted.len()),
                operations.as_ptr(),
                count(operations.len()),
                ptr::null_mut(),
                status,
            );
        });
        // The results are taken over even if the run failed: existing ones must be freed.
        // SAFETY: each is null or the caller's alone.
        let results = results.into_iter().map(|r| unsafe { Tensor::adopt(&self.library, r) });
        let results: Vec<_> = results.collect();
        ran?;
        results.into_iter().collect()
    }
}

fn count(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

/// Calls `call` with the options in the library's form.
fn with_options<T>(
    library: &Arc<Library>,
    options: SessionOptions,
    call: impl FnOnce(*mut RawSessionOptions) -> Result<T>,
) -> Result<T> {
    let functions = &library.functions;
    let config = options.to_bytes();
    let delete = functions.delete_session_options;
    // SAFETY: makes an object that is ours; sessions keep a copy.
    let raw = unsafe { owned((functions.new_session_options)(), delete) }?;
    // SAFETY: the options are alive, the bytes have the length passed.
    library.checked(|status| unsafe {
        (functions.set_config)(raw.as_ptr(), config.as_ptr().cast(), config.len(), status);
    })?;
    call(raw.as_ptr())
}
