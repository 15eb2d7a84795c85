//! The contract carries engines of another kind than rings of tokens: a fixed sequencer on
//! reliable links, with a durable log. Its parts stand for those of LCR and Ring Paxos.

#[path = "contract_toy/driver.rs"]
mod driver;
#[path = "contract_toy/toy.rs"]
mod toy;

use rota_core::contract::{
    Class, Delivery, Engine, Input, Output, PersistError, PersistId, Service, Session, SubmitError,
};

use driver::{Cluster, node};
use toy::BACKLOG;

fn submit(cluster: &mut Cluster, at: usize, text: &str) {
    let taken = cluster.submit(at, text.as_bytes());
    taken.expect("there is room");
}

fn texts(cluster: &Cluster, at: usize) -> Vec<String> {
    let text = |delivery: &Delivery| match delivery {
        Delivery::Message(message) => String::from_utf8_lossy(&message.payload).into_owned(),
        Delivery::Passed { next } => format!("nothing to {next}"),
        Delivery::Configuration(_)
        | Delivery::Notice { .. }
        | Delivery::Primary(_)
        | Delivery::Excluded(_)
        | Delivery::Missed { .. } => {
            panic!("the toy has none")
        }
    };
    cluster.delivered(at).iter().map(text).collect()
}

fn everybody_has(cluster: &Cluster, expected: &[&str]) {
    for at in 0..3 {
        assert_eq!(texts(cluster, at), expected, "node {}", at + 1);
    }
}

#[test]
fn three_nodes_deliver_one_order() {
    let mut cluster = Cluster::new(3);
    for round in 0..20 {
        for at in [2, 0, 1] {
            submit(&mut cluster, at, &format!("{at}.{round}"));
        }
        cluster.step();
    }
    cluster.settle();
    assert_eq!(texts(&cluster, 0).len(), 60);
    assert_eq!(cluster.delivered(0), cluster.delivered(1));
    assert_eq!(cluster.delivered(0), cluster.delivered(2));
}

#[test]
fn nothing_leaves_before_it_is_durable() {
    let mut cluster = Cluster::new(3);
    cluster.hold_disk(true);
    submit(&mut cluster, 1, "a");
    submit(&mut cluster, 0, "b");
    cluster.settle();
    everybody_has(&cluster, &[]);
    assert_eq!(cluster.left_the_sequencer(), 0);
    cluster.hold_disk(false);
    cluster.settle();
    assert_eq!(texts(&cluster, 2).len(), 2);
    assert_eq!(cluster.left_the_sequencer(), 2);
    assert_eq!(cluster.log_len(), 2);
}

#[test]
fn beacons_name_the_request_they_wait_for() {
    let mut cluster = Cluster::new(3);
    submit(&mut cluster, 0, "a");
    cluster.settle();
    let waited = cluster.outputs().iter().filter_map(|output| match output {
        Output::Send { after, .. } => *after,
        _ => None,
    });
    let waited: Vec<_> = waited.collect();
    assert_eq!(waited, [PersistId(1)]);
}

#[test]
fn messages_of_an_old_session_never_arrive_in_a_new_one() {
    let mut cluster = Cluster::new(3);
    submit(&mut cluster, 0, "a");
    cluster.settle();
    // Under way from 1 to 2 when the link breaks.
    submit(&mut cluster, 0, "b");
    cluster.finish_disk();
    cluster.carry_out();
    let old = cluster.cut(0, 1);
    assert!(!old.is_empty(), "something was under way");
    cluster.connect(0, 1);
    cluster.inject(old);
    assert_eq!(
        cluster.toy(1).ignored(),
        1,
        "the old session's message is ignored"
    );
    cluster.settle();
    everybody_has(&cluster, &["a", "b"]);
}

