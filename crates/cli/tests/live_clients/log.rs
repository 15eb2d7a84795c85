//! The events that a client's own process saw, and their comparison with those that a daemon wrote.

use std::collections::BTreeMap;
use std::path::Path;

use rota_check::event::{ClientEvent, ClientSaw};
use rota_core::contract::Process;
use rota_core::contract::Time;
use serde_json::Value;

/// A connection, as its client saw it.
#[derive(Clone, Debug)]
pub struct Log {
    /// The daemon's process.
    pub process: Process,
    /// `#a#n1`.
    pub client: String,
    pub saw: Vec<(Time, ClientSaw)>,
    /// What it was told, to be compared.
    pub told: Vec<Value>,
    /// Of a client of Spread's, which tells views by other names.
    pub reduced: bool,
}

/// By process and name: what was told on each connection that said anything.
pub type Told = BTreeMap<(Process, String), Vec<Vec<Value>>>;

/// An event that a client is told, without what only the daemon knows: the number of a message.
pub fn told(saw: &ClientSaw) -> Option<Value> {
    let client = String::new();
    let event = ClientEvent {
        client,
        saw: saw.clone(),
    };
    let text = format!("{{\"ev\":\"{}\"{}}}", event.name(), event.fields());
    comparable(serde_json::from_str(&text).expect("JSON"))
}

/// `None` for what the client did itself.
fn comparable(mut line: Value) -> Option<Value> {
    let is_told = matches!(
        line["ev"].as_str(),
        Some("deliver" | "view" | "trans" | "self_leave")
    );
    let fields = line.as_object_mut().filter(|_| is_told)?;
    for key in ["t", "node", "inc", "client", "msg"] {
        fields.remove(key);
    }
    Some(line)
}

/// Without what Spread's protocol says in other words.
pub fn reduced(line: &Value) -> Value {
    let mut line = line.clone();
    if let Some(fields) = line.as_object_mut() {
        for key in ["gid", "vs_sets", "cause"] {
            fields.remove(key);
        }
    }
    line
}

/// What the daemons wrote that they told their clients.
pub fn written(trace: &Path, into: &mut Told) {
    let text = std::fs::read_to_string(trace).expect("a trace");
    for line in text.lines().filter(|line| line.contains("\"client\"")) {
        // Half a line is all that a killed daemon left of its last.
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let node = line["node"]
            .as_u64()
            .and_then(|node| u16::try_from(node).ok());
        let process = Process {
            node: node
                .and_then(rota_core::contract::NodeId::new)
                .expect("a node"),
            incarnation: rota_core::contract::Incarnation(line["inc"].as_u64().expect("a number")),
        };
        let client = line["client"].as_str().expect("a name").to_owned();
        let connections = into.entry((process, client)).or_default();
        if connections.is_empty() {
            connections.push(Vec::new());
        }
        if line["ev"] == "disconnect" {
            connections.push(Vec::new());
        } else if let Some(told) = comparable(line) {
            connections.last_mut().expect("one").push(told);
        }
    }
}

impl Log {
    /// Whether its client ended it, or noticed its end.
    pub fn is_over(&self) -> bool {
        let last = self
            .saw
            .iter()
            .rev()
            .find(|(_, saw)| *saw == ClientSaw::Disconnect);
        last.is_some()
    }
}
