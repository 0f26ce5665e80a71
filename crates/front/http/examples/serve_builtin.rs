//! Serves a model repository with the built-in backends only: `serve_builtin REPOSITORY HTTP_PORT METRICS_PORT`.

use std::{env, net::TcpListener, thread};

use galatea_engine::{BackendRegistry, Engine, EngineOptions, LocalRoot};
use galatea_http::{HttpOptions, serve, serve_metrics};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let mut next =
        || arguments.next().ok_or("usage: serve_builtin REPOSITORY HTTP_PORT METRICS_PORT");
    let repository = next()?;
    let (http, metrics) = (next()?.parse::<u16>()?, next()?.parse::<u16>()?);
    let mut backends = BackendRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        backends.register(backend.name(), move || Ok(backend.open()));
    }
    let options =
        EngineOptions { repositories: vec![LocalRoot::at(repository)], ..Default::default() };
    let engine = Engine::new(options, backends);
    if let Err(error) = engine.load_startup_models() {
        eprintln!("{error}");
    }
    let listen = |port| TcpListener::bind(("127.0.0.1", port));
    let (http, metrics) = (listen(http)?, listen(metrics)?);
    println!("HTTP on {}, metrics on {}", http.local_addr()?, metrics.local_addr()?);
    let _http = serve(http, &engine, &HttpOptions::default())?;
    let _metrics = serve_metrics(metrics, &engine, &HttpOptions::default())?;
    loop {
        thread::park();
    }
}
