//! The wire format, byte by byte: the largest packets, and every reason to refuse one.

use std::collections::BTreeSet;

use bytes::Bytes;
use rota_core::contract::{Burst, Incarnation, NodeId, Process, RingId, Service};
use rota_core::wire::{
    DecodeError, Frame, HEADER_BYTES, MAX_MEMBERS, RecordKind, RequestRange, SEAL_BYTES, VERSION,
    push_first, push_next, push_whole, start_frame,
};
use rota_ring::wire::{
    Commit, Counts, Data, Join, MAX_HAVE_RANGES, MAX_JOIN_PROCESSES, MAX_REQUEST_RANGES,
    MOST_ELECTORATES, MergeDetect, OldRing, Packet, Token, decode, have_ranges_for,
    request_ranges_in,
};

const ETHERNET_BYTES: usize = 1472;

fn read(bytes: impl Into<Bytes>) -> Result<Packet, DecodeError> {
    decode(bytes.into())
}

fn node_id(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

const RING: RingId = RingId {
    ring_seq: 9,
    rep: NodeId::new(1).unwrap(),
    incarnation: Incarnation(77),
};

fn sample_token(seq: u64, rtr: Vec<RequestRange>) -> Token {
    let (cluster, sender) = (5, node_id(2));
    let aru_id = Some(node_id(3));
    let (token_seq, aru, fcc, backlog, idle) = (12, seq / 2, 4, 6, true);
    let recovering = true;
    Token {
        cluster,
        ring: RING,
        sender,
        token_seq,
        seq,
        aru,
        aru_id,
        fcc,
        backlog,
        idle,
        recovering,
        rtr,
    }
}

fn sample_data() -> Data {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, 300);
    push_whole(&mut bytes, b"hello");
    let frame = Frame::parse(Bytes::from(bytes)).expect("a frame by the rules");
    let (sender, service) = (node_id(2), Service::Agreed);
    Data {
        cluster: 5,
        ring: RING,
        seq: 8,
        sender,
        round: 3,
        service,
        encapsulated: false,
        frame,
    }
}

fn member(id: u16) -> Process {
    Process {
        node: node_id(id),
        incarnation: Incarnation(76 + u64::from(id)),
    }
}

/// Member 2 wants a ring with 1, 2 and 3, and has given up 4.
fn sample_join() -> Join {
    Join {
        cluster: 5,
        sender: member(2),
        ring_seq: 9,
        leaving: false,
        procs: BTreeSet::from([member(1), member(2), member(3)]),
        fails: BTreeSet::from([member(4)]),
    }
}

fn sample_old_ring() -> OldRing {
    let range = |first, count| RequestRange { first, count };
    OldRing {
        ring: RING,
        aru: 10,
        high: 40,
        safe_line: 7,
        obligations: 5,
        next_message: 3,
        settings: rota_ring::RingConfig::new(1, Vec::new()).settings(),
        counts: Default::default(),
        have: vec![range(12, 3), range(40, 1)],
        more: false,
    }
}

/// Members 1 and 2, of whom the first has told.
fn sample_commit() -> Commit {
    Commit {
        cluster: 5,
        ring: RING,
        sender: node_id(1),
        token_seq: 1,
        members: vec![member(1), member(2)],
        electorates: vec![],
        told: vec![sample_old_ring()],
    }
}

#[test]
fn a_token_with_all_its_requests_fits_an_ethernet_frame() {
    let first = u64::MAX - 1_000_000;
    let range = |index: usize| RequestRange {
        first: first + 3 * index as u64,
        count: 2,
    };
    let rtr = (0..MAX_REQUEST_RANGES).map(range).collect();
    let token = Packet::Token(sample_token(u64::MAX, rtr));
    let bytes = token.encode();
    assert!(bytes.len() <= ETHERNET_BYTES, "{} bytes", bytes.len());
    assert_eq!(read(bytes), Ok(token));
}

