//! The rings that were founded while processes run, as one process has them: those that it keeps, those that do not go
//! with its configuration, and those that are not open yet.

use bytes::Bytes;
use rota_core::contract::NodeId;
use rota_multiring::charters::Chartered;
use rota_multiring::{Charter, Constants, Rank};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::charter_file::{CharterFile, KeptCharters};
use super::config::RingsConfig;
use super::error::{RingsError, RingsStartError};
use super::foundings::FoundError;
use super::opening::Beginning;
use super::section::RingSection;
use crate::config::NodeConfig;

/// The time after which a ring that did not open, or a file that was not written, is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A ring that was founded while processes run, as one of them has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoundedRing {
    /// This process is on it.
    Open(Constants),
    /// This process is to be on it, and could not open it yet, for this reason: it tries again.
    Unopened(Constants, String),
    /// It is a ring of other nodes.
    Elsewhere(Constants),
    /// Its charter does not go with the configuration of this process, for this reason: it is not on the ring.
    Refused(String),
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct NewRings {
    /// The rings of the file, and behind them those that were founded since. The names of nodes were looked up.
    config: RingsConfig,
    me: NodeId,
    /// The rings of the file.
    configured: usize,
    /// What the application begins with: there may be a state of a ring that comes late.
    begins: Beginning,
    control: Constants,
    /// This process hears of new rings: it is on the control ring, and that is the one of before.
    hears: bool,
    /// The control ring is known to be of the foundation that has ordered what was found on disk.
    is_of_foundation: bool,
    kept: KeptCharters,
    file: Option<CharterFile>,
    /// The charters that do not go with the configuration, and why not.
    refused: BTreeMap<u16, (Bytes, String)>,
    /// The rings that this node is on and that are not open, by their places, and why not.
    unopened: BTreeMap<usize, Option<RingsStartError>>,
    /// Nothing is tried before this time.
    again: Option<Instant>,
}

impl NewRings {
    /// The rings of a configuration, whose names were looked up, and those that were founded before this node was
    /// started.
    pub(super) fn open(
        config: &RingsConfig,
        me: NodeId,
        begins: Beginning,
    ) -> Result<Self, RingsStartError> {
        let at = config.control();
        let control = config.rings.get(at).ok_or(RingsError::Count)?.of()?;
        let control = control.constants;
        let opened = CharterFile::open(config, me).map_err(RingsStartError::Charters)?;
        let (file, kept) = opened.map_or_else(
            || (None, KeptCharters::default()),
            |(file, kept)| (Some(file), kept),
        );
        if !kept.charters.is_empty() && kept.control != control.rank.0 {
            return Err(RingsError::OtherControl(kept.control).into());
        }
        let mut rings = Self {
            config: config.clone(),
            me,
            configured: config.rings.len(),
            begins,
            control,
            hears: config.rings_of(me).contains(&at),
            is_of_foundation: kept.charters.is_empty(),
            kept: KeptCharters {
                control: control.rank.0,
                ..kept
            },
            file,
            refused: BTreeMap::new(),
            unopened: BTreeMap::new(),
            again: None,
        };
        for (ring, of) in rings.kept.charters.clone() {
            let section = rings.judge(ring, &of);
            let section = section.map_err(|error| RingsStartError::Charter(ring, error))?;
            rings.add(section);
        }
        Ok(rings)
    }

    pub(super) const fn begins(&self) -> &Beginning {
        &self.begins
    }

    /// The number of the control ring.
    pub(super) const fn control(&self) -> Rank {
        self.control.rank
    }

    /// The configuration of the ring at this place, and this node.
    pub(super) fn of_place(&self, at: usize) -> Result<(NodeConfig, NodeId), RingsError> {
        Ok((self.config.of_ring(at)?, self.me))
    }

