//! The handshake by which two nodes begin a session: three messages of fixed sizes, without sockets.
//!
//! The dialer sends HELLO, the acceptor WELCOME, the dialer CONFIRM. Each ends with a proof over all that was said so
//! far. A HELLO could be an old one, so it alone changes nothing; a WELCOME answers to the dialer's random bytes and a
//! CONFIRM to the acceptor's, so either is from now. `docs/protocols/links.md` has the bytes.

use rota_core::contract::{Incarnation, NodeId, Process, Session};

use super::cipher::{Direction, PROOF_BYTES, Trust, Use};
use crate::keys::KeyRing;

/// The beginning of a HELLO: its purpose, and its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Magic([u8; 8]);

impl Magic {
    /// Whether a HELLO begins like this one up to the version, the last byte, and has another one there. What follows
    /// need not be as in this version.
    fn is_of_other_version(self, hello: &[u8]) -> bool {
        let (purpose, version) = self.0.split_at(7);
        hello.get(..7) == Some(purpose) && hello.get(7..8) != Some(version)
    }
}

/// For the links of a ring.
pub(super) const LINKS: Magic = Magic(*b"rotalnk\x01");
/// For a [`RpcConnection`](super::RpcConnection).
pub(super) const TALKS: Magic = Magic(*b"rotatlk\x01");

/// Bytes that each side draws for each handshake.
pub(super) const NONCE_BYTES: usize = 32;

const HELLO_SAID: usize = 8 + 2 + 2 + 2 + 2 + 4 + 4 + 8 + 8 + NONCE_BYTES;
const WELCOME_SAID: usize = 8 + 8 + NONCE_BYTES;

/// Bytes of the three messages.
pub(super) const HELLO_BYTES: usize = HELLO_SAID + PROOF_BYTES;
pub(super) const WELCOME_BYTES: usize = WELCOME_SAID + PROOF_BYTES;
pub(super) const CONFIRM_BYTES: usize = PROOF_BYTES;

/// Why a handshake failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// No HELLO, of another cluster, or for another node.
    Foreign,
    /// A HELLO of another version: the dialer is an older or a newer program.
    Version,
    /// From a node that does not dial this one.
    Stranger,
    /// Under a key that this node does not have; or only one of the two has a key.
    UnknownKey,
    /// Without the proof that its sender has the key and speaks now.
    Forged,
    /// Of a session that others have overtaken.
    Stale,
}

/// The local end of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Own {
    pub(super) me: Process,
    pub(super) cluster: u32,
    pub(super) magic: Magic,
}

/// Both ends of a session that has begun.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) peer: Process,
    pub(super) session: Session,
    pub(super) seals: Direction,
    pub(super) opens: Direction,
}

/// The HELLO of a dialer, as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hello {
    magic: Magic,
    key: u16,
    from: u16,
    to: u16,
    cluster: u32,
    incarnation: u64,
    /// The last session that the dialer had with this node.
    last: u64,
    nonce: [u8; NONCE_BYTES],
}

impl Hello {
    fn said(&self) -> [u8; HELLO_SAID] {
        let mut said = [0; HELLO_SAID];
        said[0..8].copy_from_slice(&self.magic.0);
        said[8..10].copy_from_slice(&self.key.to_le_bytes());
        said[10..12].copy_from_slice(&self.from.to_le_bytes());
        said[12..14].copy_from_slice(&self.to.to_le_bytes());
        said[16..20].copy_from_slice(&self.cluster.to_le_bytes());
        said[24..32].copy_from_slice(&self.incarnation.to_le_bytes());
        said[32..40].copy_from_slice(&self.last.to_le_bytes());
        said[40..].copy_from_slice(&self.nonce);
        said
    }

    /// `None` for bytes that are no HELLO.
    fn read(said: &[u8; HELLO_SAID]) -> Option<Self> {
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&said[40..]);
        let mut magic = [0; 8];
        magic.copy_from_slice(&said[0..8]);
        let hello = Self {
            magic: Magic(magic),
            key: u16_at(said, 8),
            from: u16_at(said, 10),
            to: u16_at(said, 12),
            cluster: u64_at(said, 16) as u32,
            incarnation: u64_at(said, 24),
            last: u64_at(said, 32),
            nonce,
        };
        // Bytes without a meaning yet are zero.
        (hello.said() == *said).then_some(hello)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn process(node: u16, incarnation: u64) -> Option<Process> {
    let node = NodeId::new(node)?;
    let known = (1..=Incarnation::MAX).contains(&incarnation);
    known.then_some(Process {
        node,
        incarnation: Incarnation(incarnation),
    })
}

/// The trust that comes of the key with this id; 0 stands for no key.
fn trust(keys: Option<&KeyRing>, id: u16) -> Option<Trust> {
    match keys {
        None => (id == 0).then(|| Trust::new(None)),
        Some(keys) => {
            let id = crate::keys::KeyId::new(id)?;
            Some(Trust::new(Some(keys.get(id)?)))
        }
    }
}

/// A dialer that waits for its WELCOME.
#[derive(Debug)]
pub(super) struct Dialing {
    to: NodeId,
    last: Session,
    trust: Trust,
    said: [u8; HELLO_SAID],
}

impl Dialing {
    /// Says HELLO to node `to`, with which the last session was `last`.
    pub(super) fn begin(
        own: Own,
        (to, last): (NodeId, Session),
        keys: Option<&KeyRing>,
        nonce: [u8; NONCE_BYTES],
    ) -> Option<(Self, [u8; HELLO_BYTES])> {
        let key = keys.map_or(0, |keys| keys.sending().get());
        let trust = trust(keys, key)?;
        let said = Hello {
            magic: own.magic,
            key,
            from: own.me.node.get(),
            to: to.get(),
            cluster: own.cluster,
            incarnation: own.me.incarnation.0,
            last: last.0,
            nonce,
        }
        .said();
        let mut bytes = [0; HELLO_BYTES];
        bytes[..HELLO_SAID].copy_from_slice(&said);
        bytes[HELLO_SAID..].copy_from_slice(&trust.proof(Use::Hello, &[&said])?);
        let dialing = Self {
            to,
            last,
            trust,
            said,
        };
        Some((dialing, bytes))
    }

