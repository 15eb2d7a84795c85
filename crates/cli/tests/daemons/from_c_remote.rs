//! Programs in C at a daemon of another host.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::both_protocols::is_as_it_should_be;
use crate::from_c::{Workshop, ffi};
use crate::pki::Served;

#[test]
fn a_program_in_c_shows_its_certificate_and_is_told_which_are_no_good() {
    let served = Served::new("");
    let pki = &served.pki;
    pki.issue("expired", "alice.example", &pki.ca, (2000, 2001));
    let workshop = Workshop::new();
    let program = workshop.compile(&ffi("tests/tls.c"), &["-lrota"]);
    let files = ["ca.pem", "other-ca.pem", "expired", "alice"].map(|file| pki.path(file));
    let output = workshop
        .command(&program)
        .arg(served.address())
        .arg("daemon.example")
        .args(files)
        .output()
        .expect("it starts");
    is_as_it_should_be(&output);
    served.await_counter("tls_shown", 1);
}

/// No write of the library may end a program that has not asked to be spared: the daemon dies under it.
#[test]
fn a_program_in_c_that_leaves_sigpipe_alone_survives_its_daemon() {
    let workshop = Workshop::new();
    let program = workshop.compile(&ffi("tests/sigpipe.c"), &["-lrota"]);
    for by_tls in [true, false] {
        let mut served = Served::new("");
        let mut arguments: Vec<OsString> = Vec::new();
        if by_tls {
            arguments.push(served.address().into());
            let files = ["ca.pem", "alice.pem", "alice.key"];
            arguments.extend(files.map(|file| served.pki.path(file).into()));
        } else {
            arguments.push(served.cluster.socket(1).into());
        }
        let mut command = workshop.command(&program);
        command.args(arguments).stdin(Stdio::piped());
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("it starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a text");
        assert_eq!(line, "connected\n");
        served.cluster.kill(1);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", output.status);
    }
}
