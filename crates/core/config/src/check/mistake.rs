//! Mistakes that the checks find: Triton's words, the field, and advice.

use galatea_types::suggest;

use crate::{Diagnostic, FieldPath};

/// Boxed: a mistake is large and rare.
pub(super) type Mistake = Box<Diagnostic>;

pub(super) type Result<T, E = Mistake> = std::result::Result<T, E>;

/// Makes a mistake in `field`. The advice is empty when the text already has it.
pub(super) fn mistake(
    field: impl Into<FieldPath>,
    text: impl Into<String>,
    advice: impl Into<String>,
) -> Mistake {
    let advice = Some(advice.into()).filter(|advice| !advice.is_empty());
    Box::new(Diagnostic { advice, ..Diagnostic::error(text).about(field) })
}

/// Refuses a configuration because of [`mistake`].
pub(super) fn refuse<T>(
    field: impl Into<FieldPath>,
    text: impl Into<String>,
    advice: impl Into<String>,
) -> Result<T> {
    Err(mistake(field, text, advice))
}

/// Returns the same mistake with `part` before its field.
pub(super) fn inside(part: impl Into<FieldPath>) -> impl FnOnce(Mistake) -> Mistake {
    move |mut found| {
        found.field = part.into().join(std::mem::take(&mut found.field));
        found
    }
}

/// Returns the path of an element of a list.
pub(super) fn element_of(list: &'static str, index: usize) -> FieldPath {
    FieldPath::from(list).index(index)
}

/// Suggests the known name nearest to `name`. Without a near name it uses `otherwise` with the first known names.
pub(super) fn meant(
    name: &str,
    known: &[&str],
    otherwise: impl FnOnce(String) -> String,
) -> String {
    if let Some(near) = suggest::nearest(name, known.iter().copied()).first() {
        return format!("did you mean `{near}`?");
    }
    let listed: Vec<_> = known.iter().take(20).map(|name| format!("`{name}`")).collect();
    otherwise(listed.join(", "))
}
