//! Counters of the network side.

/// What a node's sockets have seen. All counters only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetStats {
    /// Datagrams received and opened.
    pub datagrams_in: u64,
    /// Datagrams handed to the kernel (one for each peer in unicast mode).
    pub datagrams_out: u64,
    /// Bytes of UDP payload received, before any check.
    pub bytes_in: u64,
    /// Bytes of UDP payload handed to the kernel.
    pub bytes_out: u64,
    /// Reads that returned datagrams.
    pub bursts_in: u64,
    /// Bursts sent (one for each peer in unicast mode).
    pub bursts_out: u64,
    /// Datagrams dropped for a wrong checksum.
    pub checksum_errors: u64,
    /// Sealed datagrams dropped because this node has no key with their id; also those that are not sealed.
    pub seal_unknown_key: u64,
    /// Sealed datagrams dropped because they are not authentic: another key with the same id, damage, a forgery.
    pub seal_forged: u64,
    /// Sealed datagrams dropped because nobody remembers whether they have come before.
    pub seal_old: u64,
    /// Sealed datagrams dropped because they have come before.
    pub seal_seen: u64,
    /// Sealed datagrams dropped because they were sealed for another node, or by this one.
    pub seal_misdirected: u64,
    /// Sealed datagrams dropped because a later life of their sender is known.
    pub seal_old_life: u64,
    /// Sealed datagrams of unknown lives dropped unchecked, as there were too many.
    pub seal_unchecked: u64,
    /// Datagrams dropped because they had no whole header.
    pub short: u64,
    /// Bursts dropped because no known node sends from that address; of what might have come from a joining
    /// node, datagrams.
    pub foreign_source: u64,
    /// Own multicasts that came back and were dropped here; the socket filter drops most before.
    pub own: u64,
    /// Datagrams that did not fit the receive buffer of a read.
    pub truncated: u64,
    /// Datagrams the kernel dropped because a receive buffer was full.
    pub kernel_drops: u64,
    /// Times the kernel refused segmentation offload; then a socket sends datagram by datagram.
    pub gso_fallback: u64,
    /// Sends that had to wait for room in the kernel.
    pub would_block: u64,
    /// Datagrams given up because the kernel refused them for good; not those that were too large.
    pub send_errors: u64,
    /// Datagrams lost because they were too large: the kernel refused them, or a router said so.
    pub too_large: u64,
    /// Signs that nobody listens at a peer's address.
    pub unreachable: u64,
    /// Datagrams that the fault layer lost, delayed, doubled or reordered.
    pub faults: u64,
    /// Ring ids that the disk did not take.
    pub persist_failures: u64,
    /// Outputs this driver cannot carry out (links, records other than ring ids).
    pub unsupported: u64,
    /// Times the loop went to sleep.
    pub waits: u64,
}

impl NetStats {
    /// All counters by name, for status pages.
    pub const fn named(&self) -> [(&'static str, u64); 28] {
        [
            ("net_datagrams_in", self.datagrams_in),
            ("net_datagrams_out", self.datagrams_out),
            ("net_bytes_in", self.bytes_in),
            ("net_bytes_out", self.bytes_out),
            ("net_bursts_in", self.bursts_in),
            ("net_bursts_out", self.bursts_out),
            ("net_checksum_errors", self.checksum_errors),
            ("net_seal_unknown_key", self.seal_unknown_key),
            ("net_seal_forged", self.seal_forged),
            ("net_seal_old", self.seal_old),
            ("net_seal_seen", self.seal_seen),
            ("net_seal_misdirected", self.seal_misdirected),
            ("net_seal_old_life", self.seal_old_life),
            ("net_seal_unchecked", self.seal_unchecked),
            ("net_short", self.short),
            ("net_foreign_source", self.foreign_source),
            ("net_own", self.own),
            ("net_truncated", self.truncated),
            ("net_kernel_drops", self.kernel_drops),
            ("net_gso_fallback", self.gso_fallback),
            ("net_would_block", self.would_block),
            ("net_send_errors", self.send_errors),
            ("net_too_large", self.too_large),
            ("net_unreachable", self.unreachable),
            ("net_faults", self.faults),
            ("net_persist_failures", self.persist_failures),
            ("net_unsupported", self.unsupported),
            ("net_waits", self.waits),
        ]
    }
}
