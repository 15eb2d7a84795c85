//! Tables 1, 2 and 3 of the FastCast paper, step by step, with the value of every column.

use rota_core::shares::{Capacity, Note, Shares};

const MBIT: u64 = 1_000_000;

/// A link of which shares are made of 1000 Mbit/s, as in the paper, which sets nothing aside.
const LINK: Capacity = Capacity::new(1_020_408_163);

/// Requirements, share, ongoing increase, acknowledgements, delivered: the columns, in Mbit/s.
type Row = ([u64; 3], u64, u64, usize, bool);

struct Table {
    nodes: Vec<Shares>,
    /// Words on their way, by sender.
    words: [Option<Vec<u8>>; 3],
    step: &'static str,
}

impl Table {
    fn new() -> Self {
        assert_eq!(LINK.shared(), 1000 * MBIT);
        let notes = [Some(Note {
            requirement: 0,
            capacity: LINK.bits_per_second(),
        }); 3];
        let nodes = (0..3).map(|me| {
            let mut node = Shares::new(LINK);
            node.install(me, &notes);
            node
        });
        Self {
            nodes: nodes.collect(),
            words: [None, None, None],
            step: "S1",
        }
    }

    /// `increase_BW` and `decrease_BW` of the paper say by how much.
    fn wants(&mut self, node: usize, mbits: u64) {
        self.nodes[node].want(mbits * MBIT);
        let word = self.nodes[node].poll_word().expect("a word to broadcast");
        self.words[node] = Some(word.encode().to_vec());
        assert_eq!(self.nodes[node].poll_word(), None, "once");
    }

    fn delivers(&mut self, node: usize, of: usize) {
        let word = self.words[of].clone().expect("broadcast");
        self.nodes[node].on_word(of, &word).expect("a word");
    }

    fn receives_ack(&mut self, node: usize, from: usize) {
        let said = self.nodes[from].applied()[node];
        self.nodes[node].on_applied(from, said);
    }

    #[track_caller]
    fn shows(&mut self, step: &'static str, rows: [Row; 3]) {
        self.step = step;
        for (at, (node, row)) in self.nodes.iter().zip(rows).enumerate() {
            let requirements = node.requirements().iter().map(|bits| bits / MBIT);
            assert_eq!(
                (
                    requirements.collect::<Vec<_>>(),
                    node.share() / MBIT,
                    node.ongoing_increase() / MBIT,
                    node.acks(),
                    node.delivered()
                ),
                (row.0.to_vec(), row.1, row.2, row.3, row.4),
                "{step}: p{at}"
            );
            assert_eq!(node.share() % MBIT, 0, "{step}: p{at}");
        }
    }
}

const NOTHING: Row = ([0, 0, 0], 0, 0, 0, false);

/// Table 1: of three who send nothing, one comes to want 800 Mbit/s and one 300.
fn table_1(t: &mut Table) {
    t.shows("S1", [NOTHING; 3]);
    t.wants(0, 800);
    t.wants(1, 300);
    let p0 = ([0, 0, 0], 0, 800, 0, false);
    let p1 = ([0, 0, 0], 0, 300, 0, false);
    t.shows("S2", [p0, p1, NOTHING]);
    t.delivers(2, 0);
    t.delivers(2, 1);
    let p2 = ([800, 300, 0], 0, 0, 0, false);
    t.shows("S3", [p0, p1, p2]);
    t.receives_ack(0, 2);
    t.receives_ack(1, 2);
    let p0 = ([0, 0, 0], 0, 800, 1, false);
    let p1 = ([0, 0, 0], 0, 300, 1, false);
    t.shows("S4", [p0, p1, p2]);
    t.delivers(0, 0);
    t.delivers(0, 1);
    let p0 = ([0, 300, 0], 0, 800, 1, true);
    t.shows("S5", [p0, p1, p2]);
    t.receives_ack(1, 0);
    let p1 = ([0, 0, 0], 0, 300, 2, false);
    t.shows("S6", [p0, p1, p2]);
    t.delivers(1, 0);
    t.delivers(1, 1);
    let p1 = ([800, 300, 0], 300, 0, 0, false);
    t.shows("S7", [p0, p1, p2]);
    t.receives_ack(0, 1);
    let p0 = ([800, 300, 0], 700, 0, 0, false);
    t.shows("S8", [p0, p1, p2]);
}

/// Table 2: the third comes to want 600 Mbit/s.
fn table_2(t: &mut Table) {
    let p0 = ([800, 300, 0], 700, 0, 0, false);
    let p1 = ([800, 300, 0], 300, 0, 0, false);
    t.shows("S9", [p0, p1, ([800, 300, 0], 0, 0, 0, false)]);
    t.wants(2, 600);
    t.shows("S10", [p0, p1, ([800, 300, 0], 0, 600, 0, false)]);
    (0..3).for_each(|node| t.delivers(node, 2));
    let p0 = ([800, 300, 600], 500, 0, 0, false);
    let p1 = ([800, 300, 600], 300, 0, 0, false);
    t.shows("S11", [p0, p1, ([800, 300, 0], 0, 600, 0, true)]);
    t.receives_ack(2, 0);
    t.shows("S12", [p0, p1, ([800, 300, 0], 0, 600, 1, true)]);
    t.receives_ack(2, 1);
    t.shows("S13", [p0, p1, ([800, 300, 600], 500, 0, 0, false)]);
}

/// Table 3: it comes to want 500 Mbit/s less.
fn table_3(t: &mut Table) {
    let p1 = ([800, 300, 600], 300, 0, 0, false);
    let p0 = ([800, 300, 600], 500, 0, 0, false);
    t.shows("S14", [p0, p1, ([800, 300, 600], 500, 0, 0, false)]);
    t.wants(2, 100);
    t.shows("S15", [p0, p1, ([800, 300, 100], 100, 0, 0, false)]);
    (0..3).for_each(|node| t.delivers(node, 2));
    let p0 = ([800, 300, 100], 700, 0, 0, false);
    let p1 = ([800, 300, 100], 300, 0, 0, false);
    t.shows("S16", [p0, p1, ([800, 300, 100], 100, 0, 0, false)]);
}

#[test]
fn the_papers_tables() {
    let mut table = Table::new();
    table_1(&mut table);
    table_2(&mut table);
    table_3(&mut table);
    assert_eq!(table.step, "S16");
}
