//! Writes TorchScript files: a zip archive of the code as text and of what the module holds as a pickle.

use std::io::{Cursor, Write};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// A module under construction.
#[derive(Default)]
pub struct Script {
    forward: String,
    before: String,
    tensors: Vec<Held>,
}

struct Held {
    name: String,
    dims: Vec<usize>,
    values: Vec<f32>,
    device: String,
}

impl Script {
    /// `forward` from its arguments on, self left out, e.g. `x: Tensor) -> Tensor:\n    return x`.
    pub fn new(forward: &str) -> Self {
        Self { forward: forward.to_owned(), ..Self::default() }
    }

    /// Code before the class, e.g. a function or a named tuple.
    pub fn before(mut self, code: &str) -> Self {
        self.before = code.to_owned();
        self
    }

    /// A tensor of float32 that the module holds.
    pub fn tensor(self, name: &str, dims: &[usize], values: &[f32]) -> Self {
        self.tensor_on(name, dims, values, "cpu")
    }

    /// The same, saved from a device.
    pub fn tensor_on(mut self, name: &str, dims: &[usize], values: &[f32], device: &str) -> Self {
        self.tensors.push(Held {
            name: name.to_owned(),
            dims: dims.to_vec(),
            values: values.to_vec(),
            device: device.to_owned(),
        });
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let stored = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .with_alignment(64);
        let mut file = |name: &str, content: &[u8]| {
            archive.start_file(format!("m/{name}"), stored).unwrap();
            archive.write_all(content).unwrap();
        };
        file("version", b"3\n");
        file("byteorder", b"little");
        file("code/__torch__.py", self.code().as_bytes());
        file("constants.pkl", b"\x80\x02).");
        file("data.pkl", &self.pickle());
        for (index, held) in self.tensors.iter().enumerate() {
            let bytes: Vec<u8> = held.values.iter().flat_map(|v| v.to_le_bytes()).collect();
            file(&format!("data/{index}"), &bytes);
        }
        archive.finish().unwrap().into_inner()
    }

    fn code(&self) -> String {
        let held: String =
            self.tensors.iter().map(|t| format!("  {} : Tensor\n", t.name)).collect();
        let names: String = self.tensors.iter().map(|t| format!("\"{}\", ", t.name)).collect();
        format!(
            "{}class M(Module):\n  __parameters__ = []\n  __buffers__ = [{names}]\n{held}  training : bool\n  \
             def forward(self: __torch__.M,\n    {}\n",
            self.before, self.forward
        )
    }

    /// The object with its attributes, in the few operations of pickle's protocol 2 that TorchScript reads.
    fn pickle(&self) -> Vec<u8> {
        let mut p = b"\x80\x02c__torch__\nM\n)\x81}(".to_vec();
        text(&mut p, "training");
        p.push(0x89);
        for (index, held) in self.tensors.iter().enumerate() {
            text(&mut p, &held.name);
            tensor(&mut p, index, held);
        }
        p.extend(b"ub.");
        p
    }
}

fn text(p: &mut Vec<u8>, text: &str) {
    p.push(b'X');
    p.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    p.extend(text.bytes());
}

fn number(p: &mut Vec<u8>, number: usize) {
    p.push(b'J');
    p.extend(i32::try_from(number).unwrap().to_le_bytes());
}

fn numbers(p: &mut Vec<u8>, values: &[usize]) {
    p.push(b'(');
    values.iter().for_each(|&n| number(p, n));
    p.push(b't');
}

fn tensor(p: &mut Vec<u8>, index: usize, held: &Held) {
    p.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
    text(p, "storage");
    p.extend(b"ctorch\nFloatStorage\n");
    text(p, &index.to_string());
    text(p, &held.device);
    number(p, held.values.len());
    p.extend(b"tQ");
    number(p, 0);
    numbers(p, &held.dims);
    let strides: Vec<usize> =
        (0..held.dims.len()).map(|i| held.dims[i + 1..].iter().product()).collect();
    numbers(p, &strides);
    p.extend(b"\x89ccollections\nOrderedDict\n)RtR");
}
