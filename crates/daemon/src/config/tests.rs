use super::*;

#[test]
fn a_file_without_the_section_has_the_defaults() {
    let config = DaemonConfig::from_toml("cluster = 7").expect("defaults");
    assert_eq!(config, DaemonConfig::default());
}

#[test]
fn spreads_port_is_open_to_other_hosts_only_if_it_says_to_which() {
    let file = |allow: &str| {
        format!("[daemon.spread]\ntcp = [\"127.0.0.1:4803\", \"10.0.0.1:4803\"]\n{allow}")
    };
    let refused = DaemonConfig::from_toml(&file(""));
    assert!(
        matches!(refused, Err(DaemonConfigError::OpenToAll(address)) if address.port() == 4803)
    );
    let config = DaemonConfig::from_toml(&file("allow = [\"10.0.0.0/8\"]")).expect("a list");
    let spread = config.spread.expect("the section");
    let may = |address: &str| spread.allow.allows(address.parse().expect("an address"));
    assert!(may("10.9.9.9") && may("::ffff:10.0.0.7"));
    assert!(!may("11.0.0.1") && !may("127.0.0.1") && !may("::1"));
}

#[test]
fn without_a_list_only_this_host_may_connect() {
    let allow = Allow::default();
    assert!(allow.allows(IpAddr::from([127, 0, 0, 1])));
    assert!(!allow.allows(IpAddr::from([10, 0, 0, 1])));
    let refused = DaemonConfig::from_toml("[daemon]\ntcp = [\"0.0.0.0:4804\"]");
    assert!(matches!(refused, Err(DaemonConfigError::NotLoopback(_))));
}

#[test]
fn metrics_leave_the_host_only_if_that_is_said() {
    let refused = DaemonConfig::from_toml("[daemon]\nmetrics = \"0.0.0.0:9464\"");
    assert!(matches!(refused, Err(DaemonConfigError::OpenMetrics(_))));
    for text in [
        "metrics = \"[::1]:9464\"",
        "metrics = \"10.0.0.1:9464\"\nmetrics_insecure = true",
    ] {
        let config = DaemonConfig::from_toml(&format!("[daemon]\n{text}"));
        assert!(config.expect("allowed").metrics.is_some());
    }
}

#[test]
fn mistakes_are_named() {
    let wrong = |text: &str| match DaemonConfig::from_toml(text) {
        Err(error) => error.to_string(),
        Ok(config) => panic!("{config:?}"),
    };
    assert!(wrong("[daemon]\nclients = 0").contains("clients must not be 0"));
    assert!(wrong("[daemon]\nrealtime = 100").contains("between 1 and 99"));
    assert!(wrong("[daemon]\nslow_clients = \"wait\"").contains("unknown variant `wait`"));
    assert!(wrong("[daemon]\nthrottle_ms = 0").contains("between 1 and 60000"));
    assert!(wrong("[daemon]\nthrottle_ms = 60001").contains("between 1 and 60000"));
    let then = "[daemon]\nthrottle_then = \"throttle\"";
    assert!(wrong(then).contains("unknown variant `throttle`"));
    assert!(wrong("[daemon]\nclient = 1").contains("unknown field `client`"));
    assert!(wrong("[daemon.spread]\nallow = [\"ten\"]").contains("line 2"));
}

#[test]
fn the_largest_message_has_to_fit_a_clients_queue() {
    let with = |queue: usize| {
        DaemonConfig::from_toml(&format!(
            "[daemon]\nmessage_bytes = 1000\nclient_queue_bytes = {queue}"
        ))
    };
    let least = match with(1000) {
        Err(DaemonConfigError::QueueBytes(least)) => least,
        other => panic!("{other:?}"),
    };
    assert!(with(least - 1).is_err());
    assert!(with(least).is_ok());
}

#[test]
fn clients_may_skip_or_be_waited_for_only_where_that_is_said() {
    let may = |text: &str| {
        let config = DaemonConfig::from_toml(&format!("[daemon]\n{text}")).expect("a policy");
        (config.may_skip(), config.may_throttle())
    };
    assert_eq!(may("throttle_then = \"skip\""), (false, false));
    assert_eq!(may("slow_clients = \"skip\""), (true, false));
    assert_eq!(may("slow_clients = \"throttle\""), (false, true));
    let both = "slow_clients = \"throttle\"\nthrottle_then = \"skip\"";
    assert_eq!(may(both), (true, true));
}
