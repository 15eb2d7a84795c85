use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use bytes::Bytes;
use proptest::prelude::*;
use rota_core::EngineName;
use rota_core::contract::{Incarnation, Message, MessageId, SubmitError, Time};
use rota_node::members::why_fixed;

use super::*;
use crate::control::NotAnswered;
use crate::members::asked::NEVER_TAKEN;
use crate::members::request::{MemberPlace, MemberReply, MemberRequest};

const SECOND: u64 = 1_000_000_000;

/// Whoever asks waits for so long.
const UNTIL: Time = Time(15 * SECOND);

fn id(node: u16) -> NodeId {
    NodeId::new(node).expect("not 0")
}

fn process(node: u16) -> Process {
    Process {
        node: id(node),
        incarnation: Incarnation(5),
    }
}

fn config() -> NodeConfig {
    NodeConfig::loopback(3, 27_000)
}

/// A place that no other node has.
fn place(node: u16, force: bool) -> MemberPlace {
    MemberPlace {
        id: node,
        address: "127.0.0.1".to_owned(),
        name: None,
        data_port: Some(30_000 + 2 * node),
        token_port: Some(30_001 + 2 * node),
        force,
    }
}

/// Daemons, and the rings that they are on: what is submitted on a ring is delivered to all who are on it, in one order.
struct World {
    daemons: BTreeMap<u16, Members>,
    rings: u64,
}

/// Where an operator waits for a reply.
struct Answered(Receiver<Result<MemberReply, NotAnswered>>);

impl Answered {
    fn try_recv(&self) -> Result<MemberReply, TryRecvError> {
        let answer = self.0.try_recv()?;
        Ok(answer.expect("whoever is asked here replies"))
    }
}

impl World {
    /// Daemons with the nodes of the configuration.
    fn new(nodes: impl IntoIterator<Item = u16>) -> Self {
        let mut world = Self {
            daemons: BTreeMap::new(),
            rings: 0,
        };
        for node in nodes {
            world.start(node, MemberList::of(&config()));
        }
        world
    }

    fn start(&mut self, node: u16, list: MemberList) {
        let ability = Ability {
            fixed: None,
            keeps: true,
        };
        let members = Members::new(process(node), list, ability, config());
        self.daemons.insert(node, members);
    }

    /// A new ring of these daemons.
    fn install(&mut self, nodes: &[u16]) {
        self.rings += 1;
        let ring = RingId {
            ring_seq: 4 * self.rings,
            rep: id(nodes[0]),
            incarnation: Incarnation(5),
        };
        let configuration = Configuration {
            kind: ConfigurationKind::Regular(ring),
            members: nodes.iter().map(|node| process(*node)).collect(),
        };
        for node in nodes {
            let taken = self
                .at(*node)
                .deliver(&Delivery::Configuration(configuration.clone()));
            assert!(!taken, "it is for the groups as well");
        }
    }

    /// The ring that a daemon is on ends.
    fn end(&mut self, nodes: &[u16]) {
        for node in nodes {
            let old = self.at(*node).ring.expect("it is on a ring");
            let configuration = Configuration {
                kind: ConfigurationKind::Transitional { old, new: old },
                members: nodes.iter().map(|node| process(*node)).collect(),
            };
            self.at(*node)
                .deliver(&Delivery::Configuration(configuration));
        }
    }

    fn at(&mut self, node: u16) -> &mut Members {
        self.daemons.get_mut(&node).expect("it runs")
    }

    /// What these daemons have to submit, one message of each in turn.
    fn submissions(&mut self, nodes: &[u16]) -> Vec<(u16, Bytes)> {
        let mut all = Vec::new();
        for node in nodes {
            let daemon = self.at(*node);
            if let Some((_, message)) = daemon.to_submit() {
                all.push((*node, Bytes::copy_from_slice(message)));
                daemon.submitted();
            }
        }
        all
    }

    fn order(&mut self, nodes: &[u16], (from, payload): (u16, Bytes)) {
        let delivery = Delivery::Message(Message {
            id: MessageId {
                process: process(from),
                counter: 1,
            },
            service: Service::Safe,
            seq: 1,
            index: 0,
            payload,
        });
        for node in nodes {
            assert!(self.at(*node).deliver(&delivery), "it is about the list");
        }
    }

