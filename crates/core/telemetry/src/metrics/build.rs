//! The version of the program. Triton has no such family.

use galatea_types::product;

use super::text::Text;
use crate::families::BUILD_INFO;

pub(super) fn write(text: &mut Text) {
    let (version, contract) = (product::VERSION, product::CONTRACT_VERSION);
    let labels = format!("{{version=\"{version}\",triton_version=\"{contract}\"}}");
    text.family(&BUILD_INFO);
    text.sample(BUILD_INFO.name, &labels, 1);
}
