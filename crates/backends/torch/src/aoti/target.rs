//! Checks that this machine is one that a package was compiled for.

use std::collections::BTreeMap;

/// Returns `AOTI_DEVICE_KEY`: `cpu`, `cuda` or another. A package without the note is older, and counts as one for the CPU.
pub(super) fn device(metadata: &BTreeMap<String, String>) -> &str {
    metadata.get("AOTI_DEVICE_KEY").map_or("cpu", String::as_str)
}

/// Checks the machine. Code for another one ends the process at the first instruction that this one lacks.
///
/// # Errors
/// The feature that the package needs and this machine lacks.
pub(super) fn check_machine(metadata: &BTreeMap<String, String>) -> Result<(), String> {
    for (key, here) in
        [("AOTI_PLATFORM", std::env::consts::OS), ("AOTI_MACHINE", std::env::consts::ARCH)]
    {
        if let Some(wanted) = metadata.get(key).filter(|wanted| !is_same(wanted, here)) {
            return Err(format!("it was compiled for {wanted}, this is {here}"));
        }
    }
    let Some(wanted) = metadata.get("AOTI_CPU_ISA") else { return Ok(()) };
    match wanted.split_whitespace().find(|word| !has(word)) {
        Some(lacking) => Err(format!(
            "it was compiled for a CPU with {wanted}, and this one lacks {lacking}: compile it on a machine \
             like this one, or with ATEN_CPU_CAPABILITY=avx2 or default"
        )),
        None => Ok(()),
    }
}

fn is_same(wanted: &str, here: &str) -> bool {
    let known_as = |name: &str| match name {
        "amd64" => "x86_64".to_owned(),
        "arm64" => "aarch64".to_owned(),
        other => other.to_owned(),
    };
    known_as(&wanted.to_lowercase()) == here
}

/// Returns true if the processor has a feature. Unknown words count as present: they name features that a newer compiler
/// could use, not those it did.
#[cfg(target_arch = "x86_64")]
fn has(word: &str) -> bool {
    use std::arch::is_x86_feature_detected as has;

    match word.to_uppercase().as_str() {
        "AVX2" => has!("avx2") && has!("fma"),
        "AVX512" => has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512bw"),
        "AVX512_VNNI" => has!("avx512vnni"),
        _ => true,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has(_word: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn code_for_another_machine_is_refused() {
        let arch = std::env::consts::ARCH;
        let here = [("AOTI_PLATFORM", "linux"), ("AOTI_MACHINE", arch), ("AOTI_CPU_ISA", "")];
        assert_eq!(check_machine(&notes(&here)), Ok(()));
        assert_eq!(check_machine(&notes(&[])), Ok(()));
        assert_eq!(
            check_machine(&notes(&[("AOTI_PLATFORM", "win32")])).expect_err("another"),
            "it was compiled for win32, this is linux"
        );
        assert!(check_machine(&notes(&[("AOTI_MACHINE", "s390x")])).is_err());
        assert_eq!(check_machine(&notes(&[("AOTI_CPU_ISA", "INVALID_VEC_ISA")])), Ok(()));
        assert!(is_same("arm64", "aarch64"));
    }

    #[test]
    fn the_default_device_is_the_cpu() {
        assert_eq!(device(&notes(&[("AOTI_DEVICE_KEY", "cuda")])), "cuda");
        assert_eq!(device(&notes(&[])), "cpu");
    }
}
