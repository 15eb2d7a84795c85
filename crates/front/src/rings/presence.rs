//! The question whether a replica is there, before a ring lets go what it needs. Only one answer counts as an absence:
//! the host of the replica's process says, each time, that nothing listens at the process's address. Silence and all
//! other errors say nothing of the replica: the path may be cut, the process may be busy, or have another key.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rota_core::contract::{NodeId, Process};
use rota_multiring::accounts::Partition;
use rota_net::{KeyRing, RpcConnection};

/// The number of refusals, one after the other, that are an absence: a process that starts does not listen yet.
const REFUSALS: usize = 3;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(250);
/// The time for a message. None is said: a handshake is enough.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a replica is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It answers.
    Here,
    /// Nothing listens at its address.
    Away,
    /// Nobody knows, for this reason.
    Unknown(String),
}

/// The replicas of a partition, as the configuration of a process has them.
pub type Presences = BTreeMap<NodeId, Presence>;

/// The replicas of all partitions, for whoever asks whether they are there.
#[derive(Clone)]
pub struct Lookout {
    own: (Process, u32),
    keys: Option<KeyRing>,
    replicas: Vec<(Partition, NodeId, SocketAddr)>,
}

impl std::fmt::Debug for Lookout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut f = f.debug_struct("Lookout");
        f.field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

impl Lookout {
    /// The replicas of a cluster, with the addresses at which their processes wait for others, and this process.
    pub const fn new(
        own: (Process, u32),
        keys: Option<KeyRing>,
        replicas: Vec<(Partition, NodeId, SocketAddr)>,
    ) -> Self {
        Self {
            own,
            keys,
            replicas,
        }
    }

    /// The replicas of a partition, and whether each is there. The call blocks, for a few seconds at most.
    pub fn look(&self, partition: Partition) -> Presences {
        let replicas = self.replicas.iter();
        let of = replicas.filter(|(of, ..)| *of == partition);
        thread::scope(|scope| {
            let ask = |&(_, node, address)| {
                let asked = move || self.presence((node, address));
                (node, thread::Builder::new().spawn_scoped(scope, asked))
            };
            let asked: Vec<_> = of.map(ask).collect();
            let told = asked.into_iter().map(|(node, asked)| {
                let told = asked.map(thread::ScopedJoinHandle::join);
                let unasked = || Presence::Unknown("it could not be asked".to_owned());
                (node, told.ok().and_then(Result::ok).unwrap_or_else(unasked))
            });
            told.collect()
        })
    }

    fn presence(&self, to: (NodeId, SocketAddr)) -> Presence {
        if to.0 == self.own.0.node {
            return Presence::Here;
        }
        for at in 0..REFUSALS {
            if at > 0 {
                thread::sleep(PAUSE);
            }
            match RpcConnection::dial(self.own, to, self.keys.as_ref(), PATIENCE) {
                Ok(_) => return Presence::Here,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Presence::Unknown(format!("{} at {}", error, to.1)),
            }
        }
        Presence::Away
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Incarnation;
    use std::net::TcpListener;

    fn process(node: u16) -> Process {
        Process {
            node: NodeId::new(node).expect("not 0"),
            incarnation: Incarnation(1),
        }
    }

    /// The presence of node 2, where `serve` has what connects there.
    fn presence(
        keys: Option<KeyRing>,
        serve: impl Fn(std::net::TcpStream) + Send + 'static,
    ) -> Presence {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || listener.incoming().flatten().for_each(serve));
        let node = process(2).node;
        let lookout = Lookout::new((process(1), 7), keys, vec![(4, node, address)]);
        assert_eq!(lookout.look(5), Presences::new());
        let mut told = lookout.look(4);
        told.remove(&node).expect("the replica")
    }

    #[test]
    fn who_proves_to_be_a_process_of_the_cluster_is_there() {
        let there = presence(None, |stream| {
            let own = (process(2), 7);
            drop(RpcConnection::accept(stream, own, |_| true, None, PATIENCE));
        });
        assert_eq!(there, Presence::Here);
    }

    #[test]
    fn who_asks_is_there_though_nobody_listens() {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let replicas = vec![(4, process(1).node, nowhere)];
        let lookout = Lookout::new((process(1), 7), None, replicas);
        let told: Vec<_> = lookout.look(4).into_iter().collect();
        assert_eq!(told, [(process(1).node, Presence::Here)]);
    }

    #[test]
    fn only_where_nothing_listens_is_nobody_there() {
        // Nobody else is given a port of this address meanwhile.
        let listener = TcpListener::bind("127.77.7.7:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let replicas = vec![(4, process(2).node, address)];
        let lookout = Lookout::new((process(1), 7), None, replicas);
        let told: Vec<_> = lookout.look(4).into_iter().collect();
        assert_eq!(told, [(process(2).node, Presence::Away)]);
    }

    /// Each of these was an absence once: a living replica lost what its ring kept for it.
    #[test]
    fn errors_say_nothing_of_a_replica() {
        let is_unknown = |presence: &Presence| matches!(presence, Presence::Unknown(_));
        let ends = presence(None, drop);
        assert!(is_unknown(&ends), "it ends the connection: {ends:?}");
        let own = KeyRing::generate().expect("a key");
        let other = KeyRing::generate().expect("a key");
        let differs = presence(Some(own), move |stream| {
            let own = (process(2), 7);
            let keys = Some(&other);
            drop(RpcConnection::accept(stream, own, |_| true, keys, PATIENCE));
        });
        assert!(is_unknown(&differs), "it has another key: {differs:?}");
        let busy = presence(None, |stream| {
            // It takes the connection, and is silent.
            thread::spawn(move || {
                thread::sleep(Duration::from_secs(30));
                drop(stream);
            });
        });
        assert!(is_unknown(&busy), "it is silent: {busy:?}");
    }
}
