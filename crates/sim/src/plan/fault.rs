//! Faults that happen at a time.

use std::fmt;

/// The directions that are cut: by sending host, a bit for each receiving host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrix(pub Vec<u64>);

impl Matrix {
    /// Everybody reaches everybody.
    pub fn open(hosts: usize) -> Self {
        Self(vec![0; hosts])
    }

    /// One host reaches nobody, and nobody reaches it.
    pub fn alone(hosts: usize, host: usize) -> Self {
        let mut links = Self::open(hosts);
        for other in 0..hosts {
            links.cut_both(host, other);
        }
        links
    }

    /// The host hears everybody, and nobody hears it.
    pub fn mute(hosts: usize, host: usize) -> Self {
        let mut links = Self::open(hosts);
        for other in 0..hosts {
            links.cut(host, other);
        }
        links
    }

    /// The host hears nobody, and everybody hears it.
    pub fn deaf(hosts: usize, host: usize) -> Self {
        let mut links = Self::open(hosts);
        for other in 0..hosts {
            links.cut(other, host);
        }
        links
    }

    /// Cuts one direction.
    pub fn cut(&mut self, from: usize, to: usize) {
        if from != to {
            self.0[from] |= 1 << to;
        }
    }

    /// Cuts both directions.
    pub fn cut_both(&mut self, one: usize, other: usize) {
        self.cut(one, other);
        self.cut(other, one);
    }

    /// Whether this direction is cut.
    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.0[from] & (1 << to) != 0
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.0.len();
        let mut between = "";
        for from in 0..hosts {
            for to in (0..hosts).filter(|&to| self.is_cut(from, to)) {
                write!(f, "{between}{from}>{to}")?;
                between = " ";
            }
        }
        Ok(())
    }
}

/// The records that a restarted process finds on its disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskLoss {
    /// Everything that the process had asked to be written, synced or not.
    Nothing,
    /// The records that had been reported as durable.
    Unsynced,
    /// Those records, and a first part of the others.
    Torn,
    /// Nothing: the disk was replaced.
    Everything,
    /// An older state: a backup was put back.
    Backup,
}

impl DiskLoss {
    /// Whether durable records are lost as well.
    pub const fn is_of_durable(self) -> bool {
        matches!(self, Self::Everything | Self::Backup)
    }
}

/// A loss of a host for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// All that is on its disk, which is replaced.
    Disk,
    /// The records written since a backup, which is put back.
    Newest,
    /// The machine's power, with the records that the system had not written.
    Power,
    /// The host itself, which does not come back.
    Node,
    /// Its disk, which is bad for good: the disk hangs, or otherwise it fails.
    Device {
        /// Nothing is answered.
        hangs: bool,
    },
}

