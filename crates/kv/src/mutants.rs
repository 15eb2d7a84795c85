//! Broken versions, to show that checks catch them: only in builds with `mutants`.

/// A bug to put in. The names are those of `docs/verification.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// What stands behind a command of several partitions is told before that is stable.
    T01,
    /// A partition's signal says nothing of what stood before a command there.
    T02,
    /// Who begins with a state takes all that was delivered before for stable.
    T03,
}

#[cfg(feature = "mutants")]
mod set {
    use super::Mutant;
    use core::sync::atomic::{AtomicU8, Ordering};

    static SET: AtomicU8 = AtomicU8::new(0);

    /// Puts a bug in, or none.
    pub fn set(mutant: Option<Mutant>) {
        SET.store(
            mutant.map_or(0, |mutant| mutant as u8 + 1),
            Ordering::SeqCst,
        );
    }

    pub(crate) fn on(mutant: Mutant) -> bool {
        SET.load(Ordering::SeqCst) == mutant as u8 + 1
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
