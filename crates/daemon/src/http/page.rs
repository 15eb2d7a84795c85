//! `GET /`: a page for people, which loads nothing from elsewhere, and `GET /page`: what it shows.
//!
//! The page asks once a second while somebody looks at it, and keeps its plots itself: a daemon that nobody looks at does
//! nothing for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::survey::All;
use crate::explain::{Finding, Seen, distinct, explain};
use crate::status::{DaemonStatus, HistogramStatus};

/// The page: markup, style and script in one.
pub(super) const PAGE: &str = include_str!("page.html");

/// Lines of the head of every answer. A browser loads nothing for what it gets here and asks only the daemon; it takes
/// nothing for what it is not called, and shows nothing in a frame of somebody else.
pub(super) const SAFETY: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; \
                                 script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                                 frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";

/// What was seen is judged over at least this time.
const LEAST: Duration = Duration::from_secs(1);

/// The same over at most this time: what was wrong before is over.
const MOST: Duration = Duration::from_secs(10);

/// Statuses that are kept to compare with: as many as come in the longest time.
const KEPT: usize = 16;

/// What the page shows.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    status: &'a DaemonStatus,
    /// All daemons that tell, this one among them; none where they do not.
    daemons: Vec<Row<'a>>,
    /// The time that the sentences are about, in microseconds; 0 with the first question.
    over_us: u64,
    /// The daemons that they are about.
    asked: usize,
    findings: Vec<Finding>,
}

/// A daemon, in a table of all of them.
#[derive(Debug, Serialize)]
struct Row<'a> {
    node: u16,
    name: &'a str,
    pid: u32,
    uptime_us: u64,
    ring: &'a str,
    excluded: bool,
    members: usize,
    held: Times,
    rotation: Times,
    waited_us: u64,
    repaired: u64,
    told: u64,
    waiting_bytes: usize,
    clients: usize,
}

/// How often something has taken how long.
#[derive(Debug, Serialize)]
struct Times {
    count: u64,
    sum_us: u64,
}

impl From<&HistogramStatus> for Times {
    fn from(times: &HistogramStatus) -> Self {
        let (count, sum_us) = (times.count, times.sum_us);
        Self { count, sum_us }
    }
}

impl<'a> Row<'a> {
    fn of(status: &'a DaemonStatus) -> Self {
        Self {
            node: status.node,
            name: &status.name,
            pid: status.pid,
            uptime_us: status.uptime_us,
            ring: &status.ring,
            excluded: status.excluded,
            members: status.members.len(),
            held: (&status.token.held).into(),
            rotation: (&status.token.rotation).into(),
            waited_us: status.token.waited_us,
            repaired: status.repaired(),
            told: status.told(),
            waiting_bytes: status.queues.client_bytes,
            clients: status.clients.len(),
        }
    }
}

/// What was known at one time.
#[derive(Clone, Debug)]
struct Snapshot {
    at: Instant,
    own: Arc<DaemonStatus>,
    all: All,
}

impl Snapshot {
    /// All daemons, each compared with itself before.
    fn since(&self, before: &Self) -> Vec<Seen> {
        let own = std::iter::once((&*before.own, &*self.own));
        let others = self.all.iter().filter_map(|after| {
            let is_same =
                |status: &&DaemonStatus| status.node == after.node && status.pid == after.pid;
            before
                .all
                .iter()
                .find(is_same)
                .map(|before| (before, after))
        });
        let seen = |(before, after): (&DaemonStatus, &DaemonStatus)| Seen {
            before: before.clone(),
            after: after.clone(),
        };
        distinct(own.chain(others).map(seen).collect())
    }
}

/// The statuses that were shown last.
#[derive(Debug, Default)]
pub(super) struct Recent {
    shown: Mutex<RecentShown>,
}

#[derive(Debug, Default)]
struct RecentShown {
    snapshots: VecDeque<Snapshot>,
    /// What was shown of the statuses that were shown last.
    newest: Option<(Arc<DaemonStatus>, All, String)>,
}

impl Recent {
    /// The status as JSON, with all daemons that tell, and what is wrong since it was shown before. However many look, the
    /// same statuses are judged once.
    pub fn show(&self, own: &Arc<DaemonStatus>, all: &All, now: Instant) -> String {
        let shown = self.shown.lock();
        let mut shown = shown.unwrap_or_else(PoisonError::into_inner);
        if let Some((last, others, text)) = &shown.newest
            && Arc::ptr_eq(last, own)
            && Arc::ptr_eq(others, all)
        {
            return text.clone();
        }
        let text = shown.show(own, all, now);
        shown.newest = Some((Arc::clone(own), Arc::clone(all), text.clone()));
        text
    }
}

impl RecentShown {
    fn show(&mut self, own: &Arc<DaemonStatus>, all: &All, now: Instant) -> String {
        let snapshot = Snapshot {
            at: now,
            own: Arc::clone(own),
            all: Arc::clone(all),
        };
        let before = self.before(&snapshot);
        let seen = before.map_or_else(Vec::new, |before| snapshot.since(&before));
        let shown = Shown {
            status: own,
            daemons: all.iter().map(Row::of).collect(),
            over_us: seen.first().map_or(0, Seen::micros),
            asked: seen.len(),
            findings: explain(&seen),
        };
        // Strings and numbers are always JSON.
        serde_json::to_string(&shown).unwrap_or_default() + "\n"
    }

