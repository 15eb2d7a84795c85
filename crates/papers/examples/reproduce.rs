//! The report without the rest of `rota`: quick to build while numbers are fitted. Arguments: a folder, then claims.

use std::path::Path;
use std::time::Instant;

use rota_papers::{Calibration, Lab, Options, Page, claims, judge_all, write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let output = arguments.next().ok_or("a folder for the report")?;
    let only: Vec<String> = arguments.collect();
    let options = Options {
        is_whole: only.is_empty(),
        only,
        seeds: 1,
        jobs: 2,
    };
    let started = Instant::now();
    let lab = Lab::new(Calibration::built_in()?);
    let judged = judge_all(&lab, &claims()?, &options);
    for one in &judged {
        println!(
            "{} {} {:?} {}; {}",
            one.claim.id, one.claim.said, one.ours, one.verdict, one.why
        );
    }
    println!("# judged after {:.1} s", started.elapsed().as_secs_f64());
    let page = Page::new(&lab, judged, &options);
    write(&page, Path::new(&output), started.elapsed())?;
    println!(
        "# {:?} after {:.1} s",
        lab.totals(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}
