//! `GET /livez` and `GET /readyz`: the condition of a daemon for probes, which restart a process or send it no clients.
//!
//! | a daemon that | `/livez` | `/readyz` |
//! |---|---|---|
//! | starts: it reads its logs, which may take long | 200 | 503 |
//! | works | 200 | 200 |
//! | orders nothing: it looks for a ring, has no majority, or is in no primary view | 200 | 503 |
//! | is on a new ring whose daemons still tell each other of groups | 200 | 503 |
//! | hangs: the ring's thread does not turn | 503 | 503 |
//! | stops | 200 | 503 |
//!
//! A restart helps a daemon that hangs, and no other: one without a majority would only lose time by it.

use std::sync::Arc;
use std::time::Duration;

use super::Answer;
use crate::control::{Control, Phase};
use crate::status::DaemonStatus;

/// The time that the ring's thread may take for a sign of life: on a crowded host it may be without a processor for a
/// good part of it.
const TURN: Duration = Duration::from_secs(2);

const WELL: &str = "200 OK";
const ILL: &str = "503 Service Unavailable";

/// Whether the process is of any use: it starts, stops, or its loop turns.
pub(super) fn live(control: &Control) -> Answer {
    match control.phase() {
        Phase::Starting => said(WELL, "starting"),
        Phase::Stopping => said(WELL, "stopping"),
        Phase::Running if control.is_alive(TURN) => said(WELL, "ok"),
        // It has been told to stop meanwhile.
        Phase::Running if control.phase() == Phase::Stopping => said(WELL, "stopping"),
        Phase::Running => said(ILL, HANGS),
    }
}

/// Whether messages of clients are ordered and delivered now.
pub(super) fn ready(
    control: &Control,
    status: impl FnOnce() -> Option<Arc<DaemonStatus>>,
) -> Answer {
    match control.phase() {
        Phase::Starting => return said(ILL, "starting"),
        Phase::Stopping => return said(ILL, "stopping"),
        Phase::Running => {}
    }
    match status() {
        Some(status) => match lack(&status) {
            Some(lack) => said(ILL, &lack),
            None => said(WELL, "ok"),
        },
        None => said(ILL, HANGS),
    }
}

const HANGS: &str = "hangs: the ring's thread does not turn";

/// The reason, in words, why clients are not served.
fn lack(status: &DaemonStatus) -> Option<String> {
    if status.excluded {
        return Some(format!("excluded: in no primary view; {}", status.ring));
    }
    if !status.is_operational() {
        return Some(format!("nothing is ordered: {}", status.ring));
    }
    let untold = "the daemons of a new ring tell each other of groups; requests wait";
    (!status.groups_ready).then(|| untold.to_owned())
}

fn said(code: &'static str, words: &str) -> Answer {
    (code, "text/plain; charset=utf-8", format!("{words}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use mio::{Poll, Token, Waker};

    fn control() -> (Poll, Control) {
        let poll = Poll::new().expect("descriptors");
        let waker = Waker::new(poll.registry(), Token(0)).expect("descriptors");
        let control = Control::new(
            Arc::new(waker),
            Arc::new(Access::new(&[]).expect("no rules")),
        );
        (poll, control)
    }

    fn status(change: impl FnOnce(&mut DaemonStatus)) -> DaemonStatus {
        let mut status = DaemonStatus {
            ring: "operational: 1, 2".to_owned(),
            groups_ready: true,
            ..DaemonStatus::default()
        };
        change(&mut status);
        status
    }

    #[test]
    fn a_daemon_is_alive_while_it_starts_and_stops_and_is_not_ready_then() {
        let (_poll, control) = control();
        let never = || -> Option<Arc<DaemonStatus>> { panic!("nobody answers yet") };
        assert_eq!(live(&control), said(WELL, "starting"));
        assert_eq!(ready(&control, never), said(ILL, "starting"));
        control.enter(Phase::Stopping);
        assert_eq!(live(&control), said(WELL, "stopping"));
        assert_eq!(ready(&control, never), said(ILL, "stopping"));
    }

    #[test]
    fn a_daemon_whose_loop_does_not_turn_hangs() {
        let (_poll, control) = control();
        control.enter(Phase::Running);
        assert_eq!(live(&control), said(ILL, HANGS));
        assert_eq!(ready(&control, || None), said(ILL, HANGS));
    }

    #[test]
    fn a_daemon_whose_loop_turns_is_alive_and_one_that_was_told_to_stop_meanwhile_too() {
        let (_poll, control) = control();
        control.enter(Phase::Running);
        let turns = control.clone();
        let ring = std::thread::spawn(move || {
            loop {
                if let Some(wanted) = turns.take_wanted() {
                    return turns.answer(wanted, None);
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(live(&control), said(WELL, "ok"));
        ring.join().expect("it has answered");
        let stops = control.clone();
        let ring = std::thread::spawn(move || {
            while stops.take_wanted().is_none() {
                std::thread::yield_now();
            }
            stops.enter(Phase::Stopping);
        });
        assert_eq!(live(&control), said(WELL, "stopping"));
        ring.join().expect("it has stopped");
    }

    #[test]
    fn a_daemon_is_ready_that_orders_and_whose_groups_are_known() {
        let (_poll, control) = control();
        control.enter(Phase::Running);
        let told = |change: fn(&mut DaemonStatus)| {
            let status = Arc::new(status(change));
            let (code, _, words) = ready(&control, || Some(status));
            (code, words)
        };
        assert_eq!(told(|_| ()), (WELL, "ok\n".to_owned()));
        for (change, words) in [
            (
                (|status| status.excluded = true) as fn(&mut DaemonStatus),
                "excluded: in no primary view; operational: 1, 2\n",
            ),
            (
                |status| "gathering: waiting for 3".clone_into(&mut status.ring),
                "nothing is ordered: gathering: waiting for 3\n",
            ),
            (
                |status| status.groups_ready = false,
                "the daemons of a new ring tell each other of groups; requests wait\n",
            ),
        ] {
            assert_eq!(told(change), (ILL, words.to_owned()));
        }
    }
}
