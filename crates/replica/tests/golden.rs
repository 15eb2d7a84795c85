//! The sessions in a checkpoint are the bytes of `testdata/golden/sessions.txt`, and are read back as what they were.

#[path = "../../core/tests/golden/mod.rs"]
mod golden;

use golden::Golden;
use rota_multiring::Rank;
use rota_replica::sessions::{Sessions, Verdict};

#[test]
fn sessions() {
    let mut sessions = Sessions::default();
    for client in [0x0102_0304_0506_0708, 0x1112] {
        sessions.open(client);
    }
    for (client, of, answer) in [
        (0x1112, (Rank(0x0304), 1), "one"),
        (0x1112, (Rank(0x0304), 3), "two"),
        (0x0102_0304_0506_0708, (Rank(0x0506), 0x2122), "yes"),
    ] {
        assert_eq!(sessions.begin(client, of), Verdict::New);
        sessions.answer(client, of, answer.into());
    }
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "sessions");
    let bytes = golden.compare("sessions", &sessions.encode());
    assert_eq!(Sessions::decode(&bytes), Some(sessions));
    golden.finish();
}
