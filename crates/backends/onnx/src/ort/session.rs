//! A loaded model in the library, and its runs.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::Path,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
    thread::{self, Thread},
};

use galatea_division_faults::FaultDomain;
use galatea_types::{DataType, Error, Result, Shape};
use ort_sys::{OrtRunOptions, OrtSession, OrtStatus, OrtStatusPtr, OrtTypeInfo, OrtValue};

use super::{
    bound_tensor::BoundTensors,
    library::{Library, Owned, owned},
    options::{SessionOptions, c_path, c_string},
    value::{Value, from_element_type, read_tensor_info},
};

/// The kind of value that an input or output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Tensor(DataType),
    /// A tensor with elements that the protocol cannot carry; the number of ONNX's element type.
    OtherTensor(i32),
    Sequence,
    Map,
    /// A sequence of maps to FP32, in which scikit-learn's classifiers return probabilities (ZipMap).
    Maps,
    Other,
}

/// Declaration of a graph's input or output.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub name: String,
    pub c_name: CString,
    pub kind: ValueKind,
    /// Dimensions, with -1 for open ones. `None`: the number of dimensions is unknown.
    pub dims: Option<Shape>,
}

/// Settings of each run. `None`: the defaults.
pub(crate) struct RunOptions {
    options: Owned<OrtRunOptions>,
}

// SAFETY: the options are constant after `new` and only read by runs.
unsafe impl Send for RunOptions {}
// SAFETY: as above.
unsafe impl Sync for RunOptions {}

