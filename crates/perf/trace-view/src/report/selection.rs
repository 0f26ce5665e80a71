//! Chooses the requests that are shown one by one.

use std::cmp::Reverse;

use galatea_trace_timeline::{Request, RequestTrees};
use serde::Serialize;

/// Most names of models in an error.
const MOST_NAMES: usize = 10;

/// The requests that are asked for.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Selection {
    /// Only requests to this model; else all that clients sent.
    pub model: Option<String>,
    /// Only the request with this id of the client or number of the trace.
    pub id: Option<String>,
    /// Most requests.
    pub most: usize,
}

/// The reason why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectionError {
    #[error("no request has times: the server must trace with --trace-config level=TIMESTAMPS")]
    Untimed,
    #[error("no request to the model '{model}' was traced; the models are: {models}")]
    UnknownModel { model: String, models: String },
    #[error("no traced request has the id '{0}', neither as request id nor as number of its trace")]
    UnknownId(String),
}

impl Selection {
    /// Returns the indices of the requests, the slowest first.
    pub(super) fn requests(&self, source: &RequestTrees<'_>) -> Result<Vec<u32>, SelectionError> {
        let requests = &source.requests;
        let timed = |request: &Request| request.extent().is_some();
        if !requests.iter().any(timed) {
            return Err(SelectionError::Untimed);
        }
        let indices = (0..requests.len() as u32).filter(|&index| timed(&requests[index as usize]));
        let mut selected: Vec<u32> =
            indices.filter(|&index| self.selects(source, &requests[index as usize])).collect();
        if selected.is_empty() {
            return Err(self.nothing(source));
        }
        selected.sort_by_cached_key(|&index| Reverse(requests[index as usize].total()));
        selected.truncate(self.most);
        Ok(selected)
    }

    fn selects(&self, source: &RequestTrees<'_>, request: &Request) -> bool {
        let is_match = |request: &Request| self.has_model(source, request) && self.has_id(request);
        let parent = request.parent.map(|parent| &source.requests[parent as usize]);
        // A tree is shown once, below its first match. All requests of a model are of interest.
        let is_first = match (&self.model, &self.id) {
            (None, None) => parent.is_none(),
            (Some(_), None) => true,
            _ => !parent.is_some_and(is_match),
        };
        is_first && is_match(request)
    }

    fn has_model(&self, source: &RequestTrees<'_>, request: &Request) -> bool {
        let Some(wanted) = &self.model else { return true };
        let model = request.model.map(|model| &source.models[model as usize]);
        model.is_some_and(|model| *model.name == **wanted)
    }

    fn has_id(&self, request: &Request) -> bool {
        let Some(wanted) = &self.id else { return true };
        request.request_id.as_deref() == Some(wanted) || wanted.parse() == Ok(request.id)
    }

    fn nothing(&self, source: &RequestTrees<'_>) -> SelectionError {
        let models = &source.models;
        match (&self.model, &self.id) {
            (Some(model), _) if models.iter().all(|known| *known.name != **model) => {
                let mut names: Vec<&str> = models.iter().map(|model| &*model.name).collect();
                names.sort_unstable();
                names.dedup();
                let more = if names.len() > MOST_NAMES { ", ..." } else { "" };
                names.truncate(MOST_NAMES);
                let models = format!("{}{more}", names.join(", "));
                SelectionError::UnknownModel { model: model.clone(), models }
            }
            (_, Some(id)) => SelectionError::UnknownId(id.clone()),
            _ => SelectionError::Untimed,
        }
    }
}
