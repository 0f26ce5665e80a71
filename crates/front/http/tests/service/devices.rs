//! A model that computes on a device: what lies in the device's memory stays there until it is answered.

use std::{fs, sync::Arc, thread};

use bytes::Bytes;
use galatea_backend::{
    Backend, Devices, InstanceSpec, LoadContext, Model, ModelInstance,
    batching::{Content, GroupRunner, JoinedInput, ModelOutput},
    testing::FakeDevice,
};
use galatea_config::ModelConfig;
use galatea_engine::{BackendRegistry, Engine, EngineOptions, GpuOptions, LocalRoot};
use galatea_http::{HttpOptions, serve};
use galatea_protocol::{grpc, http};
use galatea_types::{
    DeviceAllocator, Error, InferRequest, InferResponse, Memory, RequestContext, Responder, Result,
};

use crate::{any_port, client::Client};

/// Two requests are executed together, however long that takes.
const CONFIG: &str = "backend: \"on_device\" max_batch_size: 2 \
    dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 60000000 } \
    instance_group { kind: KIND_GPU gpus: 0 count: 1 } \
    input { name: \"IN\" data_type: TYPE_UINT8 dims: 2 } \
    output { name: \"OUT\" data_type: TYPE_UINT8 dims: 2 }";

const ASK: &str = r#"{"inputs":[{"name":"IN","datatype":"UINT8","shape":[1,2],"data":[5,6]}]}"#;

/// Adds 10 to each byte, in the memory of the device alone.
struct OnDevice(FakeDevice);

struct OnDeviceModel {
    device: FakeDevice,
    context: LoadContext,
}

struct OnDeviceInstance {
    device: FakeDevice,
    allocator: Arc<dyn DeviceAllocator>,
    config: Arc<ModelConfig>,
}

impl Backend for OnDevice {
    fn name(&self) -> &str {
        "on_device"
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(OnDeviceModel { device: self.0.clone(), context }))
    }
}

impl Model for OnDeviceModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let allocator = self.context.allocator_for(spec).cloned();
        let allocator = allocator.ok_or_else(|| Error::internal("no memory of a device"))?;
        let config = self.context.config.clone();
        Ok(Box::new(OnDeviceInstance { device: self.device.clone(), allocator, config }))
    }
}

impl GroupRunner for OnDeviceInstance {
    type Inputs = ModelOutput;
    type Outputs = ModelOutput;

    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn device(&self) -> Option<&dyn DeviceAllocator> {
        Some(&*self.allocator)
    }

    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<ModelOutput> {
        match joined.into_iter().flatten().next() {
            Some(JoinedInput { shape, content: Content::OnDevice(data), .. }) => {
                Ok(ModelOutput { shape, data })
            }
            other => Err(Error::internal(format!("not on the device: {other:?}"))),
        }
    }

    fn run(&self, inputs: ModelOutput, _: &[usize]) -> Result<ModelOutput> {
        let data = self.device.map(&inputs.data, |byte| byte + 10)?;
        Ok(ModelOutput { data, ..inputs })
    }

    fn outputs(&self, outputs: ModelOutput, _: &[usize]) -> Result<Vec<ModelOutput>> {
        Ok(vec![outputs])
    }
}

#[test]
fn a_request_in_device_memory_is_answered() {
    let repository = tempfile::tempdir().expect("temp dir");
    fs::create_dir_all(repository.path().join("m/1")).expect("version folder");
    fs::write(repository.path().join("m/config.pbtxt"), CONFIG).expect("config");
    let device = FakeDevice::gpu(0);
    let mut backends = BackendRegistry::default();
    let backend = Arc::new(OnDevice(device.clone()));
    backends.register("on_device", move || Ok(backend.clone()));
    let engine = Engine::new(
        EngineOptions {
            repositories: vec![LocalRoot::at(repository.path())],
            gpus: GpuOptions { available: vec![0], ..GpuOptions::default() },
            devices: Devices::new(vec![Arc::new(device.clone())]),
            ..Default::default()
        },
        backends,
    );
    engine.load_startup_models().expect("the model loads");
    let model = engine.model("m", None).expect("it is ready");
    let body = Bytes::from_static(ASK.as_bytes());
    let (request, plan) =
        http::decode(&body, body.len(), model.config(), None, &**engine.regions())
            .expect("a request");

    // One input lies on the device, the other one comes with a body.
    let (responder, answer) = Responder::unary();
    let mut on_device: InferRequest = request;
    on_device.inputs[0].data = device.buffer(&[1, 2]);
    model.infer(on_device, RequestContext::new(), responder).expect("it is accepted");
    let server = serve(any_port(), &engine, &HttpOptions::default()).expect("serves");
    let address = server.local_addr().expect("TCP");
    let client =
        thread::spawn(move || Client::connect(address).post("/v2/models/m/infer", ASK).text());
    let response: InferResponse = answer.blocking_recv().expect("an answer").expect("a response");
    let text = client.join().expect("no panic");
    assert!(text.contains(r#""shape":[1,2],"data":[15,16]"#), "{text}");

    assert!(matches!(response.outputs[0].data.memory(), Memory::Device(_)));
    assert_eq!(device.copies_to_host(), 1, "what the client got");
    let json = http::encode(response.clone(), &plan, |_, _| None).expect("encodes").json;
    let json = String::from_utf8(json).expect("text");
    assert!(json.ends_with(r#""shape":[1,2],"data":[11,12]}]}"#), "{json}");
    let envelope = grpc::Envelope::Unary;
    let pieces =
        grpc::encode_response(response, &plan, |_, _| None, usize::MAX, envelope, |_| [0; 0]);
    let bytes = pieces.expect("encodes").concat();
    assert!(bytes.ends_with(&[11, 12]), "{bytes:?}");
    assert_eq!(device.copies_to_host(), 3);
}