impl RunOptions {
    pub fn new(library: &Arc<Library>, entries: &[(&str, &str)]) -> Result<Self> {
        let mut options = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        library.check(unsafe { (library.api.CreateRunOptions)(&mut options) })?;
        // SAFETY: made just now.
        let options = unsafe { owned(options, library.api.ReleaseRunOptions) }?;
        for (key, value) in entries {
            let (key, value) = (c_string(key)?, c_string(value)?);
            let add = library.api.AddRunConfigEntry;
            // SAFETY: the options are alive, the strings terminated and copied.
            library.check(unsafe { add(options.as_ptr(), key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(Self { options })
    }
}

/// The place where a run is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// The calling thread, with the session's other threads helping.
    Here,
    /// One of the session's own threads. It must have more than one.
    OnPool,
}

/// A loaded graph. Runs may overlap.
pub(crate) struct Session {
    library: Arc<Library>,
    session: Owned<OrtSession>,
    faults: Arc<FaultDomain>,
}

// SAFETY: a session's run function is documented as safe to call from several threads at once.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    pub fn load(library: &Arc<Library>, path: &Path, mut options: SessionOptions) -> Result<Self> {
        let path = c_path(path)?;
        let faults = options.watch_threads()?;
        let load = || {
            let mut session = ptr::null_mut();
            let create = library.api.CreateSession;
            // SAFETY: all pointers are valid for the call.
            library.check(unsafe {
                create(library.env.as_ptr(), path.as_ptr(), options.as_ptr(), &mut session)
            })?;
            // SAFETY: made just now; a run borrows the session.
            let session = unsafe { owned(session, library.api.ReleaseSession) }?;
            Ok(Self { library: library.clone(), session, faults: faults.clone() })
        };
        // Loading computes the constant parts of the graph.
        faults.run_once(load)?
    }

    pub fn inputs(&self) -> Result<Vec<TensorInfo>> {
        let api = self.library.api;
        self.infos(api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo)
    }

    pub fn outputs(&self) -> Result<Vec<TensorInfo>> {
        let api = self.library.api;
        self.infos(
            api.SessionGetOutputCount,
            api.SessionGetOutputName,
            api.SessionGetOutputTypeInfo,
        )
    }

    /// Returns initialisers that are listed as inputs: a request may bring them or leave them out.
    pub fn overridable_initializers(&self) -> Result<Vec<TensorInfo>> {
        let api = self.library.api;
        self.infos(
            api.SessionGetOverridableInitializerCount,
            api.SessionGetOverridableInitializerName,
            api.SessionGetOverridableInitializerTypeInfo,
        )
    }

    fn infos(&self, count: CountFn, name: NameFn, info: InfoFn) -> Result<Vec<TensorInfo>> {
        let mut total = 0;
        // SAFETY: the session is alive, the out pointer valid.
        self.library.check(unsafe { count(self.session.as_ptr(), &mut total) })?;
        (0..total).map(|index| self.info(index, name, info)).collect()
    }

    fn info(&self, index: usize, name: NameFn, info: InfoFn) -> Result<TensorInfo> {
        let mut text: *mut c_char = ptr::null_mut();
        let allocator = self.library.allocator.as_ptr();
        // SAFETY: `index` is below the count; the text is taken over by `take_string`.
        self.library.check(unsafe { name(self.session.as_ptr(), index, allocator, &mut text) })?;
        let c_name = self.library.take_string(text)?;
        let mut type_info = ptr::null_mut();
        // SAFETY: as above; the info is released by `TypeInfo`.
        self.library.check(unsafe { info(self.session.as_ptr(), index, &mut type_info) })?;
        let (kind, dims) = TypeInfo::new(&self.library, type_info)?.read()?;
        let name = c_name.to_string_lossy().into_owned();
        Ok(TensorInfo { name, c_name, kind, dims: Some(dims) })
    }

    /// Computes `outputs` from `inputs`. Fails if an integer division had no result.
    pub fn run(
        self: &Arc<Self>,
        options: &RunOptions,
        inputs: &[(&CStr, &Value)],
        outputs: &[&CStr],
        mode: RunMode,
    ) -> Result<Vec<Value>> {
        self.faults.run(|| self.compute(options, inputs, outputs, mode))?
    }

    fn compute(
        self: &Arc<Self>,
        options: &RunOptions,
        inputs: &[(&CStr, &Value)],
        outputs: &[&CStr],
        mode: RunMode,
    ) -> Result<Vec<Value>> {
        let names: Vec<*const c_char> = inputs.iter().map(|(n, _)| n.as_ptr()).collect();
        let values: Vec<*const OrtValue> = inputs.iter().map(|(_, v)| v.as_ptr() as _).collect();
        let wanted: Vec<*const c_char> = outputs.iter().map(|n| n.as_ptr()).collect();
        let mut results: Vec<*mut OrtValue> = vec![ptr::null_mut(); outputs.len()];
        let call = Call {
            options: options.options.as_ptr(),
            names: &names,
            values: &values,
            wanted: &wanted,
            results: &mut results,
        };
        let ran = self.run_in(mode, call);
        // SAFETY: a finished run leaves null or a value that belongs to the caller; memory it shares
        // with an input is kept alive below, memory it shares with the session by who holds that.
        let adopted: Vec<Result<Value>> = results
            .into_iter()
            .map(|v| unsafe { Value::adopt(&self.library, self.clone(), v) })
            .collect();
        ran?;
        let mut values = adopted.into_iter().collect::<Result<Vec<Value>>>()?;
        for value in &mut values {
            inputs.iter().for_each(|(_, input)| value.keep_if_shared(input));
        }
        Ok(values)
    }

    /// Runs as [`Session::run`], with kept tensors. After a failure the content of the outputs is undefined.
    pub fn run_bound(
        &self,
        options: &RunOptions,
        inputs: &BoundTensors,
        outputs: &mut BoundTensors,
        mode: RunMode,
    ) -> Result<()> {
        let names: SmallVec<_> = inputs.names.iter().map(|name| name.as_ptr()).collect();
        let values: SmallVec<_> =
            inputs.tensors.iter().map(|value| value.as_ptr().cast_const()).collect();
        let wanted: SmallVec<_> = outputs.names.iter().map(|name| name.as_ptr()).collect();
        let given: SmallVec<_> = outputs.tensors.iter().map(|value| value.as_ptr()).collect();
        let mut results = given.clone();
        let ran = self.faults.run(|| {
            let call = Call {
                options: options.options.as_ptr(),
                names: &names,
                values: &values,
                wanted: &wanted,
                results: &mut results,
            };
            self.run_in(mode, call)
        })?;
        if results != given {
            // The library should use the given tensors. Other values that it left there may not belong to the caller.
            return Err(Error::internal("ONNX Runtime did not use the outputs it was given"));
        }
        ran
    }

    fn run_in(&self, mode: RunMode, call: Call<'_>) -> Result<()> {
        match mode {
            RunMode::Here => self.run_here(call),
            RunMode::OnPool => self.run_on_pool(call),
        }
    }

    fn run_here(&self, call: Call<'_>) -> Result<()> {
        // SAFETY: the arrays have the length passed and live during the call, as do names and values.
        self.library.check(unsafe {
            (self.library.api.Run)(
                self.session.as_ptr(),
                call.options,
                call.names.as_ptr(),
                call.values.as_ptr(),
                call.values.len(),
                call.wanted.as_ptr(),
                call.wanted.len(),
                call.results.as_mut_ptr(),
            )
        })
    }

    fn run_on_pool(&self, call: Call<'_>) -> Result<()> {
        let completion = Completion::new();
        // SAFETY: everything pointed to, the completion included, outlives the run: this function does
        // not return before the callback has been called, or the call was refused.
        self.library.check(unsafe {
            (self.library.api.RunAsync)(
                self.session.as_ptr(),
                call.options,
                call.names.as_ptr(),
                call.values.as_ptr(),
                call.values.len(),
                call.wanted.as_ptr(),
                call.wanted.len(),
                call.results.as_mut_ptr(),
                Some(complete),
                ptr::from_ref(&completion).cast_mut().cast(),
            )
        })?;
        let status = completion.wait();
        self.library.check(OrtStatusPtr(status))
    }
}

/// A list that needs no memory of its own for the number of inputs or outputs of most models.
type SmallVec<T> = smallvec::SmallVec<[T; 8]>;

/// Arguments of one run, in the form the C functions take.
struct Call<'a> {
    options: *const OrtRunOptions,
    names: &'a [*const c_char],
    values: &'a [*const OrtValue],
    wanted: &'a [*const c_char],
    results: &'a mut [*mut OrtValue],
}

