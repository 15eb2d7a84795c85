use super::*;
use crate::options::BitRate;

fn options(output: &Path) -> FiguresOptions {
    FiguresOptions {
        place: Place {
            testbed: TestbedKind::Netns,
            link_rate: Some(BitRate(1_000_000_000)),
            ..Place::default()
        },
        loads: vec![BitRate(100_000_000)],
        output: output.to_owned(),
        ..FiguresOptions::default()
    }
}

fn refused(options: &FiguresOptions) -> String {
    match run_figures(options, &mut |_| ()) {
        Err(BenchError::Usage(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = options(&folder.path().join("new"));
    let mut loopback = good.clone();
    loopback.place.testbed = TestbedKind::Loopback;
    assert!(refused(&loopback).contains("--testbed netns"));
    let mut unlimited = good.clone();
    unlimited.place.link_rate = None;
    assert!(refused(&unlimited).contains("--link-rate"));
    let mut idle = good.clone();
    idle.loads.clear();
    assert!(refused(&idle).contains("needs loads"));
    for nodes in [vec![], vec![2, 1]] {
        let few = FiguresOptions {
            nodes,
            ..good.clone()
        };
        assert!(refused(&few).contains("two nodes"));
    }
    let unsized_requests = FiguresOptions {
        figures: vec![Figure::Storage],
        sizes: Vec::new(),
        ..good.clone()
    };
    assert!(refused(&unsized_requests).contains("figure 3 needs sizes"));
    let never = FiguresOptions { rounds: 0, ..good };
    assert!(refused(&never).contains("--rounds"));
    assert!(!never.output.exists());
}

#[test]
fn a_table_that_is_there_is_gone_on_with_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let once = options(folder.path());
    let figure = Figure::Throughput;
    let mut table = begin(figure, &once).expect("nothing is there");
    table.rows.push(vec!["1".to_owned(); table.columns.len()]);
    table
        .write(&csv(&once.output, figure))
        .expect("it can be written");
    assert!(refused(&once).contains("--append goes on with it"));
    let again = FiguresOptions {
        append: true,
        // Another part of the same comparison belongs into the same table.
        series: vec![Series::Tcp],
        nodes: vec![3],
        ..once.clone()
    };
    assert_eq!(begin(figure, &again).expect("the same way").rows.len(), 1);
    let other = FiguresOptions {
        duration: Duration::from_secs(9),
        ..again
    };
    assert!(refused(&other).contains("measured in the same way"));
}

#[test]
fn notes_have_the_testbed_and_a_command_for_each_line() {
    let notes = |figure| notes(figure, &options(Path::new("x")));
    let latency = notes(Figure::Latency);
    assert_eq!(latency.len(), 2 + Figure::Latency.series().len());
    assert!(
        latency[1].contains("links of 1gbit (burst 131072 B"),
        "{latency:?}"
    );
    assert!(latency[2].starts_with("fastcast: rota bench --engine fastcast "));
    assert!(latency[9].starts_with("raw-hop: rota bench raw --pattern hop "));
    let storage = notes(Figure::Storage);
    assert_eq!(
        storage[0],
        "Multi-Ring Paxos figure 3: rota bench figures --paper multi-ring"
    );
    assert_eq!(storage.len(), 2 + 2, "{storage:?}");
    assert!(
        storage[2].starts_with(
            "ring-paxos: rota bench --engine ring-paxos --storage STORAGE --instance-per-message "
        ) && storage[2].contains(" --nodes 3 --size BYTES --outstanding 30 "),
        "{storage:?}"
    );
    let shares = notes(Figure::Shares);
    assert_eq!(
        shares[2],
        "fastcast: rota bench shares --link-rate 1gbit --phase 10000ms"
    );
}

#[test]
fn figures_are_drawn_again_from_their_tables() {
    let (from, to) = (tempfile::tempdir(), tempfile::tempdir());
    let (from, to) = (from.expect("a folder"), to.expect("a folder"));
    let nothing = draw_figures(from.path(), None, to.path());
    assert!(matches!(nothing, Err(BenchError::Usage(_))), "{nothing:?}");
    let columns = columns(Figure::Latency);
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(vec!["how".to_owned()], &columns);
    for (nodes, us) in [("2", "500"), ("8", "1500.5")] {
        let mut row = vec![String::new(); table.columns.len()];
        (row[0], row[1], row[2]) = (nodes.to_owned(), "lcr".to_owned(), "1".to_owned());
        row[5] = us.to_owned();
        table.rows.push(row);
    }
    table
        .write(&csv(from.path(), Figure::Latency))
        .expect("written");
    let report = draw_figures(from.path(), None, to.path()).expect("drawn");
    assert_eq!(report.figures.len(), 1);
    let svg = &report.figures[0].drawings[0];
    let svg = fs::read_to_string(svg).expect("it can be read");
    assert!(
        svg.contains("\nlcr\n") && !svg.contains("\nfastcast\n"),
        "{svg}"
    );
    assert_eq!(report.failure(), None);
    let missing = draw_figures(from.path(), Some(&[Figure::Shares]), to.path());
    assert!(matches!(missing, Err(BenchError::Figure(_))), "{missing:?}");
}

/// All benchmarks of a figure failed, or no engine delivers the least of its loads.
#[test]
fn a_figure_with_nothing_to_draw_does_not_keep_others_from_being_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    let figure = Figure::Latency;
    let empty = begin(figure, &options).expect("nothing is there");
    let mut report = FiguresReport::default();
    let failures = vec!["lcr at 2: a node did not come up".to_owned()];
    finish(figure, &empty, &options, failures, &mut report).expect("the next has its turn");
    assert_eq!(report.failure(), Some("lcr at 2: a node did not come up"));
    assert!(report.figures[0].drawings.is_empty());
    let said = report.to_string();
    assert!(
        said.contains("figure 8: nothing to draw")
            && said.contains("0 rows")
            && said.contains("2 failed"),
        "{said}"
    );
}
