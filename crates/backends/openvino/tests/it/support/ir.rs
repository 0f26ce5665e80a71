//! IR files of a few layers, as texts.

use galatea_types::DataType;

/// As the attribute `element_type` has it, and as `precision` has it.
fn names(data_type: DataType) -> (&'static str, &'static str) {
    match data_type {
        DataType::Bool => ("boolean", "BOOL"),
        DataType::Bf16 => ("bf16", "BF16"),
        DataType::Fp16 => ("f16", "FP16"),
        DataType::Fp32 => ("f32", "FP32"),
        DataType::Fp64 => ("f64", "FP64"),
        DataType::Int8 => ("i8", "I8"),
        DataType::Int16 => ("i16", "I16"),
        DataType::Int32 => ("i32", "I32"),
        DataType::Int64 => ("i64", "I64"),
        DataType::Uint8 => ("u8", "U8"),
        DataType::Uint16 => ("u16", "U16"),
        DataType::Uint32 => ("u32", "U32"),
        DataType::Uint64 => ("u64", "U64"),
        DataType::Bytes => ("string", "STRING"),
    }
}

/// A port with its dims; -1 is open.
fn port(id: usize, data_type: DataType, names_of: &str, dims: &[i64]) -> String {
    let dims: String = dims.iter().map(|dim| format!("<dim>{dim}</dim>")).collect();
    let names_of =
        if names_of.is_empty() { String::new() } else { format!(" names=\"{names_of}\"") };
    format!("<port id=\"{id}\" precision=\"{}\"{names_of}>{dims}</port>", names(data_type).1)
}

fn parameter(id: usize, name: &str, data_type: DataType, dims: &[i64]) -> String {
    let shape: Vec<String> =
        dims.iter().map(|&dim| if dim < 0 { "?".to_owned() } else { dim.to_string() }).collect();
    format!(
        "<layer id=\"{id}\" name=\"{name}\" type=\"Parameter\" version=\"opset1\">\
         <data shape=\"{}\" element_type=\"{}\"/><output>{}</output></layer>",
        shape.join(","),
        names(data_type).0,
        port(0, data_type, name, dims)
    )
}

fn operation(id: usize, kind: &str, output: &str, data_type: DataType, dims: &[i64]) -> String {
    format!(
        "<layer id=\"{id}\" name=\"{output}_op\" type=\"{kind}\" version=\"opset1\">\
         <data auto_broadcast=\"numpy\"/><input>{}{}</input><output>{}</output></layer>",
        port(0, data_type, "", dims),
        port(1, data_type, "", dims),
        port(2, data_type, output, dims)
    )
}

fn result(id: usize, data_type: DataType, dims: &[i64], names_of: &str) -> String {
    format!(
        "<layer id=\"{id}\" name=\"r{id}\" type=\"Result\" version=\"opset1\" output_names=\"{names_of}\">\
         <input>{}</input></layer>",
        port(0, data_type, "", dims)
    )
}

fn net(layers: &[String], edges: &[(usize, usize, usize, usize)]) -> Vec<u8> {
    let edges: String = edges
        .iter()
        .map(|(from, from_port, to, to_port)| {
            format!(
                "<edge from-layer=\"{from}\" from-port=\"{from_port}\" to-layer=\"{to}\" to-port=\"{to_port}\"/>"
            )
        })
        .collect();
    let layers = layers.concat();
    format!(
        "<?xml version=\"1.0\"?><net name=\"m\" version=\"11\"><layers>{layers}</layers><edges>{edges}</edges></net>"
    )
    .into_bytes()
}

/// `X` as it is.
pub fn identity(data_type: DataType, dims: &[i64]) -> Vec<u8> {
    let layers = [parameter(0, "X", data_type, dims), result(1, data_type, dims, "X")];
    net(&layers, &[(0, 0, 1, 0)])
}

/// `SUM` and `DIFFERENCE` of `A` and `B`.
pub fn add_sub(data_type: DataType, dims: &[i64]) -> Vec<u8> {
    let layers = [
        parameter(0, "A", data_type, dims),
        parameter(1, "B", data_type, dims),
        operation(2, "Add", "SUM", data_type, dims),
        operation(3, "Subtract", "DIFFERENCE", data_type, dims),
        result(4, data_type, dims, "SUM"),
        result(5, data_type, dims, "DIFFERENCE"),
    ];
    let edges =
        [(0, 0, 2, 0), (1, 0, 2, 1), (0, 0, 3, 0), (1, 0, 3, 1), (2, 2, 4, 0), (3, 2, 5, 0)];
    net(&layers, &edges)
}

/// `Y` is `X` and as many numbers from the file of weights.
pub fn biased(numbers: usize) -> Vec<u8> {
    let dims = [i64::try_from(numbers).expect("few")];
    let data_type = DataType::Fp32;
    let weights = format!(
        "<layer id=\"1\" name=\"w\" type=\"Const\" version=\"opset1\">\
         <data element_type=\"f32\" shape=\"{numbers}\" offset=\"0\" size=\"{}\"/><output>{}</output></layer>",
        4 * numbers,
        port(0, data_type, "", &dims)
    );
    let layers = [
        parameter(0, "X", data_type, &dims),
        weights,
        operation(2, "Add", "Y", data_type, &dims),
        result(3, data_type, &dims, "Y"),
    ];
    net(&layers, &[(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)])
}
