//! What a ring counts, for people and metrics.

use alloc::collections::BTreeMap;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Monotone counters of a node's ring.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// All counters by name.
            pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
                BTreeMap::from([$((stringify!($name), self.$name),)*])
            }
        }
    };
}

counters! {
    /// Tokens accepted.
    token_rotations,
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
    /// Datagrams of another cluster.
    datagrams_foreign_cluster,
    /// Datagrams of another ring, or of a process that is not a member.
    datagrams_foreign_ring,
    /// Other lives of nodes that were heard of before, while the ring formed.
    members_restarted,
    /// Messages whose parts do not fit together.
    messages_broken,
}