#[test]
fn a_new_session_sends_again_what_the_old_one_lost() {
    let mut cluster = Cluster::new(3);
    for round in 0..30 {
        let lost_link = [(0, 1), (1, 2), (0, 2)][round % 3];
        for at in 0..3 {
            submit(&mut cluster, at, &format!("{at}.{round}"));
        }
        cluster.step();
        drop(cluster.cut(lost_link.0, lost_link.1));
        cluster.step();
        cluster.connect(lost_link.0, lost_link.1);
    }
    cluster.settle();
    let order = texts(&cluster, 0);
    assert_eq!(order.len(), 90);
    assert_eq!(
        order
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        90,
        "none twice"
    );
    everybody_has(
        &cluster,
        &order.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn a_link_never_gets_more_than_it_said_it_can_take() {
    // Room for two messages; the driver asserts that no send exceeds what it granted.
    let mut cluster = Cluster::with_link_room(3, 2 * 64);
    for round in 0..40 {
        for at in 0..3 {
            submit(&mut cluster, at, &format!("{at}.{round}"));
        }
    }
    cluster.settle();
    assert_eq!(texts(&cluster, 2).len(), 120);
    assert!(cluster.fullest_link() <= 128 && cluster.fullest_link() > 64);
}

#[test]
fn without_credit_nothing_is_sent() {
    let mut cluster = Cluster::with_link_room(3, 0);
    submit(&mut cluster, 1, "a");
    cluster.settle();
    assert!(
        !cluster
            .outputs()
            .iter()
            .any(|output| matches!(output, Output::LinkSend { .. }))
    );
}

#[test]
fn a_failed_disk_stops_the_node() {
    let mut cluster = Cluster::new(3);
    submit(&mut cluster, 0, "a");
    cluster.settle();
    cluster.fail_disk(PersistError::Io("gone".into()));
    submit(&mut cluster, 0, "b");
    submit(&mut cluster, 1, "c");
    cluster.settle();
    everybody_has(&cluster, &["a"]);
    assert_eq!(cluster.submit(0, b"d"), Err(SubmitError::Stopped));
    assert!(cluster.toy(0).status().state.contains("gone"));
    assert_eq!(cluster.toy(0).next_timer(), None);
}

#[test]
fn a_member_that_asks_gets_old_records_from_the_log() {
    let mut cluster = Cluster::new(3);
    drop(cluster.cut(0, 1));
    for text in ["a", "b", "c"] {
        submit(&mut cluster, 0, text);
    }
    cluster.settle();
    assert_eq!(texts(&cluster, 0), ["a", "b", "c"]);
    assert!(texts(&cluster, 1).is_empty());
    cluster.connect(0, 1);
    cluster.settle();
    let fetches = cluster
        .outputs()
        .iter()
        .filter(|o| matches!(o, Output::Fetch { .. }));
    assert!(fetches.count() >= 1);
    everybody_has(&cluster, &["a", "b", "c"]);
}

#[test]
fn a_restarted_sequencer_goes_on_from_what_it_finds_on_disk() {
    let mut cluster = Cluster::new(3);
    submit(&mut cluster, 0, "a");
    submit(&mut cluster, 2, "b");
    cluster.settle();
    let before = texts(&cluster, 1);
    cluster.restart(0);
    submit(&mut cluster, 1, "c");
    cluster.settle();
    let after = texts(&cluster, 1);
    assert_eq!((&after[..2], after[2].as_str()), (&before[..], "c"));
    assert_eq!(
        texts(&cluster, 0),
        after,
        "the log is delivered again to the new process"
    );
}

#[test]
fn a_range_of_skips_is_one_message_and_one_delivery() {
    let mut cluster = Cluster::new(3);
    submit(&mut cluster, 0, "a");
    cluster.settle();
    let sends = cluster.left_the_sequencer();
    cluster
        .submit_skips_to(0, 1002)
        .expect("the sequencer skips");
    cluster.submit_skips_to(0, 1002).expect("it is the same");
    cluster.settle();
    assert_eq!(cluster.left_the_sequencer(), sends + 1);
    submit(&mut cluster, 1, "b");
    cluster.settle();
    everybody_has(&cluster, &["a", "nothing to 1002", "b"]);
    let Some(Delivery::Message(last)) = cluster.delivered(2).last() else {
        panic!("a message")
    };
    assert_eq!(last.seq, 1002);
    assert_eq!(cluster.submit_skips_to(1, 1), Err(SubmitError::Unsupported));
}

#[test]
fn a_full_backlog_refuses_until_some_of_it_is_ordered() {
    let mut cluster = Cluster::new(3);
    let message = [b'x'; 30];
    let taken = (0..BACKLOG)
        .take_while(|_| cluster.submit(1, &message).is_ok())
        .count();
    assert_eq!(taken, BACKLOG / message.len());
    assert_eq!(cluster.submit(1, &message), Err(SubmitError::Full));
    cluster.settle();
    assert_eq!(texts(&cluster, 1).len(), taken);
    cluster.submit(1, &message).expect("there is room again");
}

#[test]
fn what_is_not_offered_or_too_large_is_refused() {
    let mut cluster = Cluster::new(3);
    let refused = cluster.submit(1, &[0; 41]);
    assert_eq!(refused, Err(SubmitError::TooLarge { limit: 40 }));
    let refused = cluster.submit_as(1, Service::Reliable, b"x");
    assert_eq!(refused, Err(SubmitError::Unsupported));
}

#[test]
fn a_beacon_reaches_all() {
    let mut cluster = Cluster::new(3);
    submit(&mut cluster, 0, "a");
    cluster.settle();
    let is_beacon = |output: &&Output| {
        matches!(
            output,
            Output::Send {
                class: Class::Data,
                ..
            }
        )
    };
    assert_eq!(cluster.outputs().iter().filter(is_beacon).count(), 1);
    assert_eq!((cluster.toy(1).beacon(), cluster.toy(2).beacon()), (1, 1));
}

#[test]
fn an_unreachable_peer_and_a_strange_session_do_no_harm() {
    let mut cluster = Cluster::new(3);
    cluster.hand_in(1, Input::Unreachable { peer: node(0) });
    cluster.hand_in(
        1,
        Input::LinkDown {
            peer: node(0),
            session: Session(0),
        },
    );
    cluster.hand_in(
        1,
        Input::Writable {
            peer: node(0),
            session: Session(0),
            bytes: 9999,
        },
    );
    submit(&mut cluster, 1, "a");
    cluster.settle();
    everybody_has(&cluster, &["a"]);
}

/// Broken laws panic where debug assertions are on.
#[cfg(debug_assertions)]
mod broken_laws {
    use super::driver::{checked, start};
    use super::*;
    use bytes::Bytes;
    use rota_core::contract::{Channel, Time};

    fn datagram(class: Class) -> Input {
        let bytes = Bytes::from_static(b"12345678");
        Input::Datagrams {
            class,
            channel: Channel(0),
            segment: bytes.len(),
            bytes,
        }
    }

    fn empty_datagram(segment: usize) -> Input {
        let (class, channel, bytes) = (Class::Data, Channel(0), Bytes::new());
        Input::Datagrams {
            class,
            channel,
            bytes,
            segment,
        }
    }

    /// A started sequencer with an output that was handed out and may still be on its way.
    fn with_output_on_its_way() -> impl Engine {
        let mut engine = checked(0);
        engine.handle(Time(1), start(0));
        engine
            .submit(Time(1), Service::Agreed, b"x")
            .expect("there is room");
        assert!(engine.poll_output().is_some());
        engine
    }

    #[test]
    #[should_panic(expected = "has not left")]
    fn a_token_while_an_output_is_on_its_way() {
        let mut engine = with_output_on_its_way();
        engine.handle(Time(1), datagram(Class::Token));
    }

    #[test]
    #[should_panic(expected = "before the outputs were drained")]
    fn a_token_before_the_outputs_were_asked_for() {
        let mut engine = checked(0);
        engine.handle(Time(1), start(0));
        engine.handle(Time(1), datagram(Class::Token));
    }

    #[test]
    fn data_and_links_may_come_while_an_output_is_on_its_way() {
        let mut engine = with_output_on_its_way();
        engine.handle(Time(2), datagram(Class::Data));
        engine.reading();
        engine.handle(
            Time(3),
            Input::LinkDown {
                peer: node(1),
                session: Session(1),
            },
        );
        while engine.poll_output().is_some() {}
        engine.handle(Time(3), datagram(Class::Token));
    }

    #[test]
    #[should_panic(expected = "has not left")]
    fn data_in_between_does_not_make_an_output_leave() {
        let mut engine = with_output_on_its_way();
        engine.handle(Time(2), datagram(Class::Data));
        engine.reading();
        engine.handle(Time(2), datagram(Class::Token));
    }

    #[test]
    #[should_panic(expected = "the first input is Start")]
    fn another_first_input_than_start() {
        checked(0).handle(Time(1), Input::Timer);
    }

    #[test]
    #[should_panic(expected = "started twice")]
    fn a_second_start() {
        let mut engine = checked(0);
        engine.handle(Time(1), start(0));
        engine.handle(Time(1), start(0));
    }

    #[test]
    #[should_panic(expected = "submitted before Start")]
    fn a_submission_before_start() {
        let _ = checked(0).submit(Time(1), Service::Agreed, b"x");
    }

    #[test]
    #[should_panic(expected = "what to read before Start")]
    fn a_question_what_to_read_before_start() {
        let _ = checked(0).reading();
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_that_goes_backwards_between_inputs() {
        let mut engine = checked(0);
        engine.handle(Time(5), start(0));
        engine.handle(Time(4), Input::Timer);
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_that_goes_backwards_with_a_submission() {
        let mut engine = checked(0);
        engine.handle(Time(5), start(0));
        let _ = engine.submit(Time(4), Service::Agreed, b"x");
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_that_goes_backwards_with_skips() {
        let mut engine = checked(0);
        engine.handle(Time(5), start(0));
        let _ = engine.submit_skips_to(Time(4), 1);
    }

    #[test]
    #[should_panic(expected = "an empty burst")]
    fn a_burst_without_bytes() {
        let mut engine = checked(0);
        engine.handle(Time(1), start(0));
        engine.handle(Time(1), empty_datagram(1));
    }

    #[test]
    #[should_panic(expected = "an empty burst")]
    fn a_burst_of_segments_without_length() {
        let mut engine = checked(0);
        engine.handle(Time(1), start(0));
        engine.handle(Time(1), empty_datagram(0));
    }
}
