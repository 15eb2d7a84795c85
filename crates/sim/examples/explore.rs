fn main() {
    let a: Vec<u64> = std::env::args().skip(2).map(|x| x.parse().unwrap()).collect();
    let options = rota_sim::explore::Options {
        start: std::env::args().nth(1).unwrap().parse().unwrap(),
        nodes: a[0] as usize,
        depth: a[1] as u32,
        losses: a[2] as u32,
        crashes: a[3] as u32,
        early: a[4] as u32,
        reorder: a[5] > 0,
        states: a[6],
        ..Default::default()
    };
    println!("{}", rota_sim::explore::explore(&options));
}
