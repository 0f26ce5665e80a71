//! What control threads are asked to do.

/// One operation, as far as the queue has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `has_overrides`: the request brings a configuration or files.
    Load {
        model: String,
        has_overrides: bool,
    },
    Unload {
        model: String,
        with_dependents: bool,
    },
    /// A question to the model itself.
    Readiness {
        model: String,
        version: Option<i64>,
    },
    /// Reading the repository, or anything else that takes a while and ends.
    Query,
}

/// Operations of one class have a number of threads that no other class can take from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Load,
    Unload,
    Readiness,
    Query,
}

/// What an operation is about: of those about the same subject one runs at a time, in the order they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject<'a> {
    /// Which versions of this model are loaded.
    Model(&'a str),
    /// What a version says about itself.
    Readiness(&'a str, Option<i64>),
}

impl Operation {
    pub fn class(&self) -> Class {
        match self {
            Self::Load { .. } => Class::Load,
            Self::Unload { .. } => Class::Unload,
            Self::Readiness { .. } => Class::Readiness,
            Self::Query => Class::Query,
        }
    }

    /// `None`: it runs beside any other.
    pub fn subject(&self) -> Option<Subject<'_>> {
        match self {
            Self::Load { model, .. } | Self::Unload { model, .. } => Some(Subject::Model(model)),
            Self::Readiness { model, version } => Some(Subject::Readiness(model, *version)),
            Self::Query => None,
        }
    }

    /// Whether doing it once answers every caller who asked for it before it began.
    pub fn can_be_shared(&self) -> bool {
        !matches!(self, Self::Load { has_overrides: true, .. } | Self::Query)
    }
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Load, Self::Unload, Self::Readiness, Self::Query];

    /// For the label of a figure.
    pub fn label(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Unload => "unload",
            Self::Readiness => "readiness",
            Self::Query => "query",
        }
    }

    /// For the text of a refusal.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Load => "loads of models",
            Self::Unload => "unloads of models",
            Self::Readiness => "questions to models whether they are ready",
            Self::Query => "queries",
        }
    }
}
