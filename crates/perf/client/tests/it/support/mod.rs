//! What the tests of both protocols share.
#![allow(dead_code)] // each test program uses a part

use std::{future::Future, time::Duration};

use bytes::Bytes;
use galatea_client::{
    Compression, Endpoint, InferTemplate, InputData, InputTensor, Protocol, RequestedOutput,
    Target, TensorFormat,
};
use galatea_types::DataType;
use tokio::{net::TcpListener, runtime::Builder, task::LocalSet, time::timeout};

/// Runs a test as tools run the client. The bound only turns a hang into a failure.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let test = async { timeout(Duration::from_secs(60), test).await.expect("the test hangs") };
    LocalSet::new().block_on(&runtime, test);
}

pub async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

pub fn target(protocol: Protocol, port: u16) -> Target {
    Target {
        protocol,
        endpoint: Endpoint::Tcp { host: "127.0.0.1".into(), port },
        base_path: String::new(),
        headers: vec![("x-key".into(), "value".into())],
        tls: None,
        compression: Compression::None,
    }
}

/// A request with one input of these bytes.
pub fn template(data: impl Into<Bytes>) -> InferTemplate {
    let data = data.into();
    InferTemplate {
        model: "m".into(),
        version: String::new(),
        inputs: vec![InputTensor {
            name: "A".into(),
            data_type: DataType::Uint8,
            shape: vec![data.len() as i64],
            data: InputData::Inline(data),
        }],
        outputs: vec![RequestedOutput { name: "B".into(), region: None, classes: 0 }],
        parameters: Vec::new(),
        input_format: TensorFormat::Binary,
        output_format: TensorFormat::Binary,
    }
}
