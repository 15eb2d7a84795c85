//! A node: its disk, and its process if that lives.

use rota_core::contract::{Checked, Process};
use rota_paxos::uring::URing;

use super::devices::Device;
use super::disk::{Disk, Mode};

pub struct Life {
    pub me: Process,
    pub engine: Checked<URing>,
    pub submitted: u64,
    /// It takes no deliveries until then.
    pub busy: u64,
    /// It belongs to what was before all acceptors lost their stores.
    pub former: bool,
    /// The newest configuration that was looked at.
    pub seen: u64,
    /// It does nothing until then.
    pub stopped: u64,
}

#[derive(Default)]
pub struct Node {
    pub disk: Disk,
    pub life: Option<Life>,
    pub lives: u64,
    /// When it is started again.
    pub again: u64,
    pub mode: Mode,
    /// Decided instances that it keeps.
    pub keeps: u64,
    /// It does not come back.
    pub retired: bool,
    /// Its log is of before all acceptors lost their stores.
    pub has_old_log: bool,
    pub device: Device,
    /// When its disk answers next.
    pub answers: Option<u64>,
}