    /// Orders all that is submitted, until nobody has anything.
    fn run(&mut self, nodes: &[u16]) {
        for round in 0.. {
            assert!(round < 100, "they do not come to an end");
            let all = self.submissions(nodes);
            if all.is_empty() {
                return;
            }
            for one in all {
                self.order(nodes, one);
            }
        }
    }

    fn ask(&mut self, node: u16, request: MemberRequest) -> Answered {
        let (answer, answered) = channel();
        self.at(node).ask(request, answer, UNTIL);
        Answered(answered)
    }

    /// A request that is answered at once, or when the rings have ordered it and the disk has it.
    fn done(&mut self, on: &[u16], request: MemberRequest) -> MemberReply {
        let answered = self.ask(on[0], request);
        self.run(on);
        let version = self.at(on[0]).list.version;
        self.at(on[0]).stored(version, Ok(()), Time(2));
        answered.try_recv().expect("an answer")
    }

    fn refused(&mut self, on: &[u16], request: MemberRequest, words: &str) {
        let reply = self.done(on, request);
        assert!(!reply.done && reply.text.contains(words), "{reply:?}");
    }

    fn lists(&self, nodes: &[u16]) -> Vec<(u64, Vec<u16>)> {
        let list = |node: &u16| {
            let list = &self.daemons[node].list;
            let ids = list.nodes.iter().map(|node| node.id).collect();
            (list.version.number, ids)
        };
        nodes.iter().map(list).collect()
    }
}

const ALL: [u16; 3] = [1, 2, 3];

fn remove(id: u16, force: bool) -> MemberRequest {
    MemberRequest::Remove { id, force }
}

#[test]
fn a_list_that_could_not_be_stored_is_stored_again_a_second_later() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    let answered = world.ask(1, MemberRequest::Add(place(4, false)));
    world.run(&ALL);
    let one = world.at(1);
    let version = one.list.version;
    assert!(one.take_news().store && !one.is_unkept());
    for round in 0..3 {
        let start = Time(10 * round * SECOND);
        one.stored(version, Err("no room".to_owned()), start);
        assert!(one.is_unkept());
        one.look_at_clock(start);
        assert!(!one.has_to_store());
        let next = start.after(SECOND);
        assert_eq!(one.next_wake(), Some(next));
        one.look_at_clock(next);
        assert!(one.has_to_store(), "the loop does not sleep before");
        assert!(one.take_news().store, "round {round}");
        one.look_at_clock(next.after(5 * SECOND));
        assert!(!one.take_news().store, "the disk has not answered yet");
    }
    let reply = answered.try_recv().expect("an answer");
    assert!(!reply.done && reply.text.contains("could not keep it: no room"));
    one.stored(version, Ok(()), Time(2));
    assert!(!one.is_unkept() && one.next_wake().is_none());
}

#[test]
fn a_daemon_that_removes_itself_leaves_when_it_has_answered_that() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    let answered = world.ask(3, remove(3, true));
    world.run(&ALL);
    assert!(world.at(3).is_removed() && !world.at(3).leaves());
    let version = world.at(3).list.version;
    world.at(3).stored(version, Ok(()), Time(2));
    assert!(answered.try_recv().expect("an answer").done);
    assert!(world.at(3).leaves() && !world.at(1).leaves());
}

