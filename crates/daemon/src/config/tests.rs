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
fn metrics_that_no_rule_lets_anybody_read_are_a_mistake() {
    let with = |rule: &str| {
        DaemonConfig::from_toml(&format!(
            "[daemon]\nmetrics = \"127.0.0.1:9464\"\n[[daemon.access]]\n{rule}"
        ))
    };
    for rule in [
        "who = { anyone = true }\nadmin = true",
        "who = { address = \"127.0.0.1/32\" }\nconnect = false\nadmin = true",
    ] {
        assert!(with(rule).is_ok(), "{rule}");
    }
    let refused = with("who = { uid = 0 }\nadmin = true");
    assert!(
        matches!(refused, Err(DaemonConfigError::MetricsForNobody)),
        "{refused:?}"
    );
    let refused = with("who = { address = \"10.0.0.0/8\" }\nconnect = false\nadmin = true");
    assert!(
        matches!(refused, Err(DaemonConfigError::Access(1, _))),
        "{refused:?}"
    );
}

#[test]
fn what_can_change_is_taken_and_what_cannot_is_as_it_was() {
    let config = |text: &str| DaemonConfig::from_toml(text).expect("a configuration");
    let rule = "[[daemon.access]]\nwho = { uid = 1 }\n";
    let tls = "[daemon.tls]\nlisten = [\"127.0.0.1:1\"]\ncertificate = \"a\"\nkey = \"b\"\nanonymous = true\n";
    let old = config(&format!("{tls}{rule}"));
    let mut new = config(&format!("[daemon]\nclients = 7\nrealtime = 9\n{tls}{rule}"));
    if let Some(tls) = &mut new.tls {
        tls.listen = vec![([127, 0, 0, 1], 2).into()];
        tls.key = "c".into();
    }
    new.access[0].who.uid = Some(2);
    let changed = old.changed_to(&new).expect("it can run so");
    assert_eq!((changed.clients, changed.realtime), (7, None));
    assert_eq!(changed.access, new.access);
    let (was, is) = (old.tls.clone().expect("TLS"), changed.tls.expect("TLS"));
    assert_eq!((is.listen, is.key), (was.listen, "c".into()));

    let gone = old.changed_to(&config(""));
    assert!(
        matches!(gone, Err(DaemonConfigError::RulesGone)),
        "{gone:?}"
    );
    let certificate = "[[daemon.access]]\nwho = { certificate = \"a\" }\n";
    let with_ca = tls.replace("anonymous = true", "client_ca = \"d\"");
    let early = config(rule).changed_to(&config(&format!("{with_ca}{certificate}")));
    assert!(
        matches!(early, Err(DaemonConfigError::BeforeRestart(_))),
        "{early:?}"
    );
}

#[test]
fn clients_may_skip_or_be_waited_for_only_where_that_is_said() {
    let may = |text: &str| {
        let config = DaemonConfig::from_toml(&format!("[daemon]\n{text}")).expect("a policy");
        let slow = config.slow_clients;
        (slow.may_skip(config.throttle_then), slow.may_throttle())
    };
    assert_eq!(may("throttle_then = \"skip\""), (false, false));
    assert_eq!(may("slow_clients = \"skip\""), (true, false));
    assert_eq!(may("slow_clients = \"throttle\""), (false, true));
    let both = "slow_clients = \"throttle\"\nthrottle_then = \"skip\"";
    assert_eq!(may(both), (true, true));
}
