//! Replicas of several partitions, which subscribe to rings and leave them while they run, each at its own pace and with
//! its own lives; judged by a checker that knows nothing of merges and of subscriptions.

#[cfg(not(feature = "mutants"))]
mod founded;
mod judge;
#[cfg(feature = "mutants")]
mod mutants;
#[cfg(not(feature = "mutants"))]
mod notices;
mod replica;
#[cfg(not(feature = "mutants"))]
mod runs;
mod world;