#[test]
fn as_many_requests_as_fit_a_datagram_fit_and_one_more_does_not() {
    let range = |index: usize| RequestRange {
        first: 1 + 3 * index as u64,
        count: 2,
    };
    for (seal, all_fit_in) in [(SEAL_BYTES, 1390), (46, 1432)] {
        let token_bytes = |ranges: usize| {
            let rtr = (0..ranges).map(range).collect();
            let token = Packet::Token(sample_token(9, rtr));
            token.encode_sealed(seal).len()
        };
        for datagram_bytes in [512, 513, 523, 524, 1252, 1389] {
            let most = request_ranges_in(datagram_bytes, seal);
            assert!(token_bytes(most) <= datagram_bytes, "{datagram_bytes}");
            assert!(token_bytes(most + 1) > datagram_bytes, "{datagram_bytes}");
        }
        assert!(request_ranges_in(all_fit_in - 1, seal) < MAX_REQUEST_RANGES);
        assert_eq!(request_ranges_in(all_fit_in, seal), MAX_REQUEST_RANGES);
        assert_eq!(request_ranges_in(9000, seal), MAX_REQUEST_RANGES);
        assert_eq!(request_ranges_in(0, seal), 0);
    }
}

#[test]
fn the_largest_join_fits_a_datagram() {
    let set = |from: u16| {
        let ids = from..from + MAX_JOIN_PROCESSES as u16;
        ids.map(member).collect::<BTreeSet<_>>()
    };
    let join = Packet::Join(Join {
        procs: set(1),
        fails: set(2000),
        ..sample_join()
    });
    let bytes = join.encode();
    assert!(bytes.len() <= Burst::MAX_BYTES, "{} bytes", bytes.len());
    assert_eq!(read(bytes), Ok(join));
}

/// The commit token of a ring of `members` of which all have told as much as they may.
fn largest_commit(members: usize) -> Packet {
    let range = |index: usize| RequestRange {
        first: 100 + 3 * index as u64,
        count: 2,
    };
    let told = OldRing {
        high: 10_000,
        have: (0..have_ranges_for(members)).map(range).collect(),
        more: true,
        ..sample_old_ring()
    };
    Packet::Commit(Commit {
        token_seq: 2 * members as u64,
        members: (1..=members as u16).map(member).collect(),
        electorates: (0..MOST_ELECTORATES as u16)
            .map(|first| {
                (1..=MAX_MEMBERS as u16)
                    .map(|id| node_id(first + id))
                    .collect()
            })
            .collect(),
        told: vec![told; members],
        ..sample_commit()
    })
}

#[test]
fn the_largest_commit_token_of_every_ring_fits_a_datagram() {
    for members in 1..=MAX_MEMBERS {
        let commit = largest_commit(members);
        let bytes = commit.encode();
        assert!(
            bytes.len() <= Burst::MAX_BYTES,
            "{members}: {}",
            bytes.len()
        );
        assert_eq!(read(bytes), Ok(commit), "{members} members");
    }
    assert_eq!(have_ranges_for(1), MAX_HAVE_RANGES);
    assert!(have_ranges_for(MAX_MEMBERS) >= 32);
}

#[test]
fn a_presence_costs_eight_bytes_beside_header_and_seal() {
    let presence = Packet::MergeDetect(MergeDetect {
        cluster: 5,
        sender: member(2),
        ring: RING,
    });
    assert_eq!(presence.encode().len(), HEADER_BYTES + 8 + SEAL_BYTES);
}

#[test]
fn a_wrapped_packet_is_another_kind_of_the_same_size() {
    let plain = Packet::Data(sample_data()).encode();
    let wrapped = Packet::Data(Data {
        encapsulated: true,
        ..sample_data()
    })
    .encode();
    assert_eq!((plain.len(), plain[1] & 0x0f), (wrapped.len(), 0));
    assert_eq!(wrapped[1] & 0x0f, 6);
    assert_eq!(plain[2..], wrapped[2..]);
}

/// A packet, changed.
fn changed(packet: Packet, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = packet.encode();
    change(&mut bytes);
    bytes
}

fn data_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Data(sample_data()), change)
}

fn token_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Token(sample_token(100, vec![])), change)
}

fn presence_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (cluster, sender, ring) = (5, member(2), RING);
    changed(
        Packet::MergeDetect(MergeDetect {
            cluster,
            sender,
            ring,
        }),
        change,
    )
}

fn join_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Join(sample_join()), change)
}

fn commit_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Commit(sample_commit()), change)
}

