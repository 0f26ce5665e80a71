//! What a call costs this client: CPU time, in user and system mode, and latency.
//!
//! `cargo run --release -p galatea-client --example call -- http localhost:8000 MODEL [SECONDS]` against a server whose
//! model has fixed shapes; tensors are zeros.

#![expect(clippy::disallowed_methods, reason = "it measures times")]

use std::{
    fs,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_client::{
    Address, Compression, Connector, InferMark, InferTemplate, InputData, InputTensor,
    KeepResponse, PreparedInfer, Protocol, RequestedOutput, SequenceMark, Target, TensorFormat,
};
use galatea_types::{Error, Result};
use tokio::{runtime, task::LocalSet};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, address, model, rest @ ..] = &arguments[..] else {
        return Err(Error::invalid_arg("arguments: http|grpc HOST:PORT MODEL [SECONDS]"));
    };
    let seconds = rest.first().and_then(|text| text.parse().ok()).unwrap_or(3);
    let target = target(protocol, address)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::internal(error.to_string()))?;
    let run = measure(target, model.clone(), Duration::from_secs(seconds));
    LocalSet::new().block_on(&runtime, run)
}

fn target(protocol: &str, address: &str) -> Result<Target> {
    let protocol = if protocol == "grpc" { Protocol::Grpc } else { Protocol::Http };
    let address =
        Address::read(address, protocol).map_err(|error| Error::invalid_arg(error.to_string()))?;
    Ok(Target {
        protocol,
        endpoint: address.endpoint,
        base_path: String::new(),
        headers: Vec::new(),
        tls: None,
        compression: Compression::None,
    })
}

async fn measure(target: Target, model: String, duration: Duration) -> Result<()> {
    let connector = Rc::new(Connector::new(target.clone())?);
    let request = Arc::new(request(&target, &connector, model).await?);
    let marked =
        InferMark { id: Some(1), sequence: Some(SequenceMark { id: 7, start: true, end: true }) };
    for (what, mark, keep) in [
        ("plain", InferMark::default(), KeepResponse::Nothing),
        ("marked", marked, KeepResponse::Nothing),
        ("outputs", InferMark::default(), KeepResponse::Outputs),
    ] {
        for concurrency in [1, 16] {
            let before = cpu_time()?;
            let begin = Instant::now();
            let callers = (0..concurrency).map(|_| {
                let (connector, request) = (Rc::clone(&connector), Arc::clone(&request));
                tokio::task::spawn_local(async move {
                    let mut caller = connector.caller().await?;
                    let mut count = 0u32;
                    let mut latency = Duration::ZERO;
                    while begin.elapsed() < duration {
                        let times = caller.infer(&request, mark, keep).await?.times;
                        latency += times.end - times.start;
                        count += 1;
                    }
                    Ok::<_, Error>((count, latency))
                })
            });
            let (mut count, mut latency) = (0, Duration::ZERO);
            for caller in callers.collect::<Vec<_>>() {
                let (calls, time) = caller.await.map_err(|e| Error::internal(e.to_string()))??;
                count += calls;
                latency += time;
            }
            let used = cpu_time()?;
            println!(
                "{what:>8} concurrency {concurrency:>2}: {:>7.0} calls/s, {:>6.1} us each; CPU per call {:.1} us \
                 user + {:.1} us system",
                f64::from(count) / begin.elapsed().as_secs_f64(),
                latency.as_secs_f64() * 1e6 / f64::from(count.max(1)),
                (used.0 - before.0).as_secs_f64() * 1e6 / f64::from(count.max(1)),
                (used.1 - before.1).as_secs_f64() * 1e6 / f64::from(count.max(1)),
            );
        }
    }
    Ok(())
}

async fn request(target: &Target, connector: &Connector, model: String) -> Result<PreparedInfer> {
    let mut admin = connector.admin().await?;
    let metadata = admin.model_metadata(&model, "").await?;
    let inputs = metadata.inputs.into_iter().map(|input| {
        let shape: Vec<i64> = input.shape.iter().map(|&size| size.max(1)).collect();
        let elements = usize::try_from(shape.iter().product::<i64>()).unwrap_or_default();
        let data = vec![0; elements * input.data_type.byte_size().unwrap_or(4)];
        let data = InputData::Inline(data.into());
        InputTensor { name: input.name, data_type: input.data_type, shape, data }
    });
    let outputs = metadata.outputs.into_iter();
    let template = InferTemplate {
        model,
        version: String::new(),
        inputs: inputs.collect(),
        outputs: outputs
            .map(|output| RequestedOutput { name: output.name, region: None, classes: 0 })
            .collect(),
        parameters: Vec::new(),
        input_format: TensorFormat::Binary,
        output_format: TensorFormat::Binary,
    };
    PreparedInfer::new(target, &template)
}

/// Of this process so far, in user and system mode; the kernel counts in hundredths of a second.
fn cpu_time() -> Result<(Duration, Duration)> {
    let text = fs::read_to_string("/proc/self/stat");
    let text = text.map_err(|error| Error::internal(error.to_string()))?;
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut ticks = fields.split_ascii_whitespace().skip(11).map_while(|field| field.parse().ok());
    let mut time = || Duration::from_millis(10 * ticks.next().unwrap_or(0u64));
    Ok((time(), time()))
}
