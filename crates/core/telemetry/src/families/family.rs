//! What the metrics page, its reference and its checks know of a family.

/// What the samples of a family are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from the start of the server or of the model.
    Counter,
    /// A value of this moment.
    Gauge,
    /// Observations by bucket.
    Histogram,
    /// Quantiles of the last minute.
    Summary,
}

impl Kind {
    /// As the text format names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
        }
    }
}

/// A family of metrics: samples with one name and one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// E.g. `nv_inference_count`.
    pub name: &'static str,
    /// What its samples are.
    pub kind: Kind,
    /// The line that says what it means. Triton's text where Triton has the family.
    pub help: &'static str,
    /// Names of labels; those of a model may have more, see the reference.
    pub labels: &'static [&'static str],
    /// What turns it on or off, for the reference; empty: it is always there.
    pub shown: &'static str,
}

impl Family {
    /// Whether samples of the family have this name.
    pub(crate) fn has_sample(&self, name: &str) -> bool {
        let Some(suffix) = name.strip_prefix(self.name) else { return false };
        let has_parts = matches!(self.kind, Kind::Histogram | Kind::Summary);
        match suffix {
            "" => true,
            "_count" | "_sum" => has_parts,
            "_bucket" => self.kind == Kind::Histogram,
            _ => false,
        }
    }
}
