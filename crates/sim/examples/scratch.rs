use rota_sim::campaign::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let engine: EngineName = args[1].parse().unwrap();
    let (a, b) = args[2].split_once("..").unwrap();
    let mut o = Options::new(engine, a.parse().unwrap()..b.parse().unwrap());
    for arg in &args[3..] {
        let (k, v) = arg.split_once('=').unwrap();
        match k {
            "faults" => o.faults = v.parse().unwrap(),
            "jobs" => o.jobs = v.parse().unwrap(),
            "keep" => {
                o.cuts.keep = Some(if v == "none" {
                    vec![]
                } else {
                    v.split(',').map(|x| x.parse().unwrap()).collect()
                })
            }
            "horizon" => o.cuts.horizon = Some(v.parse().unwrap()),
            "calm" => o.cuts.calm = v == "1",
            "primary" => o.primary = v.parse().unwrap(),
            "mutant" => o.mutant = Some(v.to_owned()),
            "trace" => o.trace = Some(v.into()),
            "first" => o.first = v == "1",
            _ => panic!("{k}"),
        }
    }
    println!("{}", run(&o).unwrap());
}
