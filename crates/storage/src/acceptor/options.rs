//! The options of a log.

use std::time::Duration;

use super::dir::Access;
use super::header::Identity;
use super::mark::{BootId, Run};

/// The time at which records count as durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Never: they are in memory. An acceptor that has ended has forgotten, and must not come back under its name.
    Memory {
        /// The number of records of instances that are kept, the newest.
        instances: usize,
    },
    /// When the system has them: they survive the end of all processes, but not a loss of power. They are
    /// synced from time to time.
    Async {
        /// The time after one sync at which the next is due.
        interval: Duration,
        /// The number of unsynced bytes at which a sync is due before.
        bytes: u64,
    },
    /// When the disk has them.
    Sync,
}

impl Mode {
    /// In memory, as many instances as the paper's acceptors keep (Multi-Ring Paxos, 2014, on its
    /// implementation): some seconds of a busy ring.
    pub const MEMORY: Self = Self::Memory { instances: 15_000 };

    /// Synced each 100 ms, or after 8 MiB.
    pub const ASYNC: Self = Self::Async {
        interval: Duration::from_millis(100),
        bytes: 8 << 20,
    };

    /// The access with which segments are opened. Writes that nobody waits for are better gathered in the system's
    /// memory.
    pub(super) const fn access(self) -> Access {
        match self {
            Self::Sync => Access::Append,
            Self::Async { .. } | Self::Memory { .. } => Access::Write,
        }
    }
}

/// The options with which a log is opened.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The owner of the log.
    pub identity: Identity,
    /// The time at which records count as durable.
    pub mode: Mode,
    /// The bytes of a segment, 8 KiB to 2 GiB, in steps of 4 KiB. Old segments are dropped whole, so a smaller
    /// one gives room back sooner; each new one costs some syncs.
    pub segment_bytes: u64,
    /// The number of files that are kept to become segments.
    pub spares: usize,
    /// Whether a log is made where there is none. An acceptor that has voted must say no: without its log it
    /// would have forgotten.
    pub create: bool,
    /// The number of times that the log must have been opened before, if that is known from elsewhere: see
    /// [`super::DiskLog::life`]. A log that is made goes on counting from here.
    pub least_life: u64,
    /// The run of the machine ([`boot_id`]). Records that were answered with [`Mode::Async`] in another run, and are
    /// not known to be synced, may be missing: see [`super::DiskLog::lost_some`].
    pub boot_id: BootId,
    /// The key under which its owner keeps the name by which others know what is in the log. Once the name is written
    /// anew, in a log that may lack something, nobody is misled any more by what is missing.
    pub name_key: Option<u64>,
}

/// The run of the machine; zeros where the system does not say.
pub fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.ok().and_then(|text| read(&text)).unwrap_or_default()
}

/// Sixteen bytes, in hexadecimal digits with dashes somewhere.
fn read(text: &str) -> Option<BootId> {
    let digits = text.trim().chars().filter(|c| *c != '-');
    let digits: Option<Vec<u8>> = digits.map(|c| Some(c.to_digit(16)? as u8)).collect();
    let (pairs, rest) = digits.as_ref()?.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    rest.is_empty().then(|| bytes.try_into().ok())?
}

impl LogOptions {
    /// Synced, in segments of 64 MiB, made where it is not there.
    pub const fn new(identity: Identity) -> Self {
        Self {
            identity,
            mode: Mode::Sync,
            segment_bytes: 64 << 20,
            spares: 2,
            create: true,
            least_life: 0,
            boot_id: [0; 16],
            name_key: None,
        }
    }

    /// The mode of this life, and the run of the machine.
    pub(super) const fn run(&self) -> Run {
        Run {
            boot: self.boot_id,
            is_async: matches!(self.mode, Mode::Async { .. }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_the_machine_has_a_number_of_its_own() {
        let id = read("00112233-4455-6677-8899-aabbccddeeff\n").expect("16 bytes");
        assert_eq!((id[0], id[1], id[15]), (0, 0x11, 0xff));
        for bad in ["", "0011", "00112233-4455-6677-8899-aabbccddeefg", "é"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(boot_id(), boot_id());
        assert_ne!(boot_id(), BootId::default());
    }
}
