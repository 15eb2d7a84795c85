//! A node's sealing: both directions, and keys that may change while it runs.

use rota_core::contract::{Class, NodeId, Target, Time};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Life, OpenError, Opener, Sealer, Senders};
use crate::keys::{KeyId, KeyRing};
use crate::network::Network;
use crate::sys;

/// The step of a clock, in nanoseconds, below which it does not matter: a process was not away for less, and clocks
/// that are corrected little by little differ by less.
const CLOCK_STEP_NANOS: u64 = 5_000_000_000;

/// Gives a running node other keys, from any thread.
#[derive(Clone, Default)]
pub struct Keys {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    changed: AtomicBool,
    next: Mutex<Option<KeyRing>>,
    /// The newest.
    in_use: Mutex<Option<KeyRing>>,
}

/// The keys that a node uses, by their ids.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KeysInUse {
    /// The node seals with this one.
    pub sends: u16,
    /// The node takes datagrams under all of these.
    pub takes: Vec<u16>,
}

impl Keys {
    /// The node takes datagrams under all of these keys, and seals with the one they say, from its next datagram on.
    /// Says whether they are others than before, by id or by secret.
    pub fn set(&self, keys: KeyRing) -> bool {
        let is_new = self.now(&keys);
        *lock(&self.shared.next) = Some(keys);
        self.shared.changed.store(true, Ordering::Release);
        is_new
    }

    /// The keys that the node uses for its next datagram.
    pub fn in_use(&self) -> KeysInUse {
        let keys = lock(&self.shared.in_use);
        keys.as_ref()
            .map_or_else(KeysInUse::default, |keys| KeysInUse {
                sends: keys.sending().get(),
                takes: keys.ids().map(KeyId::get).collect(),
            })
    }

    /// Notes these keys; says whether they are others than before.
    fn now(&self, keys: &KeyRing) -> bool {
        let before = lock(&self.shared.in_use).replace(keys.clone());
        before.as_ref() != Some(keys)
    }

    fn take(&self) -> Option<KeyRing> {
        if !self.shared.changed.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.changed.store(false, Ordering::Relaxed);
        lock(&self.shared.next).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// The sealer and the opener of a node's datagrams.
#[derive(Debug)]
pub(crate) struct KeyedSeal {
    cluster: u32,
    sealer: Sealer,
    opener: Opener,
    keys: Keys,
    life: Life,
    /// The time at which the life began, by the clock that nobody sets.
    since: Time,
}

impl KeyedSeal {
    /// For node `me`, in a new life.
    pub fn new(network: &Network, me: NodeId, keys: &KeyRing) -> io::Result<Self> {
        let life = Life::begin()?;
        let cluster = network.cluster;
        let handle = Keys::default();
        handle.now(keys);
        Ok(Self {
            cluster,
            sealer: Sealer::new(cluster, keys.clone(), me, life)?,
            opener: Opener::new(cluster, keys.clone(), (me, life), senders(network)),
            keys: handle,
            life,
            since: sys::monotonic(),
        })
    }

    /// Begins another life if the clock has been set forward since this one began: to nodes that have heard an earlier
    /// process of this node while the clock was right, a life that is older than that one's is a replay. Says by how much
    /// the clock was set, in nanoseconds.
    ///
    /// # Errors
    /// No random numbers; then nothing has changed.
    pub fn follow_clock(&mut self) -> io::Result<Option<u64>> {
        self.follow(sys::realtime_nanos(), sys::monotonic())
    }

    fn follow(&mut self, realtime: u64, now: Time) -> io::Result<Option<u64>> {
        let behind = self.life.behind(realtime, now.since(self.since));
        if behind < CLOCK_STEP_NANOS {
            return Ok(None);
        }
        let life = Life {
            start: realtime,
            salt: sys::random_u64()?,
        };
        self.sealer.live_anew(life)?;
        self.opener.live_anew(life);
        (self.life, self.since) = (life, now);
        Ok(Some(behind))
    }

    /// Takes datagrams of the nodes that are listed there from now on.
    pub fn relist(&mut self, network: &Network) {
        self.opener.set_senders(senders(network));
    }

    /// The handle to change keys with.
    pub fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// The keys of the cluster, as of now.
    pub fn key_ring(&mut self) -> &KeyRing {
        self.follow_keys();
        self.sealer.key_ring()
    }

    fn follow_keys(&mut self) {
        let Some(keys) = self.keys.take() else {
            return;
        };
        if let Err(error) = self.sealer.set_keys(self.cluster, keys.clone()) {
            tracing::error!(%error, "the new keys cannot be used; the old ones stay");
            self.keys.now(self.sealer.key_ring());
            return;
        }
        self.opener.set_keys(self.cluster, keys);
    }

    /// Seals datagrams in place.
    pub fn seal<'a>(
        &mut self,
        class: Class,
        to: Target,
        datagrams: impl Iterator<Item = &'a mut [u8]>,
    ) {
        self.follow_keys();
        for datagram in datagrams {
            self.sealer.seal(class, to, datagram);
        }
    }

    /// Begins to open the datagrams of one read.
    pub fn opening(&mut self, now: Time, class: Class) -> Opening<'_> {
        self.follow_keys();
        Opening {
            opener: &mut self.opener,
            now,
            class,
        }
    }
}