#[test]
fn every_error_of_the_header_is_reached() {
    let cases = [
        (vec![], DecodeError::Short),
        (
            data_with(|b| b.truncate(HEADER_BYTES - 1)),
            DecodeError::Short,
        ),
        (
            data_with(|b| b[0] = VERSION + 1),
            DecodeError::Version(VERSION + 1),
        ),
        (data_with(|b| b[1] = 7), DecodeError::Kind(7)),
        (data_with(|b| b[1] = 0x50), DecodeError::Service(5)),
        (data_with(|b| b[1] = 0x56), DecodeError::Service(5)),
        (data_with(|b| b[32..34].fill(0)), DecodeError::ZeroNode),
        (data_with(|b| b[34..36].fill(0)), DecodeError::ZeroNode),
        (data_with(|b| b[24..32].fill(0)), DecodeError::ZeroSeq),
        (data_with(|b| b[22] = 0x20), DecodeError::Incarnation),
        (
            presence_with(|b| b[HEADER_BYTES + 6] = 0x20),
            DecodeError::Incarnation,
        ),
        (
            presence_with(|b| b.truncate(HEADER_BYTES + 7)),
            DecodeError::Short,
        ),
        (presence_with(|b| b.push(0)), DecodeError::Trailing),
        (presence_with(|b| b[34..36].fill(0)), DecodeError::ZeroNode),
    ];
    for (bytes, error) in cases {
        assert_eq!(read(bytes), Err(error));
    }
}

/// Bytes of a process in a list.
const PROCESS_BYTES: usize = 2 + 8;

#[test]
fn every_error_of_a_join_is_reached() {
    let (flags, procs) = (HEADER_BYTES + 8, HEADER_BYTES + 9);
    let first = procs + 2;
    let fails = first + 3 * PROCESS_BYTES;
    let ascending = "a join's processes are not ascending";
    let without = "a join without its sender";
    let leaves = "only who leaves gives itself up in a join";
    let cases = [
        (join_with(|b| b.truncate(flags)), DecodeError::Short),
        (join_with(|b| b.push(0)), DecodeError::Trailing),
        (
            join_with(|b| b[flags] = 4),
            DecodeError::Join("a join has unknown flags"),
        ),
        (join_with(|b| b[flags] = 1), DecodeError::Join(leaves)),
        (giving_up_itself(), DecodeError::Join(leaves)),
        (
            join_with(|b| b[HEADER_BYTES] = 9),
            DecodeError::Join(without),
        ),
        (join_with(|b| b[first] = 0), DecodeError::ZeroNode),
        (join_with(|b| b[first + 8] = 0x20), DecodeError::Incarnation),
        (
            join_with(|b| b.copy_within(first..first + PROCESS_BYTES, first + PROCESS_BYTES)),
            DecodeError::Join(ascending),
        ),
        (join_with(|b| b[first] = 9), DecodeError::Join(ascending)),
        (
            join_with(|b| b.truncate(first + 2 * PROCESS_BYTES)),
            DecodeError::Short,
        ),
        (
            join_with(|b| b[procs..first].copy_from_slice(&1025_u16.to_le_bytes())),
            DecodeError::Join("a join names too many processes"),
        ),
        (
            join_with(|b| b[fails..fails + 2].fill(0xff)),
            DecodeError::Join("a join names too many processes"),
        ),
        (join_with(|b| b[fails] = 0), DecodeError::Trailing),
    ];
    for (index, (bytes, error)) in cases.into_iter().enumerate() {
        assert_eq!(read(bytes), Err(error), "case {index}");
    }
}

fn giving_up_itself() -> Vec<u8> {
    let mut join = sample_join();
    join.fails.insert(join.sender);
    Packet::Join(join).encode()
}

fn commit_of(change: impl FnOnce(&mut Commit)) -> Vec<u8> {
    let mut commit = sample_commit();
    change(&mut commit);
    Packet::Commit(commit).encode()
}

/// The commit token with what its first member tells changed.
fn told_with(change: impl FnOnce(&mut OldRing)) -> Vec<u8> {
    commit_of(|commit| change(&mut commit.told[0]))
}

