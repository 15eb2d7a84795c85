//! The counters of a ring, for people and metrics.

use alloc::collections::BTreeMap;

use rota_core::contract::{Histogram, NodeId, PeerCounters};
use rota_core::wire::DecodeError;

/// The most members with counters of their own: as many as a ring may have.
const PEERS: usize = 128;

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// Monotone counters of a node's ring.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])* pub $name: u64,)*
            /// The times from passing the token on to its return, unless it may have been held.
            pub rotation: Histogram,
            /// The counters of other members' packets.
            pub peers: BTreeMap<NodeId, PeerCounters>,
        }

        impl Counters {
            /// All counters by name.
            pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
                BTreeMap::from([$((stringify!($name), self.$name),)*])
            }

            /// The meaning of a counter, for people.
            pub fn help(name: &str) -> Option<&'static str> {
                match name {
                    $(stringify!($name) => Some(concat!($($doc),*)),)*
                    _ => None,
                }
            }
        }
    };
}

counters! {
    /// Tokens accepted.
    token_rotations,
    /// Longest time between two visits of the token, in microseconds, unless it was held.
    rotation_longest_us,
    /// Rotations that took more than a quarter of the token-loss time (A4): this close to a loss, less
    /// load or a slower timing is called for.
    rotations_slow,
    /// Tokens that had been seen before.
    token_duplicates,
    /// Tokens whose fields contradict what this member knows.
    token_invalid,
    /// Tokens sent again because nothing showed that they had arrived.
    token_retransmissions,
    /// Times without any token for the token-loss time.
    token_losses,
    /// Rotations an idle ring was spared by holding its token.
    token_holds,
    /// Requests sent to the holder of an idle ring's token.
    hurries,
    /// Packets this member initiated.
    packets_sent,
    /// Packets this member sent again on request.
    retransmissions,
    /// Packets this member asked for.
    packets_requested,
    /// Packets received in time and for the first time.
    packets_received,
    /// Packets received again.
    packets_duplicate,
    /// Packets too far ahead to be kept.
    packets_beyond_window,
    /// Visits in which the global window or the outstanding window kept packets back.
    visits_throttled,
    /// Datagrams that are no packet.
    datagrams_malformed,
    /// Datagrams of another version of the format: their sender is an older or a newer program.
    datagrams_other_version,
    /// Datagrams of another cluster.
    datagrams_foreign_cluster,
    /// Datagrams of another ring, or of a process that is not a member.
    datagrams_foreign_ring,
    /// Regular configurations installed.
    configurations,
    /// Times this process began to look for a new ring.
    gathers,
    /// Rings that were formed and broke before they were installed.
    failed_recoveries,
    /// Of these, after this process had said that it has everything: it still owes what that promised.
    obligations_kept,
    /// Packets of an old ring that came from others during recovery.
    packets_recovered,
    /// Joins sent.
    joins_sent,
    /// Joins that were out of date or did not fit what this process was doing.
    joins_ignored,
    /// Commit tokens that did not fit what this process was doing.
    commits_ignored,
    /// Members given up because nothing listens at their address any more, or because they restarted.
    members_dead,
    /// Members given up because they could not receive what others could.
    members_deaf,
    /// Times a member was left alone for a while, as rings with it broke again and again since it fell silent.
    members_unsteady,
    /// Times this process has left a ring since nobody received what it sends.
    self_mute,
    /// Times this process has left a ring since it lost much that the others got.
    self_lossy,
    /// Times this process has left a ring since its application took nothing.
    self_hung,
    /// Ring numbers that could not be made durable.
    persist_failures,
    /// Times another process was kept away for a while, as no ring with it had formed.
    back_offs,
    /// Datagrams from another process that goes by this node's number.
    duplicate_nodes,
    /// Messages whose parts do not fit together.
    messages_broken,
}

impl Counters {
    /// Counts a datagram that cannot be read. One of another version is no garbage: its sender is a node that is to be
    /// upgraded, or was before this one.
    #[cold]
    pub(super) fn refuse(&mut self, why: DecodeError) {
        if why.is_other_version() {
            self.datagrams_other_version += 1;
        } else {
            self.datagrams_malformed += 1;
        }
    }

    /// The counters of a member. With open membership there may be ever new nodes: beyond `PEERS` the counters of the
    /// node with the largest id are forgotten.
    pub(super) fn peer(&mut self, node: NodeId) -> &mut PeerCounters {
        if self.peers.len() >= PEERS && !self.peers.contains_key(&node) {
            self.peers.pop_last();
        }
        self.peers.entry(node).or_default()
    }
}
