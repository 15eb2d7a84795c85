//! The reply of etcd to a transaction.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserialize;

/// The result of the comparison, and the stored value if it failed.
#[derive(Deserialize)]
pub(super) struct Reply {
    /// Left out where the comparison failed.
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Deserialize)]
struct Response {
    response_range: Option<Range>,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    /// Left out where it is empty.
    #[serde(default)]
    value: String,
}

impl Reply {
    /// The configuration that is chosen; `None` where none is stored, and none was stored now.
    pub(super) fn chosen(self, wanted: &Bytes) -> Result<Option<Bytes>, String> {
        if self.succeeded {
            return Ok(Some(wanted.clone()));
        }
        let ranges = self.responses.into_iter();
        let Some(range) = ranges.filter_map(|response| response.response_range).next() else {
            return Err("not an answer of etcd's: it says nothing of the key".to_owned());
        };
        let Some(pair) = range.kvs.into_iter().next() else {
            return Ok(None);
        };
        let value = BASE64_STANDARD.decode(pair.value);
        let value = value.map_err(|error| format!("not an answer of etcd's: {error}"))?;
        Ok(Some(value.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_counts_as_none() {
        let chosen = |text: &str| {
            let reply: Reply = serde_json::from_str(text).unwrap();
            reply.chosen(&Bytes::from_static(b"own"))
        };
        let stored = |value: &'static [u8]| Ok(Some(Bytes::from_static(value)));
        assert_eq!(chosen(r#"{"succeeded":true}"#), stored(b"own"));
        let other = r#"{"responses":[{"response_range":{"kvs":[{"value":"b3RoZXI="}]}}]}"#;
        assert_eq!(chosen(other), stored(b"other"));
        let empty = r#"{"responses":[{"response_range":{"kvs":[{}]}}]}"#;
        assert_eq!(chosen(empty), stored(b""));
        let none = r#"{"responses":[{"response_range":{}}]}"#;
        assert_eq!(chosen(none), Ok(None));
        assert!(chosen("{}").is_err());
        let garbled = r#"{"responses":[{"response_range":{"kvs":[{"value":"%"}]}}]}"#;
        assert!(chosen(garbled).is_err());
    }
}
