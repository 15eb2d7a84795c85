//! Clients that have gone, and their earlier requests.

use super::cluster::Cluster;
use crate::groups::{ClientName, Limits, RequestError};

const MOST: usize = 3;

/// One daemon, for so many clients.
fn one() -> Cluster {
    let limits = Limits {
        clients: MOST,
        ..Limits::default()
    };
    Cluster::limited(1, limits)
}

/// Whoever comes, asks for something and goes, again and again, fills no memory.
#[test]
fn as_many_may_be_leaving_as_may_be_connected() {
    let mut cluster = one();
    cluster.client(1, "here");
    for _ in 0..MOST {
        cluster.send(1, "hasty", "g", "hello");
        let gone = cluster.client(1, "hasty");
        cluster.daemon(1).disconnect(gone);
        cluster.forget(1, "hasty");
    }
    let waiting = cluster.daemon(1).waiting_requests();
    assert_eq!(waiting, 2 * MOST, "a message and a disconnect of each");
    let hasty = ClientName::new("hasty").expect("a name");
    let refused = cluster.daemon(1).connect(hasty);
    assert_eq!(refused, Err(RequestError::TooMany));
    // Who is there is not concerned, and goes as well.
    cluster.send(1, "here", "g", "hello");
    let here = cluster.client(1, "here");
    cluster.daemon(1).disconnect(here);
    assert_eq!(cluster.daemon(1).connect(hasty), Err(RequestError::TooMany));
    // A place for each whose end has come back.
    for _ in 0..4 {
        let message = cluster.submitted(1).expect("what they asked for");
        cluster.deliver(&[1], &message);
    }
    assert!(cluster.daemon(1).connect(hasty).is_ok());
    cluster.exchange(&[1]);
    assert_eq!(cluster.daemon(1).waiting_requests(), 0);
}

#[test]
fn one_that_goes_while_it_skips_counts_once() {
    let mut cluster = one();
    for _ in 0..3 * MOST {
        cluster.join(1, "a", "g");
        assert!(cluster.restart(1, "a"));
        let next = cluster.client(1, "a");
        cluster.daemon(1).disconnect(next);
        cluster.forget(1, "a");
        cluster.exchange(&[1]);
    }
    for name in ["a", "b", "c"] {
        cluster.client(1, name);
    }
}
