//! Accounts: the table of the instances that a ring may forget, and an acceptor that goes by it.

#[cfg(not(feature = "mutants"))]
use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{Delivery, Engine, Input, NodeId};
#[cfg(not(feature = "mutants"))]
use rota_core::contract::{Service, SubmitError};
use rota_paxos::ValueId;
#[cfg(not(feature = "mutants"))]
use rota_paxos::uring::URingConfig;
use rota_paxos::uring::accounts::{Command, Refused, Replicas, Table};
use rota_paxos::uring::{AcceptorConfig, Record, Snapshot};

use super::alone::{Alone, process};
use super::cut::{KEPT, Second, again, begins_at, follow_third, keeps_little};
#[cfg(not(feature = "mutants"))]
use super::world::roll;

fn node(number: u16) -> NodeId {
    process(number, 1).node
}

fn of(nodes: &[u16]) -> Replicas {
    nodes.iter().copied().map(node).collect()
}

fn mark(partition: u32, number: u16, next: u64) -> Command {
    Command::Mark(partition, node(number), next)
}

/// Of partitions whose accounts are opened in the first instance.
fn table(partitions: &[(u32, &[u16])]) -> Table {
    let mut table = Table::default();
    for (partition, nodes) in partitions {
        let opened = table.apply((1, 0), Command::Hold(*partition, of(nodes), 0));
        opened.expect("majorities");
    }
    table
}

/// Of three replicas two have to be behind what is forgotten, of each partition that has the ring.
pub fn each_partition_counts_for_itself() -> bool {
    let mut table = table(&[(1, &[11, 12, 13]), (2, &[21, 22, 23])]);
    let mut mark = |partition, number, next| {
        let marked = table.apply((next, 0), mark(partition, number, next));
        marked.expect("a replica");
        table.bound()
    };
    let first = [mark(1, 11, 50), mark(1, 12, 40), mark(1, 13, 90)];
    let second = [mark(2, 21, 70), mark(2, 22, 30), mark(2, 21, 60)];
    first == [Some(1); 3] && second == [Some(1), Some(30), Some(30)]
}

/// A replica whose store is empty has lost its checkpoints: that it had one counts no more.
pub fn an_empty_store_has_no_checkpoint() -> bool {
    let mut table = table(&[(1, &[11, 12, 13])]);
    let mut mark = |number, next| {
        let marked = table.apply((100, 0), mark(1, number, next));
        marked.expect("a replica");
        table.bound()
    };
    let before = [mark(11, 50), mark(12, 60)];
    let lost = mark(11, 1);
    before == [Some(1), Some(50)]
        && lost == Some(1)
        && mark(13, 55) == Some(55)
        && mark(11, 58) == Some(58)
}

/// While somebody recovers, what it needs is kept; not for ever; and what may be forgotten already is not promised.
pub fn a_pin_keeps_what_is_needed() -> bool {
    let mut table = table(&[(1, &[11])]);
    let mut apply = |at, command| {
        let done = table.apply(at, command);
        (done, table.bound())
    };
    let kept = [
        apply((10, 100), mark(1, 11, 10)),
        apply((11, 101), Command::Pin(node(12), 10, 399)),
        apply((90, 200), mark(1, 11, 80)),
    ];
    let late = apply((91, 201), Command::Pin(node(13), 9, 399));
    let expired = apply((99, 501), mark(1, 11, 90));
    kept.iter().all(|kept| *kept == (Ok(()), Some(10)))
        && late == (Err(Refused::Forgotten(80)), Some(10))
        && expired == (Ok(()), Some(90))
}

/// A partition that leaves and comes back is not let go by what releases its first hold.
pub fn a_release_names_its_hold() -> bool {
    let mut table = table(&[(1, &[11])]);
    let mut apply = |instance, command| table.apply((instance, 0), command);
    apply(50, Command::Hold(2, of(&[21]), 0)).expect("a hold");
    apply(60, Command::Release(2, 50)).expect("its hold");
    apply(70, Command::Hold(2, of(&[21]), 0)).expect("another one");
    let late = apply(80, Command::Release(2, 50)) == Err(Refused::NoAccount);
    apply(90, mark(1, 11, 90)).expect("a replica");
    late && table.bound() == Some(70)
}

