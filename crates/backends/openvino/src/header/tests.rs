//! IR files as OpenVINO writes them, and as nobody should.

use galatea_types::DataType;

use super::*;

const MODEL: &str = r#"<?xml version="1.0"?>
<net name="m" version="11">
  <layers>
    <layer id="0" name="X" type="Parameter" version="opset1">
      <data shape="?,4" element_type="f32" />
      <output>
        <port id="0" precision="FP32" names="X">
          <dim>-1</dim> <dim>4</dim>
          <rt_info><attribute name="layout" version="0" layout="[N,C]" /></rt_info>
        </port>
      </output>
    </layer>
    <layer id="1" name="w" type="Const" version="opset1">
      <data element_type="f32" shape="4" offset="8" size="16" />
      <output> <port id="0" precision="FP32"> <dim>4</dim> </port> </output>
    </layer>
    <layer id="2" name="loop" type="Loop" version="opset5">
      <output>
        <port id="2" precision="FP32" names="Z,Y&amp;1">
          <dim>-1</dim> <dim>4</dim>
          <rt_info><attribute name="layout" version="0" layout="[N,...]" /></rt_info>
        </port>
      </output>
      <body>
        <layers>
          <layer id="0" name="inner" type="Parameter" version="opset1">
            <data shape="1" element_type="i64" />
          </layer>
        </layers>
        <edges> <edge from-layer="0" from-port="0" to-layer="3" to-port="0" /> </edges>
      </body>
    </layer>
    <layer id="3" name="r" type="Result" version="opset1">
      <input> <port id="0" precision="FP32"> <dim>-1</dim> <dim>4</dim> </port> </input>
    </layer>
  </layers>
  <edges> <edge from-layer="2" from-port="2" to-layer="3" to-port="0" /> </edges>
</net>"#;

fn info(name: &str, dims: &[i64]) -> TensorInfo {
    let data_type = Some(DataType::Fp32);
    TensorInfo { name: name.to_owned(), data_type, dims: Some(dims.to_vec()) }
}

#[test]
fn inputs_outputs_layouts_and_weights_are_read() {
    let header = Header::read(MODEL.as_bytes()).expect("reads");
    assert_eq!(header.inputs, [Declared { info: info("X", &[-1, 4]), has_batch: true }]);
    assert_eq!(header.outputs, [Declared { info: info("Y&1", &[-1, 4]), has_batch: true }]);
    assert_eq!(header.weight_bytes, 24);
    assert!(header.can_batch());
    let without = MODEL.replace("layout=\"[N,C]\"", "layout=\"[C,N]\"");
    assert!(!Header::read(without.as_bytes()).expect("reads").can_batch());
}

#[test]
fn truncated_files_are_refused() {
    for end in [0, 5, 60, 500, MODEL.len() - 3] {
        Header::read(&MODEL.as_bytes()[..end]).expect_err("cut");
    }
    Header::read(&b"\x08\x01\x12"[..]).expect_err("no XML");
    let deep = "<net><layers>".to_owned() + &"<a>".repeat(100_000);
    let error = Header::read(deep.as_bytes()).expect_err("deep");
    assert!(matches!(error, HeaderError::TooDeep(_)), "{error}");
}

#[test]
fn xml_entities_are_not_expanded() {
    let bomb = "<!DOCTYPE net [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\
                <net><layers><layer id=\"0\" type=\"Parameter\"><data shape=\"&b;\" element_type=\"f32\"/>\
                <output><port id=\"0\" names=\"&b;\"/></output></layer></layers></net>";
    let header = Header::read(bomb.as_bytes()).expect("reads");
    assert_eq!(header.inputs[0].info.name, "");
}