#[test]
fn every_error_of_a_commit_tokens_list_is_reached() {
    let count = HEADER_BYTES;
    let table = count + 2 + 2 * PROCESS_BYTES;
    let told_count = table + 1;
    let many = "a ring has 1 to 128 members";
    let rep = "a ring's first member is its representative";
    let members =
        |count: u16| commit_of(|commit| commit.members = (1..=count).map(member).collect());
    let cases = [
        (commit_with(|b| b.push(0)), DecodeError::Trailing),
        (commit_with(|b| b.truncate(count + 1)), DecodeError::Short),
        (commit_with(|b| b[count] = 0), DecodeError::Commit(many)),
        (members(129), DecodeError::Commit(many)),
        (
            commit_with(|b| b[count..count + 2].fill(0xff)),
            DecodeError::Commit(many),
        ),
        (commit_with(|b| b[count + 2] = 0), DecodeError::ZeroNode),
        (
            commit_with(|b| b[count + 2] = 2),
            DecodeError::MembersNotAscending,
        ),
        (
            commit_with(|b| b[count + 2] = 9),
            DecodeError::MembersNotAscending,
        ),
        (
            commit_of(|c| c.members = vec![member(2), member(3)]),
            DecodeError::Commit(rep),
        ),
        (
            commit_of(|c| c.ring.incarnation.0 += 1),
            DecodeError::Commit(rep),
        ),
        (
            commit_with(|b| b[told_count] = 3),
            DecodeError::Commit("more have told than there are members"),
        ),
        (commit_with(|b| b[told_count] = 2), DecodeError::Short),
        (commit_with(|b| b[told_count] = 0), DecodeError::Trailing),
        (
            commit_of(|c| c.token_seq = 5),
            DecodeError::Commit("a commit token goes round twice"),
        ),
        (
            commit_of(|c| c.token_seq = u64::MAX),
            DecodeError::Commit("a commit token goes round twice"),
        ),
    ];
    for (index, (bytes, error)) in cases.into_iter().enumerate() {
        assert_eq!(read(bytes), Err(error), "case {index}");
    }
}

#[test]
fn electorates_that_contradict_themselves_are_refused() {
    let first = HEADER_BYTES + 2 + 2 * PROCESS_BYTES + 1;
    // An electorate of two, which the first member is configured with, and one that it has met.
    let sound = |commit: &mut Commit| {
        commit.electorates = vec![vec![node_id(2), node_id(5)], vec![node_id(7)]];
        commit.told[0].counts = Counts {
            own: Some(0),
            met: 0b10,
            more: true,
        };
    };
    let with = |change: fn(&mut Commit)| {
        commit_of(|commit| {
            sound(commit);
            change(commit);
        })
    };
    assert!(read(with(|_| ())).is_ok());
    let bytes_with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut commit = sample_commit();
        sound(&mut commit);
        changed(Packet::Commit(commit), |bytes| change(bytes))
    };
    let none = DecodeError::Commit("no such electorate");
    let size = DecodeError::Commit("an electorate has 1 to 128 nodes");
    let order = DecodeError::Commit("an electorate is not ascending");
    let cases = [
        (
            bytes_with(&|b| b[first - 1] = 9),
            DecodeError::Commit("too many electorates"),
        ),
        (bytes_with(&|b| b[first] = 0), size),
        (bytes_with(&|b| b[first] = 129), size),
        (bytes_with(&|b| b[first + 2] = 0), DecodeError::ZeroNode),
        (bytes_with(&|b| b[first + 2] = 5), order),
        (bytes_with(&|b| b[first + 2] = 6), order),
        (bytes_with(&|b| b.truncate(first + 3)), DecodeError::Short),
        (with(|commit| commit.told[0].counts.own = Some(2)), none),
        (with(|commit| commit.told[0].counts.met = 0b100), none),
        (with(|commit| commit.electorates.truncate(1)), none),
    ];
    for (index, (bytes, error)) in cases.into_iter().enumerate() {
        assert_eq!(read(bytes), Err(error), "case {index}");
    }
}

