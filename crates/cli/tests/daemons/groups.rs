//! Requests of native clients to real daemons, and the answers.

use rota_client::{
    Cause, Client, Code, ConnectError, ConnectionLost, Envelope, Event, SendError, Service,
};

use crate::cluster::Cluster;
use crate::native::{
    PATIENCE, builder, client, meet, member, names, next, next_message, next_text, next_view,
};

#[test]
fn joins_and_leaves_are_answered_and_groups_can_be_listed_from_outside() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut ann = member(&cluster, 1, "ann");
    let mut ben = member(&cluster, 2, "ben");
    let mut outside = client(&cluster, 1, "outside");
    ann.join("g").expect("it joins");
    ann.join("g").expect("again changes nothing");
    ben.join("g").expect("it joins");
    assert_eq!(names(&next_view(&mut ann).members), ["#ann#n1"]);
    let views = [&mut ann, &mut ben].map(next_view);
    assert_eq!(views[0].id, views[1].id);
    assert_eq!(names(&views[0].members), ["#ann#n1", "#ben#n2"]);
    assert_eq!(views.map(|view| view.own), [0, 1]);

    let listed = outside.groups().expect("an answer");
    let listed: Vec<_> = listed.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(listed, [("g", 2)]);
    let members = outside.members("g").expect("an answer");
    assert_eq!(names(&members), ["#ann#n1", "#ben#n2"]);
    assert!(outside.members("nobody").expect("an answer").is_empty());

    ben.leave("g").expect("it leaves");
    ben.leave("g").expect("again changes nothing");
    assert!(matches!(next(&mut ben), Event::SelfLeave { group } if group.as_str() == "g"));
    let view = next_view(&mut ann);
    assert!(matches!(view.cause, Cause::Leave(who) if who == ben.name()));
    ben.join("g").expect("it joins again");
    assert_eq!(next_view(&mut ann).members.len(), 2);
    let gone = ben.name();
    drop(ben);
    let view = next_view(&mut ann);
    assert!(matches!(view.cause, Cause::Disconnect(who) if who == gone));
    assert_eq!(
        names(&outside.members("g").expect("an answer")),
        ["#ann#n1"]
    );
}

#[test]
fn a_message_comes_once_and_only_to_those_it_is_for() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut ann = client(&cluster, 1, "ann");
    let mut ben = client(&cluster, 2, "ben");
    for client in [&mut ann, &mut ben] {
        client.join("g").expect("it joins");
        client.join("h").expect("it joins");
    }
    ann.send("#ben#n2", b"to ben").expect("sent");
    ann.send("#ben#n1", b"nobody").expect("sent");
    ann.send("#ben#n9", b"no such daemon").expect("sent");
    let both = Envelope::to_all(["g", "h", "#ben#n2", "g"]).expect("destinations");
    ann.send(&both, b"once").expect("sent");
    let discard = Envelope::to("g").expect("a group").self_discard();
    ann.send(&discard, b"not to ann").expect("sent");
    let to_self = Envelope::to("#ann#n1").expect("a client");
    ann.send(to_self.kind(7).service(Service::Safe), b"to myself")
        .expect("sent");
    ann.send("g", b"last").expect("sent");
    assert_eq!(next_text(&mut ann), "once");
    let message = next_message(&mut ann);
    assert_eq!(message.payload, &b"to myself"[..]);
    assert_eq!((message.kind, message.service), (7, Service::Safe));
    assert_eq!(next_text(&mut ann), "last");
    for text in ["to ben", "once", "not to ann", "last"] {
        assert_eq!(next_text(&mut ben), text);
    }
    // From outside of a group, and what is in no group but on its way before a leave.
    ben.leave("g").expect("it leaves");
    ben.send("g", b"from outside").expect("sent");
    assert_eq!(next_text(&mut ann), "from outside");
}