#[test]
fn a_change_is_made_by_all_and_answered_when_it_is_durable() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    let answered = world.ask(2, MemberRequest::Add(place(4, false)));
    // First they come to one list.
    assert!(answered.try_recv().is_err());
    world.run(&ALL);
    assert_eq!(world.lists(&ALL), vec![(1, vec![1, 2, 3, 4]); 3]);
    for node in ALL {
        let news = world.at(node).take_news();
        assert!(news.relist && news.store);
        assert_eq!(world.at(node).absent(), [id(4)], "it may not know of it");
    }
    assert!(answered.try_recv().is_err(), "it is not durable");
    let version = world.at(2).list.version;
    world.at(2).stored(version, Ok(()), Time(2));
    let reply = answered.try_recv().expect("it is durable");
    let on_ring: Vec<bool> = reply.nodes.iter().map(|node| node.on_ring).collect();
    assert!(reply.done, "{reply:?}");
    assert_eq!((reply.number, on_ring), (1, vec![true, true, true, false]));

    // A change that is made, and not kept where it was asked for.
    let answered = world.ask(1, remove(4, false));
    world.run(&ALL);
    let version = world.at(1).list.version;
    world
        .at(1)
        .stored(version, Err("no room".to_owned()), Time(2));
    let reply = answered.try_recv().expect("an answer");
    assert!(!reply.done && reply.text.contains("no room"), "{reply:?}");
    assert_eq!(world.lists(&ALL), vec![(2, vec![1, 2, 3]); 3]);
}

#[test]
fn a_daemon_that_was_away_is_given_the_newest_list_on_the_ring() {
    let mut world = World::new(ALL);
    world.install(&[1, 2]);
    assert!(
        world
            .done(&[1, 2], MemberRequest::Add(place(4, false)))
            .done
    );
    world.start(4, world.daemons[&1].list.clone());
    world.install(&[1, 2, 3]);
    world.run(&[1, 2, 3]);
    assert_eq!(world.lists(&ALL), vec![(1, vec![1, 2, 3, 4]); 3]);
    assert!(world.at(3).take_news().store);
    // A change follows at once.
    let all = [3, 1, 2, 4];
    world.install(&all);
    assert!(world.done(&all, MemberRequest::Add(place(5, false))).done);
    assert_eq!(world.lists(&all), vec![(2, vec![1, 2, 3, 4, 5]); 4]);
    assert_eq!(world.lists(&[4])[0].0, 2);
}

#[test]
fn a_daemon_off_the_ring_hears_of_a_list_by_notices_and_those_on_a_ring_take_it_together() {
    let mut world = World::new(ALL);
    world.install(&[1, 2]);
    assert!(
        world
            .done(&[1, 2], MemberRequest::Add(place(4, false)))
            .done
    );
    let newer = world.daemons[&1].list.clone();
    world.at(3).hear(newer.clone());
    assert_eq!(world.lists(&[3]), [(1, vec![1, 2, 3, 4])], "on no ring");

    let mut world = World::new([1, 2, 3]);
    world.install(&[3]);
    world.run(&[3]);
    world.at(3).hear(newer.clone());
    assert_eq!(world.lists(&[3]), [(1, vec![1, 2, 3, 4])], "alone");
    world.install(&[1, 2]);
    world.run(&[1, 2]);
    world.at(1).hear(newer.clone());
    world.at(1).hear(newer);
    assert_eq!(world.lists(&[1])[0].0, 0, "not before the other");
    let submitted = world.submissions(&[1, 2]);
    assert_eq!(submitted.len(), 1, "once");
    for one in submitted {
        world.order(&[1, 2], one);
    }
    assert_eq!(world.lists(&[1, 2]), vec![(1, vec![1, 2, 3, 4]); 2]);
}

#[test]
fn of_two_changes_at_one_time_the_first_is_made_and_the_other_refused() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    world.run(&ALL);
    let one = world.ask(1, MemberRequest::Add(place(4, false)));
    let other = world.ask(2, MemberRequest::Add(place(5, false)));
    let busy = world.ask(1, remove(3, true)).try_recv().expect("at once");
    assert!(
        busy.text.contains("another change is being made"),
        "{busy:?}"
    );
    world.run(&ALL);
    assert_eq!(world.lists(&ALL), vec![(1, vec![1, 2, 3, 4]); 3]);
    let late = other.try_recv().expect("refused");
    assert!(
        !late.done && late.text.contains("another change came first"),
        "{late:?}"
    );
    assert!(one.try_recv().is_err(), "made, and not durable yet");
}

