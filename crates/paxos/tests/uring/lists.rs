//! Lists of acceptors, ordered at any time while all the rest goes wrong: whatever they are, the acceptors come to the last of
//! them, one at a time, and nothing that was ordered is lost.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{NodeId, Time};
use rota_paxos::uring::acceptor_list::Unfit;
use rota_paxos::uring::accounts::Command;

use super::links::Links;
use super::node::Node;
use super::world::{MILLI, World, node_id, world};

/// Whoever is taken in lacks no more than this: what it may lack when it says that it has caught up, and what is ordered until it
/// is in.
const MOST_BEHIND: u64 = 1024 + 4000;

/// The lists of a world.
#[derive(Default)]
pub struct Lists {
    /// By number: its nodes, and a place at which somebody knew of it.
    known: BTreeMap<u64, (BTreeSet<NodeId>, u64)>,
    /// The last list: when it is ordered again.
    last: Option<(BTreeSet<NodeId>, u64)>,
    /// Configurations with a number up to this one were looked at.
    seen: u64,
    /// The most that somebody lacked who was taken in.
    pub most_behind: u64,
}

impl World {
    /// More nodes than vote, and lists of those that are to.
    pub fn make_lists(&mut self) {
        let more = 1 + self.below(3) as usize;
        let (before, per_milli) = (self.nodes.len(), self.links.per_milli);
        let room = self.links.room;
        self.links = Links::new(before + more, room);
        self.links.per_milli = per_milli;
        for index in before..before + more {
            let (keeps, mode) = (self.nodes[0].keeps, self.nodes[0].mode);
            let again = self.below(400) * MILLI;
            self.nodes.push(Node {
                keeps,
                mode,
                again,
                ..Node::default()
            });
            self.config.ring.push(node_id(index));
        }
        // Whoever votes since a while only has forgotten what was before.
        self.judge.keeps = 0;
        self.lists = Some(Lists::default());
    }

    /// The nodes that vote now, as far as anybody knows.
    pub fn acceptors(&self) -> Vec<NodeId> {
        let [newest, _] = self.judge.newest();
        match newest.filter(|_| self.lists.is_some()) {
            Some(config) => config.acceptors.iter().map(|who| who.node).collect(),
            None => self.config.acceptors.clone(),
        }
    }

    /// Whether all know of one list, if of any, and vote by it: else another set is about to vote, of which all may be lost if
    /// one is.
    pub fn is_at_list(&self) -> bool {
        let votes: BTreeSet<NodeId> = self.acceptors().into_iter().collect();
        let lives = self.nodes.iter().filter_map(|node| node.life.as_ref());
        self.lists.is_none()
            || lives.map(|life| life.engine.get()).all(|engine| {
                let list = engine.accounts().acceptor_list();
                list.is_none() || *list.nodes() == votes
            })
    }

    /// What a process knows of lists: one of each number, none is forgotten, and whoever is taken in has caught up.
    pub fn look_at_list(&mut self, index: usize) {
        let (Some(lists), Some(life)) = (&mut self.lists, &self.nodes[index].life) else {
            return;
        };
        let (engine, me) = (life.engine.get(), life.me);
        let (list, learnt) = (engine.accounts().acceptor_list(), engine.learnt());
        let mut wrong = None;
        if !list.is_none() {
            let entry = lists.known.entry(list.number());
            let (nodes, at) = entry.or_insert_with(|| (list.nodes().clone(), learnt));
            *at = learnt.min(*at);
            if nodes != list.nodes() {
                wrong = Some(format!("list: {me:?} has {list:?}, others {nodes:?}"));
            }
        }
        let mut later = lists.known.range(list.number() + 1..);
        if let Some((number, (_, at))) = later.find(|(_, (_, at))| *at <= learnt) {
            let own = list.number();
            wrong = Some(format!(
                "list: {me:?} has {own} at {learnt}, and {number} was before {at}"
            ));
        }
        if let Some(wrong) = wrong {
            self.judge.found(wrong);
        }
        self.look_at_steps();
    }

