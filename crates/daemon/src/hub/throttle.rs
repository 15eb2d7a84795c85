//! Senders that wait for clients that read too slowly: the slow clients of this daemon, and its clients that wait.

use rota_core::contract::Time;
use rota_core::groups::{Connection, Destination, Groups, HoldFor, Received};

use super::sessions::Sessions;
use crate::keys::KeyQueue;
use crate::lag::Throttling;
use crate::session::Session;

/// The time between two looks of waiting senders whether they have waited long enough; otherwise they wait for news of
/// the ring.
const LOOK_NANOS: u64 = 100_000_000;

/// The sessions on both sides of a throttle.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    /// Sessions for whose clients others wait, those that began first ahead. Some of them may have ended.
    slow: Vec<usize>,
    /// Sessions whose clients wait.
    held: KeyQueue,
    look_at: Time,
}

impl Throttle {
    /// Senders begin to wait for the client of a session.
    pub fn begin(&mut self, key: usize) {
        self.slow.push(key);
    }

    /// The destinations whose senders wait, each with the client for which they have waited longest.
    pub fn holds(&mut self, sessions: &Sessions, groups: &Groups) -> HoldFor {
        let throttling = |key: &usize| throttling(sessions, *key);
        self.slow.retain(|key| throttling(key).is_some());
        let mut to = HoldFor::new();
        for key in &self.slow {
            let connection = sessions.get(*key).and_then(Session::connection);
            let client = connection.and_then(|connection| groups.member(connection).ok());
            if let (Some(throttling), Some(client)) = (throttling(key), client) {
                for held in &throttling.to {
                    to.entry(*held).or_insert(client.name);
                }
            }
        }
        to
    }

    /// The sessions for whose clients senders have waited for this time, in milliseconds.
    pub fn over(&self, sessions: &Sessions, most_ms: u32, now: Time) -> Vec<usize> {
        let is_over = |key: &usize| ends(sessions, *key, most_ms).is_some_and(|end| now >= end);
        self.slow.iter().copied().filter(is_over).collect()
    }

    /// The client of a session waits until something else is held.
    pub fn wait_for_slow(&mut self, key: usize, now: Time) {
        if self.held.is_empty() {
            self.look_at = now.after(LOOK_NANOS);
        }
        self.held.push(key);
    }

    /// Whether waiting senders are to look whether they have waited long enough.
    pub fn is_due(&self, now: Time) -> bool {
        !self.held.is_empty() && now >= self.look_at
    }

    /// A session whose client looks again whether it still has to wait.
    pub fn next_held(&mut self) -> Option<usize> {
        self.held.pop()
    }

    /// The next time at which senders have waited long enough, or waiting senders are to look.
    pub fn next_wake(&self, sessions: &Sessions, most_ms: u32) -> Option<Time> {
        let look = (!self.held.is_empty()).then_some(self.look_at);
        let slow = self.slow.iter();
        let ends = slow.filter_map(|&key| ends(sessions, key, most_ms));
        ends.chain(look).min()
    }

    /// What holds between inputs.
    pub fn check(&self) {
        self.held.check();
    }
}

fn throttling(sessions: &Sessions, key: usize) -> Option<&Throttling> {
    sessions.get(key)?.lag().throttling()
}

/// The time at which senders have waited long enough for the client of a session.
fn ends(sessions: &Sessions, key: usize, most_ms: u32) -> Option<Time> {
    let since = throttling(sessions, key)?.since;
    Some(since.after(u64::from(most_ms) * 1_000_000))
}

/// Counts a message for a client that is behind, by the destinations through which the client gets it.
pub(super) fn count(
    groups: &Groups,
    session: &mut Session,
    connection: Connection,
    (message, bytes): (&Received, usize),
) {
    if let [to] = message.to[..] {
        return session.lag_mut().count(to, bytes);
    }
    let Ok(member) = groups.member(connection) else {
        return;
    };
    let mine = |to: &&Destination| match to {
        Destination::Group(group) => groups.is_wanted(connection, *group),
        Destination::Client(name, node) => *name == member.name && *node == member.daemon.node,
    };
    for to in message.to.iter().filter(mine) {
        session.lag_mut().count(*to, bytes);
    }
}

