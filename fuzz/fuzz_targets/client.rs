//! Either side of the protocol between clients and a daemon may be sent any bytes, in any pieces: the
//! inbox gives frames or an error, the pieces make no difference, memory stays with what has arrived, and
//! a frame that was read is written as one that reads the same.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use rota_client::protocol::{
    DecodeError, Decoded, EncodeError, Frame, Inbox, Reply, Request, request_limit,
};

fuzz_target!(|data: &[u8]| {
    let Some((&control, bytes)) = data.split_first() else {
        return;
    };
    let size = usize::from(control >> 1) + 1;
    if control & 1 == 0 {
        check::<Request>(bytes, size, Request::encode);
    } else {
        check::<Reply>(bytes, size, Reply::encode);
    }
});

const LIMIT: usize = request_limit(64 << 10);

fn check<T: Frame + PartialEq + Debug>(
    bytes: &[u8],
    size: usize,
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), EncodeError>,
) {
    let (frames, error) = run::<T>(bytes, usize::MAX);
    assert_eq!(
        run::<T>(bytes, size),
        (frames.iter().map(again(&encode)).collect(), error),
        "the pieces, or writing, made a difference"
    );
}

/// A frame after it was written and read once more.
fn again<T: Frame>(
    encode: impl Fn(&T, &mut Vec<u8>) -> Result<(), EncodeError>,
) -> impl Fn(&T) -> T {
    move |frame| {
        let mut out = Vec::new();
        encode(frame, &mut out).expect("it was read");
        let length = out.len();
        match T::decode(&out.into(), usize::MAX) {
            Ok(Decoded::Frame(frame, taken)) if taken == length => frame,
            _ => panic!("what was written is not a frame"),
        }
    }
}

fn run<T: Frame>(bytes: &[u8], size: usize) -> (Vec<T>, Option<DecodeError>) {
    let mut inbox = Inbox::new(LIMIT);
    let mut frames = Vec::new();
    let mut arrived = 0;
    for piece in bytes.chunks(size) {
        inbox.feed(piece);
        arrived += piece.len();
        assert!(
            inbox.buffered() <= 2 * arrived.max(64),
            "more than has arrived"
        );
        loop {
            match inbox.pull() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}
