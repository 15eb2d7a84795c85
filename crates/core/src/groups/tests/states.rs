//! The table of states in `docs/protocols/groups.md`, row by row, and the rules of all states.

use alloc::string::String;
use alloc::vec::Vec;

use super::cluster::{Cluster, group};
use crate::groups::{ClientName, Limits, RequestError};

const NOTHING: [&str; 0] = [];

/// Three daemons in ring 9; g has members on all of them, h on daemons 1 and 2 only.
fn three() -> Cluster {
    let mut cluster = Cluster::together(3);
    cluster.join(1, "a", "g");
    cluster.join(2, "b", "g");
    cluster.join(3, "c", "g");
    cluster.join(1, "a", "h");
    cluster.join(2, "b", "h");
    cluster.exchange(&[1, 2, 3]);
    cluster.hush();
    cluster
}

#[test]
fn operational_who_goes_is_dropped_and_only_its_groups_are_signaled() {
    let mut cluster = three();
    cluster.transitional(&[1, 2], 9, 10);
    assert_eq!(cluster.told(1), ["a: g!9/5"]);
    assert_eq!(cluster.told(2), ["b: g!9/5"]);
    let left: Vec<u16> = cluster
        .daemon(1)
        .list_members(&group("g"))
        .iter()
        .map(|member| member.daemon.node.get())
        .collect();
    assert_eq!(left, [1, 2]);
}

#[test]
fn transitional_those_who_came_together_get_views_of_what_changed() {
    let mut cluster = three();
    cluster.transitional(&[1, 2], 9, 10);
    cluster.hush();
    cluster.regular(&[1, 2], 10);
    assert_eq!(cluster.told(1), ["a: g@10/1 1a 2b sets 1a 2b"]);
    assert_eq!(cluster.told(2), ["b: g@10/1 1a 2b sets 1a 2b"]);
    assert!(cluster.is_operational(1));
    assert_eq!(cluster.daemon(1).to_submit(), None);
}

#[test]
fn transitional_a_join_is_told_with_those_who_went_and_signaled_again() {
    let mut cluster = three();
    cluster.join(2, "d", "g");
    cluster.join(2, "d", "h");
    let of_g = cluster.submitted(2).expect("the join of g");
    let of_h = cluster.submitted(2).expect("the join of h");
    cluster.transitional(&[1, 2], 9, 10);
    cluster.hush();
    cluster.deliver(&[1, 2], &of_g);
    // Between the two configurations those who went are not listed, and the view is not the last.
    let told = ["a: g@9>10/1 1a 2b 2d sets 1a 2b | 2d", "a: g!9>10/1"];
    assert_eq!(cluster.told(1), told);
    // Nobody of h has gone.
    cluster.deliver(&[1, 2], &of_h);
    assert_eq!(cluster.told(1), ["a: h@9>10/2 1a 2b 2d +2d"]);
    cluster.regular(&[1, 2], 10);
    assert_eq!(cluster.told(1), ["a: g@10/1 1a 2b 2d sets 1a 2b 2d"]);
}

/// Found by the simulator: nobody who stayed would ever have heard of that client's end.
#[test]
fn transitional_a_join_at_a_daemon_that_went_counts_for_nobody_who_stayed() {
    let mut cluster = three();
    cluster.join(3, "d", "g");
    cluster.join(3, "d", "i");
    let joins = [3, 3].map(|at| cluster.submitted(at).expect("a join"));
    cluster.transitional(&[1, 2], 9, 10);
    cluster.transitional(&[3], 9, 11);
    cluster.hush();
    for join in &joins {
        cluster.deliver(&[1, 2, 3], join);
    }
    assert_eq!(cluster.told(1), NOTHING);
    assert_eq!(cluster.told(3)[0], "c,d: g@9>11/1 3c 3d sets 3c | 3d");
    cluster.regular(&[1, 2], 10);
    assert_eq!(cluster.told(1), ["a: g@10/1 1a 2b sets 1a 2b"]);
    assert_eq!(cluster.daemon(1).list_members(&group("i")), []);
    // Its own daemon tells the others, when they meet again.
    cluster.regular(&[3], 11);
    cluster.transitional(&[1, 2], 10, 12);
    cluster.transitional(&[3], 11, 12);
    cluster.regular(&[1, 2, 3], 12);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(cluster.daemon(1).list_members(&group("i")).len(), 1);
}

