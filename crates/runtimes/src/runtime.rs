/// A file of the package index, pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// As in `std::env::consts::ARCH`.
    pub arch: &'static str,
    pub filename: &'static str,
    /// Hexadecimal.
    pub sha256: &'static str,
}

/// A native library that can be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// As on the command line and in the data folder.
    pub name: &'static str,
    pub title: &'static str,
    pub version: &'static str,
    /// Name of the project on the package index.
    pub project: &'static str,
    pub wheels: &'static [Wheel],
    /// What is kept of a wheel: path inside, name in the installed folder. The first is the library.
    pub members: &'static [(&'static str, &'static str)],
    /// Environment variable that names a library to use in place of an installed one.
    pub variable: &'static str,
}

impl Runtime {
    pub const ONNXRUNTIME: Runtime = Runtime {
        name: "onnxruntime",
        title: "ONNX Runtime",
        version: "1.31.1",
        project: "onnxruntime",
        wheels: &[
            Wheel {
                arch: "x86_64",
                filename: "onnxruntime-1.31.1-cp311-cp311-manylinux_2_28_x86_64.whl",
                sha256: "5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f",
            },
            Wheel {
                arch: "aarch64",
                filename: "onnxruntime-1.31.1-cp311-cp311-manylinux_2_28_aarch64.whl",
                sha256: "da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3",
            },
        ],
        members: &[
            ("onnxruntime/capi/libonnxruntime.so.1.31.1", "libonnxruntime.so.1.31.1"),
            ("onnxruntime/LICENSE", "LICENSE"),
            ("onnxruntime/ThirdPartyNotices.txt", "ThirdPartyNotices.txt"),
        ],
        variable: "GALATEA_ONNXRUNTIME_LIB",
    };

    /// Every runtime there is.
    pub const ALL: &'static [Runtime] = &[Runtime::ONNXRUNTIME];

    pub fn by_name(name: &str) -> Option<&'static Runtime> {
        Self::ALL.iter().find(|r| r.name == name)
    }

    /// File name of the library.
    pub fn library(&self) -> &'static str {
        self.members.first().map_or("", |(_, name)| name)
    }

    /// The wheel for this machine.
    pub fn wheel(&self) -> Option<&'static Wheel> {
        self.wheels.iter().find(|w| w.arch == std::env::consts::ARCH)
    }
}
