//! What a state has beside it in a checkpoint is the bytes of `testdata/golden/resume.txt`, and what rings order about
//! subscriptions those of `notice.txt`, and what it orders about new rings those of `charter.txt`; all are read back as
//! what they were.

#[path = "../../core/tests/golden/mod.rs"]
mod golden;

use std::num::NonZeroU32;

use golden::Golden;
use rota_core::bytes::Reader;
use rota_core::contract::NodeId;
use rota_multiring::level::Mode;
use rota_multiring::notice::{Command, Notice};
use rota_multiring::{Charter, Constants, Place, Point, Rank, Resume, ResumeRing};
use rota_paxos::uring::Snapshot;

fn resume() -> Resume {
    let of = |rank, per_round, origin| Constants {
        rank: Rank(rank),
        per_round: NonZeroU32::new(per_round).expect("not 0"),
        origin,
    };
    let point = Point {
        round: 0x0102_0304,
        turn: Rank(4),
        used: 2,
    };
    let ring = |of: Constants| ResumeRing {
        of,
        founded: 0x1112_1314_1516_1718,
        base: Snapshot {
            next: point.next_of(&of),
            ..Snapshot::default()
        },
    };
    Resume {
        point,
        rings: [of(1, 1, 0), of(4, 3, 0x0708)].map(ring).to_vec(),
        spent: Vec::new(),
    }
}

#[test]
fn a_resume_and_a_place() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "resume");
    let bytes = golden.compare("resume", &resume().encode());
    assert_eq!(Resume::decode(bytes.into()), Some(resume()));
    let spent = vec![(Rank(5), 0x0708), (Rank(9), 0x0a0b)];
    let left = Resume { spent, ..resume() };
    let bytes = golden.compare("resume of a partition that has left rings", &left.encode());
    assert_eq!(Resume::decode(bytes.into()), Some(left));
    let place = Place {
        round: 0x0102_0304_0506_0708,
        rank: Rank(0x090a),
        instance: 0x1112_1314_1516_1718,
        index: 0x191a_1b1c,
    };
    let mut bytes = Vec::new();
    place.put(&mut bytes);
    let bytes = golden.compare("place", &bytes);
    assert_eq!(Place::take(&mut Reader(&bytes)), Some(place));
    golden.finish();
}

#[test]
fn notices() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "notice");
    let of = Constants {
        rank: Rank(0x0506),
        per_round: NonZeroU32::new(3).expect("not 0"),
        origin: 0x0708,
    };
    let commands = [
        ("hold", Command::Hold),
        ("subscribe", Command::Subscribe(of, 0x1112_1314_1516)),
        ("leave", Command::Leave(Rank(0x0506))),
        ("cancel", Command::Cancel(Rank(0x0506), 0x1112_1314_1516)),
    ];
    for (name, command) in commands {
        let partition = 0x0102_0304;
        let notice = Notice { partition, command };
        let bytes = golden.compare(name, &notice.encode());
        assert_eq!(Notice::decode(bytes.into()), Some(notice));
    }
    golden.finish();
}

#[test]
fn charters() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "charter");
    let node = |id| NodeId::new(id).expect("not 0");
    let plain = Charter::new(Rank(0x0102), 0x0304, [0x0505, 0x0606].map(node));
    let multicast = Charter {
        is_multicast: true,
        per_round: NonZeroU32::new(0x0708_090a).expect("not 0"),
        mode: Mode::Paper {
            delta: 5_000_000,
            lambda: 0x0b0c,
        },
        acceptors: [node(0x0606)].into(),
        ..plain.clone()
    };
    let horizon = Charter {
        mode: Mode::Horizon,
        ..plain.clone()
    };
    let charters = [
        ("plain", plain),
        ("multicast, at a rate", multicast),
        ("horizon", horizon),
    ];
    for (name, charter) in charters {
        let bytes = golden.compare(name, &charter.encode());
        assert_eq!(Charter::decode(bytes.into()), Some(charter));
    }
    golden.finish();
}