    /// The rings that this node is on, and how many of them are of the file: those come first.
    pub(super) fn of_node(&self) -> Result<(Vec<NodeConfig>, usize), RingsError> {
        let places = self.config.rings_of(self.me);
        let of_file = places.iter().filter(|at| **at < self.configured).count();
        let rings = places.into_iter().map(|at| self.config.of_ring(at));
        Ok((rings.collect::<Result<_, _>>()?, of_file))
    }

    /// The rings that there are and on which this node is not; `None` if it does not hear of new ones.
    pub(super) fn absent(&self) -> Option<Vec<Rank>> {
        let places = self.config.rings_of(self.me);
        let rings = self.config.rings.iter().enumerate();
        let absent = rings.filter(|(at, _)| !places.contains(at));
        let absent = absent.map(|(_, ring)| Rank(ring.id)).collect();
        self.hears.then_some(absent)
    }

    /// Whether this node may be on a ring of which nothing is known yet.
    pub(super) fn may_come(&self, ring: Rank) -> bool {
        self.hears && self.config.rings.iter().all(|other| other.id != ring.0)
    }

    /// The section of a ring that goes with all others.
    fn judge(&self, ring: u16, of: &Chartered) -> Result<RingSection, RingsError> {
        let charter = Charter::decode(of.charter.clone());
        let charter = charter.filter(|charter| charter.rank.0 == ring);
        let charter = charter.ok_or(RingsError::Charter(ring))?;
        let constants = charter.constants(&self.control, of);
        let section = RingSection::founded(&charter, &constants, &self.config.common);
        let mut config = self.config.clone();
        config.rings.push(section.clone());
        config.check()?;
        Ok(section)
    }

    /// One more ring, which is to be opened if this node is on it. Returns whether it is.
    fn add(&mut self, section: RingSection) -> bool {
        let at = self.config.rings.len();
        self.config.rings.push(section);
        let is_on_it = self.config.rings_of(self.me).contains(&at);
        self.unopened.extend(is_on_it.then_some((at, None)));
        is_on_it
    }

    pub(super) fn knows(&self, ring: u16) -> bool {
        self.kept.charters.iter().any(|(other, _)| *other == ring)
            || self.refused.contains_key(&ring)
    }

    /// Whether there is something to learn of the control ring, when that has ordered so many charters.
    pub(super) fn is_due(&self, charters: usize) -> bool {
        let known = self.kept.charters.len() + self.refused.len();
        self.hears && (!self.is_of_foundation || charters > known)
    }

    /// Whether something that did not work may be tried again by now.
    pub(super) fn may_try(&mut self) -> bool {
        self.again.take_if(|again| *again <= Instant::now());
        self.again.is_none()
    }

    pub(super) fn try_later(&mut self) {
        self.again = Some(Instant::now() + AGAIN);
    }

    /// The control ring is of this foundation. Says whether its charters are those that were found on disk, or none was.
    pub(super) fn is_of(&mut self, founded: u64) -> bool {
        self.is_of_foundation |= self.kept.founded == founded;
        self.is_of_foundation
    }

    /// All that have ordered the charters on this node's disk have lost their stores: nothing is founded any more.
    pub(super) fn end(&mut self) {
        self.hears = false;
        self.unopened.clear();
    }

    /// Takes a charter, durably. Returns whether this node is on the ring; `None` if the charter does not go with the
    /// configuration.
    pub(super) fn take(
        &mut self,
        founded: u64,
        (ring, of): (u16, Chartered),
    ) -> Result<Option<bool>, String> {
        let section = match self.judge(ring, &of) {
            Ok(section) => section,
            Err(error) => {
                tracing::error!(ring, %error, "a ring was founded that does not go with the configuration: this node is not on it");
                self.refused.insert(ring, (of.charter, error.to_string()));
                return Ok(None);
            }
        };
        self.kept.founded = founded;
        // Not always behind the others: one that was refused may go with the configuration after a restart.
        let ordered = &mut self.kept.charters;
        let place = ordered.partition_point(|(_, before)| before.at < of.at);
        ordered.insert(place, (ring, of));
        if let Some(file) = &mut self.file
            && let Err(error) = file.store(&self.kept)
        {
            self.kept.charters.remove(place);
            return Err(error.to_string());
        }
        Ok(Some(self.add(section)))
    }

