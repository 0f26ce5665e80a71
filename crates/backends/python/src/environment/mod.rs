//! Chooses the Python interpreter and the environment of a model.
//!
//! The first of these that a model has is used: the parameter `EXECUTION_ENV_PATH`; a `requirements.txt` or `pyproject.toml`
//! beside it, from which an environment is built once; the environment named by `--backend-config=python,...`; `python3` on
//! `PATH`. If that has no numpy, numpy is installed beside its packages. `docs/python.md` is for users.
//!
//! # Invariants
//! - No shell runs but for an environment's own script `bin/activate`: text from a model becomes an argument of a
//!   program, or nothing.
//! - A model's name never becomes part of a path.
//! - A folder in the cache is used only when it is complete, and stays as long as a worker runs in it.
//! - An environment of the model's own that cannot be used is an error; the next is not tried.

mod activation;
mod archive;
mod build;
mod cache;
mod cache_figures;
mod command;
mod confinement;
mod folder;
mod interpreter;
mod lease;
mod options;
mod prune;
mod python_backend;
mod request;
mod requirements;
mod resolve;
mod search;
mod space;
mod syntax;
mod version;

pub use self::{
    cache_figures::{CacheFigures, cache_figures},
    confinement::Confinement,
    lease::EnvironmentLease,
    options::ADD_NUMPY,
    prune::{CleanedEnvironment, clean},
    python_backend::{
        CODE_OF_BACKEND, PythonBackendFiles, find_python_backend, python_backend_file,
    },
    request::{Environment, EnvironmentRequest, cache_folder},
    resolve::resolve,
};
pub(crate) use self::{
    request::{EXECUTION_ENV_PATH, SETTINGS},
    resolve::named_path,
    syntax::{CodeOfModel, SyntaxMistake},
};
