//! Broken versions, to show that checks catch them: only in builds with `mutants`.

/// A bug to put in. The names are those of `docs/verification.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// An answer is told though the command of several partitions before it is not stable.
    T01,
    /// A command counts as delivered in a partition though a command before it is not stable there.
    T02,
    /// A replica that begins with a state takes all that was delivered before for stable.
    T03,
    /// A command that only reads waits for nothing.
    T04,
    /// A partition writes to slots that are frozen.
    T05,
    /// A client that asks by an old map is answered all the same.
    T06,
    /// Keys that have changed while the first copy was made are not copied again.
    T07,
    /// A partition keeps the keys of slots that it has given away.
    T08,
    /// Copied keys lose their ends.
    T09,
    /// Time passes in a partition by its own commands.
    T10,
    /// Keys that were copied to slots that are frozen are forgotten.
    T11,
    /// Keys that a slot had here before it left are there again when it comes back.
    T12,
    /// What was written to a slot that has just arrived is replaced by what came with it.
    T13,
    /// Watchers are told of a change though the command of several partitions before it is not stable.
    T14,
    /// What a batch has changed is told in parts, if there is much of it, and the rest is not.
    T15,
    /// A replica that begins with a state goes on as if nothing had changed before that it does not know.
    T16,
    /// Watchers are not told of keys that come to their ends.
    T17,
    /// Watchers that wait are not woken.
    T18,
    /// Each process begins with the slots of its own file.
    T19,
    /// A walk through several partitions goes on where the one ended that came furthest.
    T20,
}

#[cfg(feature = "mutants")]
mod set {
    use super::Mutant;
    use rota_core::mutants::Switch;

    static SET: Switch = Switch::off();

    /// Puts a bug in, or none.
    pub fn set(mutant: Option<Mutant>) {
        SET.set(mutant.map(|mutant| mutant as u16));
    }

    pub(crate) fn on(mutant: Mutant) -> bool {
        SET.is(mutant as u16)
    }
}

#[cfg(feature = "mutants")]
pub(crate) use set::on;
#[cfg(feature = "mutants")]
pub use set::set;

#[cfg(not(feature = "mutants"))]
pub(crate) fn on(_: Mutant) -> bool {
    false
}