/// The same where the partition has come back before its first hold is released: it still has the account.
pub fn a_late_release_does_not_hit_who_has_come_back() -> bool {
    let mut table = table(&[(1, &[11])]);
    let mut apply = |instance, command| table.apply((instance, 0), command);
    apply(50, Command::Hold(2, of(&[21]), 0)).expect("a hold");
    apply(60, Command::Hold(2, of(&[21]), 0)).expect("it comes back");
    let late = apply(70, Command::Release(2, 50)) == Err(Refused::NoAccount);
    apply(80, mark(1, 11, 80)).expect("a replica");
    // What it needs is there since its first hold, and goes with the last one.
    let (is_kept, name) = (table.bound() == Some(50), table.hold_of(2));
    let released = table.apply((90, 0), Command::Release(2, 60));
    late && is_kept && name == Some(60) && released.is_ok() && table.bound() == Some(80)
}

/// The third, that proposes.
struct Third(Alone);

impl Third {
    fn new() -> Self {
        let mut third = Alone::with(keeps_little(), process(3, 1), Vec::new());
        third.join();
        follow_third(&mut third);
        Self(third)
    }

    fn orders(&mut self, command: &Command) {
        assert!(self.0.engine.order_account(self.0.now, (command, 0)));
    }

    /// What it has proposed since that was asked, as far as windows are open.
    fn values(&mut self) -> Vec<(ValueId, Bytes)> {
        for _ in 0..40 {
            self.0.room();
            self.0.tell(Input::Timer);
        }
        let records = std::mem::take(&mut self.0.batches).into_iter().flatten();
        let value = |record| match record {
            Record::Value(id, frame) => Some((id, frame)),
            _ => None,
        };
        records.filter_map(value).collect()
    }
}

/// The values of these commands of the third.
pub fn ordered(commands: &[Command]) -> Vec<(ValueId, Bytes)> {
    let mut third = Third::new();
    commands.iter().for_each(|command| third.orders(command));
    third.values()
}

/// What two of three replicas have no checkpoint of is kept, however much that is; what comes before it is forgotten.
pub fn what_is_needed_is_kept() -> bool {
    let mut second = Second::new(keeps_little());
    let commands = [
        Command::Hold(1, of(&[1, 2, 3]), 0),
        mark(1, 1, 500),
        mark(1, 2, 100),
    ];
    let values = ordered(&commands);
    assert_eq!(values.len(), 3);
    second.values(&values[..1]);
    second.skips(600);
    let opened = second.alone.engine.kept();
    second.values(&values[1..2]);
    second.skips(10);
    let one = second.alone.engine.kept();
    second.values(&values[2..]);
    second.skips(2);
    let two = second.alone.engine.kept();
    let deliveries = std::iter::from_fn(|| second.alone.engine.poll_delivery());
    let has_none = deliveries
        .into_iter()
        .all(|delivery| !matches!(delivery, Delivery::Message(_)));
    (opened, one, two) == (2, 2, 100) && has_none
}

/// Whoever begins at a base, and whoever is restarted behind one, knows who needs what.
pub fn who_begins_at_a_base_knows_who_needs_what() -> bool {
    let mut second = Second::new(keeps_little());
    let hold = Command::Hold(1, of(&[1, 2, 3]), 0);
    let pin = Command::Pin(node(7), 130, 1 << 40);
    let commands = [hold, mark(1, 1, 90), mark(1, 2, 120), pin];
    let values = ordered(&commands);
    second.skips(200);
    second.values(&values);
    second.skips(2 * KEPT);
    // Both are behind the hold that opens the account.
    let more = [
        Command::Hold(1, of(&[1, 2, 3]), 0),
        Command::Release(9, 1),
        Command::Release(9, 1),
        Command::Release(9, 1),
        mark(1, 1, 260),
        mark(1, 2, 250),
    ];
    second.values(&ordered(&more)[4..]);
    second.skips(2 * KEPT);
    let is_same = |engine: &rota_paxos::uring::URing| {
        let accounts = engine.accounts();
        accounts.account(1).is_some() && accounts.bound() == Some(250)
    };
    let base = Snapshot::decode(second.base().into()).expect("a base");
    let here = is_same(&second.alone.engine) && base.next == 250;
    let knows = |engine: &rota_paxos::uring::URing| engine.accounts().account(1).is_some();
    here && knows(&begins_at(&base.encode()).engine) && knows(&again(&second).engine)
}

