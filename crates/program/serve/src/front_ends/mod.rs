//! Starts the front ends, makes them refuse requests, and shuts them down.

pub mod access_log;
pub mod authentication;
mod cloud;
pub mod connections;
pub mod encryption;
pub mod exposure;
mod socket;
pub mod traces;

use std::{
    mem,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use galatea_engine::Engine;
use galatea_frontend::{FrontEnd, Listener, Tls};
use galatea_http::CloudFrontEnd;

use self::socket::BoundSocket;
use crate::{
    options::{Endpoint, Place, PortPlace, ServeOptions},
    socket_file::SocketFile,
    takeover::{OfferedSocket, PassedSockets, Predecessor, SocketName, TakenSockets},
};

/// The front ends in Triton's order, gRPC first. They are sockets until they are started.
pub struct FrontEnds(Vec<Service>);

struct Service {
    kind: Kind,
    endpoint: Endpoint,
    state: State,
    /// The file of its Unix socket, removed at the end.
    file: Option<SocketFile>,
    /// A further descriptor of its socket, for a server that takes over.
    passable: Option<OwnedFd>,
    /// Another server has passed the socket.
    is_adopted: bool,
}

enum Kind {
    Grpc,
    Http,
    Metrics,
    Cloud(CloudFrontEnd),
}

enum State {
    /// Another server has its socket and will pass it.
    Awaited,
    Bound(BoundSocket),
    Running(FrontEnd),
    /// The service could not be started.
    Failed,
}

impl FrontEnds {
    /// Binds the sockets of all front ends in the options, except those that another server will pass.
    pub(crate) fn bind(options: &ServeOptions, other: Option<&Predecessor>) -> Result<Self> {
        let own = [
            (Kind::Http, &options.http),
            (Kind::Grpc, &options.grpc),
            (Kind::Metrics, &options.metrics),
        ];
        let own = own.into_iter().filter_map(|(kind, endpoint)| Some((kind, endpoint.as_ref()?)));
        let clouds = options.clouds.iter();
        let clouds = clouds.map(|cloud| (Kind::Cloud(cloud.platform.clone()), &cloud.endpoint));
        let bind = |(kind, endpoint): (Kind, &Endpoint)| {
            let endpoint = endpoint.clone();
            let is_awaited = other.is_some_and(|other| other.offers(&SocketName::of(&endpoint)));
            let (state, file) = match is_awaited {
                true => (State::Awaited, None),
                false => {
                    let (socket, file) = socket::bind(&endpoint)?;
                    (State::Bound(socket), file)
                }
            };
            Ok(Service { kind, endpoint, state, file, passable: None, is_adopted: false })
        };
        let mut services = own.chain(clouds).map(bind).collect::<Result<Vec<_>>>()?;
        services.sort_by_key(|service| !matches!(service.kind, Kind::Grpc));
        Ok(Self(services))
    }

    /// Gives each service the socket that another server has passed for it. One whose socket is missing opens its own.
    pub(crate) fn adopt(&mut self, passed: &mut PassedSockets) -> Result<()> {
        let awaited = |service: &&mut Service| matches!(service.state, State::Awaited);
        for service in self.0.iter_mut().filter(awaited) {
            let endpoint = &service.endpoint;
            let (socket, file) = match passed.take(&SocketName::of(endpoint)) {
                Some(passed) => {
                    service.is_adopted = true;
                    socket::adopt(endpoint, passed)?
                }
                None => socket::bind(endpoint)?,
            };
            (service.state, service.file) = (State::Bound(socket), file);
        }
        Ok(())
    }

    /// Returns the names of the sockets that another server has passed to this one.
    pub(crate) fn adopted(&self) -> Vec<SocketName> {
        let adopted = self.0.iter().filter(|service| service.is_adopted);
        adopted.map(|service| SocketName::of(&service.endpoint)).collect()
    }

    /// Sets whether the files of Unix sockets belong to this server.
    pub(crate) fn set_own(&mut self, is_own: bool) {
        let files = self.0.iter_mut().filter_map(|service| service.file.as_mut());
        files.for_each(|file| file.set_own(is_own));
    }

    /// Returns the sockets for a server that takes over. A second call returns none.
    pub(crate) fn offered(&mut self) -> Result<Vec<OfferedSocket>> {
        let offered = |service: &mut Service| {
            let socket = service.passable.take()?;
            let lock = service.file.as_ref().map(SocketFile::try_clone_lock).transpose();
            let name = SocketName::of(&service.endpoint);
            Some(lock.map(|lock| OfferedSocket { name, socket, lock }))
        };
        let sockets = self.0.iter_mut().filter_map(offered);
        sockets.collect::<std::io::Result<_>>().context("failed to offer the sockets")
    }

    /// Leaves the sockets to another server, which has those in `taken`, and waits until the clients have gone there, at most for
    /// `limit`. The files of the others are removed with this server.
    pub(crate) fn hand_over(&mut self, taken: &TakenSockets, limit: Duration) {
        for service in &mut self.0 {
            if let Some(file) = &mut service.file {
                file.set_own(!taken.may_contain(&SocketName::of(&service.endpoint)));
            }
        }
        let running = || self.0.iter().filter_map(Service::running);
        running().for_each(FrontEnd::hand_over);
        let deadline = Instant::now() + limit;
        let open: usize = running().map(|front_end| front_end.wait_until_left(deadline)).sum();
        if open > 0 {
            log::info!("{open} connections are still open after {} s", limit.as_secs());
        }
    }

    /// Starts those that may listen while models are loaded, so that liveness is answered. A shared port is left out: half of the
    /// clients of the other server would come here and wait.
    pub(crate) fn start_early(
        &mut self,
        engine: &Arc<Engine>,
        options: &ServeOptions,
    ) -> Result<()> {
        let is_early = |one: &&mut Service| {
            let is_shared = one.endpoint.port().is_some_and(|port| port.is_shared);
            !is_shared && !matches!(one.kind, Kind::Cloud(_))
        };
        for service in self.0.iter_mut().filter(is_early) {
            let at = service.start(engine, options)?;
            let name = service.name();
            log::info!("Requests wait until the models are loaded; {name} listens at {at}");
        }
        Ok(())
    }

    /// Starts the others, and logs all: a script that waits for the last line finds all of them.
    pub(crate) fn start(&mut self, engine: &Arc<Engine>, options: &ServeOptions) -> Result<()> {
        for service in &mut self.0 {
            let at = service.start(engine, options)?;
            let (name, tls) = (service.name(), service.tls(options));
            match service.kind {
                Kind::Cloud(_) => log::info!("Started {name} HTTPService at {at}"),
                _ => log::info!("Started {name} at {at}{}", over(tls)),
            }
            let has_console = service.endpoint.port().is_some() && options.http_options.has_console;
            if matches!(service.kind, Kind::Http) && has_console {
                let scheme = if tls.is_some() { "https" } else { "http" };
                log::info!("The console is at {scheme}://{at}/");
            }
        }
        Ok(())
    }

    /// Returns the address of HTTP, once it is served.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.address(|kind| matches!(kind, Kind::Http))
    }

    /// Returns the address of gRPC, once it is served.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.address(|kind| matches!(kind, Kind::Grpc))
    }

    /// Returns the address of metrics, once they are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.address(|kind| matches!(kind, Kind::Metrics))
    }

    fn address(&self, is_wanted: impl Fn(&Kind) -> bool) -> Option<SocketAddr> {
        self.0.iter().find(|service| is_wanted(&service.kind))?.address()
    }

    /// Refuses gRPC calls from now on, which clients then make elsewhere, and accepts no HTTP connections. Open ones are still
    /// served, and each is closed with its next response: clients assume that an idle connection works.
    pub(crate) fn drain(&self) {
        for service in &self.0 {
            match (&service.kind, &service.state) {
                (Kind::Grpc, State::Running(grpc)) => grpc.refuse_new_requests(),
                (Kind::Http | Kind::Cloud(_), State::Running(http)) => http.drain(),
                _ => {}
            }
        }
    }

    /// Answers inference and management with "unavailable" from now on; requests in flight continue. Metrics are still served, so
    /// that draining can be watched.
    pub(crate) fn refuse_new_requests(&self) {
        for service in self.0.iter().filter(|service| !service.is_of_metrics()) {
            if let State::Running(front_end) = &service.state {
                front_end.refuse_new_requests();
            }
        }
    }

    /// Sends the remaining responses until `deadline`, except those of metrics. Returns the number of requests that were cut off.
    pub(crate) fn shut_down(self, deadline: Instant) -> usize {
        let (metrics, others): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(Service::is_of_metrics);
        let left = || deadline.saturating_duration_since(Instant::now());
        let cut_off = others.into_iter().map(|service| service.shut_down(left())).sum();
        for service in metrics {
            service.shut_down(Duration::ZERO);
        }
        cut_off
    }
}

