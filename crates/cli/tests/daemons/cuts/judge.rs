//! The promises to a client whose connection is cut.

use std::collections::BTreeMap;
use std::fmt;

use super::plan::{Plan, Transport};
use super::puppet::{Heard, Log};
use super::relay::Report;

/// Which daemon's order: of the one without memory, or of the other.
pub type Course = bool;

/// What clients said of their messages, and how much there was to judge.
#[derive(Debug, Default)]
pub struct Seen {
    /// By client: it was told that so many were taken, and whether the daemon has read all of them.
    sent: BTreeMap<(Course, String), (u32, bool)>,
    pub rounds: u64,
    pub cut: u64,
    pub heard: u64,
    /// Rounds in which all that had passed to the client was counted.
    pub counted: u64,
    pub closed: u64,
    /// Clients that were told of an orderly end.
    pub orderly: u64,
    pub refused: u64,
}

/// One round, beside what was heard by one whose connection stood.
pub fn round(plan: &Plan, log: &Log, report: &Report, course: &[Heard]) -> Result<(), String> {
    if let Some(wrong) = &log.wrong {
        return Err(wrong.clone());
    }
    follows(&log.heard, course)?;
    let listened = log.lost.is_some();
    if let (Some(told), true) = (report.told, listened) {
        let heard = log.heard.len();
        if heard > told || (heard < told && report.ended) {
            return Err(format!("{told} messages had come, and {heard} were told"));
        }
    }
    if plan.transport == Transport::Tls && report.cut && is_orderly(log) {
        return Err("a cut was told as an orderly end".to_owned());
    }
    if log.lost.is_none() && log.refused.is_none() && log.closed.is_none() {
        return Err("it ended without a word".to_owned());
    }
    Ok(())
}

/// Whether it was told that the daemon has ended the connection.
fn is_orderly(log: &Log) -> bool {
    let texts = [&log.lost, &log.refused];
    let orderly = |text: &String| text.contains("the connection has ended");
    texts.into_iter().flatten().any(orderly)
}

/// What one heard is a part of the course, without gaps, in its order, and nothing twice.
fn follows(heard: &[Heard], course: &[Heard]) -> Result<(), String> {
    let Some(first) = heard.first() else {
        return Ok(());
    };
    let Some(from) = course.iter().position(|one| one == first) else {
        return Err(format!("nobody else heard {first:?}"));
    };
    let beside = course[from..]
        .iter()
        .map(Some)
        .chain(std::iter::repeat(None));
    for (at, (one, other)) in heard.iter().zip(beside).enumerate() {
        if Some(one) != other {
            return Err(format!("at {at} it heard {one:?}, others {other:?}"));
        }
    }
    Ok(())
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} connections, {} cut, {} messages heard; all that had come counted in {}; {} closed, {} told of an end in \
             order, {} not let in",
            self.rounds,
            self.cut,
            self.heard,
            self.counted,
            self.closed,
            self.orderly,
            self.refused
        )
    }
}

impl Seen {
    /// Rounds in which little happened show nothing. In few of them, on a busy machine, some things may be missing.
    pub fn assert_not_idle(&self) {
        let seldom = [self.counted, self.closed, self.orderly];
        assert!(self.cut * 2 >= self.rounds, "{self}");
        assert!(self.heard >= self.rounds, "{self}");
        let is_long = self.rounds >= 1000;
        assert!(
            !is_long || seldom.iter().all(|count| count * 100 >= self.rounds),
            "{self}"
        );
    }

    pub fn add(&mut self, plan: &Plan, log: &Log, report: &Report) {
        // Without TLS an end that somebody made up is like one of the daemon's.
        let closed = matches!(log.closed, Some(Ok(())));
        let is_sure = closed && (plan.transport == Transport::Tls || !report.cut);
        let course = plan.transport == Transport::Unix;
        self.sent.insert((course, plan.name()), (log.sent, is_sure));
        self.rounds += 1;
        self.cut += u64::from(report.cut);
        self.heard += log.heard.len() as u64;
        self.counted += u64::from(report.told.is_some() && report.ended && log.lost.is_some());
        self.closed += u64::from(closed);
        self.orderly += u64::from(is_orderly(log));
        self.refused += u64::from(log.refused.is_some());
    }

    /// Of each sender a first part was heard, each message once, in its order: no more than it sent, and all of it
    /// where closing said so.
    pub fn whole(&self, which: Course, course: &[Heard]) -> Result<(), String> {
        let mut last = BTreeMap::<&str, u32>::new();
        for (sender, number) in course {
            let name = sender.trim_start_matches('#').split('#').next();
            let last = last.entry(name.unwrap_or_default()).or_default();
            if *number != *last + 1 {
                return Err(format!("{sender}: {number} behind {last}"));
            }
            *last = *number;
        }
        for ((_, name), (sent, is_sure)) in self.sent.iter().filter(|((of, _), _)| *of == which) {
            let heard = last.get(name.as_str()).copied().unwrap_or_default();
            // The one that failed may have been sent all the same.
            if heard > sent + 1 || (*is_sure && heard != *sent) {
                return Err(format!("{name} sent {sent}, and {heard} were heard"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(numbers: &[u32]) -> Vec<Heard> {
        let heard = |number: &u32| ("#c1#n1".to_owned(), *number);
        numbers.iter().map(heard).collect()
    }

    #[test]
    fn a_part_of_the_course_is_fine_and_nothing_else() {
        let all = course(&[1, 2, 3, 4]);
        assert_eq!(follows(&[], &all), Ok(()));
        assert_eq!(follows(&course(&[2, 3]), &all), Ok(()));
        for wrong in [&[2, 4][..], &[3, 2], &[2, 2], &[4, 5], &[9]] {
            assert!(follows(&course(wrong), &all).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_lost_doubled_or_made_up_is_found() {
        let seen = |sent, is_sure| Seen {
            sent: BTreeMap::from([((false, "c1".to_owned()), (sent, is_sure))]),
            ..Seen::default()
        };
        assert_eq!(seen(5, false).whole(false, &course(&[1, 2])), Ok(()));
        assert_eq!(seen(1, false).whole(false, &course(&[1, 2])), Ok(()));
        assert!(seen(0, false).whole(false, &course(&[1, 2])).is_err());
        assert!(seen(5, true).whole(false, &course(&[1, 2])).is_err());
        assert!(seen(5, false).whole(false, &course(&[1, 1])).is_err());
        assert!(seen(5, false).whole(false, &course(&[1, 3])).is_err());
    }
}
