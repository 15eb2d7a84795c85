//! The groups that a rule is about.

use std::fmt;
use std::str::FromStr;

use rota_client::Destination;
use rota_core::groups::{GroupName, NameError};
use serde::Deserialize;

/// Stands at the end of a pattern for any rest.
const REST: char = '*';

/// A name, or with `*` at its end all names that begin so: `orders`, `orders.*`, `*`. A pattern that begins with `#` is
/// about clients: `#alice#n1`, `#alice#*`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    text: String,
    /// Names may go on.
    open: bool,
}

/// The reason for which a text is no pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PatternError {
    /// A `*` stands elsewhere than at the end.
    Star(String),
    /// No group or client can have such a name.
    Name(String, NameError),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Star(text) => write!(f, "`{text}`: a * may stand at the end only"),
            Self::Name(text, error) => write!(f, "`{text}` can never match: {error}"),
        }
    }
}

impl std::error::Error for PatternError {}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (start, open) = match text.strip_suffix(REST) {
            Some(start) => (start, true),
            None => (text, false),
        };
        if start.contains(REST) {
            return Err(PatternError::Star(text.to_owned()));
        }
        let wrong = |error| PatternError::Name(text.to_owned(), error);
        if open {
            could_go_on(start).map_err(wrong)?;
        } else {
            Destination::from_str(start).map_err(wrong)?;
        }
        let text = start.to_owned();
        Ok(Self { text, open })
    }
}

/// Whether some name begins so.
fn could_go_on(start: &str) -> Result<(), NameError> {
    match start.strip_prefix('#') {
        None if start.is_empty() => Ok(()),
        None => GroupName::new(start).map(|_| ()),
        // The shortest client and daemon that complete it, whichever of them it ends in.
        Some(_) => {
            let ends = ["a#a", "#a", "a", ""];
            let whole = ends.map(|end| Destination::from_str(&format!("{start}{end}")));
            let [first, ..] = whole;
            let one = whole.into_iter().find(Result::is_ok);
            one.unwrap_or(first).map(|_| ())
        }
    }
}

impl Pattern {
    /// Whether a group or a client, as `#client#daemon`, has such a name.
    pub fn fits(&self, name: &[u8]) -> bool {
        match name.strip_prefix(self.text.as_bytes()) {
            Some(rest) => self.open || rest.is_empty(),
            None => false,
        }
    }

    /// True for a pattern of clients, which cannot be joined.
    pub fn is_of_clients(&self) -> bool {
        self.text.starts_with('#')
    }

    /// Everything has such a name.
    pub(super) const fn is_all(&self) -> bool {
        self.open && self.text.is_empty()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.open { f.write_str("*") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_star_at_the_end_stands_for_any_rest_and_without_it_names_are_whole() {
        assert!(pattern("orders*").fits(b"orders"));
        assert!(pattern("orders*").fits(b"orders.eu"));
        assert!(!pattern("orders*").fits(b"order"));
        assert!(pattern("orders").fits(b"orders"));
        assert!(!pattern("orders").fits(b"orders.eu"));
        assert!(!pattern("orders").fits(b"my-orders"));
        assert!(pattern("*").fits(b"anything") && pattern("*").fits(b"#a#n1"));
        assert!(pattern("#a#*").fits(b"#a#n1") && !pattern("#a#*").fits(b"#ab#n1"));
        for text in ["orders", "orders*", "*", "#a#n1", "#*", "#alice*", "#a#*"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn what_can_never_match_is_none() {
        let long = "g".repeat(32);
        for text in [
            "",
            "a*b",
            "**",
            "two words",
            "#alice",
            "#a#b#c",
            "#a#b#*",
            "#elevenchars*",
            &long,
            &format!("{long}*"),
        ] {
            let parsed = text.parse::<Pattern>();
            assert!(parsed.is_err(), "{text}: {parsed:?}");
        }
    }
}
