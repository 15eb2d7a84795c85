//! A client that knows nothing of this code talks to it through real sockets.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::{env, fs, process, thread};

use rota_daemon::spread::ByteOrder;

use crate::hub::serve;

fn talk_to(address: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/spread_client.py");
    // -B: no compiled copies beside the sources.
    let output = Command::new("python3")
        .args(["-B", script, address])
        .output();
    let output = output.expect("this test needs python3: `cargo xtask setup`");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"as it should be\n");
}

#[test]
fn an_independent_client_is_served_over_tcp_by_a_daemon_of_either_order() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        thread::spawn(move || serve(order, listener.incoming().map_while(Result::ok)));
        talk_to(&port.to_string());
    }
}

#[test]
fn an_independent_client_is_served_over_a_unix_socket() {
    let path = env::temp_dir().join(format!("rota-spread-{}.sock", process::id()));
    // One of a killed run with the same process id.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket in the temporary directory");
    let order = ByteOrder::Little;
    thread::spawn(move || {
        serve(order, listener.incoming().map_while(Result::ok));
    });
    talk_to(path.to_str().expect("a path in ASCII"));
    fs::remove_file(&path).expect("it is still there");
}
