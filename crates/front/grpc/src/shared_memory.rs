//! Shared memory regions: status, register, unregister. The table of regions is used on the engine's control threads, because
//! the last use of a large region frees its memory, and the driver of a GPU may take long.

use galatea_engine::{CudaRegionDescription, Engine, RegionDescription};
use galatea_proto::inference::{
    CudaSharedMemoryRegisterRequest, CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse,
    CudaSharedMemoryUnregisterRequest, SystemSharedMemoryRegisterRequest,
    SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest,
    cuda_shared_memory_status_response::RegionStatus as CudaRegionStatus,
    system_shared_memory_status_response::RegionStatus,
};
use galatea_protocol::grpc::Pieces;
use galatea_types::{Error, Result};
use tonic::Status;

use crate::{message::decode, response_body::MessageBody, status::status_of};

/// Answers a call about regions. `most` is the longest response in bytes.
pub(crate) async fn answer(
    engine: &Engine,
    method: &str,
    message: Pieces,
    most: usize,
) -> Result<MessageBody, Status> {
    match method {
        "SystemSharedMemoryStatus" => system_status(engine, message, most).await,
        "SystemSharedMemoryRegister" => register_system(engine, message).await,
        "SystemSharedMemoryUnregister" => unregister_system(engine, message).await,
        "CudaSharedMemoryStatus" => cuda_status(engine, message, most).await,
        "CudaSharedMemoryRegister" => register_cuda(engine, message).await,
        "CudaSharedMemoryUnregister" => unregister_cuda(engine, message).await,
        _ => Err(Status::unimplemented("")),
    }
}

/// Refuses a change if clients may make none. That is asked before the message is looked at.
fn allowed(engine: &Engine) -> Result<(), Status> {
    engine.client_regions().map(drop).map_err(|error| status_of(&error))
}

fn reply<T>(result: Result<T, Error>) -> Result<T, Status> {
    result.map_err(|error| status_of(&error))
}

async fn system_status(
    engine: &Engine,
    message: Pieces,
    most: usize,
) -> Result<MessageBody, Status> {
    let SystemSharedMemoryStatusRequest { name } = decode(message)?;
    let regions = engine.regions().clone();
    let find = move || match name.as_str() {
        "" => Ok(regions.list()),
        name => regions.status(name).map(|region| vec![region]),
    };
    let found = reply(engine.control().query(find).await.flatten())?;
    let entry = |region: RegionDescription| {
        let RegionDescription { name, key, offset, byte_size } = region;
        (name.clone(), RegionStatus { name, key, offset, byte_size })
    };
    let regions = found.into_iter().map(entry).collect();
    MessageBody::of(&SystemSharedMemoryStatusResponse { regions }, most)
}

async fn register_system(engine: &Engine, message: Pieces) -> Result<MessageBody, Status> {
    allowed(engine)?;
    let SystemSharedMemoryRegisterRequest { name, key, offset, byte_size } = decode(message)?;
    let regions = engine.regions().clone();
    let register = move || regions.register(RegionDescription { name, key, offset, byte_size });
    reply(engine.control().query(register).await.flatten())?;
    Ok(MessageBody::empty())
}

async fn unregister_system(engine: &Engine, message: Pieces) -> Result<MessageBody, Status> {
    allowed(engine)?;
    let SystemSharedMemoryUnregisterRequest { name } = decode(message)?;
    let regions = engine.regions().clone();
    let unregister = move || match name.as_str() {
        "" => regions.unregister_all(),
        name => regions.unregister(name),
    };
    reply(engine.control().query(unregister).await)?;
    Ok(MessageBody::empty())
}

async fn cuda_status(engine: &Engine, message: Pieces, most: usize) -> Result<MessageBody, Status> {
    let CudaSharedMemoryStatusRequest { name } = decode(message)?;
    let regions = engine.regions().clone();
    let find = move || match name.as_str() {
        "" => Ok(regions.list_cuda()),
        name => regions.cuda_status(name).map(|region| vec![region]),
    };
    let found = reply(engine.control().query(find).await.flatten())?;
    let entry = |region: CudaRegionDescription| {
        let CudaRegionDescription { name, device_id, byte_size } = region;
        // A GPU that was found has a number that is not negative.
        let device_id = u64::try_from(device_id).unwrap_or_default();
        (name.clone(), CudaRegionStatus { name, device_id, byte_size })
    };
    let regions = found.into_iter().map(entry).collect();
    MessageBody::of(&CudaSharedMemoryStatusResponse { regions }, most)
}

async fn register_cuda(engine: &Engine, message: Pieces) -> Result<MessageBody, Status> {
    allowed(engine)?;
    let CudaSharedMemoryRegisterRequest { name, raw_handle, device_id, byte_size } =
        decode(message)?;
    let regions = engine.regions().clone();
    let description = CudaRegionDescription { name, device_id, byte_size };
    let register = move || regions.register_cuda(description, &raw_handle);
    reply(engine.control().query(register).await.flatten())?;
    Ok(MessageBody::empty())
}

async fn unregister_cuda(engine: &Engine, message: Pieces) -> Result<MessageBody, Status> {
    allowed(engine)?;
    let CudaSharedMemoryUnregisterRequest { name } = decode(message)?;
    let regions = engine.regions().clone();
    let unregister = move || match name.as_str() {
        "" => regions.unregister_all_cuda(),
        name => regions.unregister_cuda(name),
    };
    reply(engine.control().query(unregister).await)?;
    Ok(MessageBody::empty())
}
