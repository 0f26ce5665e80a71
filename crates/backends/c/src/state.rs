//! States of sequences that libraries replace: `TRITONBACKEND_State`.

use std::{
    ffi::{c_char, c_void},
    sync::Arc,
};

use galatea_triton_c::{
    Kind, abi, call,
    objects::buffer_attributes::{Attributes, OwnAttributes},
    text,
};
use galatea_types::{AlignedBlock, Error, LockExt as _, Result, Tensor};

use crate::{
    memory,
    request::{REQUESTS, RequestObject},
    response::{read_shape, read_type},
    state_draft::StateDraft,
};

const KIND: Kind = Kind { number: 28, name: "TRITONBACKEND_State" };
/// Most new states of one request.
const MOST_STATES: usize = 1024;

fn find(state: *const abi::State) -> Result<(Arc<RequestObject>, usize)> {
    REQUESTS.of_part(state, KIND)
}

fn none() -> Error {
    Error::invalid_arg("the request has no such state, or it was updated before")
}

pub(crate) unsafe extern "C" fn state_new(
    state: *mut *mut abi::State,
    request: *mut abi::Request,
    name: *const c_char,
    data_type: u32,
    shape: *const i64,
    dims_count: u32,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_StateNew", || {
        let held = REQUESTS.get(request)?;
        // SAFETY: the caller gives a terminated text, and that many dimensions.
        let (name, shape) =
            unsafe { (text::read(name, "the name")?, read_shape(shape, dims_count)?) };
        let config = &held.outlet.config;
        if !config.is_state(&name) {
            return Err(Error::invalid_arg(format!(
                "state '{name}' is not a valid state name of model '{}'.",
                config.name()
            )));
        }
        let mut states = held.states.lock_unpoisoned();
        if states.len() >= MOST_STATES {
            let text = format!("a request cannot have more than {MOST_STATES} new states");
            return Err(Error::invalid_arg(text));
        }
        let part = REQUESTS.part(request, KIND, states.len())?;
        let data_type = read_type(data_type)?;
        let name = name.into();
        states.push(StateDraft { name, data_type, shape, memory: None, is_updated: false });
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(state, part, "the state") }
    })
}

pub(crate) unsafe extern "C" fn state_buffer(
    state: *mut abi::State,
    buffer: *mut *mut c_void,
    byte_size: u64,
    memory_type: *mut u32,
    memory_type_id: *mut i64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_StateBuffer", || {
        let (request, index) = find(state)?;
        let mut states = request.states.lock_unpoisoned();
        let draft = states.get_mut(index).filter(|draft| !draft.is_updated).ok_or_else(none)?;
        let block = draft.memory.insert(memory::block(byte_size)?);
        let address = block.as_mut_slice().as_mut_ptr();
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(buffer, address.cast(), "the buffer")?;
            call::put(memory_type, abi::memory::CPU, "the kind of memory")?;
            call::put(memory_type_id, 0, "the number of the memory")
        }
    })
}

pub(crate) unsafe extern "C" fn state_buffer_attributes(
    state: *mut abi::State,
    attributes: *mut *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_StateBufferAttributes", || {
        let (request, index) = find(state)?;
        let byte_size = {
            let states = request.states.lock_unpoisoned();
            let draft = states.get(index).ok_or_else(none)?;
            draft.memory.as_ref().map_or(0, AlignedBlock::len)
        };
        let own = OwnAttributes::new(Attributes { byte_size, ..Attributes::default() })?;
        let handle = own.handle();
        request.attributes.lock_unpoisoned().push(own);
        // SAFETY: the caller gives a place for the result, which lives with the request.
        unsafe { call::put(attributes, handle, "the attributes") }
    })
}

/// Makes the state the one of the next request of the sequence.
pub(crate) unsafe extern "C" fn state_update(state: *mut abi::State) -> *mut abi::Error {
    call::answer("TRITONBACKEND_StateUpdate", || {
        let (request, index) = find(state)?;
        let tensor = {
            let mut states = request.states.lock_unpoisoned();
            let draft = states.get_mut(index).filter(|draft| !draft.is_updated).ok_or_else(none)?;
            let StateDraft { name, data_type, shape, memory, .. } = draft;
            let size = memory.as_ref().map_or(0, AlignedBlock::len);
            if data_type.byte_size().is_some() && shape.byte_size(*data_type) != Some(size) {
                return Err(Error::invalid_arg(format!(
                    "state '{name}' of type {data_type} and shape {shape} cannot have {size} bytes"
                )));
            }
            draft.is_updated = true;
            let data = draft.memory.take().map(AlignedBlock::freeze).unwrap_or_default();
            Tensor {
                name: draft.name.clone(),
                data_type: draft.data_type,
                shape: draft.shape.clone(),
                data,
            }
        };
        request.outlet.set_state(tensor)
    })
}