/// The state on which the calling thread waits for a run.
struct Completion {
    is_done: AtomicBool,
    status: AtomicPtr<OrtStatus>,
    waiter: Thread,
}

impl Completion {
    fn new() -> Self {
        let status = AtomicPtr::new(ptr::null_mut());
        Self { is_done: AtomicBool::new(false), status, waiter: thread::current() }
    }

    fn wait(&self) -> *mut OrtStatus {
        while !self.is_done.load(Ordering::Acquire) {
            thread::park();
        }
        self.status.load(Ordering::Relaxed)
    }
}

unsafe extern "C" fn complete(
    completion: *mut c_void,
    _outputs: *mut *mut OrtValue,
    _count: usize,
    status: OrtStatusPtr,
) {
    // SAFETY: `completion` is what `run_on_pool` passed; it lives until `is_done` is seen as set.
    let completion = unsafe { &*completion.cast::<Completion>() };
    let waiter = completion.waiter.clone();
    completion.status.store(status.0, Ordering::Relaxed);
    completion.is_done.store(true, Ordering::Release);
    // The completion may be dropped from here on.
    waiter.unpark();
}

type CountFn = unsafe extern "system" fn(*const OrtSession, *mut usize) -> OrtStatusPtr;
type NameFn = unsafe extern "system" fn(
    *const OrtSession,
    usize,
    *mut ort_sys::OrtAllocator,
    *mut *mut c_char,
) -> OrtStatusPtr;
type InfoFn =
    unsafe extern "system" fn(*const OrtSession, usize, *mut *mut OrtTypeInfo) -> OrtStatusPtr;