    fn look_at_steps(&mut self) {
        let [Some(newest), Some(before)] = self.judge.newest() else {
            return;
        };
        let (newest, before) = (newest.clone(), before.clone());
        let Some(lists) = self
            .lists
            .as_mut()
            .filter(|lists| lists.seen < newest.number)
        else {
            return;
        };
        lists.seen = newest.number;
        let nodes = |config: &rota_paxos::Config| -> BTreeSet<NodeId> {
            config.acceptors.iter().map(|who| who.node).collect()
        };
        let (old, new) = (nodes(&before), nodes(&newest));
        let comes = new.difference(&old).next().copied();
        let goes = old.difference(&new).next().copied();
        let Some(step) = (match (comes, goes) {
            (Some(_), Some(_)) => Some("acceptors replaced"),
            (Some(_), None) => Some("acceptors added"),
            (None, Some(_)) => Some("acceptors removed"),
            (None, None) => None,
        }) else {
            return;
        };
        if before.coordinator != newest.coordinator {
            *self
                .counts
                .entry("coordinators that were removed")
                .or_default() += 1;
        }
        *self.counts.entry(step).or_default() += 1;
        let come = comes.map(|node| usize::from(node.get()) - 1);
        if let Some(life) = come.and_then(|index| self.nodes[index].life.as_ref()) {
            let learnt = life.engine.get().learnt();
            let behind = self.judge.most_learnt().saturating_sub(learnt);
            lists.most_behind = lists.most_behind.max(behind);
            if behind > MOST_BEHIND {
                let me = life.me;
                self.judge
                    .found(format!("behind: {me:?} is taken in, and lacks {behind}"));
            }
        }
    }

    /// Somebody, or two who do not know of each other, have lists ordered, perhaps several at once.
    pub fn order_lists(&mut self) {
        if self.lists.is_none() || self.below(3) > 0 {
            return;
        }
        let how_many = 1 + self.below(3);
        for _ in 0..how_many {
            let index = self.below(self.nodes.len() as u64) as usize;
            let Some(life) = self.nodes[index]
                .life
                .as_ref()
                .filter(|_| self.is_awake(index))
            else {
                continue;
            };
            let list = life.engine.get().accounts().acceptor_list();
            let (number, mut nodes) = (list.number(), list.nodes().clone());
            if number == 0 {
                nodes = self.acceptors().into_iter().collect();
            }
            let all = self.nodes.len() as u64;
            for _ in 0..[1, 1, 1, 2, 3][self.below(5) as usize] {
                let other = node_id(self.below(all) as usize);
                let at = self.below(nodes.len() as u64) as usize;
                let old = nodes.iter().nth(at).copied();
                match self.below(3) {
                    0 => drop(nodes.insert(other)),
                    1 if nodes.len() > 1 => nodes.retain(|node| Some(*node) != old),
                    _ => {
                        nodes.retain(|node| Some(*node) != old);
                        nodes.insert(other);
                    }
                }
            }
            let forced = self.below(4) == 0;
            self.order_list(index, (number, &nodes), forced);
        }
        if how_many > 1 {
            self.add("several lists at once");
        }
    }

    fn order_list(&mut self, index: usize, list: (u64, &BTreeSet<NodeId>), forced: bool) {
        let now = Time(self.now);
        let Some(life) = &mut self.nodes[index].life else {
            return;
        };
        let nodes: Vec<NodeId> = list.1.iter().copied().collect();
        let engine = life.engine.get_mut();
        let what = match engine.next_list(&nodes, list.0, forced) {
            Ok(command) => {
                assert_eq!(command, Command::Acceptors(list.0 + 1, list.1.clone()));
                match engine.order_account(now, (&command, now.0)) {
                    true => "lists that were ordered",
                    false => "lists for which there was no room",
                }
            }
            Err(Unfit::Away(_)) => "lists of which no majority is there",
            Err(other) => panic!("{other}"),
        };
        self.add(what);
        self.drain(index);
    }

