//! Shared memory regions: status, register, unregister. The table of regions is used on the engine's control threads, because
//! the last use of a large region frees its memory.

use std::sync::Arc;

use galatea_engine::{RegionDescription, RegionTable};
use galatea_frontend::{PassedDescriptors, RefusedDescriptors};
use galatea_protocol::http::{
    RegionStatus, SystemRegion, check_cuda_region, decode_system_region, region_statuses,
};
use galatea_types::{Error, Result};

use crate::{
    request::{
        received_request::ReceivedRequest,
        route::{SharedMemoryAction, SharedMemoryKind},
    },
    response::{Response, answers::ok_or_failure},
    state::ServerState,
};

/// Answers a call about the region called `name`, or about all.
pub(crate) async fn respond(
    state: &ServerState,
    kind: SharedMemoryKind,
    action: SharedMemoryAction,
    name: Option<&str>,
    received: &mut ReceivedRequest<'_>,
) -> Response {
    let name = name.map(str::to_owned);
    ok_or_failure(match action {
        SharedMemoryAction::Status => status(state, kind, name).await,
        SharedMemoryAction::Register => register(state, kind, name, received).await,
        SharedMemoryAction::Unregister => unregister(state, kind, name).await,
    })
}

async fn status(
    state: &ServerState,
    kind: SharedMemoryKind,
    name: Option<String>,
) -> Result<Vec<u8>> {
    let regions = state.engine.regions().clone();
    let find = move || {
        let found = match (kind, name) {
            (SharedMemoryKind::System, None) => regions.list(),
            (SharedMemoryKind::System, Some(name)) => vec![regions.status(&name)?],
            (SharedMemoryKind::Cuda, None) => vec![],
            (SharedMemoryKind::Cuda, Some(name)) => {
                regions.cuda_status(&name)?;
                vec![]
            }
        };
        Ok(region_statuses(&found.into_iter().map(status_of).collect::<Vec<_>>()))
    };
    state.engine.control().query(find).await.flatten()
}

fn status_of(region: RegionDescription) -> RegionStatus {
    let RegionDescription { name, key, offset, byte_size } = region;
    RegionStatus { name, key, offset, byte_size }
}

/// Registers a region, if clients may. That is asked before the name and the body are looked at.
async fn register(
    state: &ServerState,
    kind: SharedMemoryKind,
    name: Option<String>,
    received: &mut ReceivedRequest<'_>,
) -> Result<Vec<u8>> {
    let regions = state.engine.client_regions()?.clone();
    let name = name.ok_or_else(|| {
        let kind = match kind {
            SharedMemoryKind::System => "system",
            SharedMemoryKind::Cuda => "cuda",
        };
        let text = format!("'region name' is necessary to register {kind} shared memory region");
        Error::invalid_arg(text)
    })?;
    let body = received.body(None, state.json_limit()).await?;
    let descriptors = received.take_descriptors();
    let register = move || match kind {
        SharedMemoryKind::System => register_system(&regions, name, &body, &descriptors),
        SharedMemoryKind::Cuda => {
            check_cuda_region(&body)?;
            regions.register_cuda(&name)
        }
    };
    state.engine.control().query(register).await.flatten()?;
    Ok(Vec::new())
}

/// Registers the memory of the body's key, or without a key that of the descriptor that came with the request.
fn register_system(
    regions: &RegionTable,
    name: String,
    body: &[u8],
    descriptors: &PassedDescriptors,
) -> Result<()> {
    let has_other_memory = !descriptors.is_empty();
    let SystemRegion { key, offset, byte_size } = decode_system_region(body, has_other_memory)?;
    let (is_named, key) = (key.is_some(), key.unwrap_or_default());
    let region = RegionDescription { name, key, offset, byte_size };
    match descriptors.only() {
        Ok(Some(descriptor)) if !is_named => regions.register_descriptor(region, descriptor),
        Err(RefusedDescriptors) if !is_named => Err(Error::invalid_arg(format!(
            "failed to register shared memory region '{}': more than one descriptor was passed with the request, or the server \
             may open no more",
            region.name
        ))),
        _ => regions.register(region),
    }
}

/// Unregisters a region or all, if clients may. An unknown region is no error, nor is one of the other kind.
async fn unregister(
    state: &ServerState,
    kind: SharedMemoryKind,
    name: Option<String>,
) -> Result<Vec<u8>> {
    let regions: Arc<RegionTable> = state.engine.client_regions()?.clone();
    if kind == SharedMemoryKind::System {
        let unregister = move || match name {
            Some(name) => regions.unregister(&name),
            None => regions.unregister_all(),
        };
        state.engine.control().query(unregister).await?;
    }
    Ok(Vec::new())
}
