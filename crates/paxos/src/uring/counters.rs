//! Counters, for people and metrics.

use rota_core::counters;

counters! {
    /// Monotone counters of a member of Ring Paxos or U-Ring Paxos.
    URingCounters:

    /// Configurations that this node got to know.
    uring_configurations,
    /// How often this node wanted to say which configuration follows.
    uring_candidacies,
    /// How often this node took its predecessor in the ring for dead.
    uring_suspicions,
    /// Rounds in which this node was the coordinator.
    uring_rounds_led,
    /// Messages to the successor in the ring.
    uring_batches_sent,
    /// Bytes of messages to the successor in the ring.
    uring_batch_bytes_sent,
    /// Messages that could not be read or taken in.
    uring_messages_refused,
    /// Messages to others that were dropped because too many waited for their link.
    uring_words_dropped,
    /// Words to the coordinator that say up to where this ring is waited for, by a merge of several.
    uring_needs_said,
    /// Such words of others.
    uring_needs_heard,
    /// Messages of an earlier session, configuration or question.
    uring_messages_stale,
    /// Votes that did not come along the ring and were asked for.
    uring_votes_fetched,
    /// Answers to those who asked for votes.
    uring_fetches_served,
    /// How often this acceptor has told an observer what was decided, or how far.
    uring_observers_told,
    /// Votes that were read back from this acceptor's log: their values had left memory.
    uring_votes_read_back,
    /// How often such votes could not be read back.
    uring_reads_failed,
    /// Instances that were forgotten because a log that was opened again had lost their values, which were not in memory.
    uring_instances_lost,
    /// Votes that this node has told others that coordinate, for their rounds to begin.
    uring_votes_promised,
    /// Values that were decided, as far as this node has learnt.
    uring_values_decided,
    /// Decided values that do not count, as another copy did before.
    uring_values_uncounted,
    /// Values that came to the coordinator after a copy was proposed.
    uring_values_late,
    /// Configurations of a cluster that was founded by others.
    uring_configurations_foreign,
    /// Messages of a cluster that was founded by others.
    uring_messages_foreign,
    /// How often the log of this acceptor has failed, or hung too long, and was to be opened again.
    uring_logs_given_up,
    /// Values on their way to the coordinator for which there was no room here: their proposer has more under way than it may, or
    /// this node has not learnt yet that they have counted.
    uring_values_put_off,
    /// Values that came to the coordinator before an earlier one of their proposer.
    uring_values_early,
    /// Datagrams with parts of values (Ring Paxos).
    uring_parts_received,
    /// Datagrams with parts of values that were of no use here.
    uring_parts_dropped,
    /// How often this node had to ask for values that did not come by multicast, or that it had forgotten with a base.
    uring_values_asked_for,
    /// Own values sent to the coordinator by its link, as they did not come by multicast.
    uring_values_sent_again,
    /// Decided values that hold no messages.
    uring_messages_malformed,
    /// Instances whose values this node knows.
    uring_instances_learnt,
    /// Instances whose votes this acceptor has forgotten.
    uring_instances_forgotten,
}
