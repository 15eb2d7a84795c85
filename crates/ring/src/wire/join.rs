//! The messages between processes without a common ring: joins and merge-detect messages (membership A1).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Buf;

use rota_core::contract::{NodeId, Process, RingId};
use rota_core::wire::{DecodeError, Header, Kind, expect_empty, read_incarnation};

/// Processes that one `Join` names at most in each of its sets.
pub const MAX_JOIN_PROCESSES: usize = 1024;

const FLAG_LEAVING: u8 = 1;

/// "These are the processes I want a ring with, and these I have given up."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// The cluster that the message belongs to.
    pub cluster: u32,
    /// The process that says it.
    pub sender: Process,
    /// The largest number of a ring that the sender knows of.
    pub ring_seq: u64,
    /// The sender is about to stop, and counts itself among those given up.
    pub leaving: bool,
    /// The processes that the sender has heard of since its last ring.
    pub procs: BTreeSet<Process>,
    /// The processes that the sender has given up, of `procs` and others.
    pub fails: BTreeSet<Process>,
}

/// "I am here, in this ring": how rings find each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeDetect {
    /// The cluster that the message belongs to.
    pub cluster: u32,
    /// The process that says it.
    pub sender: Process,
    /// The sender's ring.
    pub ring: RingId,
}

impl Join {
    pub(super) fn read(header: &Header, mut body: &[u8]) -> Result<Self, DecodeError> {
        let incarnation = read_incarnation(&mut body)?;
        let flags = body.try_get_u8().map_err(|_| DecodeError::Short)?;
        if flags & !FLAG_LEAVING != 0 {
            return Err(DecodeError::Join("a join has unknown flags"));
        }
        let procs = read_processes(&mut body)?;
        let fails = read_processes(&mut body)?;
        expect_empty(body)?;
        let sender = Process {
            node: header.sender,
            incarnation,
        };
        let leaving = flags & FLAG_LEAVING != 0;
        if fails.contains(&sender) != leaving {
            return Err(DecodeError::Join(
                "only who leaves gives itself up in a join",
            ));
        }
        if !leaving && !procs.contains(&sender) {
            return Err(DecodeError::Join("a join without its sender"));
        }
        Ok(Self {
            cluster: header.cluster,
            sender,
            ring_seq: header.ring_seq,
            leaving,
            procs,
            fails,
        })
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        let mut header = Header::without_ring(Kind::Join, self.cluster, self.sender.node);
        header.ring_seq = self.ring_seq;
        header.write(out);
        out.extend_from_slice(&self.sender.incarnation.0.to_le_bytes());
        out.push(u8::from(self.leaving) * FLAG_LEAVING);
        write_processes(&self.procs, out);
        write_processes(&self.fails, out);
    }
}

impl MergeDetect {
    pub(super) fn read(header: &Header, mut body: &[u8]) -> Result<Self, DecodeError> {
        let incarnation = read_incarnation(&mut body)?;
        expect_empty(body)?;
        let node = header.sender;
        Ok(Self {
            cluster: header.cluster,
            sender: Process { node, incarnation },
            ring: header.ring()?,
        })
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        Header::of_ring(Kind::MergeDetect, self.cluster, self.ring, self.sender.node).write(out);
        out.extend_from_slice(&self.sender.incarnation.0.to_le_bytes());
    }
}

fn read_processes(body: &mut &[u8]) -> Result<BTreeSet<Process>, DecodeError> {
    let count = usize::from(body.try_get_u16_le().map_err(|_| DecodeError::Short)?);
    if count > MAX_JOIN_PROCESSES {
        return Err(DecodeError::Join("a join names too many processes"));
    }
    let mut processes = BTreeSet::new();
    for _ in 0..count {
        let process = read_process(body)?;
        if processes.last().is_some_and(|last| *last >= process) {
            return Err(DecodeError::Join("a join's processes are not ascending"));
        }
        processes.insert(process);
    }
    Ok(processes)
}

fn write_processes(processes: &BTreeSet<Process>, out: &mut Vec<u8>) {
    let count = u16::try_from(processes.len()).expect("sets are bounded");
    out.extend_from_slice(&count.to_le_bytes());
    for process in processes {
        write_process(*process, out);
    }
}

pub(super) fn read_process(body: &mut &[u8]) -> Result<Process, DecodeError> {
    let node = body.try_get_u16_le().map_err(|_| DecodeError::Short)?;
    let node = NodeId::new(node).ok_or(DecodeError::ZeroNode)?;
    let incarnation = read_incarnation(body)?;
    Ok(Process { node, incarnation })
}

pub(super) fn write_process(process: Process, out: &mut Vec<u8>) {
    out.extend_from_slice(&process.node.get().to_le_bytes());
    out.extend_from_slice(&process.incarnation.0.to_le_bytes());
}