struct TypeInfo<'a> {
    library: &'a Library,
    info: Owned<OrtTypeInfo>,
}

impl<'a> TypeInfo<'a> {
    /// Takes over the result of a function that returns a type.
    fn new(library: &'a Library, info: *mut OrtTypeInfo) -> Result<Self> {
        // SAFETY: such functions give their caller an object of its own.
        let info = unsafe { owned(info, library.api.ReleaseTypeInfo) }?;
        Ok(Self { library, info })
    }

    fn read(&self) -> Result<(ValueKind, Shape)> {
        let api = self.library.api;
        let mut tensor = ptr::null();
        let mut kind: c_int = 0;
        // SAFETY: the info is alive; `tensor` is null or borrowed from it. The kind is read as a number,
        // because a newer library may know more of them.
        unsafe {
            let out: *mut c_int = &mut kind;
            self.library.check((api.GetOnnxTypeFromTypeInfo)(self.info.as_ptr(), out.cast()))?;
            self.library.check((api.CastTypeInfoToTensorInfo)(self.info.as_ptr(), &mut tensor))?;
        }
        match kind {
            1 if !tensor.is_null() => {
                // SAFETY: not null and borrowed from the live info.
                let (element, dims) = unsafe { read_tensor_info(self.library, tensor) }?;
                let kind = from_element_type(element)
                    .map_or(ValueKind::OtherTensor(element), ValueKind::Tensor);
                Ok((kind, dims))
            }
            2 if self.is_sequence_of_maps()? => Ok((ValueKind::Maps, Shape::from([-1, -1]))),
            2 => Ok((ValueKind::Sequence, Shape::scalar())),
            3 => Ok((ValueKind::Map, Shape::scalar())),
            _ => Ok((ValueKind::Other, Shape::scalar())),
        }
    }

    /// Returns true if the elements of a sequence are maps with values of FP32.
    fn is_sequence_of_maps(&self) -> Result<bool> {
        let api = self.library.api;
        let (mut sequence, mut map) = (ptr::null(), ptr::null());
        let (mut element, mut values) = (ptr::null_mut(), ptr::null_mut());
        let cast = api.CastTypeInfoToSequenceTypeInfo;
        // SAFETY: the info is alive; `sequence` is null or borrowed from it.
        self.library.check(unsafe { cast(self.info.as_ptr(), &mut sequence) })?;
        if sequence.is_null() {
            return Ok(false);
        }
        // SAFETY: not null and borrowed from the live info; the element is released by `TypeInfo`.
        self.library.check(unsafe { (api.GetSequenceElementType)(sequence, &mut element) })?;
        let element = TypeInfo::new(self.library, element)?;
        let cast = api.CastTypeInfoToMapTypeInfo;
        // SAFETY: as for the sequence.
        self.library.check(unsafe { cast(element.info.as_ptr(), &mut map) })?;
        if map.is_null() {
            return Ok(false);
        }
        // SAFETY: as for the element.
        self.library.check(unsafe { (api.GetMapValueType)(map, &mut values) })?;
        TypeInfo::new(self.library, values)?.is_tensor_of(DataType::Fp32)
    }

    fn is_tensor_of(&self, data_type: DataType) -> Result<bool> {
        let mut tensor = ptr::null();
        let cast = self.library.api.CastTypeInfoToTensorInfo;
        // SAFETY: the info is alive; `tensor` is null or borrowed from it.
        self.library.check(unsafe { cast(self.info.as_ptr(), &mut tensor) })?;
        if tensor.is_null() {
            return Ok(false);
        }
        // SAFETY: not null and borrowed from the live info.
        let (element, _) = unsafe { read_tensor_info(self.library, tensor) }?;
        Ok(from_element_type(element) == Some(data_type))
    }
}
