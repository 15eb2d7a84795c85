//! Any bytes, in any pieces.

use proptest::prelude::*;
use rota_resp::{Limits, Replies, Request, Requests};

fn limits() -> Limits {
    Limits {
        arguments: 20,
        argument_bytes: 200,
        request_bytes: 4000,
    }
}

/// What requests are in these bytes, which come in these parts; and whether that ends with an error.
fn read(parts: &[&[u8]]) -> (Vec<Request>, bool) {
    let mut requests = Requests::new(limits());
    let mut all = Vec::new();
    for part in parts {
        requests.push(part);
        loop {
            match requests.next() {
                Ok(Some(request)) => all.push(request),
                Ok(None) => break,
                Err(_) => return (all, true),
            }
        }
    }
    (all, false)
}

/// Bytes that are often nearly requests.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"*".to_vec()),
        Just(b"$".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        Just(b"*2\r\n$3\r\n".to_vec()),
        Just(b"GET 'a b'\r\n".to_vec()),
        (0_u16..300).prop_map(|number| number.to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_bytes_come_changes_nothing(bytes in bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let mut parts = Vec::new();
        let mut last = 0;
        for place in places {
            parts.push(&bytes[last..place]);
            last = place;
        }
        parts.push(&bytes[last..]);
        prop_assert_eq!(read(&[&bytes]), read(&parts));
    }

    #[test]
    fn what_is_written_is_read(arguments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..20)) {
        let mut out = Vec::new();
        Request::write(&arguments, &mut out);
        let (all, failed) = read(&[&out]);
        prop_assert!(!failed && all.len() == 1);
        let same = all[0].arguments().iter().zip(&arguments).all(|(one, other)| one == other);
        prop_assert!(same && all[0].arguments().len() == arguments.len());
    }

    #[test]
    fn replies_are_read_or_refused(bytes in bytes()) {
        let mut replies = Replies::new(10_000);
        replies.push(&bytes);
        let mut count = 0;
        while let Ok(Some(_)) = replies.next() {
            count += 1;
            prop_assert!(count <= bytes.len());
        }
    }
}