#[test]
fn every_contradiction_in_what_a_member_tells_is_refused() {
    let lines = "what a member tells contradicts itself";
    let ranges = "ranges are not ascending within bounds";
    let settings = "no ring can have these settings";
    let range = |first, count| RequestRange { first, count };
    let flags = HEADER_BYTES + 2 + 2 * PROCESS_BYTES + 1 + 2 + 18 + 24 + 16 + 8 + 16;
    let ranges_at = flags + 1 + 2;
    let many = (0..=MAX_HAVE_RANGES as u64).map(|index| range(11 + 2 * index, 1));
    let cases = [
        (told_with(|old| old.aru = 41), DecodeError::Commit(lines)),
        (
            told_with(|old| old.safe_line = 11),
            DecodeError::Commit(lines),
        ),
        (
            told_with(|old| (old.high, old.have) = (1000, many.collect())),
            DecodeError::Commit(lines),
        ),
        (commit_with(|b| b[flags] = 4), DecodeError::Commit(lines)),
        (
            commit_with(|b| b[ranges_at..ranges_at + 2].fill(0xff)),
            DecodeError::Commit(lines),
        ),
        (commit_with(|b| b[ranges_at] = 3), DecodeError::Short),
        (commit_with(|b| b[ranges_at] = 1), DecodeError::Trailing),
        (
            told_with(|old| old.settings.personal_window = 0),
            DecodeError::Commit(settings),
        ),
        (
            told_with(|old| old.settings.personal_window = old.settings.outstanding_window + 1),
            DecodeError::Commit(settings),
        ),
        (
            told_with(|old| old.settings.outstanding_window = (1 << 20) + 1),
            DecodeError::Commit(settings),
        ),
        (
            told_with(|old| old.settings.global_window = 0),
            DecodeError::Commit(settings),
        ),
        (
            told_with(|old| old.settings.token_loss_us = 60_000_001),
            DecodeError::Commit(settings),
        ),
        (
            told_with(|old| old.settings.token_loss_us = 0),
            DecodeError::Commit(settings),
        ),
        (
            told_with(|old| old.have = vec![range(10, 1)]),
            DecodeError::Token(ranges),
        ),
        (
            told_with(|old| old.have = vec![range(12, 0)]),
            DecodeError::Token(ranges),
        ),
        (
            told_with(|old| old.have = vec![range(40, 2)]),
            DecodeError::Token(ranges),
        ),
        (
            told_with(|old| old.have = vec![range(12, 3), range(14, 1)]),
            DecodeError::Token(ranges),
        ),
        (
            told_with(|old| {
                (old.high, old.have) = (u64::MAX, vec![range(u64::MAX, u32::MAX)]);
            }),
            DecodeError::Token(ranges),
        ),
        (
            commit_with(|b| b[flags - 82..flags - 66].fill(0xff)),
            DecodeError::Incarnation,
        ),
    ];
    for (index, (bytes, error)) in cases.into_iter().enumerate() {
        assert_eq!(read(bytes), Err(error), "case {index}");
    }
}

fn requesting(seq: u64, ranges: &[(u64, u32)]) -> Vec<u8> {
    let range = |&(first, count)| RequestRange { first, count };
    Packet::Token(sample_token(seq, ranges.iter().map(range).collect())).encode()
}

#[test]
fn every_error_of_a_token_is_reached() {
    let wrong = "ranges are not ascending within bounds";
    let many: Vec<_> = (0..=MAX_REQUEST_RANGES as u64)
        .map(|index| (1 + 2 * index, 1))
        .collect();
    let short = |mut bytes: Vec<u8>| {
        bytes.pop();
        bytes
    };
    let cases = [
        (
            token_with(|b| b.truncate(HEADER_BYTES + 20)),
            DecodeError::Short,
        ),
        (short(requesting(100, &[(1, 1)])), DecodeError::Short),
        (token_with(|b| b.push(0)), DecodeError::Trailing),
        (
            token_with(|b| b[HEADER_BYTES + 8..HEADER_BYTES + 16].fill(0xff)),
            DecodeError::Token("a token's aru is above its seq"),
        ),
        (
            token_with(|b| b[HEADER_BYTES + 18] = 4),
            DecodeError::Token("a token has unknown flags"),
        ),
        (
            requesting(1000, &many),
            DecodeError::Token("a token requests too many ranges"),
        ),
        (requesting(100, &[(0, 1)]), DecodeError::Token(wrong)),
        (requesting(100, &[(5, 0)]), DecodeError::Token(wrong)),
        (requesting(100, &[(100, 2)]), DecodeError::Token(wrong)),
        (
            requesting(100, &[(5, 3), (7, 1)]),
            DecodeError::Token(wrong),
        ),
        (
            requesting(100, &[(9, 1), (5, 1)]),
            DecodeError::Token(wrong),
        ),
        (
            requesting(u64::MAX, &[(u64::MAX, u32::MAX)]),
            DecodeError::Token(wrong),
        ),
    ];
    for (index, (bytes, error)) in cases.into_iter().enumerate() {
        assert_eq!(read(bytes), Err(error), "case {index}");
    }
}

