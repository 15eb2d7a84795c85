//! Packing: messages through an outbox and an inbox come out as they went in.

mod property;

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::{NodeId, Service, SubmitError};
use rota_core::pack::{Inbox, InboxError, OutFrame, Outbox, Unpacked};
use rota_core::wire::{
    Frame, FrameCursor, WHOLE_RECORD_BYTES, push_first, push_next, push_whole, start_frame,
};

const SENDER: NodeId = NodeId::new(1).unwrap();
const OTHER: NodeId = NodeId::new(2).unwrap();
const MESSAGE_BYTES: usize = 200_000;
const BACKLOG: usize = 32 << 20;

/// A service and a payload.
type Sent = (Service, Vec<u8>);

fn message() -> impl Strategy<Value = Sent> {
    let size = prop_oneof![
        10 => 0..200_usize,
        4 => 200..5000_usize,
        1 => 5000..=MESSAGE_BYTES,
    ];
    let services = Service::ALL;
    (prop::sample::select(services.to_vec()), size, any::<u8>())
        .prop_map(|(service, size, first)| (service, content(size, first)))
}

fn content(size: usize, first: u8) -> Vec<u8> {
    (0..size)
        .map(|at| (at as u8).wrapping_mul(31).wrapping_add(first))
        .collect()
}

fn frame_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![Just(472), Just(1432), Just(8960), 100..3000_usize]
}

fn all(outbox: &mut Outbox) -> Vec<OutFrame> {
    core::iter::from_fn(|| outbox.take()).collect()
}

fn unpack(inbox: &mut Inbox, frame: &Frame) -> Vec<Result<Unpacked, InboxError>> {
    inbox.take(SENDER, frame.clone());
    core::iter::from_fn(|| inbox.next_message()).collect()
}

/// Packs everything, taking a frame now and then as a token's visit does.
fn pack(messages: &[Sent], frame_bytes: usize, take_every: usize) -> Vec<OutFrame> {
    let mut outbox = Outbox::new(frame_bytes, MESSAGE_BYTES, BACKLOG);
    let mut frames = Vec::new();
    for (index, (service, payload)) in messages.iter().enumerate() {
        assert_eq!(outbox.push(*service, payload), Ok(index as u64 + 1));
        if index % take_every == 0 {
            frames.extend(outbox.take());
        }
    }
    frames.extend(all(&mut outbox));
    assert!(outbox.is_empty());
    frames
}

/// The frames carry exactly these messages.
fn carries(frames: &[OutFrame], messages: &[Sent]) -> Result<(), TestCaseError> {
    let mut inbox = Inbox::new(MESSAGE_BYTES);
    let mut next = messages.iter().zip(1..);
    for OutFrame { service, frame } in frames {
        let mut indices = BTreeSet::new();
        for unpacked in unpack(&mut inbox, frame) {
            let unpacked = unpacked.expect("the outbox keeps the rules");
            let ((sent, payload), counter) = next.next().expect("one more than sent");
            let got = if unpacked.reliable {
                Service::Reliable
            } else {
                *service
            };
            prop_assert_eq!((unpacked.counter, got), (counter, *sent));
            prop_assert!(
                unpacked.payload == payload,
                "message {} is another",
                counter
            );
            prop_assert!(
                indices.insert(unpacked.index),
                "index {} twice",
                unpacked.index
            );
        }
    }
    prop_assert!(next.next().is_none(), "messages are missing");
    Ok(())
}

#[test]
fn messages_come_out_as_they_went_in() {
    let input = (vec(message(), 0..60), frame_bytes(), 1..20_usize);
    property::check(150, input, |(messages, frame_bytes, take_every)| {
        let frames = pack(&messages, frame_bytes, take_every);
        carries(&frames, &messages)
    });
}