#[test]
fn what_may_not_be_is_refused_in_words() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    world.refused(&ALL, remove(9, false), "node 9 is not listed");
    world.refused(&ALL, remove(0, false), "start at 1");
    world.refused(&ALL, MemberRequest::Add(place(2, false)), "listed already");
    let mut double = place(4, false);
    (double.data_port, double.token_port) = (Some(27_001), Some(9000));
    world.refused(&ALL, MemberRequest::Add(double), "used by two sockets");
    world.refused(
        &ALL,
        remove(3, false),
        "node 3 is on the ring: stop it first",
    );
    world.refused(
        &ALL,
        MemberRequest::Replace(place(3, true)),
        "node 3 is on the ring",
    );
    world.refused(
        &ALL,
        MemberRequest::Replace(place(7, false)),
        "node 7 is not listed",
    );
    let mut far = place(4, false);
    far.address = "rota-4.example".to_owned();
    assert!(world.done(&ALL, MemberRequest::Add(far.clone())).done);
    let beside = MemberPlace {
        id: 5,
        data_port: Some(41_000),
        token_port: Some(41_001),
        ..far
    };
    world.refused(&ALL, MemberRequest::Add(beside), "has this address already");
    assert_eq!(world.lists(&ALL), vec![(1, vec![1, 2, 3, 4]); 3]);

    // Two of four are no majority.
    let few = [1, 2];
    world.install(&few);
    world.refused(&few, remove(3, false), "of 4 listed nodes 2 on this ring");
    assert!(world.done(&few, remove(3, true)).done);
    assert!(world.done(&few, remove(4, false)).done);
    assert_eq!(world.lists(&few), vec![(3, vec![1, 2]); 2]);
}

#[test]
fn daemons_that_cannot_change_their_list_say_why() {
    let ask = |fixed, keeps| {
        let ability = Ability { fixed, keeps };
        let list = MemberList::of(&config());
        let mut members = Members::new(process(1), list, ability, config());
        let (answer, answered) = channel();
        members.ask(MemberRequest::Add(place(4, false)), answer.clone(), UNTIL);
        let answered = Answered(answered);
        let refused = answered.try_recv().expect("at once");
        assert!(!refused.done);
        members.ask(MemberRequest::List, answer, UNTIL);
        assert!(answered.try_recv().is_ok_and(|reply| reply.done));
        refused.text
    };
    let mut votes = config();
    votes.engine = EngineName::URingPaxos;
    assert!(ask(why_fixed(&votes), true).contains("acceptors"));
    assert!(ask(None, false).contains("node 1 keeps no list on disk"));

    // Another daemon of the ring keeps none.
    let mut world = World::new(ALL);
    world.at(3).ability.keeps = false;
    world.install(&ALL);
    world.refused(
        &ALL,
        MemberRequest::Add(place(4, true)),
        "node 3 keeps no list on disk",
    );

    // One says nothing, as an earlier version does not.
    let mut world = World::new(ALL);
    world.install(&ALL);
    let answered = world.ask(1, MemberRequest::Add(place(4, false)));
    for one in world.submissions(&[1, 2]) {
        world.order(&[1, 2], one);
    }
    world.at(1).look_at_clock(Time(UNTIL.0 - 1));
    assert!(answered.try_recv().is_err());
    assert_eq!(world.at(1).next_wake(), Some(UNTIL));
    world.at(1).look_at_clock(UNTIL);
    let reply = answered.try_recv().expect("too late");
    assert!(
        reply.text.contains("node 3 does not say which list"),
        "{reply:?}"
    );
}

#[test]
fn files_that_differ_are_named_before_anything_is_changed() {
    let mut world = World::new(ALL);
    let mut list = MemberList::of(&config());
    list.nodes[1].data_port = 999;
    world.start(3, list);
    world.install(&ALL);
    world.refused(
        &ALL,
        MemberRequest::Add(place(4, true)),
        "node 3 has other nodes",
    );
    world.refused(&ALL, remove(1, true), "node 3 has other nodes");
    world.install(&[1, 2]);
    assert!(
        world
            .done(&[1, 2], MemberRequest::Add(place(4, false)))
            .done
    );
    // One that has changed is newer than all files.
    world.install(&ALL);
    world.run(&ALL);
    assert_eq!(world.lists(&ALL), vec![(1, vec![1, 2, 3, 4]); 3]);
}

