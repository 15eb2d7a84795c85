//! Daemons whose datagrams are sealed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_client::Client;
use rota_net::KeyRing;
use serde::Deserialize;

use crate::cluster::{Cluster, config, with_key};
use crate::native::{PATIENCE, client, meet, next_text};

const IDS: [u16; 3] = [1, 2, 3];

#[derive(Debug, Deserialize)]
struct Status {
    keys: Option<Keys>,
    counters: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Keys {
    sends: u16,
    takes: Vec<u16>,
}

fn status(cluster: &Cluster, id: u16) -> Status {
    let mut line = String::new();
    let mut stream = UnixStream::connect(cluster.admin(id)).expect("it listens");
    stream.read_to_string(&mut line).expect("it answers");
    serde_json::from_str(&line).expect("a status")
}

/// Waits until all daemons use these keys, and have sent something since.
fn await_keys(cluster: &Cluster, sends: u16, takes: &[u16]) {
    let keys = Some(Keys {
        sends,
        takes: takes.to_vec(),
    });
    let until = Instant::now() + PATIENCE;
    for id in IDS {
        while status(cluster, id).keys != keys {
            assert!(Instant::now() < until, "{:?}", status(cluster, id).keys);
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn rota(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .output()
        .expect("the binary")
}

/// Changes the key file, and has all daemons read it, one after the other.
fn change_keys(cluster: &Cluster, command: &str, id: Option<&str>) {
    let file = cluster.dir().join("cluster.key");
    let mut arguments = vec!["key", command, file.to_str().expect("a path")];
    arguments.extend(id);
    let output = rota(&arguments);
    assert!(output.status.success(), "{output:?}");
    for id in IDS {
        cluster.hang_up(id);
    }
}

/// A client of daemon `id` that sends numbers until it is told to stop, and answers how many.
fn speaker(cluster: &Cluster, id: u16, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let mut client = client(cluster, id, "speaker");
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            let text = format!("{id} {count}");
            client.send("keys", text.as_bytes()).expect("it is sent");
            count += 1;
        }
        client.send("keys", b"end").expect("it is sent");
        client.close().expect("all of it is taken");
        count
    })
}

/// Hears everything until each speaker has said that it ends.
fn listener(mut client: Client) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let (mut heard, mut ended) = (Vec::new(), 0);
        while ended < IDS.len() {
            match next_text(&mut client) {
                end if end == "end" => ended += 1,
                text => heard.push(text),
            }
        }
        heard
    })
}

#[test]
fn keys_are_rotated_under_load_without_a_ring_change_or_a_lost_message() {
    let cluster = Cluster::sealed(3);
    meet(&cluster, &IDS);
    await_keys(&cluster, 1, &[1]);
    let before = IDS.map(|id| status(&cluster, id).counters);
    let listeners = IDS.map(|id| {
        let mut client = client(&cluster, id, "listener");
        client.join("keys").expect("it joins");
        listener(client)
    });
    let stop = Arc::new(AtomicBool::new(false));
    let speakers = IDS.map(|id| speaker(&cluster, id, &stop));

    change_keys(&cluster, "add", None);
    await_keys(&cluster, 1, &[1, 2]);
    change_keys(&cluster, "use", Some("2"));
    await_keys(&cluster, 2, &[1, 2]);
    change_keys(&cluster, "remove", Some("1"));
    await_keys(&cluster, 2, &[2]);

    let with_one_key = IDS.map(|id| status(&cluster, id).counters);
    // A while with the new key alone.
    let until = Instant::now() + PATIENCE;
    while status(&cluster, 1).counters["net_datagrams_in"]
        < with_one_key[0]["net_datagrams_in"] + 200
    {
        assert!(Instant::now() < until, "nothing comes under the new key");
        thread::sleep(Duration::from_millis(10));
    }
    stop.store(true, Ordering::Relaxed);
    let sent = speakers.map(|speaker| speaker.join().expect("it has sent"));
    let heard = listeners.map(|listener| listener.join().expect("it has heard"));
    assert!(heard[0] == heard[1] && heard[0] == heard[2]);
    for (id, sent) in IDS.into_iter().zip(sent) {
        let its = heard[0].iter().filter_map(|text| {
            let (from, number) = text.split_once(' ').expect("two numbers");
            (from == id.to_string()).then(|| number.parse::<usize>().expect("a number"))
        });
        assert!(its.eq(0..sent), "messages of {id} are missing");
        assert!(sent > 0);
    }
    for (id, before) in IDS.into_iter().zip(before) {
        let after = status(&cluster, id).counters;
        for name in ["configurations", "gathers", "token_losses"] {
            assert_eq!(after[name], before[name], "{name} of daemon {id}");
        }
        let refused = |(name, count): &(&String, &u64)| name.starts_with("net_seal") && **count > 0;
        assert_eq!(after.iter().find(refused), None, "daemon {id}");
    }
}

