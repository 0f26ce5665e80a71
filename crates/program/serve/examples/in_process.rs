//! Serves the models of a folder inside this process, without a front end, and sends one of them a request:
//! `cargo run --package galatea-serve --example in_process MODELS MODEL`. The model has one input, `INPUT0`, of four
//! numbers (TYPE_FP32).

use std::env;

use anyhow::{Context, Result};
use galatea_serve::{RuntimeOptions, ServeOptions, Server};
use galatea_types::{DataType, InferRequest, Refused, RequestContext, Responder, Tensor};

fn main() -> Result<()> {
    let mut words = env::args().skip(1);
    let models = words.next().context("the folder of the models is missing")?;
    let name = words.next().context("the name of a model is missing")?;
    let mut server = Server::build(ServeOptions {
        repositories: vec![models.into()],
        runtimes: RuntimeOptions { environment: env::vars_os().collect(), ..Default::default() },
        ..ServeOptions::default()
    })?;
    server.serve()?;

    let numbers: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let input = Tensor::new("INPUT0", DataType::Fp32, [4], numbers);
    let request = InferRequest { inputs: vec![input], ..InferRequest::new(name.as_str()) };
    let (responder, response) = Responder::unary();
    let model = server.engine().model(&name, None)?;
    model.infer(request, RequestContext::new(), responder).map_err(Refused::into_error)?;
    for output in response.blocking_recv()??.outputs {
        let values = output.host()?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        println!("{}: {:?}", output.name, values.collect::<Vec<_>>());
    }
    // A model is unloaded when nobody holds it.
    drop(model);
    server.shut_down();
    Ok(())
}
