//! The last steps before an idle ring comes to rest.

mod lockstep;

use lockstep::Ring;
use rota_core::contract::{Delivery, Engine, Service};

/// Held too early, the token would leave the other members' safe lines behind: their safe messages
/// would wait until it is let go.
#[test]
fn a_safe_message_is_delivered_everywhere_before_the_token_is_held() {
    for sender in 0..5 {
        let mut ring = Ring::new(5, 10, 50);
        // It forms, and comes to rest.
        (0..100).for_each(|_| drop(ring.round(1_000_000)));
        let now = ring.now;
        ring.engines[sender]
            .submit(now, Service::Safe, b"safe")
            .expect("there is room");
        // Time stands still: no timer lets the token go.
        let mut delivered = [0; 5];
        for _ in 0..40 {
            for (node, deliveries) in ring.round(0).iter().enumerate() {
                let messages = deliveries
                    .iter()
                    .filter(|delivery| matches!(delivery, Delivery::Message(_)));
                delivered[node] += messages.count();
            }
        }
        assert_eq!(delivered, [1; 5], "sent by node {}", sender + 1);
        let rotations = |ring: &Ring| ring.engines[0].get().counters().token_rotations;
        let before = rotations(&ring);
        (0..10).for_each(|_| drop(ring.round(0)));
        assert_eq!(rotations(&ring), before, "the token is held");
    }
}
