//! The outcome of an exchange: it follows from the words of all members of a configuration, and is the same at all.

use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::message::{Name, Recover, ViewState};
use super::path::{Load, PacketId};
use super::watermarks::Watermarks;
use rota_core::contract::{Process, RingId, Seq};
use rota_core::mutants::{self, Mutant};

/// The joint knowledge of all members of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Outcome {
    /// The last view of the group.
    pub last: Option<(RingId, Vec<Process>)>,
    /// The packets of that view that survivors hold and some survivor has not delivered. Packets behind a gap of their
    /// sender that no survivor can fill are not among them.
    pub forced: BTreeMap<PacketId, Name>,
    /// For each member of the configuration, the packets that it has to send to others.
    pub to_send: Vec<Vec<PacketId>>,
    /// The watermarks once all these are delivered.
    pub watermarks: Watermarks,
    /// The position after them.
    pub position: Seq,
}

impl Outcome {
    /// The outcome of the words of a configuration's members, in the order of their ids.
    pub fn of(members: &[Process], told: &[&Recover]) -> Self {
        let last = last_view(members, told);
        let standings: Vec<Option<&ViewState>> = told
            .iter()
            .map(|recover| standing_in(recover, last.as_ref()))
            .collect();
        let survivors: Vec<&ViewState> = standings.iter().copied().flatten().collect();
        let forced = forced(&survivors);
        let (watermarks, position) = after(&survivors, &forced);
        let known = told.iter().flat_map(|recover| standings_of(recover));
        let position = known
            .map(|standing| standing.position)
            .fold(position, Seq::max);
        Self {
            to_send: to_send(&standings, &forced),
            last,
            forced,
            watermarks,
            position,
        }
    }
}

fn standings_of(recover: &Recover) -> impl Iterator<Item = &ViewState> {
    recover.installed.iter().chain(&recover.tentative)
}

/// The newest view that counts as installed.
fn last_view(members: &[Process], told: &[&Recover]) -> Option<(RingId, Vec<Process>)> {
    let known = told.iter().flat_map(|recover| standings_of(recover));
    let named: BTreeMap<RingId, &Vec<Process>> = known
        .map(|standing| (standing.view, &standing.members))
        .collect();
    let counts = |view: &(RingId, &Vec<Process>)| is_installed(view.0, view.1, members, told);
    let (ring, of_view) = named.into_iter().rev().find(counts)?;
    Some((ring, of_view.clone()))
}

/// Whether some member is known to have installed a view; or, if none is, whether all of its members that are here may
/// have: if one of them had nothing of its outcome, safe delivery would have shown the outcome to no member.
fn is_installed(ring: RingId, of_view: &[Process], members: &[Process], told: &[&Recover]) -> bool {
    let has = |standing: &ViewState| standing.view == ring;
    let by_someone = |recover: &&&Recover| recover.installed.as_ref().is_some_and(has);
    if told.iter().any(|recover| by_someone(&recover)) || mutants::on(Mutant::V03) {
        return true;
    }
    let here = members.iter().zip(told);
    let mut here = here.filter(|(process, _)| of_view.contains(process));
    here.all(|(_, recover)| recover.tentative.iter().any(has))
}

fn standing_in<'a>(
    recover: &'a Recover,
    view: Option<&(RingId, Vec<Process>)>,
) -> Option<&'a ViewState> {
    let (ring, members) = view?;
    standings_of(recover).find(|standing| standing.view == *ring && standing.members == *members)
}

/// The packets that survivors hold, each with the longest place that one of them knows.
fn forced(survivors: &[&ViewState]) -> BTreeMap<PacketId, Name> {
    let mut union: BTreeMap<PacketId, Name> = BTreeMap::new();
    for name in survivors.iter().flat_map(|standing| &standing.held) {
        let known = union.entry(name.id).or_insert_with(|| name.clone());
        if name.place.len() > known.place.len() {
            known.place.clone_from(&name.place);
        }
    }
    if !mutants::on(Mutant::V07) {
        drop_behind_gaps(survivors, &mut union);
    }
    union
}