impl Service {
    /// Starts the service unless it runs. Returns its address as given, with the bound port.
    fn start(&mut self, engine: &Arc<Engine>, options: &ServeOptions) -> Result<String> {
        self.state = match mem::replace(&mut self.state, State::Failed) {
            State::Bound(socket) => {
                let listener = socket::listen(socket, &self.endpoint)?;
                if options.takeover.is_some() {
                    self.passable = Some(listener.try_clone_descriptor()?);
                }
                State::Running(self.serve(listener, engine, options)?)
            }
            other => other,
        };
        let at = match (&self.endpoint.place, self.address()) {
            (Place::Port(PortPlace { address, .. }), Some(bound)) => {
                format!("{address}:{}", bound.port())
            }
            (place, _) => place.to_string(),
        };
        let is_encrypted = self.tls(options).is_some();
        options.http_options.about.add_port(self.name(), at.clone(), is_encrypted);
        Ok(at)
    }

    fn serve(
        &self,
        at: Listener,
        engine: &Arc<Engine>,
        options: &ServeOptions,
    ) -> Result<FrontEnd> {
        let http = &options.http_options;
        let started = match &self.kind {
            Kind::Grpc => galatea_grpc::serve(at, engine, &options.grpc_options),
            Kind::Http => galatea_http::serve(at, engine, http),
            Kind::Metrics => galatea_http::serve_metrics(at, engine, http),
            Kind::Cloud(platform) => {
                galatea_http::serve_cloud(at, engine, http, cloud::front_end(engine, platform)?)
            }
        };
        started.with_context(|| format!("failed to start {}", self.name()))
    }