/// Something that goes wrong at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The time at which it begins.
    pub at: u64,
    /// The time that it lasts, where it has an end: `u64::MAX` is until the world heals.
    pub lasts: u64,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Links are cut.
    Cut {
        /// Name of the shape, for people.
        shape: &'static str,
        /// The directions that are cut.
        links: Matrix,
    },
    /// Links are cut and mended again and again.
    Flap {
        /// The directions that are cut.
        links: Matrix,
        /// The time for which they stay cut, and then mended.
        period: u64,
    },
    /// A whole process stands still, and its sockets fill.
    Pause {
        /// The host.
        host: usize,
    },
    /// An application takes no deliveries.
    Stall {
        /// The host.
        host: usize,
    },
    /// A process is killed, between two of its outputs; it starts again after `lasts`.
    Kill {
        /// The host.
        host: usize,
        /// Outputs that it still carries out.
        outputs: u32,
        /// The host is gone as well: nobody says that nobody listens.
        host_too: bool,
        /// The records left on its disk.
        disk: DiskLoss,
        /// It stays dead also when the world heals.
        for_good: bool,
    },
    /// Machines lose their power, all at once; their processes start again after `lasts`.
    PowerLoss {
        /// The hosts.
        hosts: Vec<usize>,
        /// The records left on their disks.
        disk: DiskLoss,
    },
    /// Nothing can be made durable.
    DiskFails {
        /// The host.
        host: usize,
        /// The device is full; otherwise it is broken.
        full: bool,
    },
    /// A disk answers nothing.
    DiskHangs {
        /// The host.
        host: usize,
    },
    /// A host loses something for good, as soon as the others have enough without it; `lasts` is the longest wait for
    /// that.
    Loses {
        /// The host.
        host: usize,
        /// The loss.
        what: Loss,
    },
    /// All voters lose what they have, at once; other nodes live on. Waits like [`FaultKind::Loses`].
    LoseAll,
    /// All processes end at once. Waits like [`FaultKind::Loses`].
    RestartAll {
        /// The host that does not come back, if there is one.
        dead: Option<usize>,
        /// With the power of all machines.
        power: bool,
        /// The part left of records that were not answered.
        disk: DiskLoss,
    },
    /// A host is killed whenever it has become a member, again and again.
    Churn {
        /// The host.
        host: usize,
    },
    /// The coordination service does not answer, and does not hear.
    ServiceStops,
    /// Links lose most of what is sent.
    Storm {
        /// The directions that lose.
        links: Matrix,
        /// The share that is lost, in percent.
        percent: u8,
        /// Of data only: tokens pass.
        data_only: bool,
    },
    /// All applications want to submit at once.
    Rush {
        /// Messages that each application submits.
        messages: u32,
    },
    /// The first process that installs a ring on which others are still recovering is cut off at that moment: these
    /// have promised something that it may have relied on.
    Snipe,
    /// Before a view, the last member that tells the others what they lack is heard by nobody from that moment. This
    /// member knows that all have everything; nobody else ever does, and so nobody may begin the view.
    Mute,
    /// Datagrams of any age come again.
    Replay {
        /// The receiving host.
        host: usize,
        /// The number of datagrams.
        count: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>13} ns  {}", self.at, self.kind)?;
        match self.lasts {
            0 => Ok(()),
            u64::MAX => f.write_str(", until the world heals"),
            lasts => write!(f, ", for {lasts} ns"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { shape, links } => write!(f, "cut ({shape}): {links}"),
            Self::Flap { links, period } => write!(f, "flap every {period} ns: {links}"),
            Self::Pause { host } => write!(f, "host {host} pauses"),
            Self::Stall { host } => write!(f, "the application of host {host} stalls"),
            Self::Kill {
                host,
                outputs,
                host_too,
                disk,
                for_good,
            } => {
                let what = if *host_too { "host" } else { "process on host" };
                let back = if *for_good { " for good" } else { "" };
                write!(
                    f,
                    "{what} {host} dies{back} after {outputs} outputs; lost on disk: {disk:?}"
                )
            }
            Self::PowerLoss { hosts, disk } => {
                write!(f, "hosts {hosts:?} lose power; lost on disk: {disk:?}")
            }
            Self::DiskFails { host, full } => {
                let how = if *full { "full" } else { "broken" };
                write!(f, "the disk of host {host} is {how}")
            }
            Self::DiskHangs { host } => write!(f, "the disk of host {host} hangs"),
            Self::Loses { host, what } => write!(f, "host {host} loses for good: {what:?}"),
            Self::LoseAll => f.write_str("all who vote lose everything"),
            Self::RestartAll { dead, power, disk } => {
                let what = if *power { "lose power" } else { "die" };
                write!(f, "all {what}; lost on disk: {disk:?}")?;
                dead.map_or(Ok(()), |dead| write!(f, "; host {dead} for good"))
            }
            Self::Churn { host } => write!(f, "host {host} dies as soon as it is a member"),
            Self::ServiceStops => f.write_str("the coordination service does not answer"),
            Self::Snipe => f.write_str("the first to install the next ring is cut off"),
            Self::Mute => f.write_str("the last to end the next exchange is mute"),
            Self::Storm {
                links,
                percent,
                data_only,
            } => {
                let what = if *data_only { " of data" } else { "" };
                write!(f, "{percent} %{what} lost: {links}")
            }
            Self::Rush { messages } => write!(f, "everybody submits {messages} messages"),
            Self::Replay { host, count } => write!(f, "{count} old datagrams to host {host}"),
        }
    }
}
