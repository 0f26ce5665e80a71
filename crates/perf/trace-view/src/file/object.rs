//! One object of a trace file.

use std::{borrow::Cow, fmt};

use galatea_trace_timeline::EventName;
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

/// Most timestamps of one object that are kept. Servers write one.
const MOST_STAMPS: usize = 1024;

/// An object of the array that a file is. Each has a part of the facts about one request. Tensors are not kept.
#[derive(Debug, Deserialize)]
pub(crate) struct TraceObject<'a> {
    pub id: u64,
    #[serde(borrow, default)]
    pub model_name: Option<Cow<'a, str>>,
    #[serde(default)]
    pub model_version: Option<VersionText>,
    #[serde(borrow, default)]
    pub request_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub parent_id: Option<u64>,
    #[serde(default)]
    pub timestamps: Stamps,
}

/// The instant of an event, in nanoseconds of the server's monotonic clock; 0 if the server did not note it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Stamp {
    pub name: EventName,
    pub ns: u64,
    #[serde(default, rename = "id")]
    _next: Option<NestedObject>,
}

/// The timestamps of an object.
#[derive(Debug, Default)]
pub(crate) struct Stamps(pub Vec<Stamp>);

/// A version as text; files have it as a number.
#[derive(Debug)]
pub(crate) struct VersionText(pub String);

/// A key that only objects of the array have: the object around it was cut off, and the next one begins here.
#[derive(Clone, Copy, Debug)]
struct NestedObject;

impl<'de> Deserialize<'de> for NestedObject {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("the next object begins within it"))
    }
}

impl<'de> Deserialize<'de> for Stamps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Stamps;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of timestamps")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Stamps, A::Error> {
                let mut stamps = Vec::new();
                while let Some(stamp) = list.next_element()? {
                    if stamps.len() < MOST_STAMPS {
                        stamps.push(stamp);
                    }
                }
                Ok(Stamps(stamps))
            }
        }

        deserializer.deserialize_seq(List)
    }
}

impl<'de> Deserialize<'de> for VersionText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Version;

        impl Visitor<'_> for Version {
            type Value = VersionText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the version of a model")
            }

            fn visit_i64<E: Error>(self, version: i64) -> Result<VersionText, E> {
                Ok(VersionText(version.to_string()))
            }

            fn visit_u64<E: Error>(self, version: u64) -> Result<VersionText, E> {
                Ok(VersionText(version.to_string()))
            }

            fn visit_str<E: Error>(self, version: &str) -> Result<VersionText, E> {
                Ok(VersionText(version.to_owned()))
            }
        }

        deserializer.deserialize_any(Version)
    }
}
