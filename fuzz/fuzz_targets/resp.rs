//! A client of Redis' protocol may send any bytes, in any pieces: they are requests or an error, and the pieces make no difference. So may a server:
//! they are replies or an error, and what was read is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rota_resp::{Limits, Replies, Requests, Version};

fuzz_target!(|data: &[u8]| {
    let Some((&control, bytes)) = data.split_first() else {
        return;
    };
    let size = usize::from(control >> 1) + 1;
    let at_once = requests(bytes, usize::MAX);
    assert_eq!(at_once, requests(bytes, size), "the pieces made a difference");
    let mut replies = Replies::new(1 << 20);
    replies.push(bytes);
    while let Ok(Some(reply)) = replies.next() {
        let mut out = Vec::new();
        reply.write(Version::Resp3, &mut out);
        let mut again = Replies::new(1 << 21);
        again.push(&out);
        let read = again.next().expect("what was written is read");
        assert!(read.is_some(), "what was written is whole");
    }
});

fn requests(bytes: &[u8], size: usize) -> (Vec<Vec<Vec<u8>>>, bool) {
    let limits = Limits {
        arguments: 1 << 10,
        argument_bytes: 1 << 16,
        request_bytes: 1 << 17,
    };
    let mut requests = Requests::new(limits);
    let mut all = Vec::new();
    for piece in bytes.chunks(size.min(bytes.len().max(1))) {
        requests.push(piece);
        loop {
            match requests.next() {
                Ok(Some(request)) => {
                    let arguments = request.arguments().iter();
                    all.push(arguments.map(|argument| argument.to_vec()).collect());
                }
                Ok(None) => break,
                Err(_) => return (all, true),
            }
        }
    }
    (all, false)
}