#[test]
fn no_frame_is_larger_than_asked_for_and_each_continues_the_one_before() {
    let input = (vec(message(), 0..60), frame_bytes(), 1..20_usize);
    property::check(150, input, |(messages, frame_bytes, take_every)| {
        let mut at = FrameCursor {
            counter: 1,
            fragment: 0,
        };
        for OutFrame { frame, .. } in pack(&messages, frame_bytes, take_every) {
            prop_assert!(frame.bytes().len() <= frame_bytes);
            prop_assert_eq!(frame.start(), at);
            at = frame.end();
        }
        Ok(())
    });
}

#[test]
fn a_byte_before_each_frame_says_what_is_in_it_and_changes_nothing() {
    const CUT: u8 = 0x80;
    let code = |service| Service::ALL.iter().position(|s| *s == service).unwrap() as u8;
    let lead = |service, is_cut| {
        let at = Service::ALL.iter().position(|s| *s == service);
        at.map_or(0, |at| at as u8) | if is_cut { CUT } else { 0 }
    };
    let input = (
        vec(message(), 0..60),
        frame_bytes(),
        1..20_usize,
        any::<bool>(),
    );
    property::check(150, input, |(messages, frame_bytes, take_every, shares)| {
        let outbox = || {
            let outbox = Outbox::new(frame_bytes, MESSAGE_BYTES, BACKLOG);
            if shares {
                outbox
            } else {
                outbox.with_one_each()
            }
        };
        let (mut plain, mut led) = (outbox(), outbox().with_lead(lead));
        let compare = |plain: &mut Outbox, led: &mut Outbox| {
            let (one, other) = (plain.take(), led.take_led());
            prop_assert_eq!(one.is_some(), other.is_some());
            if let (Some(OutFrame { service, frame }), Some((same, whole))) = (one, other) {
                let is_cut = frame.end().fragment > 0;
                prop_assert_eq!(whole[0], code(service) | if is_cut { CUT } else { 0 });
                prop_assert!(whole[1..] == frame.bytes()[..] && same.bytes() == frame.bytes());
            }
            Ok(())
        };
        for (index, (service, payload)) in messages.iter().enumerate() {
            prop_assert_eq!(plain.push(*service, payload), led.push(*service, payload));
            if index % take_every == 0 {
                compare(&mut plain, &mut led)?;
            }
        }
        while !plain.is_empty() {
            compare(&mut plain, &mut led)?;
        }
        prop_assert!(led.is_empty() && led.next_to_leave() == plain.next_to_leave());
        Ok(())
    });
}

#[test]
fn small_messages_share_frames_at_three_bytes_each() {
    property::check(
        100,
        (vec(0..100_usize, 1..200), frame_bytes()),
        |(sizes, frame_bytes)| {
            let messages: Vec<Sent> = sizes
                .iter()
                .map(|&size| (Service::Agreed, content(size, 1)))
                .collect();
            let mut outbox = Outbox::new(frame_bytes, MESSAGE_BYTES, BACKLOG);
            for (service, payload) in &messages {
                outbox.push(*service, payload).expect("there is room");
            }
            if frame_bytes < 13 + 100 {
                return Ok(());
            }
            let frames = all(&mut outbox);
            let bytes: usize = frames.iter().map(|out| out.frame.bytes().len()).sum();
            let payload: usize = sizes.iter().sum();
            // Counters below 2^14 take two bytes.
            prop_assert!(bytes <= payload + 3 * sizes.len() + 2 * frames.len());
            // Every frame but the last had no room for the first message of the next.
            for pair in frames.windows(2) {
                let next = pair[1]
                    .frame
                    .records()
                    .next()
                    .expect("a record")
                    .payload
                    .len();
                let used = pair[0].frame.bytes().len();
                prop_assert!(used + WHOLE_RECORD_BYTES + next > frame_bytes);
            }
            Ok(())
        },
    );
}

#[test]
fn each_message_has_frames_of_its_own_if_that_is_wanted() {
    let mut outbox = Outbox::new(1432, MESSAGE_BYTES, BACKLOG).with_one_each();
    let sizes = [10, 0, 2000, 10, 1400, 3000, 3000];
    let messages: Vec<Sent> = sizes
        .iter()
        .map(|&size| (Service::Agreed, content(size, 1)))
        .collect();
    for (service, payload) in &messages {
        outbox.push(*service, payload).expect("there is room");
    }
    let frames = all(&mut outbox);
    assert_eq!(frames.len(), 1 + 1 + 2 + 1 + 1 + 3 + 3);
    assert!(frames.iter().all(|out| out.frame.records().count() == 1));
    carries(&frames, &messages).expect("all of them");
}

