//! The tutorial's commands, one after the other in one shell, print what the page says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::copies::ARGUMENTS;

const PAGE: &str = include_str!("../../../../docs/tutorial.md");
/// Behind what a command prints.
const END: &str = "@@ the end of this command";
const PATIENCE: Duration = Duration::from_secs(60);

/// A command of the page, and the lines that it prints there.
struct Step {
    command: &'static str,
    prints: Vec<&'static str>,
}

impl Step {
    /// A reader would look again: it changes nothing.
    fn only_looks(&self) -> bool {
        let first = self.command.split(' ').next().unwrap_or_default();
        let looks = ["cat", "tail", "grep", "cmp"].contains(&first);
        looks || self.command.starts_with("rota status")
    }

    /// Whether the lines of the page are among these, in their order; numbers and paths aside.
    fn is_printed_in(&self, lines: &[String]) -> bool {
        let mut rest = lines.iter().map(|line| shape(line));
        self.prints
            .iter()
            .map(|line| shape(line))
            .all(|line| rest.any(|other| other == line))
    }
}

/// A line without what differs from run to run.
fn shape(line: &str) -> String {
    let words = line.split(' ').map(|word| match word {
        path if path.starts_with('/') => path.rsplit_once('/').map_or(path, |(_, name)| name),
        word => word,
    });
    let words: Vec<&str> = words.collect();
    let mut out = String::new();
    for one in words.join(" ").chars() {
        match one.is_ascii_digit() {
            true if out.ends_with('9') => {}
            true => out.push('9'),
            false => out.push(one),
        }
    }
    out
}

fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_session = false;
    for line in PAGE.lines() {
        match (line.strip_prefix("$ "), is_session) {
            _ if line.starts_with("```") => is_session = line == "```console",
            (Some(command), true) => steps.push(Step {
                command,
                prints: Vec::new(),
            }),
            (None, true) => {
                let step = steps.last_mut().expect("a command prints it");
                step.prints.push(line);
            }
            (_, false) => {}
        }
    }
    // The programs are built already, and found.
    let builds = |step: &Step| {
        ["cargo ", "export "]
            .iter()
            .any(|of| step.command.starts_with(of))
    };
    steps.retain(|step| !builds(step));
    steps
}

/// A shell, and all that it has started.
struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    fn start(directory: &Path) -> Self {
        let programs = directory.join("programs");
        fs::create_dir(&programs).expect("it is ours");
        symlink(env!("CARGO_BIN_EXE_rota"), programs.join("rota")).expect("it is ours");
        let store = programs.join("store");
        let me = env::current_exe().expect("a path");
        let text = format!(
            "#!/bin/bash\nexport {ARGUMENTS}=$(printf '%s\\n' store \"$@\")\nexec {} copies::a_copy --exact --nocapture\n",
            me.display()
        );
        fs::write(&store, text).expect("it is ours");
        fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let path = env::var("PATH").unwrap_or_default();
        let mut child = Command::new("bash")
            .current_dir(directory)
            .env("PATH", format!("{}:{path}", programs.display()))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is bash");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let mut shell = Self {
            child,
            input,
            lines,
        };
        shell.run("exec 2>&1");
        shell
    }

    /// The lines that a command prints.
    fn run(&mut self, command: &str) -> Vec<String> {
        writeln!(self.input, "{command}\necho; echo '{END}'").expect("it listens");
        let mut lines = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{command} does not end: {lines:?}"));
            match line == END {
                true => return lines,
                false => lines.push(line),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The shell's own group: the daemons as well.
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

#[test]
fn the_tutorial_is_true() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut shell = Shell::start(directory.path());
    let steps = steps();
    assert!(steps.len() > 50, "{}", steps.len());
    for step in &steps {
        let began = Instant::now();
        loop {
            let lines = shell.run(step.command);
            if step.is_printed_in(&lines) {
                break;
            }
            let is_over = began.elapsed() > PATIENCE || !step.only_looks();
            assert!(
                !is_over,
                "$ {}\n{}\ninstead of\n{}",
                step.command,
                lines.join("\n"),
                step.prints.join("\n")
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}
