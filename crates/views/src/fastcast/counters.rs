//! The counters of FastCast, for people and metrics.

use rota_core::counters;

counters! {
    /// Monotone counters of a FastCast member.
    FastCounters:

    /// Packets of its own that this member sent for the first time.
    fast_packets_sent,
    /// Packets of others that came for the first time.
    fast_packets_received,
    /// Packets that came again.
    fast_packets_duplicate,
    /// Packets too far ahead to be kept.
    fast_packets_beyond_window,
    /// Packets that came only after this member had asked for them.
    fast_packets_repaired,
    /// Packets this member sent again because somebody asked.
    fast_packets_resent,
    /// Packets this member sent again because nothing had shown that they arrived.
    fast_packets_repeated,
    /// Packets this member asked for.
    fast_packets_requested,
    /// Sequence numbers of the leader that this member asked for.
    fast_places_requested,
    /// Times in which the window kept packets back.
    fast_sends_throttled,
    /// Control datagrams sent beside a burst of packets.
    fast_controls_riding,
    /// Control datagrams sent alone.
    fast_controls_alone,
    /// Of all those, sent again because something was still missing.
    fast_controls_repeated,
    /// Control datagrams received.
    fast_controls_received,
    /// Increases of this member's bandwidth that came into force.
    fast_increases,
    /// How long they took together, from the request until all had applied it, in microseconds.
    fast_increases_micros,
    /// How many of them took longer than 10 ms.
    fast_increases_slow,
    /// Packets of others that got lost on their way to this member, where what its link takes in follows losses.
    fast_packets_lost,
    /// Times that so many of them got lost that its link was taken to take in less.
    fast_link_lowered,
    /// Words in which this member told the others what its link takes in.
    fast_link_words,
    /// Words about bandwidth shares that are none.
    fast_words_malformed,
    /// Control datagrams that contradict what this member knows.
    fast_controls_invalid,
    /// Places in the order that contradict what the leader said before.
    fast_places_contradicted,
    /// Datagrams that are none of FastCast's.
    fast_datagrams_malformed,
    /// Datagrams of another cluster.
    fast_datagrams_foreign_cluster,
    /// Datagrams of another view, or of a process that is not in this one.
    fast_datagrams_foreign_view,
}
