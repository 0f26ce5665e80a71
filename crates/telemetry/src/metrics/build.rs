//! Which program the figures come from. Triton has no such family.

use galatea_types::product;

use super::text::{Kind, Text};

const NAME: &str = "galatea_build_info";
const HELP: &str =
    "Always 1; the labels name the version and the Triton version whose contract is kept";

pub(super) fn write(text: &mut Text) {
    let (version, contract) = (product::VERSION, product::CONTRACT_VERSION);
    let labels = format!("{{version=\"{version}\",triton_version=\"{contract}\"}}");
    text.family(NAME, HELP, Kind::Gauge);
    text.sample(NAME, &labels, 1);
}

pub(super) fn is_family(name: &str) -> bool {
    name == NAME
}
