//! A small part of the searches of `rota sim explore`.

use rota_ring::Protocol;
use rota_sim::explore::{Options, Report, Start, explore};

fn search(options: Options) -> Report {
    let report = explore(&options);
    assert!(report.violation.is_none(), "{report}");
    report
}

#[test]
fn two_nodes_without_faults_are_searched_whole() {
    for protocol in [Protocol::Accelerated, Protocol::Original] {
        let report = search(Options {
            protocol,
            ..Options::default()
        });
        assert!(report.complete && report.deepest == 30, "{report}");
        assert!(report.together > 0 && report.settled > 0, "{report}");
    }
}

#[test]
fn two_nodes_with_a_loss_and_a_crash() {
    let report = search(Options {
        depth: 14,
        losses: 1,
        crashes: 1,
        early: 1,
        states: 30_000,
        ..Options::default()
    });
    assert!(report.states > 1000, "{report}");
}

#[test]
fn three_nodes_whose_token_is_lost() {
    let report = search(Options {
        nodes: 3,
        start: Start::Lost,
        depth: 12,
        losses: 1,
        crashes: 1,
        states: 20_000,
        ..Options::default()
    });
    assert_eq!(report.states, 20_000, "{report}");
}

#[test]
fn the_same_search_finds_the_same() {
    let options = Options {
        depth: 12,
        losses: 1,
        ..Options::default()
    };
    let counts = |report: Report| (report.states, report.transitions, report.settled);
    assert_eq!(counts(search(options)), counts(search(options)));
}
