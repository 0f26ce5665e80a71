//! Requests of different shapes in one batch: their padding, and the cutting of their outputs (`pad_batches`).

use std::sync::Arc;

/// The padding of requests that differ in open dimensions to one shape.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Padding {
    /// The inputs that are padded, in every dimension that the configuration leaves open.
    pub inputs: Vec<PaddedInput>,
    /// The input that marks padding for the model.
    pub mask: Option<PaddingMask>,
    /// Lengths that open dimensions are padded to, ascending; when empty, to the longest of the batch.
    pub buckets: Vec<i64>,
    /// The largest share of padding in a request that is padded to the longest of its batch; `None` for no limit.
    pub max_padding: Option<f64>,
    /// The outputs whose open dimensions are as long as those of an input.
    pub outputs: Vec<PaddedOutput>,
}

/// An input that is padded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddedInput {
    /// The name of the input.
    pub name: Arc<str>,
    /// The bytes of an element of padding; for a text, the text.
    pub value: Vec<u8>,
}

/// An input that has a 1 for each element of requests and a 0 for padding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddingMask {
    /// The name of the input, which requests may leave out.
    pub name: Arc<str>,
    /// The bytes of an element that is not padding.
    pub one: Vec<u8>,
    /// The padded input that the mask describes.
    pub source: Arc<str>,
}

/// An output that is cut back for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddedOutput {
    /// The name of the output.
    pub name: Arc<str>,
    /// The padded input whose open dimensions it has, each at the same place.
    pub source: Arc<str>,
}

impl Padding {
    /// Returns the padded length of an open dimension. `longest` is its length in the longest request.
    pub fn length(&self, longest: i64) -> i64 {
        self.buckets.iter().copied().find(|&bucket| bucket >= longest).unwrap_or(longest)
    }

    /// Returns whether requests with these shortest and longest lengths of a dimension may be padded together.
    pub fn admits(&self, shortest: i64, longest: i64) -> bool {
        let is_close = self.max_padding.is_none_or(|most| {
            let (shortest, longest) = (shortest as f64, longest as f64);
            shortest == longest || longest - shortest <= most * longest
        });
        let last = self.buckets.last().copied().unwrap_or(0);
        let shares_bucket = shortest > last || self.length(shortest) == self.length(longest);
        is_close && shares_bucket
    }

    /// Returns the padded input of this name.
    pub fn input(&self, name: &str) -> Option<&PaddedInput> {
        self.inputs.iter().find(|input| &*input.name == name)
    }

    /// Returns the mask if its name is `name`.
    pub fn mask_named(&self, name: &str) -> Option<&PaddingMask> {
        self.mask.as_ref().filter(|mask| &*mask.name == name)
    }

    /// Returns the padded input whose lengths the output `name` has.
    pub fn source_of(&self, name: &str) -> Option<&str> {
        Some(&self.outputs.iter().find(|output| &*output.name == name)?.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padding(buckets: &[i64], max_padding: Option<f64>) -> Padding {
        let (inputs, outputs) = (Vec::new(), Vec::new());
        Padding { inputs, mask: None, buckets: buckets.to_vec(), max_padding, outputs }
    }

    #[test]
    fn lengths_are_rounded_up_to_a_bucket() {
        let padding = padding(&[8, 16], None);
        let lengths = [0, 8, 9, 16, 17].map(|longest| padding.length(longest));
        assert_eq!(lengths, [8, 8, 16, 16, 17]);
    }

    #[test]
    fn requests_join_within_one_bucket_and_the_padding_limit() {
        let bounded = padding(&[], Some(0.25));
        assert!(bounded.admits(6, 8) && bounded.admits(0, 0) && !bounded.admits(5, 8));
        let bucketed = padding(&[8, 16], None);
        assert!(bucketed.admits(1, 8) && bucketed.admits(9, 16) && !bucketed.admits(8, 9));
        assert!(!bucketed.admits(16, 17) && bucketed.admits(17, 400), "behind the last: no bound");
        let both = padding(&[8, 16], Some(0.25));
        assert!(both.admits(12, 16) && !both.admits(11, 16) && !both.admits(1, 8));
    }
}
