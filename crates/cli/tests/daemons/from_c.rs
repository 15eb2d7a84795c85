//! Programs in C, with the library of crates/ffi: real compilers, real daemons.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use crate::both_protocols::is_as_it_should_be;
use crate::cluster::Cluster;
use crate::native::meet;

/// What the library needs of the system when it is linked into the program.
const SYSTEM: &[&str] = &["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];

/// The library as it is installed, and programs beside it.
pub struct Workshop(TempDir);

impl Workshop {
    pub fn new() -> Self {
        // The crate is used, so that cargo builds it, and its libraries are beside this program.
        assert_eq!(rota_ffi::ROTA_GATHER, 1);
        let own = std::env::current_exe().expect("a path");
        let built = own.parent().expect("a directory");
        let dir = tempfile::tempdir().expect("a directory");
        for (from, to) in [
            ("librota_ffi.so", "librota.so"),
            ("librota_ffi.so", &soname()),
            ("librota_ffi.a", "librota.a"),
        ] {
            let from = built.join(from);
            assert!(from.is_file(), "{} was not built", from.display());
            symlink(from, dir.path().join(to)).expect("a link");
        }
        Self(dir)
    }

    fn dir(&self) -> &Path {
        self.0.path()
    }

    /// Compiles a program, whose warnings are errors.
    pub fn compile(&self, source: &Path, link: &[&str]) -> PathBuf {
        let program = self.dir().join("program");
        let output = Command::new("cc")
            .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g"])
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
            .arg(ffi("include"))
            .arg(source)
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(self.dir())
            .args(link)
            .output()
            .expect("a C compiler, as Rust needs one");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        program
    }

    /// A command that finds the shared library.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.dir());
        command
    }
}

pub fn ffi(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../ffi")
        .join(path)
}

fn soname() -> String {
    let (major, minor) = (
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    );
    format!("librota.so.{major}.{minor}")
}

/// Two daemons that have met, and the program with what it wants to know of them.
fn run_every(mut command: Command) {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let output = command
        .arg(cluster.socket(1))
        .arg(cluster.socket(2))
        .arg(cluster.pid(2).to_string())
        .output()
        .expect("it starts");
    is_as_it_should_be(&output);
}

#[test]
fn every_function_does_what_it_says_and_survives_wrong_arguments() {
    let workshop = Workshop::new();
    let mut link = vec!["-l:librota.a"];
    link.extend(SYSTEM);
    let program = workshop.compile(&ffi("tests/every.c"), &link);
    run_every(workshop.command(&program));
}

/// Memory that is used after it was freed, or never freed; where there is valgrind.
#[test]
fn the_shared_library_leaves_no_memory_behind() {
    let workshop = Workshop::new();
    let program = workshop.compile(&ffi("tests/every.c"), &["-lrota", "-lpthread"]);
    let valgrind = Command::new("valgrind").arg("--version").output();
    if valgrind.is_ok_and(|output| output.status.success()) {
        let mut command = workshop.command(Path::new("valgrind"));
        command.args(["--quiet", "--leak-check=full", "--error-exitcode=9"]);
        command.arg(program);
        run_every(command);
    } else {
        println!("without valgrind: only that it runs");
        run_every(workshop.command(&program));
    }
}