    /// The newest snapshot that is old enough to compare with; keeps this one for later.
    fn before(&mut self, snapshot: &Snapshot) -> Option<Snapshot> {
        let shown = &mut self.snapshots;
        let age = |older: &Snapshot| snapshot.at.saturating_duration_since(older.at);
        let is_known = shown
            .back()
            .is_some_and(|last| Arc::ptr_eq(&last.own, &snapshot.own));
        if !is_known {
            shown.push_back(snapshot.clone());
        }
        while shown.len() > KEPT || shown.front().is_some_and(|oldest| age(oldest) > MOST) {
            shown.pop_front();
        }
        shown
            .iter()
            .rev()
            .find(|older| age(older) >= LEAST)
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::survey::Survey;
    use super::*;

    fn status(node: u16, seconds: u64) -> DaemonStatus {
        DaemonStatus {
            node,
            pid: 100 + u32::from(node),
            uptime_us: seconds * 1_000_000,
            nodes: vec![1, 2],
            members: vec![1],
            ring: "operational: 1".to_owned(),
            groups_ready: true,
            ..DaemonStatus::default()
        }
    }

    fn shown(recent: &Recent, seconds: u64, now: Instant) -> serde_json::Value {
        let own = Arc::new(status(1, seconds));
        let text = recent.show(&own, &All::default(), now);
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn what_is_wrong_is_said_of_the_time_between_two_questions_and_not_of_long_ago() {
        let recent = Recent::default();
        let start = Instant::now();
        let first = shown(&recent, 10, start);
        assert_eq!(first["status"]["node"], 1);
        assert_eq!(first["over_us"], 0);
        assert_eq!(first["findings"], serde_json::json!([]));
        let next = shown(&recent, 12, start + Duration::from_secs(2));
        assert_eq!(next["over_us"], 2_000_000);
        let text = next["findings"][0]["text"].as_str().expect("a sentence");
        assert!(text.contains("node 2 is not on the ring"), "{next}");
        assert_eq!(next["findings"][0]["wrong"], true);
        // Two who look do not shorten the time.
        let soon = shown(&recent, 12, start + Duration::from_millis(2300));
        assert_eq!(soon["over_us"], 2_000_000);
        let late = shown(&recent, 60, start + Duration::from_secs(50));
        assert_eq!(late["over_us"], 0, "what was before is forgotten");
    }

    #[test]
    fn one_that_tells_nobody_is_judged_once_for_all_that_look() {
        let (recent, survey) = (Recent::default(), Survey::new(None));
        let (own, now) = (Arc::new(status(1, 10)), Instant::now());
        let first = recent.show(&own, &survey.all(), now);
        // Judged again, it would have the time since the first look in it.
        let later = now + Duration::from_secs(2);
        assert_eq!(recent.show(&own, &survey.all(), later), first);
        assert!(Arc::ptr_eq(&survey.all(), &survey.all()));
    }

    #[test]
    fn all_daemons_that_tell_are_shown_and_judged_each_once() {
        let recent = Recent::default();
        let start = Instant::now();
        let show = |seconds: u64, now| {
            let own = Arc::new(status(1, seconds));
            // The own daemon has told, too, some time before.
            let all = Arc::new(vec![status(1, seconds), status(2, seconds + 7)]);
            let text = recent.show(&own, &all, now);
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
        };
        show(10, start);
        let next = show(12, start + Duration::from_secs(2));
        assert_eq!(next["asked"], 2);
        let nodes = next["daemons"].as_array().expect("a list").iter();
        assert_eq!(nodes.map(|row| &row["node"]).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn few_are_kept_however_many_ask() {
        let recent = Recent::default();
        let start = Instant::now();
        for at in 0..1000 {
            shown(&recent, at, start + Duration::from_millis(at));
        }
        let shown = recent.shown.lock().expect("no panic");
        assert_eq!(shown.snapshots.len(), KEPT);
    }

    #[test]
    fn the_same_statuses_are_judged_once_however_many_look() {
        let recent = Recent::default();
        let start = Instant::now();
        shown(&recent, 10, start);
        let (own, all) = (Arc::new(status(1, 12)), All::default());
        let show =
            |all: &All, millis| recent.show(&own, all, start + Duration::from_millis(millis));
        let first = show(&all, 2000);
        assert!(first.contains("node 2 is not on the ring"), "{first}");
        // Compared with itself it would be well.
        assert_eq!(show(&all, 3500), first);
        let told = Arc::new(vec![status(2, 3)]);
        assert_ne!(show(&told, 3500), first, "another daemon has told");
    }

    #[test]
    fn the_page_names_no_other_place() {
        for word in [
            "http://",
            "https://",
            "src=",
            "@import",
            "url(",
            "innerHTML",
        ] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert!(PAGE.contains("fetch(\"page\""));
    }
}
