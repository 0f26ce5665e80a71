//! The runtimes that can be installed: the pinned file of the package index, and the library in it.

/// A pinned file of the package index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Architecture as in `std::env::consts::ARCH`, or [`Wheel::ANY`].
    pub arch: &'static str,
    /// File name on the package index.
    pub filename: &'static str,
    /// Hexadecimal sha256.
    pub sha256: &'static str,
}

impl Wheel {
    /// Architecture of files whose kept part is the same on all machines.
    pub const ANY: &'static str = "any";
}

/// A native library that can be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Name on the command line and in the data folder.
    pub name: &'static str,
    /// Name for users.
    pub title: &'static str,
    /// The only version that is installed.
    pub version: &'static str,
    /// Name of the project on the package index.
    pub project: &'static str,
    /// Megabytes of a wheel, shown to those who wait for it.
    pub megabytes: u64,
    /// One file per processor architecture.
    pub wheels: &'static [Wheel],
    /// Kept members of a wheel: path in the file, and path in the installed folder. The first is the library. A path that
    /// ends with a slash is a folder with its content.
    pub members: &'static [(&'static str, &'static str)],
    /// Environment variable that names a library to use instead of an installed one; for PyTorch a folder.
    pub variable: &'static str,
}

impl Runtime {
    /// ONNX Runtime, for the backend `onnxruntime`.
    pub const ONNXRUNTIME: Runtime = Runtime {
        name: "onnxruntime",
        title: "ONNX Runtime",
        version: "1.32.0",
        project: "onnxruntime",
        megabytes: 28,
        wheels: &[
            Wheel {
                arch: "x86_64",
                filename: "onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                sha256: "5a34fc4dfeb5a7b4a74c95dcba1e773d722abda720b474edf1b0c419dc6d163d",
            },
            Wheel {
                arch: "aarch64",
                filename: "onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_aarch64.whl",
                sha256: "2303372a85299b6757b0e11e1cbf13e410ddf7e10c37f4b37e99d1c90e7daf7c",
            },
        ],
        members: &[
            ("onnxruntime/capi/libonnxruntime.so.1.32.0", "libonnxruntime.so.1.32.0"),
            ("onnxruntime/LICENSE", "LICENSE"),
            ("onnxruntime/ThirdPartyNotices.txt", "ThirdPartyNotices.txt"),
        ],
        variable: "GALATEA_ONNXRUNTIME_LIB",
    };

    /// PyTorch's part for the CPU, with the headers: see [`Libtorch`](crate::Libtorch).
    pub const PYTORCH: Runtime = Runtime {
        name: "pytorch",
        title: "PyTorch",
        version: "2.15.0",
        project: "torch",
        megabytes: 539,
        wheels: &[Wheel {
            arch: "x86_64",
            filename: "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            sha256: "48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e",
        }],
        members: &[
            ("torch/lib/libtorch_cpu.so", "lib/libtorch_cpu.so"),
            ("torch/lib/libc10.so", "lib/libc10.so"),
            ("torch/lib/libgomp.so.1", "lib/libgomp.so.1"),
            ("torch/include/", "include/"),
            ("torch-2.15.0.dist-info/licenses/", "licenses/"),
        ],
        variable: "GALATEA_LIBTORCH",
    };

    /// TensorFlow, for the backend `tensorflow`. The library needs the second file beside it.
    pub const TENSORFLOW: Runtime = Runtime {
        name: "tensorflow",
        title: "TensorFlow",
        version: "2.21.0",
        project: "tensorflow-cpu",
        megabytes: 274,
        wheels: &[Wheel {
            arch: "x86_64",
            filename: "tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl",
            sha256: "2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c",
        }],
        members: &[
            ("tensorflow/libtensorflow_cc.so.2", "libtensorflow_cc.so.2"),
            ("tensorflow/libtensorflow_framework.so.2", "libtensorflow_framework.so.2"),
            ("tensorflow/include/LICENSE", "LICENSE"),
            ("tensorflow/THIRD_PARTY_NOTICES.txt", "THIRD_PARTY_NOTICES.txt"),
        ],
        variable: "GALATEA_TENSORFLOW_LIB",
    };

    /// OpenVINO, for the backend `openvino`: the parts that run models on the CPU and read IR, ONNX and TensorFlow files.
    /// The library finds them in its own folder.
    pub const OPENVINO: Runtime = Runtime {
        name: "openvino",
        title: "OpenVINO",
        version: "2026.4.1",
        project: "openvino",
        megabytes: 59,
        wheels: &[Wheel {
            arch: "x86_64",
            filename: "openvino-2026.4.1-22982-cp311-cp311-manylinux_2_28_x86_64.whl",
            sha256: "2d22b1da03f7caf74df30e9f6417d0ab2f637e4a38e08e1dcd294d2c37407aaf",
        }],
        members: &[
            ("openvino/libs/libopenvino_c.so.2641", "libopenvino_c.so.2641"),
            ("openvino/libs/libopenvino.so.2641", "libopenvino.so.2641"),
            ("openvino/libs/libopenvino_intel_cpu_plugin.so", "libopenvino_intel_cpu_plugin.so"),
            ("openvino/libs/libopenvino_ir_frontend.so.2641", "libopenvino_ir_frontend.so.2641"),
            (
                "openvino/libs/libopenvino_onnx_frontend.so.2641",
                "libopenvino_onnx_frontend.so.2641",
            ),
            (
                "openvino/libs/libopenvino_tensorflow_frontend.so.2641",
                "libopenvino_tensorflow_frontend.so.2641",
            ),
            (
                "openvino/libs/libopenvino_tensorflow_lite_frontend.so.2641",
                "libopenvino_tensorflow_lite_frontend.so.2641",
            ),
            (
                "openvino/libs/libopenvino_paddle_frontend.so.2641",
                "libopenvino_paddle_frontend.so.2641",
            ),
            ("openvino/libs/libtbb.so.12", "libtbb.so.12"),
            ("openvino/libs/libtbbmalloc.so.2", "libtbbmalloc.so.2"),
            ("openvino/libs/libtbbbind_2_5.so.3", "libtbbbind_2_5.so.3"),
            ("openvino/libs/libhwloc.so.15", "libhwloc.so.15"),
            ("openvino-2026.4.1.dist-info/licenses/", "licenses/"),
        ],
        variable: "GALATEA_OPENVINO_LIB",
    };

    /// All runtimes.
    pub const ALL: &'static [Runtime] =
        &[Runtime::ONNXRUNTIME, Runtime::PYTORCH, Runtime::TENSORFLOW, Runtime::OPENVINO];

    /// Returns the runtime of this name.
    pub fn by_name(name: &str) -> Option<&'static Runtime> {
        Self::ALL.iter().find(|r| r.name == name)
    }

    /// Returns the file name of the library.
    pub fn library(&self) -> &'static str {
        self.members.first().map_or("", |(_, name)| name)
    }
}
