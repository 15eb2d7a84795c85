//! Counters of the network side.

macro_rules! net_stats {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// The counters of a node's sockets. All of them only grow.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct NetStats {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl NetStats {
            /// All counters by name, for status pages.
            pub const fn named(&self) -> [(&'static str, u64); 47] {
                [$((concat!("net_", stringify!($name)), self.$name),)*]
            }

            /// The meaning of a counter, for people.
            pub fn help(name: &str) -> Option<&'static str> {
                match name.strip_prefix("net_")? {
                    $(stringify!($name) => Some(concat!($($doc),*)),)*
                    _ => None,
                }
            }
        }
    };
}

net_stats! {
    /// Datagrams received and opened.
    datagrams_in,
    /// Datagrams handed to the kernel (one for each peer in unicast mode).
    datagrams_out,
    /// Bytes of UDP payload received, before any check.
    bytes_in,
    /// Bytes of UDP payload handed to the kernel.
    bytes_out,
    /// Reads that returned datagrams.
    bursts_in,
    /// Bursts sent (one for each peer in unicast mode).
    bursts_out,
    /// Datagrams dropped for a wrong checksum.
    checksum_errors,
    /// Sealed datagrams dropped because this node has no key with their id; also those that are not sealed.
    seal_unknown_key,
    /// Sealed datagrams dropped because they are not authentic: another key with the same id, damage, a forgery.
    seal_forged,
    /// Sealed datagrams dropped because nobody remembers whether they have come before.
    seal_old,
    /// Sealed datagrams dropped because they have come before.
    seal_seen,
    /// Sealed datagrams dropped because they were sealed for another node, or by this one.
    seal_misdirected,
    /// Sealed datagrams dropped because a later life of their sender is known.
    seal_old_life,
    /// Sealed datagrams of unknown lives dropped unchecked, as there were too many.
    seal_unchecked,
    /// Datagrams dropped because they had no whole header.
    short,
    /// Bursts dropped because no known node sends from that address; of what might have come from a joining
    /// node, datagrams.
    foreign_source,
    /// Own multicasts that came back and were dropped here; the socket filter drops most before.
    own,
    /// Datagrams that did not fit the receive buffer of a read.
    truncated,
    /// Datagrams the kernel dropped because a receive buffer was full.
    kernel_drops,
    /// Times the kernel refused segmentation offload; then a socket sends datagram by datagram.
    gso_fallback,
    /// Sends that had to wait for room in the kernel.
    would_block,
    /// Datagrams given up because the kernel refused them for good; not those that were too large.
    send_errors,
    /// Datagrams lost because they were too large: the kernel refused them, or a router said so.
    too_large,
    /// Signs that nobody listens at a peer's address.
    unreachable,
    /// Bursts that had come while the process stood still for so long that the others have gone on without it, and that were dropped.
    overslept,
    /// Signs that nobody listens at a peer's address, of which nobody knows whether they are true: they quote nothing that was sent
    /// to the peer's token port lately.
    unreachable_unproved,
    /// Notices of lists of nodes dropped because too many waited.
    notices_dropped,
    /// Datagrams that the fault layer lost, delayed, doubled or reordered.
    faults,
    /// Requests to make something durable that the disk did not take: ring ids, what is known of primaries, votes.
    persist_failures,
    /// Outputs this driver cannot carry out (links of an engine that wants none, records that this node does not keep).
    unsupported,
    /// Sessions of links that began.
    link_sessions,
    /// Sessions of links that ended.
    link_ends,
    /// Messages that came over links.
    link_messages_in,
    /// Messages sent over links.
    link_messages_out,
    /// Bytes that came over links, records as they travel.
    link_bytes_in,
    /// Bytes handed to the kernel for links.
    link_bytes_out,
    /// Connections for links that ended because something was not authentic: another key with the same id, damage, a
    /// forgery, something sent again.
    link_forged,
    /// Connections for links refused because this node does not have their key, or only one of the two has any.
    link_unknown_key,
    /// Connections for links refused: of another cluster, for another node, or of one that does not connect to this one.
    link_refused,
    /// Connections for links refused because they are of another version: the other end is an older or a newer program.
    link_other_version,
    /// Connections for links that did not show in time who they are.
    link_silent,
    /// Connections for links that were the oldest of too many unknown ones.
    link_crowded,
    /// Connections for links from an address that no node has.
    link_foreign,
    /// Messages of this node that its engine has taken to be ordered.
    submissions,
    /// Messages that were ordered and handed to the application, its own and others'.
    deliveries,
    /// Lines that are missing at the end of the trace, whose file has taken no more.
    trace_lines_lost,
    /// Times the loop went to sleep.
    waits,
}