    /// When all faults have ended the last list is ordered, of some that can vote, until it counts.
    pub fn order_last_list(&mut self) {
        if self.lists.is_none() {
            return;
        }
        let well = |index: &usize| !self.is_out_for_good(*index);
        let mut all: Vec<usize> = (0..self.nodes.len()).filter(well).collect();
        let size = [1, 3, 3, 5][self.below(4) as usize].min(all.len());
        while all.len() > size {
            all.remove(self.below(all.len() as u64) as usize);
        }
        let now = self.now;
        let Some(lists) = &mut self.lists else {
            return;
        };
        let chosen = || (all.into_iter().map(node_id).collect(), 0);
        let (last, again) = lists.last.get_or_insert_with(chosen).clone();
        let known = lists.known.last_key_value();
        if again > now || known.is_some_and(|(_, (nodes, _))| *nodes == last) {
            return;
        }
        lists.last = Some((last.clone(), now + 500 * MILLI));
        let number = |index: &usize| {
            let life = self.nodes[*index].life.as_ref()?;
            Some(life.engine.get().accounts().acceptor_list().number())
        };
        let newest = (0..self.nodes.len()).max_by_key(number);
        if let Some((index, number)) = newest.and_then(|index| Some((index, number(&index)?))) {
            self.order_list(index, (number, &last), true);
        }
    }

    /// Whether the last list is that of all, and its nodes are those that vote.
    pub fn has_reached_list(&self) -> bool {
        let Some(last) = self.lists.as_ref().map(|lists| lists.last.as_ref()) else {
            return true;
        };
        let Some((last, _)) = last else {
            return false;
        };
        let lives = self.nodes.iter().filter_map(|node| node.life.as_ref());
        lives.map(|life| life.engine.get()).all(|engine| {
            let is_list = engine.accounts().acceptor_list().nodes() == last;
            let votes: BTreeSet<NodeId> = engine.acceptors().into_iter().collect();
            is_list && votes == *last && engine.is_complete()
        })
    }
}

/// A run with lists.
pub fn run_with_lists(seed: u64) -> World {
    let mut world = world(seed, seed.is_multiple_of(3));
    world.make_lists();
    world.go();
    world
}

#[cfg(not(feature = "mutants"))]
#[test]
fn acceptors_come_to_their_list_and_nothing_is_lost() {
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut wrong, mut runs, mut most_behind, mut messages) = (Vec::new(), 0, 0, 0);
    for seed in super::runs::seeds_or(0..60) {
        let world = run_with_lists(seed);
        if let Some(finding) = &world.judge.wrong {
            println!("seed {seed}: {finding}; {}", world.states());
            wrong.push(seed);
        }
        for (name, count) in &world.counts {
            *counts.entry(name).or_default() += count;
        }
        let behind = world.lists.map_or(0, |lists| lists.most_behind);
        most_behind = behind.max(most_behind);
        messages += world.judge.order.len() as u64;
        runs += 1;
    }
    println!("{runs} runs, {messages} messages, {most_behind} behind, {counts:#?}");
    assert_eq!(wrong, [0; 0], "seeds in which something went wrong");
    assert!(messages > 100 * runs);
    for (name, each) in [
        ("kills", 3),
        ("lists that were ordered", 5),
        ("several lists at once", 2),
        ("acceptors added", 1),
        ("acceptors removed", 1),
        ("acceptors replaced", 1),
    ] {
        let count = counts.get(name).copied().unwrap_or(0);
        assert!(count > each * runs, "{name}: {count}");
    }
    for some in [
        "coordinators that were removed",
        "lists of which no majority is there",
        "replaced disks",
        "losses of power",
        "kills of all",
        "partitions",
    ] {
        assert!(counts.contains_key(some), "there were no {some}");
    }
}
