//! Broken versions, to show that checks catch them: only in builds with `mutants`.

/// A bug to put in. The names are those of `docs/verification.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A transaction is done in part.
    D01,
    /// An entry that was appended before under the same name is appended again.
    D02,
    /// A sealed log takes entries.
    D03,
    /// The position that an append expects is not looked at.
    D04,
    /// A state refers to entries that are not durable yet.
    D05,
    /// A read waits for nothing.
    D06,
    /// A state of another replica is taken without its entries.
    D07,
    /// Several logs are told one behind the other, not in the order of all logs.
    D08,
    /// A trim removes no entries.
    D09,
    /// A waiting reader is not told of new entries.
    D10,
    /// All logs have one number.
    D11,
    /// A producer's names are not in a state.
    D12,
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