/// Frames that wait keep the memory they were written to.
#[test]
fn messages_with_frames_of_their_own_lie_side_by_side() {
    let mut outbox = Outbox::new(33_000, MESSAGE_BYTES, BACKLOG).with_one_each();
    for _ in 0..1000 {
        outbox
            .push(Service::Agreed, &[7; 10])
            .expect("there is room");
    }
    let frames = all(&mut outbox);
    let at = |out: &OutFrame| out.frame.bytes().as_ptr().addr();
    let next = |pair: &&[OutFrame]| at(&pair[0]) + pair[0].frame.bytes().len() == at(&pair[1]);
    assert!(frames.windows(2).filter(next).count() >= 997);
}

#[test]
fn messages_of_another_service_start_another_frame() {
    let mut outbox = Outbox::new(1432, MESSAGE_BYTES, BACKLOG);
    for service in [
        Service::Agreed,
        Service::Agreed,
        Service::Safe,
        Service::Agreed,
    ] {
        outbox.push(service, b"x").expect("there is room");
    }
    let services: Vec<_> = all(&mut outbox).iter().map(|out| out.service).collect();
    assert_eq!(services, [Service::Agreed, Service::Safe, Service::Agreed]);
}

#[test]
fn small_messages_ride_with_the_end_of_a_large_one() {
    let mut outbox = Outbox::new(1432, MESSAGE_BYTES, BACKLOG);
    outbox
        .push(Service::Safe, &content(2000, 0))
        .expect("there is room");
    outbox.push(Service::Safe, b"x").expect("there is room");
    assert_eq!(all(&mut outbox).len(), 2);
}

#[test]
fn a_full_backlog_refuses_and_keeps_nothing() {
    let mut outbox = Outbox::new(1432, 5000, 10_000);
    let mut taken = Vec::new();
    loop {
        let message = (Service::Fifo, content(700, taken.len() as u8));
        match outbox.push(message.0, &message.1) {
            Ok(_) => taken.push(message),
            Err(error) => break assert_eq!(error, SubmitError::Full),
        }
    }
    assert!(
        (10..=14).contains(&taken.len()),
        "{} messages in 10,000 bytes",
        taken.len()
    );
    let frames = outbox.len();
    assert_eq!(
        outbox.push(Service::Fifo, &content(5000, 0)),
        Err(SubmitError::Full)
    );
    assert_eq!(outbox.len(), frames);
    let first = outbox.take().expect("a frame");
    let late = (Service::Fifo, content(600, 9));
    assert_eq!(outbox.push(late.0, &late.1), Ok(taken.len() as u64 + 1));
    taken.push(late);
    let mut frames = vec![first];
    frames.extend(all(&mut outbox));
    carries(&frames, &taken).expect("the same messages");
}

#[test]
fn empty_messages_fill_the_backlog_too() {
    let mut outbox = Outbox::new(1432, 1000, 1000);
    let taken = (0..1000)
        .take_while(|_| outbox.push(Service::Agreed, b"").is_ok())
        .count();
    assert!(
        (290..310).contains(&taken),
        "{taken} empty messages in 1000 bytes, of which their one frame costs 100"
    );
}

#[test]
fn services_in_turns_open_many_frames_and_each_counts_with_its_place_in_the_queue() {
    let mut outbox = Outbox::new(1432, 1000, 100_000);
    let services = [Service::Agreed, Service::Safe].into_iter().cycle();
    let taken = services
        .take_while(|&service| outbox.push(service, b"x").is_ok())
        .count();
    assert_eq!(taken, outbox.len());
    assert!(
        taken * 96 <= 100_000 && taken > 900,
        "{taken} frames in 100,000 bytes"
    );
}