#[test]
fn a_message_may_have_a_hundred_destinations_and_as_many_bytes_as_the_daemon_says() {
    let cluster = Cluster::start(2, "message_bytes = 300000");
    meet(&cluster, &[1, 2]);
    let mut ann = client(&cluster, 1, "ann");
    let mut ben = client(&cluster, 2, "ben");
    ben.join("group-99").expect("it joins");
    let groups: Vec<String> = (0..100).map(|at| format!("group-{at}")).collect();
    let all = Envelope::to_all(&groups).expect("destinations");
    ann.send(&all, b"to all").expect("sent");
    let message = next_message(&mut ben);
    assert_eq!(message.payload, &b"to all"[..]);
    let to: Vec<String> = message.to.iter().map(ToString::to_string).collect();
    assert_eq!(to, groups);
    let more = groups.iter().map(String::as_str).chain(["one-more"]);
    let refused = ann.send(Envelope::to_all(more).expect("destinations"), b"");
    assert!(matches!(refused, Err(SendError::Destinations)));

    assert_eq!(ann.largest_payload(), 300_000);
    let large = vec![b'x'; 300_000];
    ann.send(&all, &large).expect("sent");
    assert_eq!(next_message(&mut ben).payload, large);
    let refused = ann.send("group-99", &vec![b'x'; 300_001]);
    assert!(matches!(
        refused,
        Err(SendError::TooLarge { limit: 300_000 })
    ));
    ann.send("group-99", b"").expect("an empty one is fine");
    assert_eq!(next_text(&mut ben), "");
}

#[test]
fn credit_comes_back_for_messages_of_any_size() {
    // So large that little else may be outstanding.
    const LARGE: usize = 1 << 20;
    let cluster = Cluster::start(1, "");
    let mut ann = client(&cluster, 1, "ann");
    assert_eq!(ann.largest_payload(), LARGE);
    ann.join("g").expect("it joins");
    for bytes in [
        1,
        LARGE,
        60_000,
        200_000,
        60_000,
        LARGE,
        1,
        250_000,
        LARGE - 1,
    ] {
        ann.send("g", &vec![b'x'; bytes]).expect("sent");
        assert_eq!(next_message(&mut ann).payload.len(), bytes);
    }
}

#[test]
fn what_was_sent_before_a_close_arrives() {
    const COUNT: usize = 3000;
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut ben = client(&cluster, 2, "ben");
    ben.join("g").expect("it joins");
    // One closes, one only hangs up; both get their own messages, and take none.
    for round in 0..2 {
        let mut ann = client(&cluster, 1, "ann");
        ann.join("g").expect("it joins");
        for at in 0..COUNT {
            ann.feed("g", format!("{round} {at} {:200}", "").as_bytes())
                .expect("it is fed");
        }
        ann.flush().expect("it is written");
        if round == 0 {
            ann.close().expect("the daemon closes");
        } else {
            drop(ann);
        }
        for at in 0..COUNT {
            assert_eq!(next_text(&mut ben).trim_end(), format!("{round} {at}"));
        }
    }
}

/// Why a client does not get in.
fn refusal(cluster: &Cluster, id: u16, name: &str) -> Code {
    match builder(name).connect(cluster.socket(id)) {
        Err(ConnectError::Refused { code, .. }) => code,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn a_name_is_one_clients_until_it_has_gone() {
    let cluster = Cluster::start(2, "clients = 3");
    meet(&cluster, &[1, 2]);
    let ann = client(&cluster, 1, "ann");
    assert_eq!(refusal(&cluster, 1, "ann"), Code::NameInUse);
    let other = client(&cluster, 2, "ann");
    assert_eq!(other.name().to_string(), "#ann#n2");
    ann.close().expect("the daemon closes");
    let mut again = client(&cluster, 1, "ann");
    let invented = [(); 2].map(|()| {
        let client = Client::builder().timeout(PATIENCE);
        client.connect(cluster.socket(1)).expect("let in")
    });
    assert_ne!(invented[0].name(), invented[1].name());
    assert_eq!(refusal(&cluster, 1, "dora"), Code::TooManyClients);
    again.send(invented[1].name(), b"hello").expect("sent");
    let [_, mut last] = invented;
    assert_eq!(next_text(&mut last), "hello");
    let ended = last.close();
    assert!(!matches!(ended, Err(ConnectionLost::Goodbye { .. })));
}
