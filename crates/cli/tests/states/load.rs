//! A client that sends a little, as long as it is left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rota_client::Client;

/// Between two messages.
const EVERY: Duration = Duration::from_millis(50);

/// See the module. It connects anew where its daemon has gone.
pub struct Load {
    stop: Arc<AtomicBool>,
}

impl Load {
    pub fn at(socket: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, socket) = (Arc::clone(&stop), socket.to_owned());
        thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let _ = send(&socket, &stopped);
                thread::sleep(EVERY);
            }
        });
        Self { stop }
    }
}

fn send(socket: &PathBuf, stopped: &AtomicBool) -> Option<()> {
    let mut client = Client::builder().name("load").connect(socket).ok()?;
    while !stopped.load(Ordering::Relaxed) {
        client.send("nobody", b"something").ok()?;
        thread::sleep(EVERY);
    }
    Some(())
}

impl Drop for Load {
    fn drop(&mut self) {
        // It may wait for its daemon, which is about to end.
        self.stop.store(true, Ordering::Relaxed);
    }
}
