//! Paths of fields: `input[0].dims[1]`.

use std::fmt;

/// One step from a message to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A field of a message, by its name.
    Field(&'static str),
    /// An element of a list, from 0.
    Index(usize),
    /// The element with this key of a map, or with this `name` of a list.
    Named(String),
}

/// The path to a part of a configuration, from the outermost part inwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// Appends a field of this part.
    #[must_use]
    pub fn field(self, name: &'static str) -> Self {
        self.step(Step::Field(name))
    }

    /// Appends an element of this list.
    #[must_use]
    pub fn index(self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// Appends an element of this map or list, by its key or name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.step(Step::Named(name.into()))
    }

    fn step(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Returns `self` followed by `inner`.
    #[must_use]
    pub fn join(mut self, inner: FieldPath) -> Self {
        self.0.extend(inner.0);
        self
    }

    /// Returns whether it is the whole configuration.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns its steps, from the outermost inwards.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }
}

/// Makes a path of fields without lists in between, separated by points: `version_policy.latest`.
impl From<&'static str> for FieldPath {
    fn from(fields: &'static str) -> Self {
        Self(fields.split('.').filter(|name| !name.is_empty()).map(Step::Field).collect())
    }
}

/// `input[0].dims`, `parameters["x"]`
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Named(name) => write!(f, "[{name:?}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_paths_are_formatted() {
        let path = FieldPath::from("ensemble_scheduling.step").index(1).field("input_map");
        assert_eq!(
            path.named("a\"").to_string(),
            r#"ensemble_scheduling.step[1].input_map["a\""]"#
        );
        assert_eq!(FieldPath::from("input").join("dims".into()).to_string(), "input.dims");
        assert!(FieldPath::from("").is_empty());
    }
}