#[test]
fn a_change_that_is_ordered_for_another_ring_is_asked_for_again() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    world.run(&ALL);
    let answered = world.ask(1, MemberRequest::Add(place(4, false)));
    let change = world.submissions(&ALL);
    // The ring ends: what is delivered now, a daemon on the other side may never see.
    world.end(&[1, 2]);
    for one in change.clone() {
        world.order(&[1, 2], one);
    }
    assert_eq!(world.lists(&[1, 2])[0].0, 0);
    world.install(&[1, 2]);
    // It may also come after that.
    for one in change {
        world.order(&[1, 2], one);
    }
    world.run(&[1, 2]);
    assert_eq!(world.lists(&[1, 2]), vec![(1, vec![1, 2, 3, 4]); 2]);
    let version = world.at(1).list.version;
    world.at(1).stored(version, Ok(()), Time(2));
    assert!(answered.try_recv().expect("made").done);
}

#[test]
fn a_node_that_is_removed_from_the_ring_leaves_and_is_reached_until_it_has() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    assert!(world.done(&ALL, remove(3, true)).done);
    assert!(world.at(3).is_removed() && !world.at(1).is_removed());
    let reached = |world: &mut World| {
        let nodes = world.at(1).reachable().nodes;
        nodes.iter().map(|node| node.id).collect::<Vec<u16>>()
    };
    assert_eq!(reached(&mut world), [1, 2, 3]);
    world.at(1).take_news();
    world.install(&[1, 2]);
    assert!(world.at(1).take_news().relist);
    assert_eq!(reached(&mut world), [1, 2]);
}

#[test]
fn where_two_sides_were_forced_to_change_the_list_the_later_ring_counts() {
    let mut world = World::new(ALL);
    world.install(&[1, 2]);
    assert!(
        world
            .done(&[1, 2], MemberRequest::Add(place(4, false)))
            .done
    );
    world.install(&[3]);
    assert!(world.done(&[3], MemberRequest::Add(place(5, true))).done);
    world.install(&ALL);
    world.run(&ALL);
    assert_eq!(world.lists(&ALL), vec![(1, vec![1, 2, 3, 5]); 3]);
}

#[test]
fn a_list_that_is_too_large_for_the_ring_is_refused_in_words() {
    let mut world = World::new(ALL);
    let first = message::bytes_of_give(&MemberList::of(&config()));
    for node in ALL {
        // There is room for two nodes, and the ring of the change.
        world.at(node).config.message_bytes = Some(first + 20);
    }
    world.install(&ALL);
    // The bytes of a ring and of a node more.
    let needed = first + 18 + 13;
    let words = format!("as `message_bytes` of the ring says: set it to {needed} or more");
    world.refused(&ALL, MemberRequest::Add(place(4, false)), &words);
    assert_eq!(world.lists(&ALL), vec![(0, vec![1, 2, 3]); 3]);
    assert!(world.done(&ALL, remove(3, true)).done);
}

#[test]
fn what_the_ring_never_takes_is_said_to_whoever_waits_and_in_the_log() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    let answered = world.ask(1, MemberRequest::Add(place(4, false)));
    let one = world.at(1);
    let bytes = one.to_submit().expect("it tells").1.len();
    one.cannot_submit(SubmitError::TooLarge { limit: 9 });
    let words = format!("needs a message of {bytes} bytes: a message may have at most 9 bytes");
    let reply = answered.try_recv().expect("at once");
    assert!(!reply.done && reply.text.contains(&words), "{reply:?}");
    let line = one.unusable.complaints.is_due(NEVER_TAKEN, Time(0));
    assert_eq!(line, None, "there was one just now");
    assert!(one.to_submit().is_none(), "it is not tried for ever");
}

