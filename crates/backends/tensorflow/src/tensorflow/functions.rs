//! The functions of the C interface that are used, found in the opened library once.

use std::ffi::{c_char, c_int, c_void};

use galatea_native_library::{functions, objects};

objects!(pub(super) RawStatus RawGraph RawSession RawSessionOptions RawImportOptions RawOperation RawTensor);

/// `TF_Buffer`
#[repr(C)]
pub(super) struct RawBuffer {
    pub data: *const c_void,
    pub length: usize,
    pub free: Option<unsafe extern "C" fn(*mut c_void, usize)>,
}

/// `TF_Output`: one output of an operation.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawOutput {
    pub operation: *mut RawOperation,
    pub index: c_int,
}

/// `TF_TString`: 24 bytes, whose meaning only the library knows.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct RawString([u8; 24]);

impl RawString {
    /// Memory that `TF_StringInit` makes a text.
    pub const ZEROED: Self = Self([0; 24]);
}

/// Called once with the memory of a tensor and the argument that was given with it.
pub(super) type FreeData = unsafe extern "C" fn(*mut c_void, usize, *mut c_void);

functions! {
    /// Functions of TensorFlow's public C headers.
    pub(super) struct Functions;
    version = "TF_Version": fn() -> *const c_char;
    new_status = "TF_NewStatus": fn() -> *mut RawStatus;
    delete_status = "TF_DeleteStatus": fn(*mut RawStatus);
    code = "TF_GetCode": fn(*const RawStatus) -> c_int;
    message = "TF_Message": fn(*const RawStatus) -> *const c_char;
    new_session_options = "TF_NewSessionOptions": fn() -> *mut RawSessionOptions;
    delete_session_options = "TF_DeleteSessionOptions": fn(*mut RawSessionOptions);
    set_config = "TF_SetConfig": fn(*mut RawSessionOptions, *const c_void, usize, *mut RawStatus);
    new_graph = "TF_NewGraph": fn() -> *mut RawGraph;
    delete_graph = "TF_DeleteGraph": fn(*mut RawGraph);
    new_import_options = "TF_NewImportGraphDefOptions": fn() -> *mut RawImportOptions;
    delete_import_options = "TF_DeleteImportGraphDefOptions": fn(*mut RawImportOptions);
    import_graph = "TF_GraphImportGraphDef":
        fn(*mut RawGraph, *const RawBuffer, *const RawImportOptions, *mut RawStatus);
    operation_by_name = "TF_GraphOperationByName": fn(*mut RawGraph, *const c_char) -> *mut RawOperation;
    operation_outputs = "TF_OperationNumOutputs": fn(*mut RawOperation) -> c_int;
    output_type = "TF_OperationOutputType": fn(RawOutput) -> c_int;
    tensor_rank = "TF_GraphGetTensorNumDims": fn(*mut RawGraph, RawOutput, *mut RawStatus) -> c_int;
    tensor_shape = "TF_GraphGetTensorShape": fn(*mut RawGraph, RawOutput, *mut i64, c_int, *mut RawStatus);
    new_session = "TF_NewSession":
        fn(*mut RawGraph, *const RawSessionOptions, *mut RawStatus) -> *mut RawSession;
    load_saved_model = "TF_LoadSessionFromSavedModel":
        fn(*const RawSessionOptions, *const RawBuffer, *const c_char, *const *const c_char, c_int,
           *mut RawGraph, *mut RawBuffer, *mut RawStatus) -> *mut RawSession;
    close_session = "TF_CloseSession": fn(*mut RawSession, *mut RawStatus);
    delete_session = "TF_DeleteSession": fn(*mut RawSession, *mut RawStatus);
    run = "TF_SessionRun":
        fn(*mut RawSession, *const RawBuffer,
           *const RawOutput, *const *mut RawTensor, c_int,
           *const RawOutput, *mut *mut RawTensor, c_int,
           *const *const RawOperation, c_int, *mut RawBuffer, *mut RawStatus);
    new_tensor = "TF_NewTensor":
        fn(c_int, *const i64, c_int, *mut c_void, usize, FreeData, *mut c_void) -> *mut RawTensor;
    delete_tensor = "TF_DeleteTensor": fn(*mut RawTensor);
    tensor_type = "TF_TensorType": fn(*const RawTensor) -> c_int;
    dimensions = "TF_NumDims": fn(*const RawTensor) -> c_int;
    dimension = "TF_Dim": fn(*const RawTensor, c_int) -> i64;
    byte_size = "TF_TensorByteSize": fn(*const RawTensor) -> usize;
    data = "TF_TensorData": fn(*const RawTensor) -> *mut c_void;
    string_init = "TF_StringInit": fn(*mut RawString);
    string_copy = "TF_StringCopy": fn(*mut RawString, *const c_char, usize);
    string_data = "TF_StringGetDataPointer": fn(*const RawString) -> *const c_char;
    string_size = "TF_StringGetSize": fn(*const RawString) -> usize;
    string_free = "TF_StringDealloc": fn(*mut RawString);
}

const _: () = assert!(size_of::<RawString>() == 24);