#[test]
fn keys_that_cannot_be_read_change_nothing() {
    let cluster = Cluster::sealed(3);
    meet(&cluster, &IDS);
    let file = cluster.dir().join("cluster.key");
    let good = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, "send = 7\n").expect("a file");
    IDS.iter().for_each(|id| cluster.hang_up(*id));
    // The answers of the daemons show that they go on; a good file is then read.
    await_keys(&cluster, 1, &[1]);
    meet(&cluster, &IDS);
    std::fs::write(&file, good).expect("a file");
    change_keys(&cluster, "add", None);
    await_keys(&cluster, 1, &[1, 2]);
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn daemons_with_different_keys_say_so_in_their_logs() {
    let dir = tempfile::tempdir().expect("a directory");
    let sockets = dir.path().display();
    let section = format!(
        "[daemon]\nsocket = \"{sockets}/{{node}}.sock\"\nadmin = \"{sockets}/{{node}}.admin\"\n"
    );
    let text = config(2, &section);
    let (said, logs) = mpsc::channel();
    let daemons = [1, 2].map(|id| {
        let key = dir.path().join(format!("{id}.key"));
        let made = KeyRing::generate().and_then(|ring| ring.create(&key));
        made.expect("a key file");
        let path = dir.path().join(format!("{id}.toml"));
        std::fs::write(&path, with_key(&text, &key)).expect("a file");
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["daemon", "--node", &id.to_string(), "--config"])
            .arg(path)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let lines = BufReader::new(daemon.stderr.take().expect("a pipe")).lines();
        let said = said.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                println!("{id}: {line}");
                if line.contains("not authentic") && said.send(id).is_err() {
                    return;
                }
            }
        });
        Killed(daemon)
    });
    let first = logs.recv_timeout(PATIENCE).expect("one says so");
    loop {
        let next = logs.recv_timeout(PATIENCE).expect("the other says so, too");
        if next != first {
            break;
        }
    }
    drop(daemons);
}

#[test]
fn a_key_file_is_made_for_its_owner_and_shown_without_the_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("cluster.key");
    let path = file.to_str().expect("a path");
    let said = |arguments: &[&str], status: i32| {
        let output = rota(arguments);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let all = [output.stdout, output.stderr].concat();
        String::from_utf8(all).expect("text")
    };
    assert!(said(&["key", "new", path], 0).contains("sends with key 1, takes 1"));
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(said(&["key", "new", path], 2).contains("not written over"));
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), text);
    assert!(said(&["key", "add", path], 0).contains("sends with key 1, takes 1, 2"));
    assert!(said(&["key", "use", path, "3"], 2).contains("no key 3"));
    assert!(said(&["key", "remove", path, "1"], 2).contains("use another first"));
    assert!(said(&["key", "use", path, "2"], 0).contains("sends with key 2, takes 1, 2"));
    assert!(said(&["key", "remove", path, "1"], 0).contains("sends with key 2, takes 2"));
    let shown = said(&["key", "show", path], 0);
    let text = std::fs::read_to_string(&file).expect("a file");
    let secret = text.split('"').nth(1).expect("a secret");
    assert_eq!(secret.len(), 64);
    assert!(
        !shown.contains(&secret[..8]) && shown.contains("takes 2"),
        "{shown}"
    );

    let toml = dir.path().join("rota.toml");
    let toml_path = toml.to_str().expect("a path");
    std::fs::write(&toml, with_key(&config(2, ""), &file)).expect("a file");
    let table = said(&["config", "check", toml_path], 0);
    assert!(table.contains("(sends with key 2, takes 2)"), "{table}");
    assert!(!table.contains(&secret[..8]), "{table}");
    let wide = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(&file, wide).expect("its mode");
    assert!(said(&["config", "check", toml_path], 2).contains("0640"));
    let daemon = ["daemon", "--config", toml_path, "--node", "1"];
    assert!(said(&daemon, 2).contains("0640"));
    let both = std::fs::read_to_string(&toml).expect("a file");
    std::fs::write(&toml, format!("insecure = true\n{both}")).expect("a file");
    assert!(said(&["config", "check", toml_path], 2).contains("exclude each other"));
    let neither = both.replace("key_file", "# key_file");
    std::fs::write(&toml, neither).expect("a file");
    let refused = said(&["config", "check", toml_path], 2);
    assert!(refused.contains("rota key new FILE"), "{refused}");
    assert!(refused.contains("insecure = true"), "{refused}");
}