#[test]
fn a_list_that_cannot_be_taken_over_is_counted_and_complained_of_now_and_then() {
    let mut world = World::new(ALL);
    world.install(&[1]);
    let mut wrong = world.daemons[&1].list.clone();
    wrong.version.number = 9;
    wrong.version.made = world.daemons[&1].ring;
    wrong.nodes[1].data_port = wrong.nodes[0].data_port;
    let one = world.at(1);
    for _ in 0..50 {
        one.hear(wrong.clone());
    }
    assert_eq!(one.malformed(), 50);
    // The first has a line; those since, and this question, are told with the next one.
    assert_eq!(
        one.unusable.complaints.is_due(NOT_TAKEN_OVER, Time(0)),
        None
    );
    let later = Time(u64::MAX);
    let unsaid = one.unusable.complaints.is_due(NOT_TAKEN_OVER, later);
    assert!(unsaid.is_some_and(|unsaid| unsaid > 0), "{unsaid:?}");
}

#[test]
fn nonsense_is_counted_and_changes_nothing() {
    let mut world = World::new(ALL);
    world.install(&ALL);
    world.run(&ALL);
    world.order(&ALL, (2, Bytes::from_static(b"M and no more")));
    let mut wrong = world.daemons[&1].list.clone();
    wrong.version.number = 9;
    wrong.version.made = world.daemons[&1].ring;
    wrong.nodes[1].data_port = wrong.nodes[0].data_port;
    let ring = world.daemons[&1].ring.expect("it is on one");
    let give = message::encode(ring, &Told::Give(wrong));
    world.order(&ALL, (2, give.into()));
    for node in ALL {
        assert_eq!(world.at(node).malformed(), 2);
    }
    assert_eq!(world.lists(&ALL)[0].0, 0);
}

/// What happens in a run that is drawn.
#[derive(Clone, Debug)]
enum Step {
    /// These daemons come together on a ring, and order all that they have to say, or only a part of it.
    Ring(u8, usize),
    /// A daemon is asked to add a node, or to remove it.
    Ask(u16, u16, bool),
    /// A daemon hears a notice of another.
    Notice(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_u8..16, 0_usize..12).prop_map(|(who, most)| Step::Ring(who, most)),
        (1_u16..5, 4_u16..9, any::<bool>()).prop_map(|(at, node, add)| Step::Ask(at, node, add)),
        (1_u16..5, 1_u16..5).prop_map(|(to, from)| Step::Notice(to, from)),
    ]
}

proptest! {
    /// Whatever happens, one version is one list, versions only grow, and daemons that come together have one list.
    #[test]
    fn one_version_is_one_list(steps in prop::collection::vec(step(), 1..60)) {
        const FOUR: [u16; 4] = [1, 2, 3, 4];
        let mut world = World::new(ALL);
        let mut list = MemberList::of(&config());
        list.nodes.push(NodeAddress::at(4, "127.0.0.1", (31_000, 31_001)));
        for node in FOUR {
            world.start(node, list.clone());
        }
        let mut known: BTreeMap<Version, MemberList> = BTreeMap::new();
        let mut newest = [Version::FIRST; 4];
        for step in steps {
            match step {
                Step::Ring(who, most) => {
                    let on: Vec<u16> = FOUR.into_iter().filter(|node| who >> (node - 1) & 1 == 1).collect();
                    world.install(&on);
                    for _ in 0..most {
                        for one in world.submissions(&on) {
                            world.order(&on, one);
                        }
                    }
                    // Whoever is removed has gone in fact, and comes back with what it had.
                }
                Step::Ask(at, node, add) => {
                    let request = match add {
                        true => MemberRequest::Add(place(node, true)),
                        false => remove(node.max(5), true),
                    };
                    drop(world.ask(at, request));
                }
                Step::Notice(to, from) => {
                    let list = world.daemons[&from].list.clone();
                    world.at(to).hear(list);
                }
            }
            for (node, before) in FOUR.into_iter().zip(&mut newest) {
                let list = world.daemons[&node].list.clone();
                prop_assert!(list.version >= *before);
                *before = list.version;
                let same = known.entry(list.version).or_insert_with(|| list.clone());
                prop_assert_eq!(&*same, &list);
            }
        }
        world.install(&FOUR);
        world.run(&FOUR);
        let lists = world.lists(&FOUR);
        prop_assert!(lists.iter().all(|list| *list == lists[0]), "{:?}", lists);
        let most = newest.iter().map(|one| one.number).max().unwrap_or(0);
        prop_assert!(lists[0].0 >= most, "{:?} of {}", lists, most);
    }
}