#[test]
fn the_test_in_c_calls_every_function_of_the_header() {
    let read = |path| fs::read_to_string(ffi(path)).expect("a file");
    let (header, test) = (read("include/rota.h"), read("tests/every.c"));
    let code = header.lines().filter(|line| !line.starts_with("//"));
    let names = code.filter_map(|line| {
        let before = line.split_once('(')?.0;
        let name = before.rsplit([' ', '*']).next()?;
        name.starts_with("rota_").then_some(name)
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 19, "{names:?}");
    for name in names {
        assert!(test.contains(&format!("{name}(")), "{name} is not tested");
    }
}

#[test]
fn a_message_that_may_not_go_where_it_was_sent_is_an_event() {
    let workshop = Workshop::new();
    let program = workshop.compile(&ffi("tests/refused.c"), &["-lrota"]);
    let me = rustix::process::geteuid().as_raw();
    let rule = "join = [\"open\"]\nsend = [\"open\"]";
    let rule = format!("[[daemon.access]]\nwho = {{ uid = {me} }}\n{rule}\n");
    let cluster = Cluster::start(1, &rule);
    let mut command = workshop.command(&program);
    let output = command.arg(cluster.socket(1)).output().expect("it starts");
    is_as_it_should_be(&output);
}

/// A room with one person.
struct Person {
    child: Child,
    says: Option<ChildStdin>,
    hears: Box<dyn Iterator<Item = String>>,
}

impl Person {
    fn enter(workshop: &Workshop, chat: &Path, socket: &Path, name: &str) -> Self {
        let mut child = workshop
            .command(chat)
            .arg(socket)
            .args([name, "room"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Self {
            says: child.stdin.take(),
            hears: Box::new(out.lines().map_while(Result::ok)),
            child,
        }
    }

    fn say(&mut self, line: &str) {
        let pipe = self.says.as_mut().expect("still talking");
        pipe.write_all(line.as_bytes()).expect("it listens");
    }

    fn hear(&mut self) -> String {
        self.hears.next().expect("there is more")
    }

    /// Hangs up, and hears the rest.
    fn leave(mut self) -> Vec<String> {
        self.says = None;
        let rest = self.hears.by_ref().collect();
        assert!(self.child.wait().expect("a child").success());
        rest
    }
}

#[test]
fn two_people_chat_at_two_daemons() {
    const LINES: usize = 200;
    let workshop = Workshop::new();
    let chat = workshop.compile(&ffi("examples/chat.c"), &["-lrota"]);
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut alice = Person::enter(&workshop, &chat, &cluster.socket(1), "alice");
    assert_eq!(alice.hear(), "* #alice#n1 is here; now #alice#n1");
    let mut bob = Person::enter(&workshop, &chat, &cluster.socket(2), "bob");
    let both = "* #bob#n2 is here; now #alice#n1 #bob#n2";
    assert_eq!((alice.hear(), bob.hear()), (both.into(), both.into()));
    for number in 0..LINES {
        alice.say(&format!("a {number}\n"));
        bob.say(&format!("b {number}\n"));
    }
    let hear =
        |person: &mut Person| -> Vec<String> { (0..2 * LINES).map(|_| person.hear()).collect() };
    let (heard, same) = (hear(&mut alice), hear(&mut bob));
    assert_eq!(heard, same);
    for (who, letter) in [("#alice#n1", 'a'), ("#bob#n2", 'b')] {
        let own = heard.iter().filter(|line| line.starts_with(who));
        let expected = (0..LINES).map(|number| format!("{who}: {letter} {number}"));
        assert!(own.cloned().eq(expected), "{who}");
    }
    assert!(bob.leave().is_empty());
    assert_eq!(alice.hear(), "* #bob#n2 has left; now #alice#n1");
    assert!(alice.leave().is_empty());
}

#[test]
fn what_the_guide_shows_runs() {
    let guide = fs::read_to_string(ffi("../../docs/guide.md")).expect("the guide");
    let shown = guide
        .split_once("```c\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    let cluster = Cluster::start(1, "");
    let socket = cluster.socket(1);
    let (code, _) = shown.expect("a program in C");
    let code = code.replace("/run/rota/rota.sock", socket.to_str().expect("a text"));
    let workshop = Workshop::new();
    let source = workshop.dir().join("shown.c");
    fs::write(&source, code).expect("a file");
    let program = workshop.compile(&source, &["-lrota"]);
    let output = workshop.command(&program).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with('#') && text.ends_with("#n1: hello\n"),
        "{text}"
    );
}
