//! One order at all daemons.

use std::thread;

use rota_client::{Cause, Client, Event, Service};

use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, meet, member, names, next, next_text, next_view};

const IDS: [u16; 3] = [1, 2, 3];
/// A client of daemon `id` that sends so many messages with all services, numbered.
fn speaker(cluster: &Cluster, id: u16, count: usize) -> thread::JoinHandle<()> {
    let mut client = client(cluster, id, "speaker");
    thread::spawn(move || {
        for number in 0..count {
            let to = rota_client::Envelope::to("order").expect("a group");
            let to = to.service(Service::ALL[number % Service::ALL.len()]);
            let text = format!("{id} {number}");
            client.send(&to, text.as_bytes()).expect("it is sent");
        }
        client.close().expect("all of it is taken");
    })
}

/// What is in such a message.
fn numbers(text: &str) -> (u16, usize) {
    let (id, number) = text.split_once(' ').expect("two numbers");
    let number = number.parse().expect("a number");
    (id.parse().expect("a number"), number)
}

/// A client's messages come in its order, without a gap.
fn assert_no_gaps(texts: &[String], count: usize) {
    for id in IDS {
        let numbers = texts.iter().map(|text| numbers(text));
        let its = numbers.filter(|(from, _)| *from == id).map(|(_, at)| at);
        assert!(its.eq(0..count), "messages of {id} are missing");
    }
}

#[test]
fn clients_of_three_daemons_get_all_messages_in_one_order() {
    const COUNT: usize = 1500;
    let cluster = Cluster::start(3, "");
    meet(&cluster, &IDS);
    let listeners: Vec<Client> = IDS
        .iter()
        .map(|id| {
            let mut client = client(&cluster, *id, "listener");
            client.join("order").expect("it joins");
            client
        })
        .collect();
    let speakers = IDS.map(|id| speaker(&cluster, id, COUNT));
    let heard = listeners.into_iter().map(|mut client| {
        thread::spawn(move || {
            let texts = (0..3 * COUNT).map(|_| next_text(&mut client));
            texts.collect::<Vec<_>>()
        })
    });
    let heard: Vec<_> = heard.collect();
    for speaker in speakers {
        speaker.join().expect("it has sent all");
    }
    let heard: Vec<_> = heard
        .into_iter()
        .map(|thread| thread.join().expect("it has heard all"))
        .collect();
    assert_no_gaps(&heard[0], COUNT);
    assert!(heard[0] == heard[1] && heard[0] == heard[2]);
}

/// What a survivor was told, up to the messages after the change.
#[derive(Debug, PartialEq)]
struct Told {
    texts: Vec<String>,
    /// Messages before the signal, and before the view.
    signal: Option<usize>,
    view: usize,
    members: Vec<String>,
    sets: Vec<Vec<u32>>,
    id: String,
}

/// Listens until the change of the network has come, and all that the survivors sent.
fn survive(client: &mut Client, all: usize) -> Told {
    let mut told = Told {
        texts: Vec::new(),
        signal: None,
        view: 0,
        members: Vec::new(),
        sets: Vec::new(),
        id: String::new(),
    };
    let mut missing = all;
    while missing > 0 || told.id.is_empty() {
        match next(client) {
            Event::Message(message) => {
                let text = String::from_utf8_lossy(&message.payload).into_owned();
                missing -= usize::from(numbers(&text).0 != 3);
                told.texts.push(text);
            }
            Event::Transitional { group, .. } => {
                assert_eq!(group.as_str(), "order");
                assert_eq!(told.signal.replace(told.texts.len()), None);
            }
            Event::View(view) => {
                let Cause::Network(sets) = &view.cause else {
                    panic!("{view:?} is not by the network");
                };
                assert_eq!(told.id, "", "one change is one view");
                told.view = told.texts.len();
                told.members = names(&view.members);
                told.sets = sets.clone();
                told.id = view.id.to_string();
            }
            other => panic!("{other:?}"),
        }
    }
    told
}

#[test]
fn survivors_of_a_killed_daemon_agree_on_everything() {
    const COUNT: usize = 600;
    let mut cluster = Cluster::start(3, "");
    meet(&cluster, &IDS);
    let mut listeners = IDS.map(|id| {
        let mut client = member(&cluster, id, "listener");
        client.join("order").expect("it joins");
        client
    });
    for (at, client) in listeners.iter_mut().enumerate() {
        for members in at + 1..=3 {
            assert_eq!(next_view(client).members.len(), members);
        }
    }
    let [first, second, third] = listeners;
    let stay = [1, 2].map(|id| speaker(&cluster, id, COUNT));
    // Endless: it is in the middle of something when its daemon dies.
    let mut dying = builder("dying").connect(cluster.socket(3)).expect("let in");
    let dying = thread::spawn(move || {
        (0_usize..).find(|number| {
            dying
                .send("order", format!("3 {number}").as_bytes())
                .is_err()
        })
    });
    let heard = [first, second].map(|mut client| {
        thread::spawn(move || {
            let told = survive(&mut client, 2 * COUNT);
            (client, told)
        })
    });
    let mut third = third;
    for _ in 0..200 {
        next_text(&mut third);
    }
    cluster.kill(3);
    for speaker in stay {
        speaker.join().expect("it has sent all");
    }
    let sent = dying.join().expect("it ends").expect("with its daemon");
    let [(mut one, told), (mut two, same)] =
        heard.map(|thread| thread.join().expect("it has heard all"));
    assert_eq!(told, same);
    assert_eq!(told.members, ["#listener#n1", "#listener#n2"]);
    assert_eq!(told.sets, [[0, 1]], "they came together");
    assert!(told.signal.is_some_and(|signal| signal <= told.view));
    let heard = |id: u16| {
        let numbers = told.texts.iter().map(|text| numbers(text));
        let its = numbers.filter(move |(from, _)| *from == id);
        its.map(|(_, at)| at).collect::<Vec<_>>()
    };
    for id in [1, 2] {
        assert!(
            heard(id).into_iter().eq(0..COUNT),
            "all of the survivors' own"
        );
    }
    let killed = heard(3);
    assert!(killed.iter().copied().eq(0..killed.len()), "a first part");
    assert!(killed.len() <= sent);

    one.send("order", b"1 9999").expect("it is sent");
    for client in [&mut one, &mut two] {
        assert_eq!(next_text(client), "1 9999");
    }
    // The killed one comes back: one view with both of them, in two sets.
    cluster.restart(3);
    let mut back = member(&cluster, 3, "listener");
    back.join("order").expect("it joins");
    for client in [&mut one, &mut two] {
        loop {
            let event = client.recv_timeout(PATIENCE).expect("connected");
            match event.expect("in time") {
                Event::View(view) if view.members.len() == 3 => break,
                Event::View(_) | Event::Transitional { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
