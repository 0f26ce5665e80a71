//! Shared memory regions: status, register, unregister. The table of regions is used on the engine's control threads, because
//! the last use of a large region frees its memory, and the driver of a GPU may take long.

use std::sync::Arc;

use galatea_engine::{CudaRegionDescription, RegionDescription, RegionTable};
use galatea_frontend::{PassedDescriptors, RefusedDescriptors};
use galatea_protocol::http::{
    CudaRegion, CudaRegionStatus, RegionStatus, SystemRegion, decode_cuda_region,
    decode_system_region, region_statuses,
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
    let find = move || match (kind, name) {
        (SharedMemoryKind::System, None) => Ok(system_statuses(regions.list())),
        (SharedMemoryKind::System, Some(name)) => Ok(system_statuses(vec![regions.status(&name)?])),
        (SharedMemoryKind::Cuda, None) => Ok(cuda_statuses(regions.list_cuda())),
        (SharedMemoryKind::Cuda, Some(name)) => {
            Ok(cuda_statuses(vec![regions.cuda_status(&name)?]))
        }
    };
    state.engine.control().query(find).await.flatten()
}

fn system_statuses(regions: Vec<RegionDescription>) -> Vec<u8> {
    let status = |RegionDescription { name, key, offset, byte_size }| RegionStatus {
        name,
        key,
        offset,
        byte_size,
    };
    region_statuses(&regions.into_iter().map(status).collect::<Vec<_>>())
}

fn cuda_statuses(regions: Vec<CudaRegionDescription>) -> Vec<u8> {
    let status = |CudaRegionDescription { name, device_id, byte_size }| CudaRegionStatus {
        name,
        device_id,
        byte_size,
    };
    region_statuses(&regions.into_iter().map(status).collect::<Vec<_>>())
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
            let CudaRegion { handle, device_id, byte_size } = decode_cuda_region(&body)?;
            // No machine has so many GPUs that the cut matters.
            let device_id = i64::try_from(device_id).unwrap_or(i64::MAX);
            regions.register_cuda(CudaRegionDescription { name, device_id, byte_size }, &handle)
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
    let brings_memory = !descriptors.is_empty();
    let SystemRegion { key, offset, byte_size } = decode_system_region(body, brings_memory)?;
    let described = |key| RegionDescription { name, key, offset, byte_size };
    match key {
        Some(key) => regions.register(described(key)),
        None => register_passed(regions, described(String::new()), descriptors),
    }
}

fn register_passed(
    regions: &RegionTable,
    region: RegionDescription,
    descriptors: &PassedDescriptors,
) -> Result<()> {
    match descriptors.only() {
        Ok(Some(descriptor)) => regions.register_descriptor(region, descriptor),
        Ok(None) | Err(RefusedDescriptors) => Err(Error::invalid_arg(format!(
            "failed to register shared memory region '{}': more than one descriptor was passed with the request, or the server \
             may open no more",
            region.name
        ))),
    }
}

/// Unregisters a region or all, if clients may. An unknown region is no error, nor is one of the other kind.
async fn unregister(
    state: &ServerState,
    kind: SharedMemoryKind,
    name: Option<String>,
) -> Result<Vec<u8>> {
    let regions: Arc<RegionTable> = state.engine.client_regions()?.clone();
    let unregister = move || match (kind, name) {
        (SharedMemoryKind::System, Some(name)) => regions.unregister(&name),
        (SharedMemoryKind::System, None) => regions.unregister_all(),
        (SharedMemoryKind::Cuda, Some(name)) => regions.unregister_cuda(&name),
        (SharedMemoryKind::Cuda, None) => regions.unregister_all_cuda(),
    };
    state.engine.control().query(unregister).await?;
    Ok(Vec::new())
}
