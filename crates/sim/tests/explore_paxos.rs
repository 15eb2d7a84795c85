//! A small part of the searches of `rota sim explore-paxos`, and the violations to be found in broken versions.

use rota_sim::explore::paxos::{Budget, Options, Report, Rules, Start, explore, register};

/// Nothing but one more configuration.
const ONE: Budget = Budget {
    stands: 1,
    values: 0,
    skips: 0,
    crashes: 0,
    disks: 0,
    trims: 0,
    late: 0,
    changes: 0,
    foreign: 0,
};

fn options(start: Start, budget: Budget, change: impl FnOnce(&mut Rules)) -> Options {
    let mut options = Options {
        start,
        budget,
        states: 3_000_000,
        ..Options::default()
    };
    options.rules.acceptors = options.rules.acceptors.max(start.acceptors());
    change(&mut options.rules);
    options
}

#[cfg(not(feature = "mutants"))]
mod right {
    use super::*;

    fn holds(options: &Options) -> Report {
        let report = explore(options);
        assert!(report.violations.is_empty(), "{report}");
        report
    }

    #[test]
    fn two_rounds_of_three_acceptors_are_searched_whole() {
        let report = holds(&Options::default());
        let is_much = report.far > 50_000 && report.closed > 1000;
        assert!(report.whole && is_much, "{report}");
    }

    #[test]
    fn behind_each_story_all_is_well() {
        for start in Start::EACH {
            let budget = Budget { crashes: 1, ..ONE };
            let mut options = options(start, budget, |rules| rules.gaps = true);
            options.rules.coordinators = 3;
            options.states = 20_000;
            assert!(holds(&options).states >= 20_000);
        }
    }

    #[test]
    fn disks_are_lost_and_slow_and_words_late() {
        let budget = Budget {
            crashes: 1,
            disks: 1,
            late: 1,
            trims: 1,
            ..ONE
        };
        for lazy in [false, true] {
            let mut options = options(Start::Begun, budget, |rules| rules.lazy = lazy);
            options.states = 30_000;
            assert!(holds(&options).states >= 30_000);
        }
    }

    #[test]
    fn the_same_search_finds_the_same() {
        let budget = Budget {
            disks: 1,
            late: 1,
            ..ONE
        };
        let mut options = options(Start::First, budget, |_| {});
        options.depth = 7;
        let counts = |report: Report| (report.states, report.transitions, report.closed);
        assert_eq!(counts(explore(&options)), counts(explore(&options)));
    }

    #[test]
    fn a_register_chooses_once_whatever_its_acceptors_do() {
        let mut options = Options::default();
        (options.budget.stands, options.budget.crashes) = (0, 1);
        let report = register::explore(&options, false);
        assert!(report.whole && report.violations.is_empty(), "{report}");
        assert!(report.far > 1000, "{report}");
    }

    /// The numbers of another cluster are worth nothing: this is why engines must not let them in.
    #[test]
    fn a_foreign_number_breaks_agreement() {
        let budget = Budget {
            stands: 2,
            disks: 1,
            foreign: 1,
            ..ONE
        };
        let report = explore(&options(Start::Begun, budget, |_| {}));
        let property = report.violations.first().map(|it| it.property.as_str());
        assert_eq!(property, Some("proposal"), "{report}");
    }

    /// A promise that was not written is forgotten, and the ballots of two candidates both win.
    #[test]
    fn a_register_that_forgets_promises_is_found_out() {
        let mut options = Options::default();
        (options.budget.stands, options.budget.crashes) = (0, 1);
        let report = register::explore(&options, true);
        assert_eq!(report.violations.len(), 1, "{report}");
    }
}

#[cfg(feature = "mutants")]
mod broken {
    use super::*;
    use rota_core::mutants::Mutant;
    use rota_sim::explore::paxos::Checks;

    fn found(report: &Report, mutant: Mutant, signs: &[&str]) {
        let violation = report.violations.first();
        let violation = violation.unwrap_or_else(|| panic!("{mutant} is not found: {report}"));
        let property = violation.property.as_str();
        println!("{mutant}: {property}, {} states", report.states);
        assert!(signs.contains(&property), "{mutant}: {report}");
    }

    fn search(mutant: Mutant, mut options: Options, signs: &[&str]) {
        options.mutant = Some(mutant);
        options.states = 700_000;
        found(&explore(&options), mutant, signs);
    }

    /// All in one: a mutant is switched on for the whole process.
    #[test]
    fn each_broken_version_is_found_out() {
        let two = Budget { stands: 2, ..ONE };
        let plain = options(Start::First, two, |_| {});
        let lost = options(Start::Begun, Budget { disks: 1, ..two }, |_| {});
        let slow = options(Start::Begun, Budget { crashes: 1, ..two }, |rules| {
            rules.lazy = true
        });
        let mixed = options(Start::Begun, ONE, |rules| {
            (rules.reorder, rules.loose) = (true, true);
            rules.checks = Checks::only(["agreement", "proposal", "learnt"]).expect("names");
        });
        let cut = options(Start::Skipped, Budget { crashes: 1, ..ONE }, |_| {});
        let parted = options(Start::Parted, ONE, |rules| {
            (rules.gaps, rules.coordinators) = (true, 3);
        });
        let trimmed = options(Start::Begun, Budget { trims: 1, ..two }, |_| {});
        search(Mutant::M40, plain, &["learnt", "log"]);
        search(Mutant::N01, mixed, &["proposal", "agreement"]);
        search(Mutant::N03, mixed, &["proposal", "agreement"]);
        search(Mutant::N04, mixed, &["learnt", "proposal"]);
        search(Mutant::N05, slow, &["learnt"]);
        search(Mutant::N06, plain, &["proposal", "agreement"]);
        search(Mutant::N07, lost, &["proposal", "agreement"]);
        search(Mutant::N08, lost, &["complete", "silence"]);
        search(Mutant::N09, lost, &["complete"]);
        search(Mutant::N10, plain, &["proposal", "agreement"]);
        search(Mutant::N11, plain, &["learnt"]);
        search(Mutant::N15, trimmed, &["trimmed", "proposal"]);
        search(Mutant::N17, plain, &["held-round"]);
        // And what that comes to: two values decided, of five acceptors of which one has lost its disk.
        let mended = options(Start::Mended, Budget { crashes: 2, ..ONE }, |rules| {
            rules.coordinators = 3;
            rules.checks = Checks::only(["agreement"]).expect("a name");
        });
        search(Mutant::N17, mended, &["agreement"]);
        search(Mutant::N19, cut, &["log"]);
        let ahead = options(Start::First, ONE, |rules| rules.ahead = true);
        search(Mutant::N24, ahead, &["log"]);
        let forgetful = options(
            Start::Begun,
            Budget {
                disks: 2,
                trims: 1,
                ..ONE
            },
            |_| {},
        );
        search(Mutant::N25, forgetful, &["complete"]);
        let twice = Budget {
            stands: 2,
            disks: 1,
            ..ONE
        };
        let over = options(Start::Begun, twice, |_| {});
        search(Mutant::N21, over, &["proposal"]);
        let floors = options(Start::Begun, Budget { trims: 1, ..twice }, |_| {});
        search(Mutant::N16, floors, &["complete"]);
        search(Mutant::N26, over, &["proposal"]);
        search(Mutant::N20, parted, &["wait"]);
        let mut register = options(Start::First, ONE, |_| {});
        for mutant in [Mutant::N13, Mutant::N14] {
            register.mutant = Some(mutant);
            found(
                &register::explore(&register, false),
                mutant,
                &["configuration"],
            );
        }
    }
}
