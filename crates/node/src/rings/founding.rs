//! Rings that are founded while processes run.
//!
//! A charter is ordered in the control ring, whose processes all have the same table of charters. Each of them takes a
//! charter that goes with its configuration, and with the charters before; makes it durable; and is on the ring from
//! then on, if the ring names it. Who is started again is on these rings from its beginning.

use rota_core::contract::NodeId;
use rota_multiring::charters::Chartered;
use rota_multiring::{Charter, Constants, Rank};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::app::RingsApp;
use super::charter_file::{CharterFile, KeptCharters};
use super::config::RingsConfig;
use super::driver::RingsDriver;
use super::error::{RingsError, RingsStartError};
use super::foundings::FoundError;
use super::opening::{self, Beginning};
use super::section::RingSection;
use crate::config::NodeConfig;
use crate::driver::DriverError;
use crate::node::StartError;
use rota_paxos::uring::accounts::{Command, Refused};

/// The time after which a ring that did not open, or a file that was not written, is tried again.
const AGAIN: Duration = Duration::from_secs(1);

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
    /// The charters that do not go with the configuration.
    refused: BTreeMap<u16, String>,
    /// The rings that this node is on and that are not open, by their places.
    unopened: Vec<usize>,
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
            unopened: Vec::new(),
            again: None,
        };
        for (ring, of) in rings.kept.charters.clone() {
            let section = rings.judge(ring, &of);
            let section = section.map_err(|error| RingsStartError::Charter(ring, error))?;
            rings.config.rings.push(section);
        }
        Ok(rings)
    }

    pub(super) const fn begins(&self) -> &Beginning {
        &self.begins
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

    fn knows(&self, ring: u16) -> bool {
        self.kept.charters.iter().any(|(other, _)| *other == ring)
            || self.refused.contains_key(&ring)
    }

    /// Whether there is something to do, when the control ring has ordered so many charters.
    fn is_due(&self, charters: usize) -> bool {
        let known = self.kept.charters.len() + self.refused.len();
        let has_work = !self.is_of_foundation || charters > known || !self.unopened.is_empty();
        has_work && self.again.is_none_or(|again| again <= Instant::now())
    }

    /// Takes a charter, durably. Returns whether this node is on the ring; `None` if the charter does not go with the
    /// configuration.
    fn take(&mut self, founded: u64, (ring, of): (u16, Chartered)) -> Result<Option<bool>, String> {
        let section = match self.judge(ring, &of) {
            Ok(section) => section,
            Err(error) => {
                tracing::error!(ring, %error, "a ring was founded that does not go with the configuration: this node is not on it");
                self.refused.insert(ring, error.to_string());
                return Ok(None);
            }
        };
        self.kept.founded = founded;
        self.kept.charters.push((ring, of));
        if let Some(file) = &mut self.file
            && let Err(error) = file.store(&self.kept)
        {
            self.kept.charters.pop();
            return Err(error.to_string());
        }
        let at = self.config.rings.len();
        self.config.rings.push(section);
        let is_on_it = self.config.rings_of(self.me).contains(&at);
        self.unopened.extend(is_on_it.then_some(at));
        Ok(Some(is_on_it))
    }

    fn is_open(&self, ring: u16) -> bool {
        let mut unopened = self.unopened.iter();
        unopened.all(|at| {
            self.config
                .rings
                .get(*at)
                .is_none_or(|other| other.id != ring)
        })
    }

    /// What has become of a charter; `None` if nothing has yet.
    fn answer(&self, charter: &Charter) -> Option<Result<Constants, FoundError>> {
        let ring = charter.rank.0;
        if !self.hears {
            return Some(Err(FoundError::NoControl));
        }
        if let Some(sentence) = self.refused.get(&ring) {
            return Some(Err(FoundError::Charter(sentence.clone())));
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
    fn may_order(&self, charter: &Charter) -> Result<(), FoundError> {
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

impl<A: RingsApp> RingsDriver<A> {
    /// Looks at the charters that the control ring has ordered since, and opens the rings that name this node.
    pub(super) fn look_at_charters(&mut self) {
        if !self.new_rings.hears {
            return;
        }
        let control = self.new_rings.control.rank;
        let mut lanes = self.many.lanes().iter_mut();
        let lane = lanes.find(|lane| lane.app.rank == control);
        let engine = lane.and_then(|lane| lane.driver.engine_mut().get_mut().leveled());
        let Some(engine) = engine.map(|engine| engine.get()) else {
            return;
        };
        let table = engine.accounts().charters();
        let Some(founded) = engine.config().map(|config| config.founded) else {
            return;
        };
        if !self.new_rings.is_due(table.len()) {
            return;
        }
        let news = table
            .iter()
            .filter(|(ring, _)| !self.new_rings.knows(*ring));
        let mut news: Vec<_> = news.map(|(ring, of)| (ring, of.clone())).collect();
        news.sort_by_key(|(_, of)| of.at);
        if !self.new_rings.is_of_foundation && self.new_rings.kept.founded != founded {
            return self.on_other_control(control);
        }
        self.new_rings.is_of_foundation = true;
        self.new_rings.again = None;
        self.take_charters(founded, news);
        for at in std::mem::take(&mut self.new_rings.unopened) {
            if let Err(error) = self.open_founded(at) {
                tracing::warn!(%error, "a ring that was founded does not open: it is tried again");
                self.new_rings.unopened.push(at);
                self.new_rings.again = Some(Instant::now() + AGAIN);
            }
        }
    }

    /// All that have ordered the charters on this node's disk have lost their stores, and the control ring is another one.
    fn on_other_control(&mut self, control: Rank) {
        self.new_rings.hears = false;
        let mut hub = self.hub.borrow_mut();
        let told = hub.learner.on_refounded(control);
        told.into_iter().for_each(|told| hub.tell(told));
        hub.app.flush();
    }

    fn take_charters(&mut self, founded: u64, news: Vec<(u16, Chartered)>) {
        for (ring, of) in news {
            match self.new_rings.take(founded, (ring, of)) {
                Ok(None | Some(true)) => {}
                Ok(Some(false)) => {
                    let mut hub = self.hub.borrow_mut();
                    let told = hub.learner.on_absent(Rank(ring));
                    told.into_iter().for_each(|told| hub.tell(told));
                    hub.app.flush();
                }
                Err(error) => {
                    tracing::warn!(ring, %error, "the charter of a new ring is not kept: it is tried again");
                    self.new_rings.again = Some(Instant::now() + AGAIN);
                    return;
                }
            }
        }
    }

    fn open_founded(&mut self, at: usize) -> Result<(), RingsStartError> {
        let config = self.new_rings.config.of_ring(at)?;
        let (me, state) = (self.new_rings.me, self.new_rings.begins());
        let lane = opening::open_lane(&config, me, state, &self.hub)?;
        let Some(of) = config.ring_of else {
            return Ok(());
        };
        let rank = of.constants.rank;
        let mut hub = self.hub.borrow_mut();
        let is_known = hub.app.on_founded(rank, config.message_limit());
        is_known.map_err(|error| RingsStartError::Ring(rank.0, StartError::System(error)))?;
        let told = hub.learner.on_founded(of.constants);
        told.into_iter().for_each(|told| hub.tell(told));
        hub.app.flush();
        drop(hub);
        self.many.push(lane);
        let origin = of.constants.origin;
        tracing::info!(ring = rank.0, origin, "a ring was founded");
        Ok(())
    }

    /// What has become of a charter that is to be ordered; `None` if nothing has yet.
    pub(super) fn charter_answer(
        &mut self,
        (charter, is_ordered): (&Charter, bool),
    ) -> Option<Result<Constants, FoundError>> {
        if let Some(answer) = self.new_rings.answer(charter) {
            return Some(answer);
        }
        if !is_ordered && let Err(error) = self.new_rings.may_order(charter) {
            return Some(Err(error));
        }
        let control = self.new_rings.control.rank;
        let mut lanes = self.many.lanes().iter_mut();
        let lane = lanes.find(|lane| lane.app.rank == control)?;
        let engine = lane.driver.engine_mut().get_mut().leveled()?.get();
        let charters = engine.accounts().charters();
        let refused = charters
            .may_found(charter.rank.0, &charter.encode())
            .err()?;
        Some(Err(match refused {
            Refused::Full => FoundError::Full,
            _ => FoundError::Otherwise(charter.rank.0),
        }))
    }

    /// Has a charter ordered. Says whether it will be: otherwise the control ring has enough to order.
    pub(super) fn order_charter(&mut self, charter: &Charter) -> Result<bool, DriverError> {
        let mut from = 0;
        for lane in self.many.lanes() {
            if let Some(engine) = lane.driver.engine_mut().get_mut().leveled() {
                let told = engine.get().told();
                let next = engine.of().constants.round_of(told) + 1;
                from = next.max(from);
            }
        }
        let command = Command::Found(charter.rank.0, from, charter.encode());
        self.order(self.new_rings.control.rank, &command)
    }
}
