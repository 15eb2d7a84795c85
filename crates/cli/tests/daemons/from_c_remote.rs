//! Programs in C at a daemon of another host.

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
