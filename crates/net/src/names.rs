//! Addresses of nodes by their names.
//!
//! Looking a name up can take as long as it likes: a resolver that does not answer blocks its caller for many seconds. So
//! each name has a thread of its own, and the ring's thread only looks whether an answer lies there. A name is looked up
//! again while its node is silent, at growing intervals; who speaks is where it was.

use rota_core::contract::NodeId;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::network::{Network, NodeAddress};

/// The time between two lookups of a silent node's name, at first; it doubles with each that brings nothing new.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest time between two lookups.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What looks a name up: the system's resolver, or that of a test.
pub(crate) type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// Asks the system's resolver.
///
/// # Errors
/// The resolver's.
fn ask_system(host: &str) -> io::Result<Vec<IpAddr>> {
    let found = (host, 0).to_socket_addrs()?;
    Ok(addresses(found))
}

/// All addresses of a name, in the order in which they are to be tried. There may be more than any node has, and another part
/// of them first each time: a node is where it was if its address is any of them. The resolver bounds what it takes.
fn addresses(found: impl Iterator<Item = SocketAddr>) -> Vec<IpAddr> {
    found.map(|found| found.ip()).collect()
}

/// Looks up names, each in a thread of its own, and waits for so long at most. Names without an answer are left out.
pub fn look_up(names: &[(NodeId, String)], patience: Duration) -> BTreeMap<NodeId, Vec<IpAddr>> {
    look_up_by(&(Arc::new(ask_system) as Lookup), names, patience)
}

fn look_up_by(
    lookup: &Lookup,
    names: &[(NodeId, String)],
    patience: Duration,
) -> BTreeMap<NodeId, Vec<IpAddr>> {
    let until = Instant::now() + patience;
    let (sender, answers) = channel();
    for (node, host) in names.iter().cloned() {
        let (lookup, sender) = (Arc::clone(lookup), sender.clone());
        let started = thread::Builder::new()
            .name("rota-name".to_owned())
            .spawn(move || {
                let found = lookup(&host).unwrap_or_default();
                // Nobody waits any more where it took too long.
                let _ = sender.send((node, found));
            });
        if let Err(error) = started {
            tracing::warn!(%error, node = node.get(), "no thread to look up its name");
        }
    }
    drop(sender);
    let mut found = BTreeMap::new();
    while let Ok((node, addresses)) =
        answers.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        if !addresses.is_empty() {
            found.insert(node, addresses);
        }
    }
    found
}

/// What the ring's thread and those that look up share.
struct Shared {
    lookup: Lookup,
    /// An answer lies there.
    fresh: AtomicBool,
    answers: Mutex<BTreeMap<NodeId, Vec<IpAddr>>>,
    ended: AtomicBool,
}

/// A node whose name is looked up while it is silent.
struct Watched {
    node: NodeId,
    silent: Arc<AtomicBool>,
    thread: Thread,
}

/// The lookups of all nodes that have names.
pub(crate) struct Names {
    shared: Arc<Shared>,
    watched: Vec<Watched>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.watched.iter().map(|watched| watched.node);
        f.debug_list().entries(nodes).finish()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // A thread that waits for a resolver ends when that has answered.
        self.shared.ended.store(true, Ordering::Relaxed);
        for watched in &self.watched {
            watched.thread.unpark();
        }
    }
}

impl Names {
    /// Starts to watch the other nodes that have names; `None` if there are none.
    pub(crate) fn watch(network: &Network, me: NodeId) -> Option<Self> {
        Self::watch_by(Arc::new(ask_system), network, me)
    }

