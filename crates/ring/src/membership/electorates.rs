//! The nodes that count in primary configurations, where nodes are configured with different lists of them.
//!
//! Each list is an *electorate*. Majorities of two of them need not have a node in common, so a configuration may
//! become primary only if it has a majority of each electorate that one of its members has, or has met and not seen
//! replaced:
//!
//! * every member tells in the commit token its own electorate and those that it has met, so all members of a ring know
//!   the same;
//! * a member keeps the electorates that it meets, over a restart too, and so those that it was configured with;
//! * a member forgets an electorate in a primary that has a majority of its nodes and no member that is configured
//!   with it: a node still configured with it needs one of that majority, and so a majority of that one's electorate;
//!   and the primaries after this one have a member of it, which carries on what was before. With views this holds
//!   once the view is installed.
//!
//! So while a list is changed node by node, primaries go on where both lists allow it, and two are never at once among
//! nodes that have met.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::wire::{
    Commit, Counts, Electorate, MOST_ELECTORATES, read_electorates, write_electorates,
};
use rota_core::contract::{
    LogId, LogRecord, NodeId, Output, PersistId, Process, RingId, StartState, has_majority,
};
use rota_core::mutants::{self, Mutant};

/// The log whose record 0 holds the electorates of this node: its own and those it has met.
pub const ELECTORATES_LOG: LogId = LogId(5);

/// Rings whose electorates are kept for queries: more than an application can be behind.
const MOST_RINGS: usize = 128;

/// The electorates that the members of a ring to be have told.
#[derive(Clone, Default, Hash, Debug)]
pub(super) struct OfRing {
    /// Each with the members that are configured with it.
    lists: Vec<(Electorate, Vec<NodeId>)>,
    /// Whether there are more electorates.
    more: bool,
}

impl OfRing {
    pub fn new(commit: &Commit) -> Self {
        let told = || commit.members.iter().zip(&commit.told);
        let electorates = commit.electorates.iter().enumerate();
        let lists = electorates
            .filter(|(index, _)| told().any(|(_, told)| told.counts.names(*index)))
            .map(|(index, nodes)| {
                let has =
                    told().filter(|(_, told)| told.counts.own.map(usize::from) == Some(index));
                (nodes.clone(), has.map(|(member, _)| member.node).collect())
            })
            .collect();
        let more = told().any(|(_, told)| told.counts.more);
        Self { lists, more }
    }
}

/// The electorates that count on a ring, each with whether it can be forgotten once the ring is a primary.
type Lists = Vec<(Electorate, bool)>;

#[derive(Clone, Default, Hash, Debug)]
pub(super) struct Electorates {
    /// The configured electorate. Empty: the application asks for no primaries.
    own: Electorate,
    /// Other electorates that count as well.
    met: BTreeSet<Electorate>,
    /// Whether there are more electorates than can be told: then nothing is primary.
    more: bool,
    /// Whether the durable record is behind.
    unsaved: bool,
    asked: Option<PersistId>,
    /// The electorates that count on the newest rings.
    rings: VecDeque<(RingId, Lists)>,
    /// The other electorates on the newest ring, with the members that are configured with them.
    others: Vec<(Electorate, Vec<NodeId>)>,
}

impl Electorates {
    /// The own electorate, with the record of an earlier life. `own` is ascending.
    pub fn new(own: &[NodeId], start: &StartState) -> Self {
        let mut new = Self {
            own: own.to_vec(),
            unsaved: !own.is_empty(),
            ..Self::default()
        };
        let mut records = start.records.iter();
        let record = records.find(|(log, _, _)| *log == ELECTORATES_LOG);
        let Some((_, _, bytes)) = record.filter(|_| !own.is_empty()) else {
            return new;
        };
        match read_record(bytes) {
            Some((before, more)) if !mutants::on(Mutant::M53) => {
                new.more = more;
                new.unsaved = before.first() != Some(&new.own);
                let others = before.into_iter().filter(|nodes| *nodes != new.own);
                new.met = others.collect();
            }
            Some(_) => {}
            // An unreadable record may have had any electorate, so nothing is primary.
            None => new.more = true,
        }
        new
    }

    /// The electorates that count on the first ring of a process, where no member has told anything.
    pub fn alone(&self, me: NodeId) -> OfRing {
        let own = (self.own.clone(), vec![me]);
        let met = self.met.iter().map(|nodes| (nodes.clone(), Vec::new()));
        OfRing {
            lists: [own].into_iter().chain(met).collect(),
            more: self.more,
        }
    }

    /// Adds the electorates of this process to the table of a commit token.
    pub fn tell(&self, table: &mut Vec<Electorate>) -> Counts {
        let mut counts = Counts {
            more: self.more,
            ..Counts::default()
        };
        if self.own.is_empty() {
            return counts;
        }
        counts.own = place(&self.own, table);
        counts.more |= counts.own.is_none();
        for nodes in &self.met {
            match place(nodes, table) {
                Some(index) => counts.met |= 1 << index,
                None => counts.more = true,
            }
        }
        counts
    }