/// Drops packets behind gaps, as packets of one sender are delivered in order, without gaps: a sender that is not here
/// sends again the packets that no survivor has, and those after them.
fn drop_behind_gaps(survivors: &[&ViewState], union: &mut BTreeMap<PacketId, Name>) {
    let senders = survivors.first().map_or(0, |one| one.members.len());
    let delivered = |sender: usize| {
        survivors
            .iter()
            .filter_map(move |one| one.delivered.get(sender))
    };
    let mut reached: Vec<u64> = (0..senders)
        .map(|sender| delivered(sender).copied().max().unwrap_or(0))
        .collect();
    union.retain(|id, _| {
        let Some(reached) = reached.get_mut(usize::from(id.sender)) else {
            return false;
        };
        if id.number == reached.saturating_add(1) {
            *reached = id.number;
        }
        id.number <= *reached
    });
}

/// The watermarks of all survivors, and the next position, once they have delivered the forced packets.
fn after(survivors: &[&ViewState], forced: &BTreeMap<PacketId, Name>) -> (Watermarks, Seq) {
    let mut watermarks = Watermarks::default();
    let mut position = 1;
    for survivor in survivors {
        for (process, counter) in survivor.watermarks.iter() {
            watermarks.raise(process, counter);
        }
        let left = forced.values();
        let left = left.filter(|name| is_left(survivor, name.id) && name.load != Load::Own);
        position = position.max(survivor.position.saturating_add(left.count() as u64));
    }
    let members = survivors.first().map_or(&[][..], |one| &one.members);
    for name in forced.values() {
        let sender = members.get(usize::from(name.id.sender));
        if let (Some(sender), Load::Messages(_)) = (sender, name.load) {
            watermarks.raise(*sender, name.last);
        }
    }
    (watermarks, position)
}

/// Whether a survivor has not delivered a packet.
fn is_left(survivor: &ViewState, id: PacketId) -> bool {
    let delivered = survivor.delivered.get(usize::from(id.sender));
    delivered.is_some_and(|delivered| *delivered < id.number)
}

/// The packets that each member has to send: the first that holds a packet sends it, if some survivor lacks it.
fn to_send(
    standings: &[Option<&ViewState>],
    forced: &BTreeMap<PacketId, Name>,
) -> Vec<Vec<PacketId>> {
    let held: Vec<BTreeSet<PacketId>> = standings
        .iter()
        .map(|standing| {
            standing
                .iter()
                .flat_map(|one| &one.held)
                .map(|name| name.id)
                .collect()
        })
        .collect();
    let mut to_send: Vec<Vec<PacketId>> = standings.iter().map(|_| Vec::new()).collect();
    for id in forced.keys() {
        let mut each = standings.iter().zip(&held);
        let lacking = each.any(|(standing, held)| {
            standing.is_some_and(|one| is_left(one, *id)) && !held.contains(id)
        });
        let holders = (0..held.len()).filter(|at| held[*at].contains(id));
        let senders = if mutants::on(Mutant::I04) {
            held.len()
        } else {
            1
        };
        for holder in holders.take(senders).filter(|_| lacking) {
            to_send[holder].push(*id);
        }
    }
    to_send
}

impl Outcome {
    /// Its invariants.
    pub fn check(&self) {
        let senders = self.last.as_ref().map_or(0, |(_, members)| members.len());
        assert!(
            self.forced
                .keys()
                .all(|id| usize::from(id.sender) < senders),
            "what is forced was sent in the last view"
        );
        assert!(
            self.to_send
                .iter()
                .flatten()
                .all(|id| self.forced.contains_key(id)),
            "only what is forced is sent again"
        );
        let sent: usize = self.to_send.iter().map(Vec::len).sum();
        assert!(sent <= self.forced.len(), "each is sent by one");
        assert!(self.position > 0, "positions begin with one");
    }
}
