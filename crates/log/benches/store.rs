//! The store with ten million entries: the time to write them, to begin again with them, and to read them. `cargo bench
//! -p rota-log`.

use std::time::Instant;

use rota_log::store::{Options, RunBuilder, Store};
use rota_multiring::{Place, Rank};
use rota_storage::acceptor::FileDir;

fn main() {
    const RECORDS: u64 = 10_000_000;
    let dir = tempfile::tempdir().expect("the disk works");
    let open = || {
        let begin = Instant::now();
        let store = Store::open(FileDir::new(dir.path().to_owned()), Options::default())
            .expect("the disk works");
        println!("opened in {:?}", begin.elapsed());
        store
    };
    let store = open();
    let payload = [7; 200];
    let begin = Instant::now();
    let mut at = 1;
    while at < RECORDS {
        let mut builder = RunBuilder::new(1, at);
        for _ in 0..50 {
            let place = Place {
                round: at,
                rank: Rank(1),
                instance: at,
                index: 0,
            };
            builder.push(place, at, &payload);
        }
        let run = builder.finish().expect("the disk works");
        store.append(1, at, 50, run.into_bytes());
        at += 50;
    }
    println!("appended in {:?}", begin.elapsed());
    let tails = store.sync(store.mark()).expect("the disk works");
    println!("durable in {:?}", begin.elapsed());
    drop(store);
    let store = open();
    let begin = Instant::now();
    assert_eq!(
        store
            .begin(&[(1, 1, at)], Some(&tails))
            .expect("the disk works"),
        []
    );
    println!("begun in {:?}", begin.elapsed());
    let (begin, mut next, mut bytes) = (Instant::now(), 1, 0);
    while next < at {
        let run = store.read(1, next, at, 1 << 20).expect("the disk works");
        (next, bytes) = (run.next(), bytes + run.bytes().len());
    }
    let rate = bytes as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("read {bytes} bytes, {rate:.0} MB/s");
    let begin = Instant::now();
    println!(
        "{:?} found in {:?}",
        store.first_after(1, at / 3),
        begin.elapsed()
    );
    let begin = Instant::now();
    (1..1_000).for_each(|n| drop(store.read(1, n * 9_973, at, 1).expect("the disk works")));
    println!("a record in {:?}", begin.elapsed() / 999);
    drop(store);
    let store = open();
    let begin = Instant::now();
    assert_eq!(
        store.begin(&[(1, 1, at)], None).expect("the disk works"),
        []
    );
    println!("begun without tails in {:?}", begin.elapsed());
}