#[cfg(test)]
mod tests {
    use rota_core::contract::{Incarnation, NodeId, Process};
    use rota_core::groups::{ClientName, Directory, GroupName, Limits};

    use super::*;
    use crate::hub::sessions::tests::session;
    use crate::names::Names;

    const MILLI: u64 = 1_000_000;

    /// Clients of these names, and the keys of their sessions.
    fn clients<const N: usize>(names: [&str; N]) -> (Sessions, Groups, [usize; N]) {
        let me = Process {
            node: NodeId::new(1).expect("not 0"),
            incarnation: Incarnation(1),
        };
        let mut groups = Groups::new(me, Limits::default());
        let mut sessions = Sessions::default();
        let mut known = Names::new(Directory::default());
        let keys = names.map(|name| {
            let name = ClientName::new(name).expect("a name");
            let connection = groups.connect_of(None, name).expect("room");
            let member = groups.member(connection).expect("it is connected");
            let (key, _) = sessions.insert(session);
            let (session, connections) = sessions.with_connections(key).expect("it is there");
            session.welcome(member, &mut known, 0);
            connections.insert(connection, key);
            key
        });
        (sessions, groups, keys)
    }

    fn group(name: &str) -> Destination {
        Destination::Group(GroupName::new(name).expect("a name"))
    }

    #[test]
    fn senders_wait_for_the_client_that_began_first_until_it_lets_them_go() {
        let (mut sessions, groups, [ann, ben]) = clients(["ann", "ben"]);
        let mut throttle = Throttle::default();
        for (key, to, at) in [(ben, "x", 1), (ann, "x", 2), (ann, "y", 2)] {
            let lag = sessions.get_mut(key).expect("it is there").lag_mut();
            lag.count(group(to), 100);
            lag.throttle(true, || Time(at * MILLI));
        }
        throttle.begin(ben);
        throttle.begin(ann);
        let held = |throttle: &mut Throttle, sessions: &Sessions| -> Vec<(Destination, String)> {
            let holds = throttle.holds(sessions, &groups).into_iter();
            holds.map(|(to, name)| (to, name.to_string())).collect()
        };
        let ann_holds = |to| (group(to), "ann".to_owned());
        // What fills a queue later than the senders' wait began does not add to it.
        let ben_holds = |to| (group(to), "ben".to_owned());
        assert_eq!(held(&mut throttle, &sessions), [ben_holds("x")]);
        assert_eq!(throttle.over(&sessions, 10, Time(10 * MILLI)), [0_usize; 0]);
        assert_eq!(throttle.over(&sessions, 10, Time(11 * MILLI)), [ben]);
        assert_eq!(throttle.over(&sessions, 10, Time(12 * MILLI)), [ben, ann]);
        let wake = throttle.next_wake(&sessions, 10);
        assert_eq!(wake, Some(Time(11 * MILLI)));
        let lag = sessions.get_mut(ben).expect("it is there").lag_mut();
        assert!(lag.release().is_some());
        assert_eq!(held(&mut throttle, &sessions), [ann_holds("x")]);
        let lag = sessions.get_mut(ann).expect("it is there").lag_mut();
        assert!(lag.release().is_some());
        assert_eq!(held(&mut throttle, &sessions), []);
        assert_eq!(throttle.next_wake(&sessions, 10), None);
    }

    #[test]
    fn clients_that_wait_look_again_after_a_while() {
        let (sessions, ..) = clients([]);
        let mut throttle = Throttle::default();
        throttle.wait_for_slow(4, Time(5));
        throttle.wait_for_slow(4, Time(6));
        throttle.wait_for_slow(7, Time(7));
        let at = Time(5 + LOOK_NANOS);
        assert_eq!(throttle.next_wake(&sessions, 10), Some(at));
        assert!(!throttle.is_due(Time(at.0 - 1)) && throttle.is_due(at));
        let all: Vec<usize> = std::iter::from_fn(|| throttle.next_held()).collect();
        assert_eq!(all, [4, 7]);
        assert!(!throttle.is_due(at));
        throttle.check();
    }
}