#[test]
fn gathering_all_get_a_view_of_what_has_members_from_several_sets() {
    let mut cluster = gathering();
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.told(1), NOTHING, "daemon 3 has not been heard");
    let mut cluster = Cluster::alone(3);
    for (at, client, name) in [(1, "a", "g"), (2, "b", "g"), (3, "c", "h")] {
        cluster.join(at, client, name);
        cluster.exchange(&[at]);
        cluster.transitional(&[at], at as u64, 9);
    }
    cluster.hush();
    cluster.regular(&[1, 2, 3], 9);
    cluster.exchange(&[1, 2, 3]);
    assert_eq!(cluster.told(1), ["a: g!1/1", "a: g@9/1 1a 2b sets 1a | 2b"]);
    assert_eq!(cluster.told(2), ["b: g!2/1", "b: g@9/1 1a 2b sets 1a | 2b"]);
    assert_eq!(cluster.told(3), NOTHING);
}

#[test]
fn gathering_the_smallest_of_a_set_speaks_for_it_and_nobody_else_does() {
    let mut cluster = three();
    cluster.transitional(&[2, 3], 9, 10);
    cluster.regular(&[2, 3], 10);
    cluster.transitional(&[1], 9, 11);
    cluster.regular(&[1], 11);
    for (set, old) in [(&[2, 3][..], 10), (&[1], 11)] {
        cluster.transitional(set, old, 12);
    }
    cluster.regular(&[1, 2, 3], 12);
    let speaks = [1, 2, 3].map(|at| cluster.daemon(at).to_submit().is_some());
    assert_eq!(speaks, [true, true, false]);
}

/// Daemons 1, 2 and 3 with one member of g each, which gather in ring 9; nothing is told yet.
fn gathering() -> Cluster {
    let mut cluster = Cluster::alone(3);
    for (at, client) in [(1, "a"), (2, "b"), (3, "c")] {
        cluster.join(at, client, "g");
        cluster.exchange(&[at]);
        cluster.transitional(&[at], at as u64, 9);
    }
    cluster.regular(&[1, 2, 3], 9);
    cluster.hush();
    cluster
}

#[test]
fn interrupted_when_all_are_heard_the_old_views_come_first() {
    let mut cluster = gathering();
    let told = [1, 2, 3].map(|at| cluster.submitted(at).expect("what it knows"));
    cluster.transitional(&[1, 2], 9, 10);
    for message in &told {
        cluster.deliver(&[1, 2], message);
    }
    let views = [
        "a: g!1/1",
        "a: g@9/1 1a 2b 3c sets 1a | 2b | 3c",
        "a: g!9/1",
    ];
    assert_eq!(cluster.told(1), views);
    cluster.regular(&[1, 2], 10);
    assert_eq!(cluster.told(1), ["a: g@10/1 1a 2b sets 1a 2b"]);
    assert_eq!(cluster.daemon(1).counters().interrupted, 1);
}

#[test]
fn interrupted_those_who_have_told_all_are_one_set_from_there_on() {
    let mut cluster = gathering();
    let one = cluster.submitted(1).expect("what it knows");
    let two = cluster.submitted(2).expect("what it knows");
    cluster.submitted(3).expect("what never arrives");
    cluster.transitional(&[1, 2, 3], 9, 10);
    for message in [&one, &two] {
        cluster.deliver(&[1, 2, 3], message);
    }
    cluster.regular(&[1, 2, 3], 10);
    // Daemon 1 speaks for 2 as well; 3 was not heard, and speaks for itself.
    let speaks = [1, 2, 3].map(|at| cluster.daemon(at).to_submit().is_some());
    assert_eq!(speaks, [true, false, true]);
    cluster.exchange(&[1, 2, 3]);
    // Yet their clients did not have the same views before.
    assert_eq!(
        cluster.told(2),
        ["b: g!2/1", "b: g@10/1 1a 2b 3c sets 1a | 2b | 3c"]
    );
}

#[test]
fn interrupted_who_has_told_what_all_know_needs_no_exchange() {
    let mut cluster = gathering();
    let told = [1, 2].map(|at| cluster.submitted(at).expect("what it knows"));
    cluster.transitional(&[1, 2], 9, 10);
    for message in &told {
        cluster.deliver(&[1, 2], message);
    }
    assert_eq!(
        cluster.told(1),
        NOTHING,
        "daemon 3 is in the configuration that ends"
    );
    cluster.regular(&[1, 2], 10);
    assert!(cluster.is_operational(1) && cluster.is_operational(2));
    assert_eq!(
        cluster.told(1),
        ["a: g!1/1", "a: g@10/1 1a 2b sets 1a | 2b"]
    );
}

