//! Checks of inputs that compiled code expects, as far as the package states them.
//!
//! The code reads as many elements as it was compiled for, even if the input has fewer. Its own checks are off and cannot be
//! used: they refuse a 1 in every dynamic dimension. Most packages contain their source, so they are read from it and done
//! here. A check that is not understood is left out.

use galatea_types::Shape;

use crate::torch::data_type_of;

/// The checks of all inputs, by position.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Checks(Vec<ExpectedInput>);

#[derive(Debug, Default, PartialEq)]
struct ExpectedInput {
    scalar_type: Option<i32>,
    dims: Vec<(usize, Limit)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Exactly(i64),
    AtLeast(i64),
    AtMost(i64),
}

/// Lower bound of most dynamic dimensions, even if the code accepts less.
const USUAL_MINIMUM: i64 = 2;

impl Checks {
    /// Reads the checks from the C++ source of the package.
    pub fn read(source: &str) -> Self {
        let mut inputs: Vec<ExpectedInput> = Vec::new();
        let mut current = None;
        for line in source.lines() {
            if let Some(rest) = line.split_once("void check_input_").map(|(_, rest)| rest) {
                current = rest.split('(').next().and_then(|n| n.parse::<usize>().ok());
                current = current.filter(|&n| n == inputs.len());
                inputs.extend(current.map(|_| ExpectedInput::default()));
            } else if line.starts_with('}') {
                current = None;
            }
            if let Some(input) = current.and_then(|n| inputs.get_mut(n)) {
                input.read(line.trim());
            }
        }
        Self(inputs)
    }

    /// Checks the shape of a tensor, or of a declaration, which may contain -1.
    ///
    /// # Errors
    /// The difference, as a text that follows the input's name.
    pub fn check(&self, position: usize, scalar_type: i32, shape: &Shape) -> Result<(), String> {
        let Some(expected) = self.0.get(position) else { return Ok(()) };
        if let Some(wanted) = expected.scalar_type.filter(|&wanted| wanted != scalar_type) {
            let wanted = data_type_of(wanted).map_or("another type", |t| t.config_name());
            return Err(format!("is {wanted} in the package"));
        }
        for &(dim, limit) in &expected.dims {
            let size = shape.get(dim).copied();
            if !size.is_some_and(|size| size < 0 || limit.admits(size)) {
                return Err(format!(
                    "has shape {shape}, and the package takes {limit} in dimension {dim}"
                ));
            }
        }
        Ok(())
    }
}

impl ExpectedInput {
    fn read(&mut self, line: &str) {
        if let Some((_, rest)) = line.split_once("_expected_dtype = aoti_torch_dtype_") {
            self.scalar_type = rest.split('(').next().and_then(scalar_type);
        } else if let Some(limit) = line.strip_prefix("if (").and_then(limit) {
            self.dims.push(limit);
        }
    }
}

/// Parses `16 != arg_size[1]`, `arg_size[0] < 2`, `arg_size[0] > 64`.
fn limit(condition: &str) -> Option<(usize, Limit)> {
    let words: Vec<&str> = condition.trim_end_matches([' ', '{', ')']).split(' ').collect();
    let &[left, sign, right] = words.as_slice() else { return None };
    let number = |text: &str| text.trim_end_matches('L').parse::<i64>().ok();
    let dim = |text: &str| {
        let (_, index) = text.split_once("_size[")?;
        index.strip_suffix(']')?.parse::<usize>().ok()
    };
    match sign {
        "!=" => Some((dim(right)?, Limit::Exactly(number(left)?))),
        "<" => number(right)
            .filter(|&n| n > USUAL_MINIMUM)
            .and_then(|n| Some((dim(left)?, Limit::AtLeast(n)))),
        ">" => Some((dim(left)?, Limit::AtMost(number(right)?))),
        _ => None,
    }
}

/// Returns the number of a `c10::ScalarType`.
fn scalar_type(name: &str) -> Option<i32> {
    let names = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"];
    let number = names.iter().position(|&known| known == name).and_then(|n| n.try_into().ok());
    number.or(match name {
        "bool" => Some(11),
        "bfloat16" => Some(15),
        _ => None,
    })
}

impl Limit {
    fn admits(self, size: i64) -> bool {
        match self {
            Self::Exactly(n) => size == n,
            Self::AtLeast(n) => size >= n,
            Self::AtMost(n) => size <= n,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(n) => write!(f, "{n}"),
            Self::AtLeast(n) => write!(f, "{n} or more"),
            Self::AtMost(n) => write!(f, "{n} or less"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
static void check_input_0(
    AtenTensorHandle* input_handles
) {
    int32_t arg_expected_dtype = aoti_torch_dtype_float32();
    if (arg_expected_dtype != arg_dtype) {
    if (arg_size[0] < 2) {
    if (arg_size[0] > 64) {
    if (16 != arg_size[1]) {
    if (16 != arg_stride[0]) {
}
static void check_input_1(
    int32_t x_expected_dtype = aoti_torch_dtype_bfloat16();
    if (x_size[0] < 5) {
}
    if (99 != arg_size[0]) {
";

    #[test]
    fn input_checks_are_read_from_the_compiled_code() {
        let checks = Checks::read(SOURCE);
        let check = |position, scalar_type, shape: &[i64]| {
            checks.check(position, scalar_type, &Shape::from(shape))
        };
        for good in [&[1, 16][..], &[64, 16], &[-1, -1], &[-1, 16]] {
            assert_eq!(check(0, 6, good), Ok(()), "{good:?}");
        }
        assert_eq!(check(1, 15, &[5]), Ok(()));
        assert_eq!(check(2, 3, &[7]), Ok(()));
        for (bad, expected) in [
            (&[2, 15][..], "has shape [2,15], and the package takes 16 in dimension 1"),
            (&[65, 16], "has shape [65,16], and the package takes 64 or less in dimension 0"),
            (&[3], "has shape [3], and the package takes 16 in dimension 1"),
        ] {
            assert_eq!(check(0, 6, bad).expect_err("differs"), expected);
        }
        assert_eq!(check(0, 7, &[1, 16]).expect_err("differs"), "is TYPE_FP32 in the package");
        assert!(check(1, 15, &[4]).expect_err("differs").contains("5 or more"));
    }

    #[test]
    fn unknown_checks_are_ignored() {
        assert_eq!(Checks::read(""), Checks::default());
        let odd = "void check_input_7(\n if (1 != a_size[0]) {\n}\nvoid check_input_x(\n";
        assert_eq!(Checks::read(odd), Checks::default());
        let odd =
            "void check_input_0(\n if (s0 != a_size[0]) {\n if (1 != a_size[x]) {\n if (a) {\n";
        assert_eq!(Checks::read(odd), Checks(vec![ExpectedInput::default()]));
    }
}
