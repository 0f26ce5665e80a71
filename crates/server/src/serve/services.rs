//! The front ends: started, made to refuse requests, shut down.

use std::{
    io, mem,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use galatea_engine::Engine;
use galatea_frontend::FrontEnd;
use galatea_http::HttpOptions;

use super::{
    cloud,
    socket::{BoundSocket, Sockets},
};
use crate::options::{Endpoint, ServeOptions};

/// The front ends: sockets until they are started.
pub struct Services {
    grpc: Service,
    http: Service,
    metrics: Service,
    /// Those of cloud platforms, in the order of the options.
    clouds: Vec<Service>,
}

/// One of them.
enum Service {
    NotServed,
    Bound(BoundSocket),
    Running(FrontEnd),
}

/// What the log calls the front end that has the console.
const HTTP: &str = "HTTPService";

/// What it calls the one of gRPC.
const GRPC: &str = "GRPCInferenceService";

/// Starts to serve on a listening socket.
type Serve<'a> = &'a dyn Fn(TcpListener) -> io::Result<FrontEnd>;

impl Services {
    pub fn new(sockets: Sockets) -> Self {
        let service =
            |socket: Option<BoundSocket>| socket.map_or(Service::NotServed, Service::Bound);
        let Sockets { grpc, http, metrics, clouds } = sockets;
        let clouds = clouds.into_iter().map(Service::Bound).collect();
        Self { grpc: service(grpc), http: service(http), metrics: service(metrics), clouds }
    }

    /// Starts those that may listen while models are loaded, so that liveness is answered: not those whose port
    /// another server may serve meanwhile, for half of its clients would come here and wait.
    pub fn start_early(&mut self, engine: &Arc<Engine>, options: &ServeOptions) -> Result<()> {
        self.each(engine, options, |service, endpoint, name, serve| {
            if endpoint.reuses_port {
                return Ok(());
            }
            let at = place(endpoint, service.start(name, serve)?);
            log::info!("While models are loaded requests wait, {name} listens at {at}");
            Ok(())
        })
    }

    /// Starts the others, and tells of all in Triton's order, gRPC first: a script that waits for the last line
    /// finds all of them.
    pub fn start(&mut self, engine: &Arc<Engine>, options: &ServeOptions) -> Result<()> {
        self.each(engine, options, |service, endpoint, name, serve| {
            let at = place(endpoint, service.start(name, serve)?);
            log::info!("Started {name} at {at}{}", over(name, options));
            if name == HTTP && options.http_options.has_console {
                let scheme = scheme(&options.http_options);
                log::info!("The console is at {scheme}://{at}/");
            }
            Ok(())
        })?;
        for (service, cloud) in self.clouds.iter_mut().zip(&options.clouds) {
            let (name, platform) = cloud::front_end(engine, cloud)?;
            let serve =
                |at| galatea_http::serve_cloud(at, engine, &options.http_options, platform.clone());
            let at = place(&cloud.endpoint, service.start(name, &serve)?);
            log::info!("Started {name} HTTPService at {at}");
        }
        Ok(())
    }

    /// Where HTTP is served, once it is.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.address()
    }

    /// Where gRPC is served, once it is.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.address()
    }

    /// Where metrics are served, once they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.address()
    }

    /// Calls `act` with every front end that is served, what the log calls it, and how it is started.
    fn each(
        &mut self,
        engine: &Arc<Engine>,
        options: &ServeOptions,
        act: impl Fn(&mut Service, &Endpoint, &'static str, Serve<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(endpoint) = &options.grpc {
            let serve = |at| galatea_grpc::serve(at, engine, &options.grpc_options);
            act(&mut self.grpc, endpoint, GRPC, &serve)?;
        }
        if let Some(endpoint) = &options.http {
            let serve = |at| galatea_http::serve(at, engine, &options.http_options);
            act(&mut self.http, endpoint, HTTP, &serve)?;
        }
        if let Some(endpoint) = &options.metrics {
            let serve = |at| galatea_http::serve_metrics(at, engine, &options.http_options);
            act(&mut self.metrics, endpoint, "Metrics Service", &serve)?;
        }
        Ok(())
    }

    /// From now on gRPC calls are refused, which their clients make elsewhere then, and no HTTP connections are accepted.
    /// Those that are open are served on, and each is closed with its next response: clients take an idle connection for
    /// one that works.
    pub fn drain(&self) {
        if let Service::Running(grpc) = &self.grpc {
            grpc.refuse_new_requests();
        }
        for service in self.clouds.iter().chain([&self.http]) {
            if let Service::Running(http) = service {
                http.drain();
            }
        }
    }

    /// From now on inference and management are answered with "unavailable"; requests in flight go on. The
    /// metrics stay, so that draining can be watched.
    pub fn refuse_new_requests(&self) {
        for service in self.clouds.iter().chain([&self.grpc, &self.http]) {
            if let Service::Running(front_end) = service {
                front_end.refuse_new_requests();
            }
        }
    }

    /// Sends the responses that are left, until `deadline`. Returns how many requests were cut off.
    pub fn shut_down(self, deadline: Instant) -> usize {
        let left = || deadline.saturating_duration_since(Instant::now());
        let grpc = self.grpc.shut_down(left());
        let http = self.http.shut_down(left());
        let clouds = self.clouds.into_iter().map(|service| service.shut_down(left()));
        let clouds: usize = clouds.sum();
        self.metrics.shut_down(Duration::ZERO);
        grpc + http + clouds
    }
}

impl Service {
    /// Starts it unless it runs; where it listens.
    fn start(&mut self, name: &'static str, serve: Serve<'_>) -> Result<Option<SocketAddr>> {
        *self = match mem::replace(self, Self::NotServed) {
            Self::Bound(socket) => {
                let server = serve(socket.listen()?);
                Self::Running(server.with_context(|| format!("failed to start {name}"))?)
            }
            other => other,
        };
        Ok(self.address())
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Running(front_end) => front_end.local_addr(),
            _ => None,
        }
    }

    fn shut_down(self, timeout: Duration) -> usize {
        match self {
            Self::Running(front_end) => front_end.shut_down(timeout),
            _ => 0,
        }
    }
}

/// The address as it was given, with the port that was bound.
fn place(endpoint: &Endpoint, at: Option<SocketAddr>) -> String {
    format!("{}:{}", endpoint.address, at.map_or(endpoint.port, |at| at.port()))
}

/// What the line about the start says of the connections of a service that are encrypted.
fn over(name: &str, options: &ServeOptions) -> &'static str {
    let tls = match name {
        GRPC => &options.grpc_options.tls,
        HTTP => &options.http_options.tls,
        _ => &options.http_options.metrics_tls,
    };
    match tls {
        None => "",
        Some(tls) if tls.asks_for_client_certificates() => {
            " over TLS, for clients with a certificate"
        }
        Some(_) => " over TLS",
    }
}

/// How URLs of the HTTP service begin.
pub fn scheme(options: &HttpOptions) -> &'static str {
    if options.tls.is_some() { "https" } else { "http" }
}
