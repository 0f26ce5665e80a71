//! One GPU, as the CUDA driver describes it.

/// A GPU that programs may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// CUDA's number for it, which configurations use.
    pub index: u32,
    /// E.g. `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// E.g. `0000:3b:00.0`: the same for every library, unlike numbers.
    pub pci_bus_id: String,
    /// Major and minor number of the CUDA compute capability.
    pub compute_capability: (u32, u32),
}

impl Gpu {
    /// Whether its compute capability is at least `minimum`, e.g. 6.0.
    pub fn has_capability(&self, minimum: f64) -> bool {
        let (major, minor) = self.compute_capability;
        // A capability is a decimal number only in the way it is written: 7.5 must reach 7.5.
        f64::from(major) + f64::from(minor) / 10.0 > minimum - 0.01
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_compared_as_written() {
        let gpu = |compute_capability| Gpu {
            index: 0,
            name: String::new(),
            pci_bus_id: String::new(),
            compute_capability,
        };
        assert!(gpu((6, 0)).has_capability(6.0) && gpu((7, 5)).has_capability(7.5));
        assert!(gpu((9, 0)).has_capability(0.0) && gpu((12, 1)).has_capability(9.0));
        assert!(!gpu((5, 2)).has_capability(6.0) && !gpu((6, 0)).has_capability(6.1));
    }
}