/// While more is kept than may be, no message is taken, but what makes less of it.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_ring_that_keeps_too_much_takes_no_messages() {
    let mut second = Second::new(URingConfig {
        acceptor: AcceptorConfig {
            hold_bytes: 5 << 20,
            ..keeps_little().acceptor
        },
        ..keeps_little()
    });
    let mut third = Third::new();
    third.orders(&Command::Hold(1, of(&[1]), 0));
    second.values(&third.values());
    let submit = |second: &mut Second| {
        let alone = &mut second.alone;
        alone.engine.submit(alone.now, Service::Safe, b"m")
    };
    assert!(submit(&mut second).is_ok());
    for _ in 0..7 {
        third.0.submit(&vec![7; 1 << 20]);
        second.values(&third.values());
    }
    assert_eq!(submit(&mut second), Err(SubmitError::Full));
    let next = second.next;
    assert!(next > 200, "{next}");
    let alone = &mut second.alone;
    assert!(alone.engine.order_account(alone.now, (&mark(1, 1, 1), 0)));
    third.orders(&mark(1, 1, next));
    second.values(&third.values());
    assert!(submit(&mut second).is_ok());
}

/// A command about who needs what never stands between the parts of a message.
#[cfg(not(feature = "mutants"))]
#[test]
fn commands_wait_for_the_end_of_a_message() {
    let mut third = Third::new();
    third.0.submit(&vec![7; 200_000]);
    third.orders(&mark(1, 1, 1));
    third.0.submit(&vec![8; 200_000]);
    let values = third.values();
    let firsts: Vec<u8> = values.iter().map(|(_, value)| value[0]).collect();
    let at = firsts.iter().position(|first| *first == 0x40);
    let at = at.expect("it is ordered");
    assert!(at == 0 || firsts[at - 1] & 0x80 == 0, "{firsts:?}");
    assert!(firsts.len() > 10, "{firsts:?}");
}

/// Who has said what, and what each partition needed when its account was opened.
#[cfg(not(feature = "mutants"))]
#[derive(Default)]
struct Oracle {
    marks: BTreeMap<(u32, NodeId), u64>,
    opened: BTreeMap<u32, u64>,
}

#[cfg(not(feature = "mutants"))]
impl Oracle {
    fn take(&mut self, command: &Command, table: &Table) {
        match command {
            Command::Mark(partition, node, next) => {
                self.marks.insert((*partition, *node), *next);
            }
            Command::Hold(partition, ..) => {
                let needs = table.account(*partition).expect("it has one").0;
                self.opened.entry(*partition).or_insert(needs);
            }
            Command::Replace(partition, replicas) => {
                let stays = |node: &NodeId| replicas.contains(node);
                self.marks
                    .retain(|(of, node), _| of != partition || stays(node));
            }
            Command::Release(partition, _) | Command::Abandon(partition) => {
                self.opened.remove(partition);
                self.marks.retain(|(of, _), _| of != partition);
            }
            Command::Pin(..)
            | Command::Unpin(_)
            | Command::Notice(_)
            | Command::Found(..)
            | Command::Acceptors(..) => {}
        }
    }

    /// A majority of each partition has said that it does not need what is before.
    fn judge(&self, seed: u64, table: &Table) {
        for partition in table.partitions() {
            let (needs, replicas) = table.account(partition).expect("it has one");
            let opened = self.opened.get(&partition).copied().unwrap_or(1);
            let marks = replicas.iter();
            let marks = marks.filter_map(|node| self.marks.get(&(partition, *node)));
            let behind = marks.filter(|mark| **mark >= needs).count();
            assert!(
                needs <= opened || 2 * behind > replicas.len(),
                "seed {seed}: {needs} of {partition}"
            );
        }
    }
}

/// Whatever is ordered: nothing is forgotten that a partition or a pin needs, and what was allowed once stays allowed.
#[cfg(not(feature = "mutants"))]
#[test]
fn whatever_is_ordered_nothing_is_forgotten_that_is_needed() {
    for seed in 0..2000 {
        let mut dice = seed;
        let mut below = |end: u64| roll(&mut dice) % end;
        let mut table = table(&[(1, &[11, 12, 13])]);
        let mut granted = 1;
        let mut oracle = Oracle::default();
        for instance in 1..200 {
            let partition = 1 + below(3) as u32;
            let number = 10 * partition as u16 + 1 + below(4) as u16;
            let (next, time) = (1 + below(instance), instance + below(5));
            let command = match below(12) {
                0 => Command::Hold(
                    partition,
                    of(&[10 * partition as u16 + 1, 10 * partition as u16 + 2]),
                    below(20),
                ),
                1 => Command::Release(partition, next),
                2 => Command::Pin(node(number), next, below(40)),
                3 => Command::Unpin(node(number)),
                4 => Command::Replace(
                    partition,
                    of(&[number, 10 * partition as u16 + 1][below(3) as usize..]),
                ),
                5 if below(4) == 0 => Command::Abandon(partition),
                _ => Command::Mark(partition, node(number), next),
            };
            let pinned = matches!(command, Command::Pin(..));
            let (before, pins) = (table.granted(), table.pins().collect::<Vec<_>>());
            let has_it = pins
                .iter()
                .any(|(of, from, _)| *of == node(number) && *from <= next);
            let done = table.apply((instance, time), command.clone());
            assert!(
                !pinned || done.is_err() || next >= before || has_it,
                "seed {seed}: a promise that cannot be kept"
            );
            if done.is_ok() {
                oracle.take(&command, &table);
            }
            oracle.judge(seed, &table);
            assert!(table.granted() >= granted, "seed {seed}");
            granted = table.granted();
            for (_, pin, until) in table.pins() {
                assert!(
                    pin >= table.bound().unwrap_or(1) && until >= 1,
                    "seed {seed}"
                );
            }
            assert_eq!(as_bytes(&table).as_ref(), Some(&table), "seed {seed}");
            for partition in 1..4 {
                let account = table.account(partition);
                assert!(account.is_none_or(|(needs, of)| needs
                    >= table.bound().expect("an account")
                    && !of.is_empty()));
            }
        }
    }
}

