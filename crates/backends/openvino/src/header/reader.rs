//! Reads the layers of an IR file one by one, and keeps only the needed fields of each. Entities that a file declares itself
//! are not expanded.

use std::io::BufRead;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{HeaderError, Parts, layer};
use crate::header::layer::{Layer, Port};

/// Most levels of nested elements. Bodies of loops may be nested.
const MOST_LEVELS: usize = 64;

/// The elements that are read. Others get no name.
const TAGS: &str = "net layers layer data input output port dim rt_info attribute edges edge";

fn tag_of(name: &[u8]) -> &'static str {
    TAGS.split(' ').find(|tag| tag.as_bytes() == name).unwrap_or_default()
}

/// Reads the whole file. Returns true if it has a net with layers.
pub(super) fn read_net(source: impl BufRead, parts: &mut Parts) -> Result<bool, HeaderError> {
    let mut reader = Reader::from_reader(source);
    let mut walk = Walk { path: Vec::new(), layer: Layer::default(), has_layers: false, parts };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event = event.map_err(|error| {
            HeaderError::Xml(format!("{error} (byte {})", reader.error_position()))
        })?;
        match event {
            Event::Start(element) => walk.begin(&element)?,
            Event::Empty(element) => {
                walk.begin(&element)?;
                walk.end();
            }
            Event::End(_) => walk.end(),
            Event::Text(text) => walk.text(&text),
            Event::Eof => break,
            _ => {}
        }
    }
    match walk.path.is_empty() {
        true => Ok(walk.has_layers),
        false => Err(HeaderError::Xml("it ends too early".to_owned())),
    }
}

struct Walk<'p> {
    /// The elements around the current one.
    path: Vec<&'static str>,
    layer: Layer,
    has_layers: bool,
    parts: &'p mut Parts,
}

impl Walk<'_> {
    fn begin(&mut self, element: &BytesStart<'_>) -> Result<(), HeaderError> {
        if self.path.len() >= MOST_LEVELS {
            return Err(HeaderError::TooDeep(MOST_LEVELS));
        }
        self.path.push(tag_of(element.local_name().as_ref()));
        match *self.path {
            ["net", "layers"] => self.has_layers = true,
            ["net", "layers", "layer"] => self.layer = layer_of(element),
            ["net", "layers", "layer", "data"] => self.take_data(element),
            ["net", "layers", "layer", "input", "port"] => self.layer.inputs.push(port_of(element)),
            ["net", "layers", "layer", "output", "port"] => {
                self.layer.outputs.push(port_of(element))
            }
            ["net", "layers", "layer", "rt_info", "attribute"] => {
                self.layer.has_batch |= has_batch(element)
            }
            ["net", "layers", "layer", "input" | "output", "port", "rt_info", "attribute"] => {
                let has_batch = has_batch(element);
                if let Some(port) = self.port() {
                    port.has_batch |= has_batch;
                }
            }
            ["net", "edges", "edge"] => self.take_edge(element),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) {
        if *self.path == ["net", "layers", "layer"] {
            self.parts.add(std::mem::take(&mut self.layer));
        }
        self.path.pop();
    }

    fn text(&mut self, text: &[u8]) {
        if self.path.last() == Some(&"dim")
            && self.path.len() == 6
            && let Some(size) = number(text)
            && let Some(port) = self.port()
        {
            port.dims.push(size);
        }
    }

    /// Returns the port that is being read.
    fn port(&mut self) -> Option<&mut Port> {
        match self.path.get(..5)? {
            ["net", "layers", "layer", side, "port"] => match *side {
                "input" => self.layer.inputs.last_mut(),
                "output" => self.layer.outputs.last_mut(),
                _ => None,
            },
            _ => None,
        }
    }

    fn take_data(&mut self, element: &BytesStart<'_>) {
        self.layer.shape = attribute(element, "shape");
        self.layer.element_type = attribute(element, "element_type").unwrap_or_default();
        let number = |key| attribute(element, key).and_then(|text| text.parse().ok()).unwrap_or(0);
        self.layer.weights = (number("offset"), number("size"));
    }

    fn take_edge(&mut self, element: &BytesStart<'_>) {
        let part = |key| attribute(element, key).unwrap_or_default();
        let to = part("to-layer");
        if self.parts.result_ids.contains(&to) {
            self.parts.feeds.insert(to, (part("from-layer"), part("from-port")));
        }
    }
}

fn layer_of(element: &BytesStart<'_>) -> Layer {
    let part = |key| attribute(element, key).unwrap_or_default();
    Layer {
        id: part("id"),
        kind: part("type"),
        output_names: part("output_names"),
        ..Layer::default()
    }
}

fn port_of(element: &BytesStart<'_>) -> Port {
    let part = |key| attribute(element, key).unwrap_or_default();
    Port { id: part("id"), precision: part("precision"), names: part("names"), ..Port::default() }
}

fn has_batch(element: &BytesStart<'_>) -> bool {
    attribute(element, "name").as_deref() == Some("layout")
        && attribute(element, "layout").is_some_and(|layout| layer::begins_with_batch(&layout))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok().map(|size: i64| size.max(-1))
}

/// Returns an attribute. Predefined entities are replaced; an unknown entity makes it `None`.
fn attribute(element: &BytesStart<'_>, key: &str) -> Option<String> {
    let attribute = element.try_get_attribute(key).ok()??;
    let text = std::str::from_utf8(&attribute.value).ok()?;
    quick_xml::escape::unescape(text).ok().map(std::borrow::Cow::into_owned)
}
