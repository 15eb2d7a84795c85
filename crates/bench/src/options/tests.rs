use super::*;

#[test]
fn rates_need_a_unit() {
    assert_eq!("100mbit".parse(), Ok(BitRate(100_000_000)));
    assert_eq!("2.5gbit".parse(), Ok(BitRate(2_500_000_000)));
    assert_eq!("1Gbit".parse(), Ok(BitRate(1_000_000_000)));
    assert_eq!("0".parse(), Ok(BitRate(0)));
    for bad in ["100", "", "mbit", "-1mbit", "1mb", "9e9gbit", "nangbit"] {
        assert!(bad.parse::<BitRate>().is_err(), "{bad}");
    }
    assert_eq!(BitRate(1_000_000_000).to_string(), "1gbit");
    assert_eq!(BitRate(2_500_000).to_string(), "2.5mbit");
}

#[test]
fn loads_are_a_rate_or_max() {
    assert_eq!("max".parse(), Ok(Load::Max));
    assert_eq!("0".parse(), Ok(Load::Fixed(BitRate(0))));
    assert!(
        "fast"
            .parse::<Load>()
            .expect_err("no load")
            .to_string()
            .contains("max")
    );
}

#[test]
fn durations_need_a_unit() {
    assert_eq!(parse_duration("5s"), Ok(Duration::from_secs(5)));
    assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
    for bad in ["5", "s", "-1s", "2h", "100000s"] {
        assert!(parse_duration(bad).is_err(), "{bad}");
    }
}

#[test]
fn senders_are_counted_among_the_nodes() {
    let of = |text: &str, nodes| text.parse::<Senders>().map(|s| s.of(nodes));
    assert_eq!(of("all", 5), Ok(5));
    assert_eq!(of("half", 5), Ok(3));
    assert_eq!(of("9", 5), Ok(5));
    assert!(of("0", 5).is_err());
}

#[test]
fn names_say_what_is_possible() {
    assert_eq!("netns".parse(), Ok(TestbedKind::Netns));
    let error = "vm"
        .parse::<TestbedKind>()
        .expect_err("no testbed")
        .to_string();
    assert_eq!(error, "`vm` is not a testbed: loopback netns");
}
