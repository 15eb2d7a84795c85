//! Broken versions, to show that checks catch them: only in builds with `mutants`.

/// A bug to put in. The names are those of `docs/verification.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Rings are taken in turn from where somebody started, and not by rounds.
    A01,
    /// A ring's instances in a round are taken from the own configuration.
    A02,
    /// Instances without messages do not count.
    A03,
    /// The instances of a round that are before a point are not in the point.
    A04,
    /// A subscription by a hold that serves nobody any more takes effect.
    A14,
    /// A subscription begins when it is heard of.
    A13,
    /// A change that is ordered while another is pending takes effect.
    A26,
    /// Nothing is needed but for a held message.
    A27,
    /// Rounds that another ring has skipped count as its rounds with values.
    A28,
    /// A need far ahead is refused.
    A29,
    /// Messages behind a point are delivered before the point is told.
    A30,
    /// Needs are not looked at again after a delivery.
    A31,
    /// What was kept since a hold is not delivered by the subscription.
    A32,
    /// A subscription begins though what it needs was not kept.
    A33,
    /// What is missed of a ring on standby is not noticed.
    A34,
    /// A point does not say which holds serve nobody any more.
    A35,
    /// What has come behind the end of a ring is not kept for the hold that is there.
    A36,
    /// What stands behind a change of subscriptions is delivered before the change is told.
    A37,
    /// A round in which subscriptions change is not waited for.
    A38,
    /// A hold is released though a subscription by it may take effect.
    A39,
    /// Instances that a ring has forgotten count as instances that carry nothing.
    A40,
    /// Who hears of a subscription to a ring before it hears of the ring stops.
    A41,
    /// A ring that is founded begins as far away as its proposer wants.
    A42,
    /// A ring that is founded begins where the control ring is, however far the others have come.
    A43,
    /// The application is told of a subscription before the ring has come to where it begins.
    A44,
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
