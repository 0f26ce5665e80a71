//! Which thread computes what: the reasoning and the measurements are in `docs/adr/0024-tensorflow-threads.md`.

use crate::{
    settings::Settings,
    tensorflow::{RunPlace, SessionOptions},
};

/// How a session computes, and where its runs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub options: SessionOptions,
    pub place: RunPlace,
}

/// Threads that the configuration asks for are used as given. Otherwise each run has its operations computed one after
/// the other by the instance's own thread, with the threads of the process helping inside of each.
pub(crate) fn choose(settings: &Settings) -> Layout {
    let place = match settings.inter_op_threads {
        Some(_) => RunPlace::OnThreads,
        None => RunPlace::Here,
    };
    let options = SessionOptions {
        intra_op_threads: settings.intra_op_threads.unwrap_or(0),
        inter_op_threads: settings.inter_op_threads.unwrap_or(0),
        has_own_threads: settings.has_own_threads,
        soft_placement: settings.soft_placement,
        graph_level: settings.graph_level,
    };
    Layout { options, place }
}
