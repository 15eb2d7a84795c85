//! The ring installed last, and the debts of this process to its members.
//!
//! In a recovery a process says that it has everything of its old ring. The others may install the next ring and
//! deliver, relying on that, even if this process does not get as far. So it keeps the promise as an obligation, and
//! tells it in each commit token until a ring is installed here, too (A8, obligation set).

use core::hash::Hasher;

use crate::Ordering;
use rota_core::contract::{Process, RingId};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};

/// The ring installed last: in every phase but the first there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Installed {
    ring: Option<Ordering>,
    /// The members whose messages this process has to deliver even behind a gap: bit `i` is member `i`.
    obligations: u128,
    /// Recoveries from this ring that have failed.
    attempts: u32,
}

impl Installed {
    /// The ring.
    pub const fn ring(&self) -> Option<&Ordering> {
        self.ring.as_ref()
    }

    /// The ring, to act on it.
    #[inline(always)]
    pub const fn ring_mut(&mut self) -> Option<&mut Ordering> {
        self.ring.as_mut()
    }

    /// Its identity.
    #[inline(always)]
    pub fn id(&self) -> Option<RingId> {
        self.ring.as_ref().map(Ordering::ring)
    }

    /// Its members; none before the first ring.
    pub fn members(&self) -> &[Process] {
        self.ring.as_ref().map_or(&[], Ordering::members)
    }

    /// Whether this process is its only member.
    pub fn is_alone(&self) -> bool {
        self.members().len() == 1
    }

    /// The members whose messages this process has to deliver even behind a gap: bit `i` is member `i`.
    pub const fn obligations(&self) -> u128 {
        self.obligations
    }

    /// Whether a recovery from this ring has failed.
    pub const fn has_failed_to_end(&self) -> bool {
        self.attempts > 0
    }

    /// Takes the ring out, as another takes its place.
    pub const fn end(&mut self) -> Option<Ordering> {
        self.ring.take()
    }

    /// Puts a ring in its place, on which this process owes only its own messages.
    pub fn begin(&mut self, ring: Ordering, me: Process) {
        let before = self.obligations;
        let mut members = ring.members().iter();
        self.obligations = members
            .position(|&member| member == me)
            .map(|index| index + usize::from(mutants::on(Mutant::R09)))
            .map_or(0, |index| 1 << index);
        if mutants::on(Mutant::M21) {
            self.obligations |= before;
        }
        self.attempts = 0;
        self.ring = Some(ring);
    }

    /// Takes note of a recovery from this ring that failed. `obliged` are the members that all that took part have to
    /// deliver of, if this process has said that it has everything (`acknowledged`). Returns whether it owes that now.
    pub fn on_failed_recovery(&mut self, acknowledged: bool, obliged: u128) -> bool {
        self.attempts = self.attempts.saturating_add(1);
        let owes = acknowledged && !mutants::on(Mutant::M20);
        if owes {
            self.obligations |= obliged;
        }
        owes
    }

    /// Feeds `print` with the ring and the debts.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        print.add(self.ring.is_some());
        if let Some(ring) = &self.ring {
            ring.fingerprint(print);
        }
        print.add((self.obligations, self.attempts));
    }

    /// Its invariants, at a process that has agreed to rings up to the number `agreed`.
    pub fn check(&self, me: Process, agreed: u64) {
        let Some(ring) = &self.ring else {
            return;
        };
        ring.check();
        assert!(ring.members().contains(&me), "its ring contains it");
        let bits = u32::try_from(ring.members().len()).unwrap_or(u32::MAX);
        assert!(
            self.obligations.checked_shr(bits).unwrap_or(0) == 0,
            "obligations are to members"
        );
        assert!(
            ring.ring().ring_seq <= agreed,
            "no ring has a number that is not known"
        );
    }
}