    /// The places of the rings that are to be opened.
    pub(super) fn unopened(&self) -> Vec<usize> {
        self.unopened.keys().copied().collect()
    }

    /// The ring at this place is open.
    pub(super) fn on_open(&mut self, at: usize) {
        self.unopened.remove(&at);
    }

    /// The ring at this place did not open: it is tried again later.
    pub(super) fn put_off(&mut self, at: usize, error: RingsStartError) {
        let why = error.to_string();
        let before = self.unopened.insert(at, Some(error)).flatten();
        if before.is_none_or(|before| before.to_string() != why) {
            tracing::warn!(error = %why, "a ring that was founded does not open: it is tried again");
        }
        self.try_later();
    }

    /// Why one of these rings is not open, if any is not.
    pub(super) fn take_error(&mut self, of: impl Fn(Rank) -> bool) -> Option<RingsStartError> {
        let rings = &self.config.rings;
        let is_it = |at: usize| rings.get(at).is_some_and(|ring| of(Rank(ring.id)));
        let mut unopened = self.unopened.iter_mut();
        let (_, error) = unopened.find(|(at, _)| is_it(**at))?;
        error.take()
    }

    fn is_open(&self, ring: u16) -> bool {
        let id = |at: &usize| self.config.rings.get(*at).map(|ring| ring.id);
        self.unopened.keys().all(|at| id(at) != Some(ring))
    }

    /// The rings that were founded, as far as this process knows.
    pub(super) fn list(&self) -> Vec<(Rank, FoundedRing)> {
        let sections = self.config.rings.iter().enumerate().skip(self.configured);
        let mine = self.config.rings_of(self.me);
        let founded = sections.filter_map(|(at, section)| {
            let of = section.of().ok()?.constants;
            let ring = match (self.unopened.get(&at), mine.contains(&at)) {
                (Some(error), _) => {
                    let why = error.as_ref().map(ToString::to_string);
                    FoundedRing::Unopened(of, why.unwrap_or_default())
                }
                (None, true) => FoundedRing::Open(of),
                (None, false) => FoundedRing::Elsewhere(of),
            };
            Some((of.rank, ring))
        });
        let refused = self.refused.iter();
        let refused =
            refused.map(|(ring, (_, why))| (Rank(*ring), FoundedRing::Refused(why.clone())));
        founded.chain(refused).collect()
    }

    /// What has become of a charter; `None` if nothing has yet.
    pub(super) fn answer(&self, charter: &Charter) -> Option<Result<Constants, FoundError>> {
        let ring = charter.rank.0;
        if !self.hears {
            return Some(Err(FoundError::NoControl));
        }
        if let Some((refused, why)) = self.refused.get(&ring) {
            return Some(Err(match *refused == charter.encode() {
                true => FoundError::Charter(why.clone()),
                false => FoundError::Otherwise(ring),
            }));
        }
        let (_, of) = self
            .kept
            .charters
            .iter()
            .find(|(other, _)| *other == ring)?;
        if of.charter != charter.encode() {
            return Some(Err(FoundError::Otherwise(ring)));
        }
        let constants = charter.constants(&self.control, of);
        self.is_open(ring).then_some(Ok(constants))
    }

    /// Whether a charter may be ordered, as far as this node knows.
    pub(super) fn may_order(&self, charter: &Charter) -> Result<(), FoundError> {
        if !charter.is_sound() {
            return Err(FoundError::Unsound);
        }
        let of = Chartered {
            at: 1,
            from: 0,
            charter: charter.encode(),
        };
        let judged = self.judge(charter.rank.0, &of);
        judged.map_err(|error| FoundError::Charter(error.to_string()))?;
        Ok(())
    }
}