#[cfg(not(feature = "mutants"))]
#[test]
fn rules() {
    assert!(each_partition_counts_for_itself());
    assert!(an_empty_store_has_no_checkpoint());
    assert!(a_pin_keeps_what_is_needed());
    assert!(a_release_names_its_hold());
    assert!(a_late_release_does_not_hit_who_has_come_back());
    let mut table = table(&[(1, &[11, 12, 13])]);
    assert_eq!(table.apply((5, 0), mark(1, 11, 6)), Err(Refused::Ahead));
    assert_eq!(table.apply((5, 0), mark(1, 14, 4)), Err(Refused::NoReplica));
    let nobody = Command::Hold(2, Replicas::new(), 0);
    assert_eq!(table.apply((5, 0), nobody), Err(Refused::Unsound));
    let nobody = Command::Replace(1, Replicas::new());
    assert_eq!(table.apply((5, 0), nobody), Err(Refused::Unsound));
    let nobody = Table::default().apply((9, 0), Command::Pin(node(1), 9, 9));
    assert_eq!(nobody, Err(Refused::NoAccount));
    let gone = Command::Abandon(7);
    assert_eq!(table.apply((5, 0), gone), Err(Refused::NoAccount));
    let abandoned = table.apply((6, 0), Command::Abandon(1));
    assert_eq!((abandoned, table.bound()), (Ok(()), None));
    // As much as everybody keeps is there still.
    let back = table.apply((90, 0), Command::Hold(1, of(&[11]), 30));
    assert_eq!((back, table.bound()), (Ok(()), Some(60)));
    table.apply((91, 0), mark(1, 11, 80)).expect("a replica");
    // Whoever knows only itself is one more.
    let more = table.apply((92, 0), Command::Hold(1, of(&[12]), 0));
    assert_eq!((more, table.bound()), (Ok(()), Some(60)));
    table.apply((93, 0), mark(1, 12, 70)).expect("a replica");
    assert_eq!(table.bound(), Some(70));
    let fewer = table.apply((94, 0), Command::Replace(1, of(&[11])));
    assert_eq!((fewer, table.bound()), (Ok(()), Some(80)));
}

/// The same from its bytes, in a base.
#[cfg(not(feature = "mutants"))]
fn as_bytes(table: &Table) -> Option<Table> {
    let base = Snapshot {
        accounts: table.clone(),
        ..Snapshot::default()
    };
    Snapshot::decode(base.encode().into()).map(|base| base.accounts)
}

/// Commands are what they were, and any other bytes are refused or are a command.
#[cfg(not(feature = "mutants"))]
#[test]
fn bytes_of_commands() {
    let commands = [
        Command::Hold(3, of(&[1, 2, 700]), 15_000),
        Command::Replace(9, of(&[4])),
        Command::Release(1, 5),
        mark(4, 9, 1 << 50),
        Command::Pin(node(5), 8, u64::MAX),
        Command::Unpin(node(6)),
        Command::Abandon(u32::MAX),
        Command::Notice(Bytes::from_static(b"a notice")),
        Command::Found(7, 1 << 40, Bytes::from_static(b"a charter")),
    ];
    for command in commands {
        let bytes = command.encode(77);
        let decoded = Command::decode(bytes.clone().into());
        assert_eq!(decoded, Some((command, 77)));
        for len in 0..bytes.len() {
            assert_eq!(Command::decode(bytes[..len].to_vec().into()), None);
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x41;
            if let Some((command, time)) = Command::decode(other.clone().into()) {
                assert_eq!(command.encode(time), other);
            }
        }
    }
}
