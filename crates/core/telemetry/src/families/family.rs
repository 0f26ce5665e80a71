//! A metric family as the metrics page, its reference and its checks use it.

/// The kind of the samples of a family.
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
    /// Returns the name in the text format.
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
    /// The name, e.g. `nv_inference_count`.
    pub name: &'static str,
    /// The kind of its samples.
    pub kind: Kind,
    /// The help line. It is Triton's text when Triton has the family.
    pub help: &'static str,
    /// Names of labels; a family of models may have more, see the reference.
    pub labels: &'static [&'static str],
    /// The option that shows or hides it, for the reference; empty when it is always shown.
    pub shown: &'static str,
}

impl Family {
    /// Returns whether samples of the family have this name.
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