#[test]
fn an_empty_outbox_takes_one_message_however_small_the_backlog() {
    let mut outbox = Outbox::new(1432, 5000, 5000);
    assert_eq!(outbox.push(Service::Agreed, &content(5000, 0)), Ok(1));
    assert_eq!(outbox.push(Service::Agreed, b"x"), Err(SubmitError::Full));
}

#[test]
fn a_message_above_the_limit_is_too_large_and_uses_no_counter() {
    let mut outbox = Outbox::new(1432, 5000, BACKLOG);
    let refused = outbox.push(Service::Agreed, &content(5001, 0));
    assert_eq!(refused, Err(SubmitError::TooLarge { limit: 5000 }));
    assert!(outbox.is_empty());
    assert_eq!(outbox.push(Service::Agreed, &content(5000, 0)), Ok(1));
}

#[test]
fn the_limit_is_never_more_than_a_part_index_counts() {
    let mut outbox = Outbox::new(32, usize::MAX, usize::MAX);
    let limit = outbox.limit();
    outbox
        .push(Service::Agreed, &content(limit, 0))
        .expect("within the limit");
    let frames = all(&mut outbox);
    let mut inbox = Inbox::new(limit);
    let messages: Vec<_> = frames
        .iter()
        .flat_map(|out| unpack(&mut inbox, &out.frame))
        .collect();
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0]
            .as_ref()
            .is_ok_and(|message| message.payload == content(limit, 0))
    );
}

/// The counter with which each frame starts.
fn starts(frames: &[OutFrame]) -> Vec<u64> {
    frames.iter().map(|out| out.frame.start().counter).collect()
}

#[test]
fn the_next_to_leave_is_the_first_message_that_has_not_left_whole() {
    let mut outbox = Outbox::new(472, MESSAGE_BYTES, BACKLOG);
    assert_eq!(outbox.next_to_leave(), 1);
    for size in [10, 10, 1000, 10] {
        outbox
            .push(Service::Agreed, &content(size, 0))
            .expect("room");
    }
    assert_eq!(outbox.next_to_leave(), 1, "nothing has left");
    let mut next = Vec::new();
    while outbox.take().is_some() {
        next.push(outbox.next_to_leave());
    }
    // Two messages and a part of the third in a frame, a part, and the last with the fourth.
    assert_eq!(next, [3, 3, 5]);
}

#[test]
fn messages_somewhat_larger_than_a_frame_fill_their_frames() {
    for size in [480, 600, 900, 1500, 5000] {
        let mut outbox = Outbox::new(472, MESSAGE_BYTES, BACKLOG);
        let messages: Vec<Sent> = (0..100)
            .map(|first| (Service::Agreed, content(size, first)))
            .collect();
        for (service, payload) in &messages {
            outbox.push(*service, payload).expect("there is room");
        }
        let frames = all(&mut outbox);
        let (_, full) = frames.split_last().expect("some");
        let shortest = full.iter().map(|out| out.frame.bytes().len()).min();
        // What is left is too little for the start of another.
        assert!(
            shortest >= Some(472 - 7),
            "messages of {size} bytes: {shortest:?}"
        );
        carries(&frames, &messages).expect("every message once, and whole");
    }
}

#[test]
fn what_has_ended_in_a_frame_is_not_taken_back_with_it() {
    let mut outbox = Outbox::new(472, MESSAGE_BYTES, BACKLOG);
    let messages: Vec<Sent> = (0..4)
        .map(|first| (Service::Agreed, content(600, first)))
        .collect();
    for (service, payload) in &messages {
        outbox.push(*service, payload).expect("there is room");
    }
    let mut left: Vec<OutFrame> = (0..2).filter_map(|_| outbox.take()).collect();
    let ends: Vec<FrameCursor> = left.iter().map(|out| out.frame.end()).collect();
    let (counter, fragment) = (2, 1);
    assert_eq!(ends[1], FrameCursor { counter, fragment }, "one and a part");
    outbox.rewind();
    let again = all(&mut outbox);
    let (counter, fragment) = (2, 0);
    assert_eq!(again[0].frame.start(), FrameCursor { counter, fragment });
    left.extend(again);
    carries(&left, &messages).expect("every message once, and whole");
    assert!(outbox.is_empty());
    outbox
        .push(Service::Agreed, &content(BACKLOG / 200, 0))
        .expect("all room is back");
}

