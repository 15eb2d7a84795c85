//! Any bytes at all come back from the decoder as a packet or as an error value, never as a panic; and
//! a packet, once read, survives being written and read again.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rota_ring::wire;

fuzz_target!(|data: &[u8]| {
    let Ok(packet) = wire::decode(Bytes::copy_from_slice(data)) else {
        return;
    };
    let again = wire::decode(Bytes::from(packet.encode())).expect("what we encode, we can decode");
    assert_eq!(packet, again, "encoding a decoded packet changed it");
});
