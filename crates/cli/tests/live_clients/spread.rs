//! Clients of Spread's protocol: processes of another language, which know nothing of this one's code.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::{self, JoinHandle};

use rota_check::event::{ClientSaw, Post};
use rota_client::Service;
use rota_core::contract::Process;
use rota_net::monotonic;
use serde_json::Value;

use crate::client::{Shared, id_of};
use crate::log::Log;

/// A client, and who listens to what it says.
#[derive(Debug)]
pub struct Spread {
    child: Child,
    listener: Option<JoinHandle<()>>,
}

impl Spread {
    /// Starts client `name` of the daemon that is `process`; its messages are numbered from `first` on.
    pub fn start(
        shared: &Arc<Shared>,
        socket: &Path,
        name: &str,
        process: Process,
        first: u64,
        seed: u64,
    ) -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../daemon/tests/spread_traffic.py"
        );
        let identity = format!("{}.{}", process.node, process.incarnation.0);
        let mut child = Command::new("python3")
            .args(["-B", script])
            .arg(socket)
            .args([name, &identity, &first.to_string(), &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test needs python3: `cargo xtask setup`");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("it is let in").expect("a line");
        let first: Value = serde_json::from_str(&first).expect("JSON");
        let mut log = Log {
            process,
            client: first["name"].as_str().expect("its name").to_owned(),
            saw: Vec::new(),
            told: Vec::new(),
            reduced: true,
        };
        let shared = Arc::clone(shared);
        let listener = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                note(&mut log, serde_json::from_str(&line).expect("JSON"));
                shared.seen.fetch_add(1, SeqCst);
            }
            shared.keep(log);
        });
        Self {
            child,
            listener: Some(listener),
        }
    }

    /// It sends nothing more.
    pub fn settle(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        // Its daemon may be gone, and so may it.
        let _ = writeln!(stdin);
    }

    /// Waits until it has ended, as it does with its daemon; `tell` ends it otherwise.
    pub fn end(mut self, tell: bool) {
        if tell {
            drop(self.child.stdin.take());
        }
        let status = self.child.wait().expect("a process");
        assert!(status.success(), "a client of Spread's: {status}");
        let listener = self.listener.take().expect("it listens");
        listener.join().expect("it understands");
    }
}

impl Drop for Spread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn note(log: &mut Log, line: Value) {
    if line["ev"] != "send" {
        log.told.push(line);
        return;
    }
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let groups = match &line["group"] {
        Value::Array(groups) => groups.iter().map(text).collect(),
        group => vec![text(group)],
    };
    let services = Service::ALL;
    let service = services
        .into_iter()
        .find(|service| line["service"] == service.name());
    let post = Post {
        message: id_of(text(&line["msg"]).as_bytes()),
        groups,
        service: service.expect("a service"),
        hash: u64::from_str_radix(&text(&line["hash"]), 16).expect("a hash"),
    };
    let discard = line["discard"] == true;
    log.saw
        .push((monotonic(), ClientSaw::Send { post, discard }));
}