    /// Returns its name in the log.
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Grpc => "GRPCInferenceService",
            Kind::Http => "HTTPService",
            Kind::Metrics => "Metrics Service",
            Kind::Cloud(CloudFrontEnd::SageMaker { .. }) => "Sagemaker",
            Kind::Cloud(CloudFrontEnd::VertexAi { .. }) => "Vertex AI",
        }
    }

    fn tls<'a>(&self, options: &'a ServeOptions) -> Option<&'a Tls> {
        let tls = match self.kind {
            Kind::Grpc => &options.grpc_options.tls,
            Kind::Http | Kind::Cloud(_) => &options.http_options.tls,
            Kind::Metrics => &options.http_options.metrics_tls,
        };
        tls.as_deref()
    }

    fn is_of_metrics(&self) -> bool {
        matches!(self.kind, Kind::Metrics)
    }

    fn running(&self) -> Option<&FrontEnd> {
        match &self.state {
            State::Running(front_end) => Some(front_end),
            _ => None,
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        self.running()?.local_addr()
    }

    fn shut_down(self, timeout: Duration) -> usize {
        match self.state {
            State::Running(front_end) => front_end.shut_down(timeout),
            _ => 0,
        }
    }
}

/// Returns the text about encryption for the log line of the start.
fn over(tls: Option<&Tls>) -> &'static str {
    match tls {
        None => "",
        Some(tls) if tls.asks_for_client_certificates() => {
            " over TLS, for clients with a certificate"
        }
        Some(_) => " over TLS",
    }
}