fn frame_of(counter: u64, records: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, counter);
    records(&mut bytes);
    bytes
}

#[test]
fn every_error_of_a_frame_is_reached() {
    let overflow = "a message counter or part index overflows";
    let middle = |bytes: &mut Vec<u8>, index| push_next(bytes, false, index, false, b"x");
    let last = |bytes: &mut Vec<u8>, index| push_next(bytes, false, index, true, b"x");
    let cases: [(Vec<u8>, &str); 13] = [
        (vec![], "a malformed message counter"),
        (vec![0x80], "a malformed message counter"),
        (vec![0xff; 11], "a malformed message counter"),
        (
            frame_of(0, |b| push_whole(b, b"")),
            "message counters start at 1",
        ),
        (frame_of(1, |_| ()), "a frame without records"),
        (
            frame_of(1, |b| b.extend([9, 0, 0])),
            "a record with an unknown tag",
        ),
        (
            frame_of(1, |b| middle(b, 0)),
            "part 0 of a message must be its first",
        ),
        (
            frame_of(1, |b| last(b, 0)),
            "part 0 of a message must be its first",
        ),
        (frame_of(u64::MAX, |b| push_whole(b, b"")), overflow),
        (frame_of(1, |b| middle(b, u16::MAX)), overflow),
        (
            frame_of(1, |b| [1, 2].into_iter().for_each(|i| last(b, i))),
            "a further part inside a frame",
        ),
        (
            frame_of(1, |b| [1, 2].into_iter().for_each(|i| middle(b, i))),
            "a record after a part that ends its frame",
        ),
        (
            frame_of(1, |b| {
                push_first(b, false, 9, b"x");
                push_whole(b, b"y");
            }),
            "a record after a part that ends its frame",
        ),
    ];
    for (bytes, what) in cases {
        assert_eq!(
            Frame::parse(Bytes::from(bytes)),
            Err(DecodeError::Frame(what))
        );
    }
}

#[test]
fn a_frame_that_ends_inside_a_record_is_short() {
    let whole = frame_of(1, |bytes| push_first(bytes, true, 9, b"abc"));
    for len in 2..whole.len() {
        let cut = Bytes::copy_from_slice(&whole[..len]);
        assert_eq!(Frame::parse(cut), Err(DecodeError::Short), "{len} bytes");
    }
}

#[test]
fn the_cursors_of_a_frame_follow_from_its_records() {
    let bytes = frame_of(7, |bytes| {
        push_next(bytes, true, 4, true, b"rest");
        push_whole(bytes, b"");
        push_first(bytes, false, 100, b"start");
    });
    let frame = Frame::parse(Bytes::from(bytes)).expect("a frame by the rules");
    let (start, end) = (frame.start(), frame.end());
    assert_eq!(
        (start.counter, start.fragment, end.counter, end.fragment),
        (7, 4, 9, 1)
    );
    let kinds: Vec<_> = frame
        .records()
        .map(|record| (record.kind, record.reliable))
        .collect();
    let (last, first) = (
        RecordKind::Last { index: 4 },
        RecordKind::First { total: 100 },
    );
    assert_eq!(
        kinds,
        [(last, true), (RecordKind::Whole, false), (first, false)]
    );
}

#[test]
fn every_error_says_what_is_wrong() {
    for error in [
        DecodeError::Short,
        DecodeError::Trailing,
        DecodeError::Version(1),
        DecodeError::Kind(9),
        DecodeError::Service(9),
        DecodeError::ZeroNode,
        DecodeError::ZeroSeq,
        DecodeError::Incarnation,
        DecodeError::MembersNotAscending,
        DecodeError::Token("a token has unknown flags"),
        DecodeError::Join("a join has unknown flags"),
        DecodeError::Commit("a ring has 1 to 128 members"),
        DecodeError::Frame("a frame without records"),
    ] {
        assert!(error.to_string().len() > 10, "{error:?}");
    }
}
