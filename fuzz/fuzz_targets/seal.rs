//! Whatever comes over the network in place of a sealed datagram is refused, without a panic and without a
//! trace; the datagram itself is opened, once.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rota_core::contract::{Class, NodeId, Target, Time};
use rota_net::KeyRing;
use rota_net::seal::{Life, OpenError, Opener, SEALED_BYTES, Sealer, Senders};

const CLUSTER: u32 = 7;

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    let secret = "0123456789abcdef".repeat(4);
    let text = format!("send = 1\n[[key]]\nid = 1\nsecret = \"{secret}\"\n");
    KeyRing::from_toml(&text).expect("a key file")
});

fn life(start: u64) -> Life {
    Life { start, salt: 5 }
}

fuzz_target!(|data: &[u8]| {
    let [one, two] = [1, 2].map(|node| NodeId::new(node).expect("not 0"));
    let mut opener = Opener::new(CLUSTER, KEYS.clone(), (two, life(9)), Senders::Any);
    let mut sealer = Sealer::new(CLUSTER, KEYS.clone(), one, life(9)).expect("a cipher");
    let mut open = |class, bytes: &[u8]| opener.open(Time(0), class, &mut bytes.to_vec());
    assert!(open(Class::Data, data).is_err());
    assert!(open(Class::Token, data).is_err());

    // The end of a real datagram, where everything is decided, with the input laid over it.
    let mut sealed = vec![3; 100 + SEALED_BYTES];
    sealer.seal(Class::Data, Target::Others, &mut sealed);
    let mut changed = sealed.clone();
    for (byte, change) in changed.iter_mut().rev().zip(data) {
        *byte ^= change;
    }
    if changed != sealed {
        assert!(open(Class::Data, &changed).is_err());
    }
    assert_eq!(open(Class::Data, &sealed), Ok(()));
    assert_eq!(open(Class::Data, &sealed), Err(OpenError::Seen));
    if changed != sealed {
        assert!(open(Class::Data, &changed).is_err());
    }
    assert_eq!(opener.senders(), 1);
});
