//! Tells a service manager how the daemon is (`sd_notify`); does nothing where there is none.

use std::io;
use std::thread;

use rota_daemon::Control;
use sd_notify::NotifyState;

/// News that cannot be told change nothing for the ring.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

/// The daemon's sockets are open: clients can connect.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// It reads its configuration again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "there is no clock"),
    }
}

/// It leaves the ring.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Gives the service manager signs of life, if it wants them, as long as the daemon's loop turns.
pub fn watch(control: Control) -> io::Result<()> {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return Ok(());
    };
    let every = limit / 3;
    thread::Builder::new()
        .name("rota-watchdog".to_owned())
        .spawn(move || {
            loop {
                // A driver that stood still for a third of the limit, and goes on, says so at once.
                if control.is_alive(every) {
                    tell(&[NotifyState::Watchdog]);
                    thread::sleep(every);
                }
            }
        })?;
    Ok(())
}
