//! The server as a library: it puts backends, repositories, engine and front ends together.
//!
//! [`Server::build`] makes a server from [`ServeOptions`], [`Server::serve`] loads its models and opens the front ends that
//! the options name, and [`Server::shut_down`] ends it in order. A program without front ends uses the [`Server::engine`].
//! The process of an isolated model is the running program, started again. A program that serves such models passes the words
//! after [`model_worker::COMMAND`] to [`model_worker::run`].
//!
//! **Invariants.** This crate and the program alone name concrete backends and read the environment. Nothing here reads a
//! command line, catches a signal or ends the process.

#![warn(missing_docs)]

mod agents;
mod backends;
mod banner;
mod debug_events;
mod front_ends;
mod gpus;
mod library_files;
mod memory;
mod options;
mod panic_hook;
mod reload;
mod repositories;
mod response_cache;
mod server;
mod socket_file;
mod stop;
mod table;
mod takeover;
mod upkeep;

pub use self::{
    agents::{DEFAULT_AGENT_DIRECTORY, add_uncalled_agents},
    backends::{
        DEFAULT_BACKEND_DIRECTORY, EarlyBackend, beside, inspectors, libraries, model_worker,
        pytorch,
    },
    front_ends::{FrontEnds, authentication, exposure},
    gpus::Gpus,
    library_files::{DEFAULT_CACHE_DIRECTORY, LibraryFolders, describe_cache},
    memory::MemorySize,
    options::{
        CacheSettings, CloudOptions, Endpoint, LibraryCacheSettings, Note, Place, PortPlace,
        RuntimeOptions, ServeOptions, TlsOptions,
    },
    panic_hook::install as install_panic_hook,
    reload::Reload,
    repositories::{RemoteRepositories, RepositoryCacheOptions, model_path},
    server::{Server, Start},
    stop::StopHandle,
    table::Table,
};
