//! Clients in Go and Java: their own tests, and one group with clients in all languages that outlives a killed daemon.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rota_client::Client;

use crate::access::free_address;
use crate::both_protocols::spread;
use crate::cluster::Cluster;
use crate::from_c::{Workshop, ffi};
use crate::native::{PATIENCE, meet, member, next};
use crate::pki::Pki;

/// The sources of the clients in other languages.
fn sources(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../clients")
        .join(path)
}

/// Where programs are built.
fn built(path: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(path)
}

/// Runs a tool to its end; what it says on standard output.
fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| {
        panic!("{command:?}: {error}: this test needs Go and a JDK: `cargo xtask setup`")
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}\n{errors}");
    said
}

fn go() -> Command {
    let mut command = Command::new("go");
    // Nothing is fetched.
    command.env("GOTOOLCHAIN", "local").env("GOPROXY", "off");
    command.current_dir(sources("go"));
    command
}

/// A program of the module in Go.
pub fn go_program(name: &str) -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = built("go");
        fs::create_dir_all(&folder).expect("a directory");
        let mut to = folder.clone().into_os_string();
        to.push("/");
        run(go().args(["build", "-o"]).arg(to).arg("./..."));
        folder
    });
    Command::new(folder.join(name))
}

fn java(what: &str, to: &Path) -> String {
    run(Command::new(sources("java/build.sh")).arg(what).arg(to))
}

/// A program in Java.
pub fn java_program(class: &str) -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = built("java");
        java("programs", &folder);
        folder
    });
    let mut command = Command::new("java");
    let path = std::env::join_paths([folder.join("classes"), folder.join("programs")]);
    command.arg("-cp").arg(path.expect("no colon")).arg(class);
    command
}

#[test]
fn the_client_in_go_passes_its_tests() {
    let unformatted = run(Command::new("gofmt").arg("-l").arg(sources("go")));
    assert_eq!(unformatted, "");
    run(go().args(["vet", "./..."]));
    let said = run(go().args(["test", "-count=1", "./..."]));
    assert!(said.starts_with("ok"), "{said}");
}

#[test]
fn the_client_in_java_passes_its_tests() {
    let said = java("test", &built("java-tests"));
    let last = said.lines().last();
    assert!(
        last.is_some_and(|line| line.ends_with(" 0 failed")),
        "{said}"
    );
}

/// A program that sings in a group: see its source.
pub struct Singer {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Singer {
    /// Starts it.
    pub fn start(name: &str, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}: `cargo xtask setup`"));
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            name: name.to_owned(),
            input: child.stdin.take(),
            child,
            lines,
        }
    }

    pub fn next(&self) -> String {
        let next = self.lines.recv_timeout(PATIENCE);
        next.unwrap_or_else(|_| panic!("{} says nothing", self.name))
    }

    /// The next line that begins so.
    pub fn until(&self, begin: &str) -> String {
        loop {
            let line = self.next();
            if line.starts_with(begin) {
                return line;
            }
        }
    }

    /// The next line that begins and ends so.
    pub fn until_ending(&self, begin: &str, end: &str) -> String {
        loop {
            let line = self.until(begin);
            if line.ends_with(end) {
                return line;
            }
        }
    }

    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it listens");
        writeln!(input, "{line}").expect("it listens");
    }

    /// The next messages: this number of them.
    fn hear(&self, count: usize) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < count {
            let line = self.next();
            heard.extend(line.strip_prefix("got ").map(str::to_owned));
        }
        heard
    }

    /// Ends its input, and waits until it has closed.
    pub fn close(mut self) {
        self.input = None;
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "{}: {status}", self.name);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Singer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One in Rust, as the others are.
struct Own(Client);

impl Own {
    fn until_view(&mut self, members: usize) {
        loop {
            if let rota_client::Event::View(view) = next(&mut self.0)
                && view.members.len() == members
            {
                return;
            }
        }
    }

    fn hear(&mut self, count: usize) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < count {
            if let rota_client::Event::Message(message) = next(&mut self.0) {
                let text = String::from_utf8_lossy(&message.payload);
                heard.push(format!("{} {text}", message.sender));
            }
        }
        heard
    }
}

/// All of them, and a verse of each at once: what everybody has heard is the same.
struct Choir {
    own: Own,
    singers: Vec<Singer>,
}

impl Choir {
    fn members(&self) -> usize {
        self.singers.len() + 1
    }

    fn until_view(&mut self, members: usize) {
        self.own.until_view(members);
        for singer in &self.singers {
            singer.until(&format!("view {members}"));
        }
    }

    fn sing(&mut self, verse: &str, lines: usize, others: usize) -> Vec<String> {
        for line in 0..lines {
            let text = format!("{verse} {line}");
            self.own.0.send("choir", text.as_bytes()).expect("sent");
            self.singers
                .iter_mut()
                .for_each(|singer| singer.tell(&text));
        }
        let count = lines * self.members() + others;
        let heard = self.own.hear(count);
        for singer in &self.singers {
            assert_eq!(singer.hear(count), heard, "{}", singer.name);
        }
        heard
    }
}

/// One of Spread's clients, which sends into the group and goes.
const SPREAD: &str = r##"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

guest = Client(sys.argv[2], b"guest")
for at in range(10):
    guest.send(AGREED, [b"choir"], b"guest %d" % at)
guest.send(KILL, [guest.own])
assert guest.closed()
"##;

