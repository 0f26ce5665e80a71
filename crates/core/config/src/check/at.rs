//! Problems with the field that they are about.

use crate::FieldPath;

/// A problem, and the field that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At<E> {
    pub field: FieldPath,
    /// In a box: there are large ones, and a mistake is rare.
    pub problem: Box<E>,
}

impl<E> At<E> {
    /// The same, seen from outside of a part.
    pub fn inside(self, part: impl Into<FieldPath>) -> Self {
        Self { field: part.into().join(self.field), problem: self.problem }
    }

    /// The problem as part of a larger one.
    pub fn map<F>(self, larger: impl FnOnce(E) -> F) -> At<F> {
        At { field: self.field, problem: Box::new(larger(*self.problem)) }
    }

    /// The problem as one of a wider kind.
    pub fn widen<F: From<E>>(self) -> At<F> {
        self.map(F::from)
    }
}

/// Says which field a problem is about.
pub(crate) trait About: Sized {
    fn at(self, field: impl Into<FieldPath>) -> At<Self>;
}

impl<E: std::error::Error> About for E {
    fn at(self, field: impl Into<FieldPath>) -> At<Self> {
        At { field: field.into(), problem: Box::new(self) }
    }
}