    /// Takes in the electorates `told` by the members of a ring that is installed.
    pub fn on_ring(&mut self, ring: RingId, members: &[Process], told: OfRing) {
        if self.own.is_empty() {
            return;
        }
        let mut lists = vec![(self.own.clone(), false)];
        for (nodes, has) in &told.lists {
            if *nodes == self.own {
                continue;
            }
            // More electorates make no difference: nothing is primary then.
            let has_room = self.met.len() < MOST_ELECTORATES;
            if has_room && !mutants::on(Mutant::M52) {
                self.unsaved |= self.met.insert(nodes.clone());
            }
            lists.push((
                nodes.clone(),
                (has.is_empty() || mutants::on(Mutant::M56)) && has_majority(nodes, members),
            ));
        }
        let more = self.more || told.more || self.met.len() >= MOST_ELECTORATES;
        self.unsaved |= more != self.more;
        self.more = more;
        if more {
            lists.push((Electorate::new(), false));
        }
        self.rings.push_back((ring, lists));
        if self.rings.len() > MOST_RINGS {
            self.rings.pop_front();
        }
        let differs =
            |(nodes, has): &(Electorate, Vec<NodeId>)| *nodes != self.own && !has.is_empty();
        self.others = told.lists.into_iter().filter(differs).collect();
    }

    /// The electorates that count on a ring; `None` if the application asks for no primaries, or the ring is too old.
    /// An empty electorate stands for those that could not be told, and has no majority.
    pub fn on(&self, ring: RingId) -> Option<Vec<Electorate>> {
        let lists = self.lists_on(ring)?;
        Some(lists.iter().map(|(nodes, _)| nodes.clone()).collect())
    }

    fn lists_on(&self, ring: RingId) -> Option<&[(Electorate, bool)]> {
        let found = self.rings.iter().rfind(|(of, _)| *of == ring);
        found.map(|(_, lists)| &lists[..])
    }

    /// Forgets the electorates that are over, as the primary on this ring has begun here and carries on what was before
    /// it.
    pub fn on_carried_on(&mut self, ring: RingId) {
        let lists = self.lists_on(ring).unwrap_or_default().iter();
        let over: Vec<Electorate> = lists
            .filter(|(_, over)| *over)
            .map(|(nodes, _)| nodes.clone())
            .collect();
        for nodes in over {
            self.unsaved |= self.met.remove(&nodes);
        }
    }

    /// Whether the electorates that this process tells are durable.
    pub const fn is_durable(&self) -> bool {
        !self.unsaved && self.asked.is_none()
    }

    /// Makes the electorates durable, with a request of this name.
    pub fn save(&mut self, id: PersistId) -> Output {
        self.unsaved = false;
        self.asked = Some(id);
        let mut table = vec![self.own.clone()];
        table.extend(self.met.iter().take(MOST_ELECTORATES - 1).cloned());
        let mut bytes = vec![u8::from(self.more)];
        write_electorates(&table, &mut bytes);
        let record = LogRecord::Put {
            log: ELECTORATES_LOG,
            position: 0,
            bytes: bytes.into(),
        };
        let records = vec![record];
        Output::Persist { id, records }
    }

    pub const fn has_to_save(&self) -> bool {
        self.unsaved
    }

    pub fn on_persisted(&mut self, id: PersistId) {
        self.asked.take_if(|asked| *asked <= id);
    }

    /// Notes a request that failed; returns whether it was the newest of this kind.
    pub fn on_failed(&mut self, id: PersistId) -> bool {
        let newest = self.asked.take_if(|asked| *asked == id).is_some();
        self.unsaved |= newest;
        newest
    }

    /// Their invariants.
    pub fn check(&self) {
        assert!(self.own.is_sorted(), "an electorate is ascending");
        assert!(
            self.met.len() <= MOST_ELECTORATES && self.rings.len() <= MOST_RINGS,
            "no more is kept than there is room for"
        );
        assert!(
            !self.met.contains(&self.own),
            "what is met is configured elsewhere"
        );
        assert!(
            !self.own.is_empty() || self.met.is_empty(),
            "without primaries no electorate counts"
        );
    }

    /// A sentence for each difference.
    pub fn differences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let own = names(&self.own);
        for (nodes, has) in &self.others {
            let (has, nodes) = (names(has), names(nodes));
            sentences.push(format!(
                "node {has} has primary_nodes = {nodes}, this node {own}: a primary needs more than half of each"
            ));
        }
        for nodes in &self.met {
            if !self.others.iter().any(|(other, _)| other == nodes) {
                let nodes = names(nodes);
                sentences.push(format!(
                    "primary_nodes was {nodes} here or on a node that was met, now {own}: a primary needs more than half of each until most \
                     of those nodes have been here with other lists"
                ));
            }
        }
        if self.more {
            sentences.push(String::from(
                "there are more different lists of primary_nodes than can be told, so nothing is primary",
            ));
        }
        sentences
    }
}

fn names(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("{node}")).collect();
    names.join(" ")
}

/// The place of an electorate in a table, to which it is added if there is room.
fn place(nodes: &Electorate, table: &mut Vec<Electorate>) -> Option<u8> {
    let place = table.iter().position(|other| other == nodes);
    let place = match place {
        Some(place) => place,
        None if table.len() < MOST_ELECTORATES => {
            table.push(nodes.clone());
            table.len() - 1
        }
        None => return None,
    };
    u8::try_from(place).ok()
}

/// The electorates of a durable record, the own one first, and whether there are more.
fn read_record(bytes: &[u8]) -> Option<(Vec<Electorate>, bool)> {
    let (more, mut table) = bytes.split_first()?;
    let lists = read_electorates(&mut table).ok()?;
    (table.is_empty() && *more <= 1 && !lists.is_empty()).then_some((lists, *more == 1))
}
