//! The outputs of a process that its driver has not taken yet.

use alloc::collections::VecDeque;

use crate::send_to;
use crate::wire::{Commit, Packet};
use rota_core::contract::{Burst, Channel, Class, NodeId, Output, PersistId, Process, Target};

/// The outputs, in their order; membership's datagrams are encoded here.
#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    queue: VecDeque<Output>,
    /// The bytes at the end of a datagram that are left to the owner of the sockets.
    seal_bytes: usize,
}

impl Outputs {
    /// No outputs yet.
    pub const fn new(seal_bytes: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            seal_bytes,
        }
    }

    /// Sends a control message to one node.
    pub fn send(&mut self, node: NodeId, packet: &Packet) {
        let output = send_to(node, packet, self.seal_bytes);
        self.queue.push_back(output);
    }

    /// Sends a control message to all others.
    pub fn send_to_others(&mut self, packet: &Packet) {
        self.queue.push_back(Output::Send {
            class: Class::Token,
            channel: Channel::default(),
            to: Target::Others,
            burst: Burst::single(packet.encode_sealed(self.seal_bytes)),
            after: None,
        });
    }

    /// Passes a commit token on to the member after `me`, once a request to the disk is durable; not on a ring of one.
    pub fn pass_on(&mut self, commit: &Commit, me: Process, after: Option<PersistId>) {
        let Some(successor) = successor(&commit.members, me) else {
            return;
        };
        let packet = Packet::Commit(commit.clone());
        let mut output = send_to(successor, &packet, self.seal_bytes);
        if let Output::Send { after: waits, .. } = &mut output {
            *waits = after;
        }
        self.queue.push_back(output);
    }

    /// Adds outputs as they are.
    pub fn extend(&mut self, outputs: impl IntoIterator<Item = Output>) {
        self.queue.extend(outputs);
    }

    /// The queue itself, for a ring to add its outputs.
    pub const fn queue(&mut self) -> &mut VecDeque<Output> {
        &mut self.queue
    }

    /// The next output.
    pub fn poll(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// The number of outputs.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether an output for the trace waits that says which message got which place.
    pub fn have_originated(&self) -> bool {
        let is_originated = |output: &Output| matches!(output, Output::Originated { .. });
        self.queue.iter().any(is_originated)
    }
}

/// The next member after `me`; `None` on a ring of one.
fn successor(members: &[Process], me: Process) -> Option<NodeId> {
    let index = members.iter().position(|&member| member == me)?;
    let next = members[(index + 1) % members.len()];
    (next != me).then_some(next.node)
}