#[test]
fn what_has_left_of_an_unfinished_message_is_taken_back() {
    for taken in 1..=5 {
        let mut outbox = Outbox::new(472, MESSAGE_BYTES, BACKLOG);
        let messages: Vec<Sent> = [10, 1500, 10]
            .map(|size| (Service::Safe, content(size, size as u8)))
            .to_vec();
        for (service, payload) in &messages {
            outbox.push(*service, payload).expect("there is room");
        }
        let frames = outbox.len();
        let mut left: Vec<OutFrame> = (0..taken).filter_map(|_| outbox.take()).collect();
        let next = outbox.next_to_leave();
        outbox.rewind();
        assert_eq!(outbox.next_to_leave(), next);
        let open =
            |out: &&OutFrame| out.frame.end().fragment != 0 && out.frame.end().counter == next;
        let back = left.iter().filter(open).count();
        assert_eq!(outbox.len(), frames - left.len() + back, "{taken} taken");
        left.retain(|out| out.frame.start().counter < next);
        let again = all(&mut outbox);
        assert_eq!(starts(&again).first().copied().unwrap_or(next), next);
        assert!(
            again
                .first()
                .is_none_or(|out| out.frame.start().fragment == 0)
        );
        left.extend(again);
        carries(&left, &messages).expect("every message once, and whole");
    }
}

#[test]
fn what_has_left_whole_is_not_taken_back() {
    let mut outbox = Outbox::new(472, MESSAGE_BYTES, BACKLOG);
    for size in [1000, 10] {
        outbox
            .push(Service::Agreed, &content(size, 0))
            .expect("room");
    }
    assert_eq!(all(&mut outbox).len(), 3);
    outbox.rewind();
    assert!(outbox.is_empty() && outbox.take().is_none());
}

#[test]
fn a_message_taken_back_twice_still_leaves_once() {
    let mut outbox = Outbox::new(472, MESSAGE_BYTES, BACKLOG);
    let message = (Service::Fifo, content(1500, 3));
    outbox.push(message.0, &message.1).expect("there is room");
    for parts in [3, 2, 1] {
        (0..parts).for_each(|_| drop(outbox.take()));
        outbox.rewind();
    }
    let frames = all(&mut outbox);
    carries(&frames, &[message]).expect("once, and whole");
}

/// Its room in the backlog is taken again, and given back when it leaves.
#[test]
fn what_is_taken_back_counts_in_the_backlog() {
    let mut outbox = Outbox::new(472, 5000, 5000);
    outbox
        .push(Service::Agreed, &content(4000, 0))
        .expect("room");
    (0..5).for_each(|_| drop(outbox.take()));
    assert!(outbox.push(Service::Agreed, &content(900, 0)).is_ok());
    outbox.rewind();
    let refused = outbox.push(Service::Agreed, &content(900, 0));
    assert_eq!(refused, Err(SubmitError::Full));
    all(&mut outbox);
    assert!(outbox.push(Service::Agreed, &content(4000, 0)).is_ok());
}

fn built(counter: u64, records: impl FnOnce(&mut Vec<u8>)) -> Frame {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, counter);
    records(&mut bytes);
    Frame::parse(Bytes::from(bytes)).expect("a frame by the rules")
}

fn first(counter: u64, total: u32, part: &[u8]) -> Frame {
    built(counter, |bytes| push_first(bytes, false, total, part))
}

fn next(counter: u64, index: u16, last: bool, part: &[u8]) -> Frame {
    built(counter, |bytes| push_next(bytes, false, index, last, part))
}

