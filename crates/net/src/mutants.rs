//! Broken versions, to show that checks catch them: only in builds that assert, as tests are.

/// A bug to put in. The names are those of `docs/verification.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A refused datagram counts, whether or not what it quotes was ever sent.
    O01,
    /// A claim about the path's MTU is believed, whoever makes it.
    O02,
}

#[cfg(debug_assertions)]
mod set {
    use super::Mutant;
    use rota_core::mutants::Switch;

    static SET: Switch = Switch::off();

    /// Puts a bug in, or none: for the whole process, and for sockets that are opened from then on.
    pub fn set(mutant: Option<Mutant>) {
        SET.set(mutant.map(|mutant| mutant as u16));
    }

    pub(crate) fn on(mutant: Mutant) -> bool {
        SET.is(mutant as u16)
    }
}

#[cfg(debug_assertions)]
pub(crate) use set::on;
#[cfg(debug_assertions)]
pub use set::set;

/// Whether this mutant is switched on: never, in this build.
#[cfg(not(debug_assertions))]
pub(crate) const fn on(_: Mutant) -> bool {
    false
}