/// The nodes whose datagrams are taken.
fn senders(network: &Network) -> Senders {
    match network.open_membership {
        true => Senders::Any,
        false => Senders::Only(network.members().collect()),
    }
}

/// Opens the datagrams of one read.
pub(crate) struct Opening<'a> {
    opener: &'a mut Opener,
    now: Time,
    class: Class,
}

impl Opening<'_> {
    pub fn open(&mut self, datagram: &mut [u8]) -> Result<(), OpenError> {
        self.opener.open(self.now, self.class, datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NANOS: u64 = 86_400_000_000_000;

    fn node(network: &Network, id: u16, keys: &KeyRing) -> KeyedSeal {
        let me = NodeId::new(id).unwrap();
        KeyedSeal::new(network, me, keys).unwrap()
    }

    /// The verdict of the other node on a datagram.
    fn hears(from: &mut KeyedSeal, to: &mut KeyedSeal) -> Result<(), OpenError> {
        let mut datagram = [7; 256];
        let all = std::iter::once(&mut datagram[..]);
        from.seal(Class::Token, Target::Others, all);
        to.opening(sys::monotonic(), Class::Token)
            .open(&mut datagram)
    }

    #[test]
    fn other_secrets_under_the_same_ids_are_other_keys() {
        let [one, other] = [0, 1].map(|_| KeyRing::generate().expect("random numbers"));
        let keys = Keys::default();
        assert!(keys.set(one.clone()));
        let in_use = keys.in_use();
        assert!(!keys.set(one));
        assert!(keys.set(other));
        assert_eq!(keys.in_use(), in_use);
    }

    #[test]
    fn a_node_that_started_with_its_clock_set_back_is_heard_when_that_is_right() {
        let network = Network::loopback(2, 1);
        let keys = KeyRing::generate().unwrap();
        let mut other = node(&network, 2, &keys);
        assert_eq!(hears(&mut node(&network, 1, &keys), &mut other), Ok(()));
        let mut back = node(&network, 1, &keys);
        let right = back.life.start;
        let life = Life {
            start: right - DAY_NANOS,
            ..back.life
        };
        back.life = life;
        back.sealer.live_anew(life).unwrap();
        back.opener.live_anew(life);
        assert_eq!(hears(&mut back, &mut other), Err(OpenError::OldLife));

        let now = back.since.after(20 * CLOCK_STEP_NANOS);
        let mut follow = |realtime| back.follow(realtime, now).unwrap();
        let still_back = life.start + 20 * CLOCK_STEP_NANOS;
        assert_eq!(follow(still_back), None);
        assert_eq!(follow(still_back - DAY_NANOS), None, "set back once more");
        assert_eq!(follow(still_back + DAY_NANOS), Some(DAY_NANOS));
        assert_eq!(follow(still_back + DAY_NANOS), None, "once");
        assert_eq!(hears(&mut back, &mut other), Ok(()));
        assert_eq!(hears(&mut other, &mut back), Ok(()));
    }
}
