//! The formats of what `rota sub` prints and `rota pub` reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rota_client::{Cause, Event, Service, View};
use serde::{Deserialize, Serialize};

/// A format of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// A line for each message: its payload. A payload with newlines looks like several.
    #[default]
    Lines,
    /// One JSON object on a line for each message, with its sender, its groups and its payload, whatever is in that.
    Json,
    /// Payloads as they are: `sub` puts nothing between them, `pub` sends all that comes as one message.
    Raw,
}

/// A payload: as text where it is text, else as base64.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Payload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl Payload {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self {
                payload: Some(text.to_owned()),
                payload_base64: None,
            },
            Err(_) => Self {
                payload: None,
                payload_base64: Some(STANDARD.encode(bytes)),
            },
        }
    }

    fn into_bytes(self) -> Result<Vec<u8>, String> {
        match (self.payload, self.payload_base64) {
            (Some(text), None) => Ok(text.into_bytes()),
            (None, Some(text)) => STANDARD
                .decode(text)
                .map_err(|error| format!("payload_base64: {error}")),
            _ => Err("it needs one of payload and payload_base64".to_owned()),
        }
    }
}

/// A line that `rota pub --format json` reads. What else is in it does not matter: a line of `rota sub` will do.
#[derive(Debug, Deserialize)]
struct Line {
    /// `message`, where it is a line of `rota sub`.
    event: Option<String>,
    service: Option<String>,
    kind: Option<u16>,
    #[serde(flatten)]
    payload: Payload,
}

/// A message to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToSend {
    pub payload: Vec<u8>,
    pub service: Option<Service>,
    pub kind: u16,
}

/// The message on a line of JSON; `None`: the line is another event of `rota sub`.
pub fn read(line: &[u8]) -> Result<Option<ToSend>, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if line.event.is_some_and(|event| event != "message") {
        return Ok(None);
    }
    let service = line.service.map(|name| {
        let mut all = Service::ALL.into_iter();
        let known = all.find(|service| service.name() == name);
        known.ok_or_else(|| format!("no service is called {name}"))
    });
    Ok(Some(ToSend {
        payload: line.payload.into_bytes()?,
        service: service.transpose()?,
        kind: line.kind.unwrap_or(0),
    }))
}

/// An event of a client as an object.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Object<'a> {
    Message {
        from: String,
        to: Vec<String>,
        service: &'static str,
        kind: u16,
        #[serde(flatten)]
        payload: Payload,
    },
    View {
        group: &'a str,
        id: String,
        cause: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<String>,
        members: Vec<String>,
        /// By the network: the members that came together.
        #[serde(skip_serializing_if = "Option::is_none")]
        together: Option<Vec<Vec<String>>>,
    },
    Transitional {
        group: &'a str,
        id: String,
    },
    Lagging {
        waiting_bytes: u64,
        limit_bytes: u64,
    },
    Skipped {
        messages: u64,
        bytes: u64,
        groups: Vec<String>,
    },
    Excluded,
    Included {
        missed: bool,
    },
}

/// An event as a line of JSON, without its end; `None` for events of which the command says something else.
pub fn line(event: &Event) -> Option<String> {
    let object = match event {
        Event::Message(message) => Object::Message {
            from: message.sender.to_string(),
            to: message.to.iter().map(ToString::to_string).collect(),
            service: message.service.name(),
            kind: message.kind,
            payload: Payload::of(&message.payload),
        },
        Event::View(view) => of_view(view),
        Event::Transitional { group, view } => Object::Transitional {
            group: group.as_str(),
            id: view.to_string(),
        },
        Event::Lagging { waiting, limit } => Object::Lagging {
            waiting_bytes: *waiting,
            limit_bytes: *limit,
        },
        Event::Skipped {
            messages,
            bytes,
            groups,
        } => Object::Skipped {
            messages: *messages,
            bytes: *bytes,
            groups: groups.iter().map(ToString::to_string).collect(),
        },
        Event::Excluded => Object::Excluded,
        Event::Included { missed } => Object::Included { missed: *missed },
        _ => return None,
    };
    // Strings and numbers are always JSON.
    serde_json::to_string(&object).ok()
}

fn of_view(view: &View) -> Object<'_> {
    let (cause, who) = match &view.cause {
        Cause::Join(who) => ("join", Some(who.to_string())),
        Cause::Leave(who) => ("leave", Some(who.to_string())),
        Cause::Disconnect(who) => ("disconnect", Some(who.to_string())),
        Cause::Network(_) => ("network", None),
    };
    let name = |at: &u32| view.members.get(*at as usize).map(ToString::to_string);
    let together = match &view.cause {
        Cause::Network(sets) => {
            let names = |set: &Vec<u32>| set.iter().filter_map(name).collect();
            Some(sets.iter().map(names).collect())
        }
        _ => None,
    };
    Object::View {
        group: view.group.as_str(),
        id: view.id.to_string(),
        cause,
        who,
        members: view.members.iter().map(ToString::to_string).collect(),
        together,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back_as_it_was_whatever_is_in_it() {
        for bytes in [
            &b""[..],
            b"text",
            b"two\nlines\r\n",
            b"\0\xff\xfe",
            "\u{1F600} \"".as_bytes(),
        ] {
            let object = serde_json::to_string(&Payload::of(bytes)).expect("JSON");
            let read = read(object.as_bytes())
                .expect("a message")
                .expect("one to send");
            assert_eq!(read.payload, bytes, "{object}");
            assert_eq!((read.service, read.kind), (None, 0));
        }
    }

    #[test]
    fn a_line_says_service_and_kind_and_other_events_are_left_out() {
        let line = br##"{"event":"message","from":"#a#n1","to":["g"],"service":"safe","kind":7,"payload":"x"}"##;
        let expected = ToSend {
            payload: b"x".to_vec(),
            service: Some(Service::Safe),
            kind: 7,
        };
        assert_eq!(read(line), Ok(Some(expected)));
        assert_eq!(read(br#"{"event":"excluded"}"#), Ok(None));
        for (wrong, word) in [
            ("", "EOF"),
            ("{}", "one of payload"),
            (
                r#"{"payload":"a","payload_base64":"YQ=="}"#,
                "one of payload",
            ),
            (r#"{"payload_base64":"!"}"#, "payload_base64"),
            (r#"{"payload":"a","service":"best"}"#, "called best"),
            (r#"{"payload":"a","kind":70000}"#, "70000"),
            ("[]", "invalid"),
        ] {
            let error = read(wrong.as_bytes()).expect_err(wrong);
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }
}