    /// Takes the WELCOME; answers with the CONFIRM, after which the session has begun.
    pub(super) fn welcomed(
        &self,
        welcome: &[u8; WELCOME_BYTES],
    ) -> Result<(Agreed, [u8; CONFIRM_BYTES]), Refusal> {
        let (said, shown) = parts::<WELCOME_SAID>(welcome).ok_or(Refusal::Foreign)?;
        let both: [&[u8]; 2] = [&self.said, said];
        if !self.trust.holds(Use::Welcome, &both, shown) {
            return Err(Refusal::Forged);
        }
        let peer = process(self.to.get(), u64_at(said, 0)).ok_or(Refusal::Foreign)?;
        let session = Session(u64_at(said, 8));
        if session <= self.last {
            return Err(Refusal::Stale);
        }
        let agreed = Agreed {
            peer,
            session,
            seals: derived(&self.trust, Use::ToAcceptor, &both)?,
            opens: derived(&self.trust, Use::ToDialer, &both)?,
        };
        let confirm = self.trust.proof(Use::Confirm, &both);
        Ok((agreed, confirm.ok_or(Refusal::Forged)?))
    }
}

/// An acceptor that waits for the CONFIRM.
#[derive(Debug)]
pub(super) struct Accepting {
    peer: Process,
    session: Session,
    trust: Trust,
    hello: [u8; HELLO_SAID],
    welcome: [u8; WELCOME_SAID],
}

impl Accepting {
    /// Takes a HELLO; answers with the WELCOME. `last` names the last session with a node, and none for a node that
    /// does not dial this one.
    pub(super) fn begin(
        own: Own,
        hello: &[u8; HELLO_BYTES],
        keys: Option<&KeyRing>,
        nonce: [u8; NONCE_BYTES],
        last: impl Fn(NodeId) -> Option<Session>,
    ) -> Result<(Self, [u8; WELCOME_BYTES]), Refusal> {
        let (said, shown) = parts::<HELLO_SAID>(hello).ok_or(Refusal::Foreign)?;
        if own.magic.is_of_other_version(said) {
            return Err(Refusal::Version);
        }
        let read = Hello::read(said).ok_or(Refusal::Foreign)?;
        let is_foreign = read.magic != own.magic || read.cluster != own.cluster;
        if is_foreign || read.to != own.me.node.get() {
            return Err(Refusal::Foreign);
        }
        let trust = trust(keys, read.key).ok_or(Refusal::UnknownKey)?;
        if !trust.holds(Use::Hello, &[said], shown) {
            return Err(Refusal::Forged);
        }
        let peer = process(read.from, read.incarnation).ok_or(Refusal::Stranger)?;
        let last = last(peer.node).ok_or(Refusal::Stranger)?;
        let next = last.0.max(read.last).checked_add(1);
        let session = Session(next.ok_or(Refusal::Stale)?);
        let mut welcome = [0; WELCOME_SAID];
        welcome[0..8].copy_from_slice(&own.me.incarnation.0.to_le_bytes());
        welcome[8..16].copy_from_slice(&session.0.to_le_bytes());
        welcome[16..].copy_from_slice(&nonce);
        let proof = trust.proof(Use::Welcome, &[said, &welcome]);
        let mut bytes = [0; WELCOME_BYTES];
        bytes[..WELCOME_SAID].copy_from_slice(&welcome);
        bytes[WELCOME_SAID..].copy_from_slice(&proof.ok_or(Refusal::Forged)?);
        let accepting = Self {
            peer,
            session,
            trust,
            hello: *said,
            welcome,
        };
        Ok((accepting, bytes))
    }

    /// The node that the other end says to be.
    pub(super) const fn peer(&self) -> NodeId {
        self.peer.node
    }

    /// Takes the CONFIRM: the session has begun, unless another began meanwhile.
    pub(super) fn confirmed(
        &self,
        confirm: &[u8; CONFIRM_BYTES],
        last: Option<Session>,
    ) -> Result<Agreed, Refusal> {
        let both: [&[u8]; 2] = [&self.hello, &self.welcome];
        if !self.trust.holds(Use::Confirm, &both, confirm) {
            return Err(Refusal::Forged);
        }
        if last.is_none_or(|last| self.session <= last) {
            return Err(Refusal::Stale);
        }
        Ok(Agreed {
            peer: self.peer,
            session: self.session,
            seals: derived(&self.trust, Use::ToDialer, &both)?,
            opens: derived(&self.trust, Use::ToAcceptor, &both)?,
        })
    }
}

fn derived(trust: &Trust, of: Use, said: &[&[u8]]) -> Result<Direction, Refusal> {
    trust.direction(of, said).ok_or(Refusal::Forged)
}

/// The contents of a message, and its proof.
fn parts<const SAID: usize>(message: &[u8]) -> Option<(&[u8; SAID], &[u8; PROOF_BYTES])> {
    let (said, proof) = message.split_first_chunk::<SAID>()?;
    Some((said, proof.try_into().ok()?))
}