#[test]
fn requests_wait_until_the_daemon_is_operational() {
    let mut cluster = three();
    cluster.transitional(&[1, 2, 3], 9, 10);
    cluster.join(1, "a", "i");
    assert_eq!(cluster.daemon(1).to_submit(), None);
    cluster.regular(&[1, 2, 3], 10);
    assert!(cluster.daemon(1).to_submit().is_some());
}

#[test]
fn a_request_ordered_later_than_it_was_sent_for_counts_for_nobody_and_is_sent_again() {
    let mut cluster = three();
    cluster.send(1, "a", "g", "first");
    cluster.send(1, "a", "g", "second");
    let late = cluster.submitted(1).expect("the first message");
    cluster.transitional(&[1, 2, 3], 9, 10);
    cluster.regular(&[1, 2, 3], 10);
    cluster.deliver(&[1, 2, 3], &late);
    assert_eq!(cluster.told(2), NOTHING);
    assert_eq!(cluster.daemon(2).counters().late, 1);
    assert_eq!(cluster.daemon(1).counters().again, 1);
    cluster.send(1, "a", "g", "third");
    cluster.exchange(&[1, 2, 3]);
    // In the old place, and once.
    assert_eq!(cluster.told(2), ["b: first", "b: second", "b: third"]);
}

#[test]
fn ids_of_views_ascend_from_one_configuration_to_the_next() {
    let mut cluster = three();
    cluster.join(1, "d", "g");
    let join = cluster.submitted(1).expect("the join");
    cluster.transitional(&[1, 2], 9, 10);
    cluster.deliver(&[1, 2], &join);
    cluster.regular(&[1, 2], 10);
    cluster.leave(1, "d", "g");
    cluster.exchange(&[1, 2]);
    let told = cluster.told(2);
    let views = told.iter().filter_map(|told| told.split_once('@'));
    let ids: Vec<&str> = views.filter_map(|(_, id)| id.split(' ').next()).collect();
    assert_eq!(ids, ["9>10/1", "10/1", "10/2"]);
    assert_eq!(
        cluster.told(1).last().map(String::as_str),
        Some("a: g@10/2 1a 2b -1d")
    );
}

#[test]
fn who_leaves_is_told_so_and_nothing_after_that() {
    let mut cluster = three();
    cluster.leave(2, "b", "g");
    cluster.send(1, "a", "g", "hello");
    cluster.exchange(&[2, 1]);
    assert_eq!(cluster.told(2), ["b: g left"]);
}

#[test]
fn a_client_that_comes_back_under_its_name_is_somebody_else() {
    let mut cluster = three();
    let before = cluster.client(2, "b");
    cluster.daemon(2).disconnect(before);
    cluster.forget(2, "b");
    cluster.join(2, "b", "g");
    cluster.exchange(&[2]);
    // The other daemons have not heard of it; here it has come alone.
    let told = cluster.told(2);
    assert_eq!(told, ["b: g@9/8 1a 2b 3c +2b"]);
    assert_ne!(cluster.client(2, "b"), before);
}

#[test]
fn without_transitional_configurations_there_are_no_signals() {
    let mut cluster = three();
    cluster.regular(&[1, 2], 10);
    cluster.exchange(&[1, 2]);
    let told = cluster.told(1);
    // Nobody of h has gone, and all of it came together.
    assert_eq!(told, ["a: g@10/1 1a 2b sets 1a 2b"]);
}

#[test]
fn clients_that_send_and_go_while_nothing_is_ordered_leave_no_more_than_a_bounded_backlog() {
    let mut cluster = Cluster::limited(
        2,
        Limits {
            clients: 10_000,
            backlog_bytes: 1_000,
            payload_bytes: 5_000,
            ..Limits::default()
        },
    );
    let name = ClientName::new("a").expect("a name");
    let come_and_go = |cluster: &mut Cluster| {
        let connection = cluster.daemon(1).connect(name)?;
        cluster.forget(1, "a");
        cluster.daemon(1).disconnect(connection);
        Ok::<_, RequestError>(())
    };
    for _ in 0..3 {
        come_and_go(&mut cluster).expect("it counts while it is connected");
    }
    let mut times = 3;
    let refused = loop {
        match come_and_go(&mut cluster) {
            Ok(()) => times += 1,
            Err(error) => break error,
        }
        assert!(times < 8_000, "each leaves a disconnect");
    };
    assert_eq!(refused, RequestError::TooMany);
    assert!(times > 256 * 1_000 / 200, "{times}");
    cluster.exchange(&[1, 2]);
    come_and_go(&mut cluster).expect("all that has its place");
}
