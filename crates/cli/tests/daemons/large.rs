//! Messages of 64 MiB: whole or not at all, with bounded memory, and others go on meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use rota_client::{Client, Event};

use crate::bad_clients::status;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet, next, next_message, next_text};

const LARGE: usize = 64 << 20;

/// What a daemon may take beside large messages.
const OTHER_BYTES: u64 = 64 << 20;

const SETTINGS: &str = "message_bytes = 67108864\nclient_queue_bytes = 300000000";

/// Bytes of which no two places look alike.
fn payload(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(seed | 1);
        (state ^ (state >> 33)).to_le_bytes()
    });
    words.take(LARGE / 8).flatten().collect()
}

/// The most memory that a daemon has ever had, in bytes.
fn most_memory(cluster: &Cluster, id: u16) -> u64 {
    let path = format!("/proc/{}/status", cluster.pid(id));
    let text = std::fs::read_to_string(path).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    1024 * kilobytes.expect("a line").parse::<u64>().expect("a number")
}

/// A client that sends to itself and waits for it, again and again, until it is told to stop: how often.
fn chat(mut client: Client, group: &str, stop: &AtomicBool) -> usize {
    client.join(group).expect("it joins");
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        client
            .send(group, rounds.to_string().as_bytes())
            .expect("sent");
        assert_eq!(next_text(&mut client), rounds.to_string());
        rounds += 1;
    }
    rounds
}

#[test]
fn large_messages_of_two_daemons_arrive_everywhere_and_others_go_on() {
    let cluster = Cluster::start(3, SETTINGS);
    meet(&cluster, &[1, 2, 3]);
    let receivers: Vec<Client> = [1, 2, 3, 3]
        .into_iter()
        .zip(["ann", "ben", "cy", "dee"])
        .map(|(id, name)| {
            let mut client = client(&cluster, id, name);
            client.join("g").expect("it joins");
            client
        })
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let chats = [1, 3].map(|id| {
        let client = client(&cluster, id, "chat");
        let stop = Arc::clone(&stop);
        thread::spawn(move || chat(client, &format!("chat-{id}"), &stop))
    });
    let sent = [payload(1), payload(2)].map(Arc::new);
    let began = Instant::now();
    let senders = [1, 2].map(|id: u16| {
        let mut sender = client(&cluster, id, "sender");
        let payload = Arc::clone(&sent[usize::from(id) - 1]);
        thread::spawn(move || {
            for _ in 0..2 {
                sender.send("g", &payload).expect("sent");
            }
            sender
        })
    });
    let received = receivers.into_iter().map(|mut client| {
        let sent = sent.clone();
        thread::spawn(move || -> Vec<usize> {
            let mut which = || {
                let message = next_message(&mut client);
                let is = |sent: &Arc<Vec<u8>>| message.payload == sent[..];
                sent.iter()
                    .position(is)
                    .expect("one of those sent, byte by byte")
            };
            (0..4).map(|_| which()).collect()
        })
    });
    let received: Vec<_> = received.collect();
    let orders: Vec<Vec<usize>> = received
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect();
    stop.store(true, Ordering::Relaxed);
    println!("4 messages of 64 MiB in {:?}", began.elapsed());
    let mut first = orders[0].clone();
    assert!(orders.iter().all(|order| *order == first), "{orders:?}");
    first.sort_unstable();
    assert_eq!(first, [0, 0, 1, 1]);
    for chat in chats {
        let rounds = chat.join().expect("no panic");
        println!("{rounds} rounds of a chat meanwhile");
        // Each message is 4096 parts, of which 16 are under way at once.
        assert!(rounds >= 200, "only {rounds}");
    }
    for sender in senders {
        drop(sender.join().expect("no panic"));
    }
    for id in [1, 2, 3] {
        let now = status(&cluster, id);
        assert_eq!(now["counters"]["groups_unfinished_bytes"], 0);
        let most = most_memory(&cluster, id);
        println!("daemon {id}: {} MiB at most", most >> 20);
        // One message of each sending daemon comes in, one of each has been given to clients that read it, and
        // the daemon's own sender has one on its way and one behind that.
        let messages = if id == 3 { 4 } else { 6 };
        assert!(
            most <= messages * LARGE as u64 + OTHER_BYTES,
            "daemon {id}: {most}"
        );
    }
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_leaves_nothing_of_its_message() {
    let mut cluster = Cluster::start(3, SETTINGS);
    let payload = payload(3);
    let mut killed_amid = 0;
    for round in 0.. {
        assert!(round < 20, "it is never killed in the middle");
        meet(&cluster, &[1, 2, 3]);
        let mut receivers = [2, 3].map(|id| {
            let mut client = client(&cluster, id, "receiver");
            client.join("g").expect("it joins");
            client
        });
        let mut sender = client(&cluster, 1, "sender");
        thread::scope(|scope| {
            scope.spawn(|| {
                // Its daemon may be killed before it has read all.
                let _ = sender.send("g", &payload);
                while let Ok(Some(_)) = sender.recv_timeout(PATIENCE) {}
            });
            let late = Instant::now() + PATIENCE;
            while unfinished(&cluster, 2) < LARGE as u64 / 4 {
                assert!(Instant::now() < late, "nothing of it comes");
            }
            cluster.kill(1);
        });
        // What is there of it goes with the configuration, unless it was whole before.
        let late = Instant::now() + PATIENCE;
        while [2, 3].iter().any(|id| unfinished(&cluster, *id) > 0) {
            assert!(Instant::now() < late, "something is kept of it");
        }
        receivers[0].send("g", b"marker").expect("sent");
        let mut whole = 0;
        for receiver in &mut receivers {
            let mut message = next(receiver);
            if let Event::Message(large) = &message
                && large.payload == payload[..]
            {
                // The kill came too late.
                whole += 1;
                message = next(receiver);
            }
            match message {
                Event::Message(message) => assert_eq!(message.payload, &b"marker"[..]),
                other => panic!("{other:?}"),
            }
        }
        assert!(whole == 0 || whole == 2, "only one of them has it");
        killed_amid += usize::from(whole == 0);
        if killed_amid == 3 {
            break;
        }
        cluster.restart(1);
    }
    for id in [2, 3] {
        let most = most_memory(&cluster, id);
        println!("daemon {id}: {} MiB at most", most >> 20);
        assert!(
            most <= 2 * LARGE as u64 + OTHER_BYTES,
            "daemon {id}: {most}"
        );
    }
}

fn unfinished(cluster: &Cluster, id: u16) -> u64 {
    let status = status(cluster, id);
    let bytes = &status["counters"]["groups_unfinished_bytes"];
    bytes.as_u64().expect("a counter")
}
