use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use galatea_engine::Engine;
use tokio::{
    runtime::Builder,
    sync::{mpsc, watch},
};

use crate::{
    HttpOptions,
    accept::{Load, Stage, WorkerLink},
    activity::Activity,
    service::{Content, Service},
    worker::Worker,
};

/// A running HTTP front end or metrics endpoint. Dropped, it stops at once.
pub struct HttpServer {
    address: SocketAddr,
    activity: Arc<Activity>,
    stage: watch::Sender<Stage>,
    threads: Vec<JoinHandle<()>>,
}

/// Serves inference and management on `listener` from threads of its own until [`HttpServer::shut_down`].
pub fn serve(
    listener: TcpListener,
    engine: &Arc<Engine>,
    options: &HttpOptions,
) -> io::Result<HttpServer> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = options.thread_count.clamp(1, cores);
    start(listener, engine, options, (Content::Inference, threads))
}

/// Serves the metrics on `listener` from a thread of its own until [`HttpServer::shut_down`].
pub fn serve_metrics(listener: TcpListener, engine: &Arc<Engine>) -> io::Result<HttpServer> {
    start(listener, engine, &HttpOptions::default(), (Content::Metrics, 1))
}

fn start(
    listener: TcpListener,
    engine: &Arc<Engine>,
    options: &HttpOptions,
    (content, thread_count): (Content, usize),
) -> io::Result<HttpServer> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let (stage, at_stage) = watch::channel(Stage::Serving);
    let activity = Arc::new(Activity::default());
    let service = Arc::new(Service {
        engine: engine.clone(),
        options: options.clone(),
        activity: activity.clone(),
        content,
    });
    let (mut links, mut workers) = (Vec::new(), Vec::new());
    for _ in 0..thread_count {
        let (connections, incoming) = mpsc::unbounded_channel();
        links.push(WorkerLink { connections, load: Arc::new(Load::default()) });
        workers.push(Worker {
            runtime: Builder::new_current_thread().enable_all().build()?,
            incoming,
            service: service.clone(),
            stage: at_stage.clone(),
        });
    }
    let mut server = HttpServer { address, activity, stage, threads: Vec::new() };
    let mut listener = Some((listener, links));
    for (index, worker) in workers.into_iter().enumerate() {
        // The first worker also accepts.
        let listener = listener.take();
        let name = match content {
            Content::Inference => format!("http-{index}"),
            Content::Metrics => format!("metrics-{index}"),
        };
        server.threads.push(thread::Builder::new().name(name).spawn(move || worker.run(listener))?);
    }
    Ok(server)
}

impl HttpServer {
    /// Where it listens; the port is the real one when 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.activity.connections()
    }

    /// Requests being answered now.
    pub fn requests_in_flight(&self) -> usize {
        self.activity.requests()
    }

    /// From now on there are no new connections, and requests on open ones are answered 503; those in flight
    /// go on (H-68, H-79).
    pub fn refuse_new_requests(&self) {
        self.activity.close();
        self.stage.send_if_modified(|stage| {
            let is_serving = *stage == Stage::Serving;
            if is_serving {
                *stage = Stage::Draining;
            }
            is_serving
        });
    }

    /// Refuses new requests, waits for those in flight at most `timeout`, then closes. Blocks. Returns how
    /// many requests had to be cut off.
    pub fn shut_down(self, timeout: Duration) -> usize {
        self.refuse_new_requests();
        self.activity.wait_idle(timeout)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.activity.close();
        self.stage.send_replace(Stage::Closing);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("an HTTP thread ended with a panic");
            }
        }
    }
}
