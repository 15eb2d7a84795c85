//! Credit, from both sides of its limits.

use rota_client::protocol::{Credit, CreditExceeded, Send};
use rota_core::contract::Service;

#[test]
fn as_many_bytes_as_the_limit_may_be_outstanding_and_not_one_more() {
    let mut credit = Credit::new(100);
    credit.spend(60).expect("there is room");
    assert!(credit.allows(40));
    assert!(!credit.allows(41));
    assert_eq!(credit.spend(41), Err(CreditExceeded));
    credit.spend(40).expect("just enough");
    assert_eq!(credit.outstanding(), 100);
}

#[test]
fn a_larger_frame_goes_alone() {
    let mut credit = Credit::new(100);
    credit.spend(1_000).expect("nothing is outstanding");
    assert!(!credit.allows(1));
    credit.give_back(999);
    assert!(!credit.allows(1_000));
    assert!(credit.allows(99));
    credit.give_back(1);
    assert!(credit.allows(1_000));
}

#[test]
fn without_any_credit_one_frame_at_a_time_is_left() {
    let mut credit = Credit::new(0);
    credit.spend(7).expect("nothing is outstanding");
    assert!(!credit.allows(1));
    credit.give_back(7);
    assert!(credit.allows(7));
}

#[test]
fn more_given_back_than_there_was_is_all_of_it() {
    let mut credit = Credit::new(100);
    credit.spend(10).expect("there is room");
    credit.give_back(u64::MAX);
    assert_eq!(credit.outstanding(), 0);
}

#[test]
fn a_message_costs_its_whole_frame() {
    let send = Send {
        service: Service::Safe,
        self_discard: false,
        kind: 7,
        to: ["orders", "#alice#n1"]
            .map(|to| to.parse().expect("legal"))
            .into(),
        payload: vec![1; 50].into(),
    };
    let mut bytes = Vec::new();
    send.head().encode(&send.payload, &mut bytes).expect("fits");
    assert_eq!(send.frame_bytes(), bytes.len());
}