fn lasting(workshop: &Workshop) -> Vec<(&'static str, u16, Command)> {
    let c = workshop.compile(&ffi("tests/lasting.c"), &["-lrota"]);
    let mut all = vec![
        ("c", 1, workshop.command(&c)),
        ("go", 2, go_program("lasting")),
        ("java", 3, java_program("Lasting")),
    ];
    // The package is built by `cargo xtask python`, which runs this test again.
    if let Ok(interpreter) = std::env::var("ROTA_PYTHON") {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/lasting.py");
        let mut python = Command::new(interpreter);
        python.arg("-B").arg(script);
        all.push(("python", 1, python));
    }
    all
}

#[test]
fn clients_of_all_languages_meet_and_outlive_a_killed_daemon() {
    let workshop = Workshop::new();
    let mut cluster = Cluster::patient(3, "");
    meet(&cluster, &[1, 2, 3]);
    let mut own = Own(member(&cluster, 3, "rust"));
    own.0.join("choir").expect("it joins");
    let mut singers = Vec::new();
    for (name, daemon, mut command) in lasting(&workshop) {
        command.arg(cluster.socket(daemon)).args([name, "choir"]);
        let singer = Singer::start(name, command);
        singer.until("ready");
        singers.push(singer);
    }
    let mut choir = Choir { own, singers };
    let all = choir.members();
    choir.until_view(all);
    let guest = spread(&cluster, 1, SPREAD);
    let heard = choir.sing("together", 50, 10);
    assert!(heard.contains(&"#guest#n1 guest 9".to_owned()), "{heard:?}");
    let output = guest.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let place = |choir: &Choir, name: &str| {
        let mut names = choir.singers.iter();
        names.position(|singer| singer.name == name).expect("sings")
    };
    let (go, java) = (place(&choir, "go"), place(&choir, "java"));
    choir.singers[go].tell("@#java#n3 for you alone");
    assert_eq!(choir.singers[java].hear(1), ["#go#n2 for you alone"]);

    cluster.kill(2);
    let absent = choir.singers.remove(go);
    choir.until_view(all - 1);
    choir.sing("without one", 20, 0);
    cluster.restart(2);
    let gap = absent.until("gap");
    assert!(gap.ends_with(" #go#n2 0"), "{gap}");
    choir.until_view(all);
    absent.until(&format!("view {all}"));
    choir.singers.push(absent);
    choir.sing("together again", 20, 0);
    choir.singers.into_iter().for_each(Singer::close);
}

/// By TLS: who shows no certificate of the daemon's root, or meets a daemon of another root, is told so.
#[test]
fn go_and_java_come_by_tls_with_certificates_alone() {
    let pki = Pki::new();
    pki.issue("alice", "alice.example", &pki.ca, (2000, 4000));
    pki.issue("mallory", "mallory.example", &pki.other_ca, (2000, 4000));
    let listen = free_address();
    let cluster = Cluster::start(1, &pki.section(listen, &pki.client_ca()));
    meet(&cluster, &[1]);
    let tls = |command: &mut Command, name: &str, ca: &str, own: &str| {
        command.arg(format!("tls:{listen}")).args([name, "g"]);
        for file in [ca, &format!("{own}.pem"), &format!("{own}.key")] {
            command.arg(pki.path(file));
        }
        command.arg("daemon.example");
    };
    let program = |name: &str| match name {
        "go" => go_program("lasting"),
        _ => java_program("Lasting"),
    };
    for name in ["go", "java"] {
        for (ca, own) in [("other-ca.pem", "alice"), ("ca.pem", "mallory")] {
            let mut command = program(name);
            tls(&mut command, name, ca, own);
            let output = command.stdin(Stdio::null()).output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{name}");
            assert!(said.contains("no TLS"), "{name} with {ca}, {own}: {said}");
        }
        let mut command = program(name);
        tls(&mut command, name, "ca.pem", "alice");
        let mut singer = Singer::start(name, command);
        singer.until("ready");
        singer.tell("hello");
        assert_eq!(singer.until("got"), format!("got #{name}#n1 hello"));
        singer.close();
    }
}

/// The first program of this language in the guide, at this socket.
fn shown(language: &str, socket: &Path) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide.md");
    let guide = fs::read_to_string(guide).expect("the guide");
    let fence = format!("```{language}\n");
    let (_, rest) = guide.split_once(&fence).expect("a program");
    let (code, _) = rest.split_once("```").expect("its end");
    code.replace("/run/rota/rota.sock", &socket.display().to_string())
}

#[test]
fn what_the_guide_shows_in_go_and_java_runs() {
    let cluster = Cluster::start(1, "");
    let socket = cluster.socket(1);
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("main.go"), shown("go", &socket)).expect("a file");
    let module = format!(
        "module hello\ngo 1.19\nrequire rota v0.0.0\nreplace rota => {}\n",
        sources("go").display()
    );
    fs::write(dir.path().join("go.mod"), module).expect("a file");
    let said = run(go().args(["run", "."]).current_dir(dir.path()));
    assert_eq!(said, "#alice#n1: hello\n");
    let hello = dir.path().join("Hello.java");
    fs::write(&hello, shown("java", &socket)).expect("a file");
    let said = run(&mut java_program(hello.to_str().expect("a text")));
    assert_eq!(said, "#bob#n1: hello\n");
}
