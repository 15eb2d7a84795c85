//! The first frame of each side.

use rota_core::groups::ClientName;

use super::bytes::{Reader, put_name, put_private, put_u16, put_u32};
use super::{DecodeError, OLDEST_VERSION, PrivateName, VERSION};

const MAGIC: [u8; 4] = *b"ROTA";

const MEMBERSHIP: u8 = 1;
/// Where in the flags the policy is.
const POLICY: u8 = 0b110;
/// With a policy: before that its senders wait.
const THROTTLE: u8 = 0b1000;
const MEMORY: u8 = 0b1_0000;

/// What becomes of a client for which too much waits at its daemon.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SlowPolicy {
    /// It is disconnected.
    Disconnect,
    /// What waits is dropped: the client is told how much that was ([`super::Reply::Skipped`]), and for
    /// everybody else it has disconnected and joined its groups again.
    Skip,
    /// Those who send to its groups are made to wait until it has caught up, for as long as the daemon says at
    /// most; then it is disconnected.
    ThrottleThenDisconnect,
    /// The same; then what waits is dropped.
    ThrottleThenSkip,
}

impl SlowPolicy {
    /// Those who send to the client's groups may be made to wait first.
    pub const fn throttles(self) -> bool {
        matches!(self, Self::ThrottleThenDisconnect | Self::ThrottleThenSkip)
    }

    /// The client may be made to miss something.
    pub const fn skips(self) -> bool {
        matches!(self, Self::Skip | Self::ThrottleThenSkip)
    }

    const fn flags(self) -> u8 {
        let throttle = if self.throttles() { THROTTLE } else { 0 };
        let last = if self.skips() { 0b100 } else { 0b010 };
        throttle | last
    }

    const fn of_flags(flags: u8) -> Option<Self> {
        match (flags & POLICY, flags & THROTTLE) {
            (0b010, 0) => Some(Self::Disconnect),
            (0b100, 0) => Some(Self::Skip),
            (0b010, _) => Some(Self::ThrottleThenDisconnect),
            (0b100, _) => Some(Self::ThrottleThenSkip),
            _ => None,
        }
    }
}

/// A client introduces itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The lowest version it speaks; never 0.
    pub lowest: u16,
    /// The highest version it speaks.
    pub highest: u16,
    /// It wants views, transitional signals and self-leaves.
    pub membership: bool,
    /// What is to become of it if it reads too slowly; the daemon's own policy where it does not say, and
    /// never one that the daemon does not allow.
    pub when_slow: Option<SlowPolicy>,
    /// It can take what it is told through memory ([`Welcome::memory`]).
    pub memory: bool,
    /// What it wants to be called; the daemon invents a name where there is none.
    pub name: Option<ClientName>,
}

impl Hello {
    /// Of a client that speaks what this crate speaks.
    pub const fn new(name: Option<ClientName>, membership: bool) -> Self {
        Self {
            lowest: OLDEST_VERSION,
            highest: VERSION,
            membership,
            when_slow: None,
            memory: false,
            name,
        }
    }

    /// The version to speak with this client: the highest that both sides know, if there is one.
    pub const fn agreed_version(&self) -> Option<u16> {
        if self.lowest > VERSION || self.highest < OLDEST_VERSION {
            None
        } else if self.highest < VERSION {
            Some(self.highest)
        } else {
            Some(VERSION)
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        put_u16(out, self.lowest);
        put_u16(out, self.highest);
        let membership = if self.membership { MEMBERSHIP } else { 0 };
        let policy = self.when_slow.map_or(0, SlowPolicy::flags);
        let memory = if self.memory { MEMORY } else { 0 };
        out.push(membership | policy | memory);
        match &self.name {
            Some(name) => put_name(out, name),
            None => out.push(0),
        }
    }

    /// What follows the name, and bits without a meaning, are a later version's and left alone: a
    /// client of it has to be told in words that this version is not.
    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        reader.magic(MAGIC)?;
        let (lowest, highest) = (reader.u16()?, reader.u16()?);
        if lowest == 0 || lowest > highest {
            return Err(DecodeError::Versions);
        }
        let flags = reader.u8()?;
        Ok(Self {
            lowest,
            highest,
            membership: flags & MEMBERSHIP != 0,
            when_slow: SlowPolicy::of_flags(flags),
            memory: flags & MEMORY != 0,
            name: reader.optional_name()?,
        })
    }
}

/// The daemon takes a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u16,
    /// What others call the client.
    pub name: PrivateName,
    /// Its [`super::Credit`], in bytes.
    pub credit: u32,
    /// The most bytes of an application in one message.
    pub largest_payload: u32,
    /// So many bytes of memory come with this frame, as a descriptor (`rota_memory`): all that follows is a stream
    /// through it. 0: there is none, and what follows are frames. Only a client that has asked for it gets any.
    pub memory: u32,
}

impl Welcome {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_u16(out, self.version);
        put_private(out, &self.name);
        put_u32(out, self.credit);
        put_u32(out, self.largest_payload);
        if self.memory > 0 {
            put_u32(out, self.memory);
        }
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            version: reader.u16()?,
            name: reader.private()?,
            credit: reader.u32()?,
            largest_payload: reader.u32()?,
            memory: reader.optional_u32()?,
        })
    }
}
