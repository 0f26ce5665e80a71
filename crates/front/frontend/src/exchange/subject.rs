//! The model, version and id that a request is about.

use std::sync::Arc;

use galatea_types::{CallRecord, InferRequest, RequestContext};

use super::recent_failures::beginning;

/// The most bytes that are kept of a text from a client.
const MAX_TEXT: usize = 256;

/// The model, version and id of a request, as far as they could be read. Long texts are truncated.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    model: Option<Arc<str>>,
    /// The version that answers, or else the one that was asked for.
    version: Option<i64>,
    id: Option<Box<str>>,
    is_known: bool,
}

impl Subject {
    /// Sets the id of the request.
    pub fn set_id(&mut self, id: &str) {
        self.id = (!id.is_empty()).then(|| beginning(id, MAX_TEXT).into());
    }

    /// Returns the model; empty if the request names none.
    pub(super) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// Returns the model; empty if the request reached none.
    pub(super) fn known_model(&self) -> &str {
        if self.is_known { self.model() } else { "" }
    }

    /// Returns the model that the request reached.
    pub(super) fn found_model(&self) -> Option<&str> {
        self.model.as_deref().filter(|_| self.is_known)
    }

    pub(super) fn version(&self) -> Option<i64> {
        self.version
    }

    /// Returns the id; empty if the request has none.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    pub(super) fn id_or_unknown(&self) -> &str {
        self.id.as_deref().unwrap_or("<id_unknown>")
    }
}

impl CallRecord for Subject {
    fn record_asked(&mut self, model: &str, version: Option<i64>) {
        (self.model, self.version) = (Some(beginning(model, MAX_TEXT).into()), version);
        self.is_known = false;
    }

    fn record_model(&mut self, model: &Arc<str>, version: i64) {
        (self.model, self.version) = (Some(model.clone()), Some(version));
        self.is_known = true;
    }

    fn record_submitted(&mut self, request: &InferRequest, _: &mut RequestContext) {
        self.set_id(&request.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_kept_and_long_ones_cut_between_characters() {
        let mut subject = Subject::default();
        assert_eq!((subject.model(), subject.id_or_unknown()), ("", "<id_unknown>"));
        for (text, kept) in [("7", "7"), (&*"é".repeat(200), &*"é".repeat(128))] {
            subject.set_id(text);
            subject.record_asked(text, Some(3));
            assert_eq!((subject.id(), subject.model()), (kept, kept));
        }
        subject.set_id("");
        assert_eq!(subject.id(), "");
    }

    #[test]
    fn only_an_existing_model_is_a_known_model() {
        let mut subject = Subject::default();
        subject.record_asked("m", None);
        assert_eq!((subject.model(), subject.known_model(), subject.version()), ("m", "", None));
        subject.record_model(&"m".into(), 3);
        assert_eq!((subject.known_model(), subject.version()), ("m", Some(3)));
    }
}