    pub(crate) fn watch_by(lookup: Lookup, network: &Network, me: NodeId) -> Option<Self> {
        let shared = Arc::new(Shared {
            lookup,
            fresh: AtomicBool::new(false),
            answers: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        let others = network.nodes.iter().filter(|node| node.id != me.get());
        let watched = others.filter_map(|node| Watched::start(node, &shared));
        let watched: Vec<Watched> = watched.collect();
        (!watched.is_empty()).then_some(Self { shared, watched })
    }

    /// Says whether a node is silent: only then its name is looked up.
    pub(crate) fn note(&self, node: NodeId, silent: bool) {
        let of = self.watched.iter().find(|watched| watched.node == node);
        if let Some(watched) = of
            && watched.silent.swap(silent, Ordering::Relaxed) != silent
            && silent
        {
            watched.thread.unpark();
        }
    }

    /// The answers since the last call.
    pub(crate) fn answers(&self) -> BTreeMap<NodeId, Vec<IpAddr>> {
        if !self.shared.fresh.swap(false, Ordering::Acquire) {
            return BTreeMap::new();
        }
        let mut answers = self.shared.answers.lock();
        std::mem::take(answers.as_deref_mut().unwrap_or(&mut BTreeMap::new()))
    }
}

impl Watched {
    fn start(node: &NodeAddress, shared: &Arc<Shared>) -> Option<Self> {
        let (id, host) = (NodeId::new(node.id)?, node.host.clone()?);
        // A node that has no address yet is silent.
        let silent = Arc::new(AtomicBool::new(!node.is_known()));
        let (its_silent, its_shared) = (Arc::clone(&silent), Arc::clone(shared));
        let started = thread::Builder::new()
            .name("rota-name".to_owned())
            .spawn(move || watch(id, &host, &its_silent, &its_shared));
        match started {
            Ok(handle) => Some(Self {
                node: id,
                silent,
                thread: handle.thread().clone(),
            }),
            Err(error) => {
                tracing::warn!(%error, node = node.id, "no thread to look up its name: it stays where it is");
                None
            }
        }
    }
}

/// Looks a name up while its node is silent, until the node with these sockets ends.
fn watch(node: NodeId, host: &str, silent: &AtomicBool, shared: &Shared) {
    let mut wait = FIRST_WAIT;
    let mut last = Vec::new();
    while !shared.ended.load(Ordering::Relaxed) {
        if !silent.load(Ordering::Relaxed) {
            wait = FIRST_WAIT;
            // The ring's thread says when this node has fallen silent.
            thread::park_timeout(LONGEST_WAIT);
            continue;
        }
        match (shared.lookup)(host) {
            Ok(found) if !found.is_empty() => {
                wait = wait_after(&found, &mut last, wait);
                let mut answers = shared
                    .answers
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                answers.insert(node, found);
                drop(answers);
                shared.fresh.store(true, Ordering::Release);
            }
            Ok(_) => tracing::debug!(node = node.get(), host, "the name has no address"),
            Err(error) => tracing::debug!(node = node.get(), host, %error, "no address"),
        }
        if !shared.ended.load(Ordering::Relaxed) {
            thread::park_timeout(wait);
        }
        wait = (2 * wait).min(LONGEST_WAIT);
    }
}

/// The wait once these addresses were found: as long as before unless there are new ones. Their order is no news, as many
/// resolvers give them in another one each time.
fn wait_after(found: &[IpAddr], last: &mut Vec<IpAddr>, wait: Duration) -> Duration {
    let mut sorted = found.to_vec();
    sorted.sort_unstable();
    if sorted == *last {
        return wait;
    }
    *last = sorted;
    FIRST_WAIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicUsize;

    fn id(node: u16) -> NodeId {
        NodeId::new(node).unwrap()
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    /// Waits until something is so, as the threads of this module need some time.
    fn until(mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < end, "it did not come to be");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn named(network: &mut Network, node: usize, host: &str) {
        network.nodes[node - 1].host = Some(host.to_owned());
    }

    #[test]
    fn a_name_that_is_never_answered_keeps_nobody_waiting() {
        let lookup: Lookup = Arc::new(|host| {
            if host == "slow" {
                thread::sleep(Duration::from_secs(60));
            }
            Ok(vec![ip(3)])
        });
        let names = [(id(2), "slow".to_owned()), (id(3), "quick".to_owned())];
        let found = look_up_by(&lookup, &names, Duration::from_millis(300));
        assert_eq!(found, BTreeMap::from([(id(3), vec![ip(3)])]));
    }

    #[test]
    fn a_name_is_looked_up_while_its_node_is_silent_and_not_before() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&asked);
        let lookup: Lookup = Arc::new(move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
            Ok(vec![ip(7)])
        });
        let mut network = Network::loopback(3, 27_800);
        named(&mut network, 2, "two");
        let names = Names::watch_by(lookup, &network, id(1)).expect("one has a name");
        assert!(names.answers().is_empty());
        names.note(id(2), true);
        let mut found = BTreeMap::new();
        until(|| {
            found.append(&mut names.answers());
            !found.is_empty()
        });
        assert_eq!(found, BTreeMap::from([(id(2), vec![ip(7)])]));
        names.note(id(2), false);
        assert!(asked.load(Ordering::Relaxed) >= 1);
    }

    #[test]
    fn the_same_addresses_in_another_order_are_no_news() {
        let mut last = Vec::new();
        let long = LONGEST_WAIT;
        assert_eq!(wait_after(&[ip(1), ip(2)], &mut last, long), FIRST_WAIT);
        assert_eq!(wait_after(&[ip(2), ip(1)], &mut last, long), long);
        assert_eq!(wait_after(&[ip(2)], &mut last, long), FIRST_WAIT);
    }

    #[test]
    fn all_addresses_of_a_name_count_however_many_there_are() {
        let of_name = |last: u8| SocketAddr::new(ip(last), 0);
        let (found, turned) = (
            addresses((1..=100).map(of_name)),
            addresses((1..=100).rev().map(of_name)),
        );
        assert!(found.contains(&ip(100)) && found[0] == ip(1) && turned[0] == ip(100));
        let mut last = Vec::new();
        assert_eq!(wait_after(&found, &mut last, LONGEST_WAIT), FIRST_WAIT);
        assert_eq!(wait_after(&turned, &mut last, LONGEST_WAIT), LONGEST_WAIT);
    }

    #[test]
    fn a_node_without_an_address_is_silent_from_the_start() {
        let mut network = Network::loopback(2, 27_810);
        named(&mut network, 2, "two");
        network.nodes[1].address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let lookup: Lookup = Arc::new(|_| Ok(vec![ip(2)]));
        let names = Names::watch_by(lookup, &network, id(1)).expect("one has a name");
        until(|| !names.answers().is_empty());
    }

    #[test]
    fn nobody_is_watched_where_there_are_no_names_but_ones_own() {
        let mut network = Network::loopback(2, 27_820);
        assert!(Names::watch(&network, id(1)).is_none());
        named(&mut network, 1, "one");
        assert!(Names::watch(&network, id(1)).is_none());
    }
}