/// What the last of these frames gives.
fn outcome(frames: &[Frame]) -> Vec<Result<u64, InboxError>> {
    let mut inbox = Inbox::new(100);
    let outcomes = frames.iter().map(|frame| unpack(&mut inbox, frame));
    let last = outcomes.last().expect("at least one frame");
    last.into_iter()
        .map(|message| message.map(|message| message.counter))
        .collect()
}

#[test]
fn parts_that_do_not_continue_are_refused() {
    let missing = vec![Err(InboxError::MissingParts)];
    assert_eq!(outcome(&[next(1, 1, true, b"x")]), missing);
    assert_eq!(outcome(&[next(1, 1, false, b"x")]), missing);
    assert_eq!(
        outcome(&[first(1, 9, b"x"), next(1, 2, true, b"x")]),
        missing
    );
    assert_eq!(
        outcome(&[first(1, 9, b"x"), next(2, 1, true, b"x")]),
        missing
    );
    let again = [
        first(1, 9, b"x"),
        next(1, 1, false, b"x"),
        next(1, 1, false, b"x"),
    ];
    assert_eq!(outcome(&again), missing);
}

#[test]
fn parts_of_another_size_than_announced_are_refused() {
    let wrong = vec![Err(InboxError::WrongSize)];
    assert_eq!(
        outcome(&[first(1, 9, b"abc"), next(1, 1, true, b"abc")]),
        wrong
    );
    assert_eq!(
        outcome(&[first(1, 5, b"abc"), next(1, 1, true, b"abc")]),
        wrong
    );
    assert_eq!(
        outcome(&[first(1, 5, b"abc"), next(1, 1, false, b"abc")]),
        wrong
    );
    assert_eq!(
        outcome(&[first(1, 2, b"abc"), next(1, 1, true, b"")]),
        wrong
    );
}

#[test]
fn parts_above_the_largest_message_are_refused() {
    let part = [7; 60];
    let parts = [first(1, 120, &part), next(1, 1, true, &part)];
    assert_eq!(outcome(&parts), [Err(InboxError::WrongSize)]);
}

#[test]
fn the_messages_behind_a_broken_one_still_come() {
    let frame = built(4, |bytes| {
        push_next(bytes, false, 3, true, b"x");
        push_whole(bytes, b"y");
    });
    assert_eq!(outcome(&[frame]), [Err(InboxError::MissingParts), Ok(5)]);
}

#[test]
fn a_message_that_is_never_finished_gives_way_to_the_next() {
    let frames = [
        first(1, 9, b"abc"),
        first(2, 4, b"ab"),
        next(2, 1, true, b"cd"),
    ];
    assert_eq!(outcome(&frames), [Ok(2)]);
}

#[test]
fn senders_do_not_share_parts() {
    let mut inbox = Inbox::new(100);
    inbox.take(SENDER, first(1, 4, b"ab"));
    assert_eq!(inbox.next_message(), None);
    inbox.take(OTHER, next(1, 1, true, b"cd"));
    assert_eq!(inbox.next_message(), Some(Err(InboxError::MissingParts)));
    assert_eq!(inbox.next_message(), None);
    let message = unpack(&mut inbox, &next(1, 1, true, b"cd"))
        .remove(0)
        .expect("whole");
    assert_eq!(&message.payload[..], b"abcd");
}

#[test]
fn any_sequence_of_parts_is_unpacked_without_panic_and_within_bounds() {
    let part = (
        0..4_u8,
        1..4_u64,
        1..4_u16,
        0..120_u32,
        vec(any::<u8>(), 0..60),
    );
    property::check(2000, vec(part, 0..40), |parts| {
        let mut inbox = Inbox::new(100);
        for (kind, counter, index, total, payload) in parts {
            let frame = match kind {
                0 => built(counter, |bytes| push_whole(bytes, &payload)),
                1 => first(counter, total, &payload),
                kind => next(counter, index, kind == 2, &payload),
            };
            for message in unpack(&mut inbox, &frame).into_iter().flatten() {
                prop_assert!(message.payload.len() <= 100);
                prop_assert_eq!(message.counter, counter);
            }
        }
        Ok(())
    });
}
