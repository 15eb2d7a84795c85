//! A slice of the report, quick enough for every test run: verdicts do not change unnoticed, and the same seeds give the
//! same table.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_papers::{Calibration, Lab, Options, Page, claims, judge_all, write};

/// Claims of all kinds that take little time, and their verdicts.
const SLICE: &str = include_str!("slice.csv");

fn options(only: Vec<String>, jobs: usize) -> Options {
    Options {
        only,
        seeds: 1,
        jobs,
        is_whole: false,
    }
}

#[test]
fn verdicts_are_what_they_were_and_the_table_is_the_same_twice() {
    let expected: BTreeMap<&str, &str> = SLICE
        .lines()
        .filter_map(|line| line.split_once(','))
        .collect();
    let only: Vec<String> = expected.keys().map(|id| (*id).to_owned()).collect();
    let claims = claims().expect("the tables of claims");
    let calibration = Calibration::built_in().expect("the calibration");
    let table = |jobs: usize| {
        let lab = Lab::new(calibration);
        let judged = judge_all(&lab, &claims, &options(only.clone(), jobs));
        let folder = std::env::temp_dir().join(format!("rota-papers-{}", std::process::id()));
        let page = Page::new(&lab, judged, &options(only.clone(), jobs));
        write(&page, &folder, Duration::ZERO).expect("a report");
        let table = std::fs::read_to_string(folder.join("claims.csv")).expect("a table");
        let html = std::fs::read_to_string(folder.join("index.html")).expect("a page");
        std::fs::remove_dir_all(&folder).expect("a folder of this test");
        (page.judged, table, html)
    };
    let (judged, first, html) = table(2);
    assert_eq!(judged.len(), expected.len());
    let changed: Vec<String> = judged
        .iter()
        .filter(|one| one.verdict.to_string() != expected[one.claim.id.as_str()])
        .map(|one| {
            format!(
                "{}: {} ({:?}; {})",
                one.claim.id, one.verdict, one.ours, one.why
            )
        })
        .collect();
    assert!(
        changed.is_empty(),
        "verdicts that are not in tests/slice.csv: {changed:#?}"
    );
    assert!(judged.iter().all(|one| !one.why.is_empty()));
    assert_eq!(first, table(1).1, "by one thread");
    for loads in ["src=", "href=", "url(", "@import"] {
        assert!(!html.contains(loads), "the page loads nothing: {loads}");
    }
}
