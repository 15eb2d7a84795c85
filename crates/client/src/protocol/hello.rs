//! The first frame of each side.

use rota_core::groups::ClientName;

use super::bytes::{Reader, put_name, put_private, put_u16, put_u32};
use super::{DecodeError, OLDEST_VERSION, PrivateName, VERSION};

const MAGIC: [u8; 4] = *b"ROTA";

const MEMBERSHIP: u8 = 1;
/// The bits of the policy in the flags.
const POLICY: u8 = 0b110;
/// A flag beside a policy: before the policy applies, senders wait.
const THROTTLE: u8 = 0b1000;
const MEMORY: u8 = 0b1_0000;

/// The policy for a client for which too much waits at its daemon.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SlowPolicy {
    /// The client is disconnected.
    Disconnect,
    /// The waiting messages are dropped: the client is told their number and bytes ([`super::Reply::Skipped`]), and for
    /// everybody else it has disconnected and joined its groups again.
    Skip,
    /// Senders to the client's groups wait until it has caught up, for the daemon's longest time at most; then it is
    /// disconnected.
    ThrottleThenDisconnect,
    /// The same; then the waiting messages are dropped.
    ThrottleThenSkip,
}

impl SlowPolicy {
    /// The policy may first make senders to the client's groups wait.
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
    /// The client wants views, transitional signals and self-leaves.
    pub membership: bool,
    /// The policy for this client if it reads too slowly; without one the daemon's own, and never one that the daemon
    /// does not allow.
    pub when_slow: Option<SlowPolicy>,
    /// The client can take frames through memory ([`Welcome::memory`]).
    pub memory: bool,
    /// The name that the client asks for; without one the daemon invents a name.
    pub name: Option<ClientName>,
}

impl Hello {
    /// The hello of a client that speaks all that this crate speaks.
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

    /// Bytes behind the name, and bits without a meaning, belong to a later version and are ignored: the daemon has to
    /// be able to refuse a client of that version in words.
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
    /// The private name of the client.
    pub name: PrivateName,
    /// Its [`super::Credit`], in bytes.
    pub credit: u32,
    /// The most bytes of an application in one message.
    pub largest_payload: u32,
    /// The bytes of memory that come with this frame, as a descriptor (`rota_memory`): all later frames are a stream
    /// through it. 0: there is no memory, and frames follow on the socket. Only a client that has asked for memory gets
    /// any.
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
