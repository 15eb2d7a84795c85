//! The page: one file that opens from a disk and loads nothing.

use std::fmt::Write as _;
use std::time::Duration;

use crate::calibration::Calibration;
use crate::experiments::Experiment;
use crate::judge::{Judged, Verdict};
use crate::lab::Ours;
use crate::predict::Prediction;
use crate::rings::name;
use crate::sensitivity::Turned;
use crate::several::predict::Prediction as Several;

use super::table::{command, rounded, shown};
use super::{Page, svg};

const STYLE: &str = include_str!("page.css");

/// Text in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The page.
pub fn page(page: &Page, hash: &str, took: Duration) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Rota: the papers' figures, again</title>\n<style>\n{STYLE}</style></head><body>\n\
         <h1>The papers' figures, again</h1>\n"
    );
    head(&mut out, page, hash, took);
    if !page.figure.is_empty() {
        out.push_str(
            "<h2>Figure 1 of the report, alive</h2><p>Three participants send five messages in each visit of the token. In the \
             accelerated ring three of the five leave behind the token (round, red), so that the next participant sends while \
             this one still does; packets of both then wait in the ports of the switch. Each frame is one of a simulated run \
             on 1 Gbit/s.</p>",
        );
        out.push_str(&page.figure);
    }
    for experiment in &page.experiments {
        of_experiment(&mut out, experiment, &page.judged);
    }
    predicted(&mut out, &page.predictions);
    several(&mut out, &page.several);
    sensitive(&mut out, &page.sensitivity);
    let _ = write!(
        out,
        "<h2>Calibration</h2><p>SHA-256 <code>{hash}</code></p><pre>{}</pre>\n</body></html>\n",
        escaped(Calibration::file())
    );
    out
}

fn head(out: &mut String, page: &Page, hash: &str, took: Duration) {
    out.push_str("<p class=\"counts\">");
    for verdict in Verdict::EACH {
        let count = page
            .judged
            .iter()
            .filter(|one| one.verdict == verdict)
            .count();
        let _ = write!(out, "<span><b>{count}</b> {verdict}</span>");
    }
    let counted = page.judged.iter().filter(|one| one.counts());
    let reproduced = page
        .judged
        .iter()
        .filter(|one| one.verdict == Verdict::Reproduced)
        .count();
    let counted = counted.count();
    let share = reproduced as f64 * 100.0 / counted.max(1) as f64;
    let _ = write!(
        out,
        "</p><p>{reproduced} of {counted} claims that are judged are reproduced: {share:.0} %. Calibrated on {} claims, \
         by the file below (SHA-256 {}…).</p>",
        page.judged
            .iter()
            .filter(|one| one.verdict == Verdict::Calibrated)
            .count(),
        &hash[..12]
    );
    let totals = &page.totals;
    let _ = write!(
        out,
        "<p>Fidelity: the engines are those that ship, on a simulated network. {} runs with {:.0} million deliveries in {:.0} \
         virtual seconds took {:.0} s; in {} of them the nodes did not all deliver everything in one order, and in {} \
         they parted for a while. The simulator was not yet set against slow links and real sockets.</p>",
        totals.runs,
        totals.deliveries as f64 / 1e6,
        totals.seconds,
        took.as_secs_f64(),
        totals.unsound,
        totals.disturbed
    );
}

fn of_experiment(out: &mut String, experiment: &Experiment, judged: &[Judged]) {
    let _ = write!(
        out,
        "<h2 id=\"{0}\">{0}: {1}</h2>",
        experiment.name,
        escaped(experiment.title)
    );
    if !experiment.charts.is_empty() {
        out.push_str("<div class=\"charts\">");
        experiment
            .charts
            .iter()
            .for_each(|chart| out.push_str(&svg::chart(chart)));
        out.push_str("</div>");
    }
    out.push_str(
        "<div class=\"wide\"><table><thead><tr><th>claim<th>setting<th>what<th>paper<th>ours<th>interval<th>way<th>verdict\
         <th>why<th>command</tr></thead><tbody>",
    );
    for one in judged
        .iter()
        .filter(|one| one.claim.experiment == experiment.name)
    {
        row(out, one);
    }
    out.push_str("</tbody></table></div>\n");
}

fn row(out: &mut String, one: &Judged) {
    let claim = &one.claim;
    let interval = match &one.ours {
        Ours::Figure { low, high, .. } => format!("{} to {}", rounded(*low), rounded(*high)),
        _ => String::new(),
    };
    let _ = write!(
        out,
        "<tr id=\"{id}\"><td>{id}<br>{paper}<td>{setting}<td>{metric}<td class=\"number\">{said}<td class=\"number\">{ours}\
         <td class=\"number\">{interval}<td>{way}<td><span class=\"verdict {class}\">{verdict}</span><td class=\"why\">{why}\
         <td><code>{command}</code></tr>",
        id = claim.id,
        paper = escaped(&claim.paper),
        setting = escaped(&claim.setting),
        metric = claim.metric.replace('_', " "),
        said = escaped(&claim.said),
        ours = shown(&one.ours),
        way = claim.way.name(),
        class = one.verdict.to_string().replace(' ', "-"),
        verdict = one.verdict,
        why = escaped(&one.why),
        command = escaped(&command(one)),
    );
}

fn predicted(out: &mut String, predictions: &[Prediction]) {
    if predictions.is_empty() {
        return;
    }
    out.push_str(
        "<h2>What nobody could measure</h2><p>The library at full load with windows of 40 on the papers' servers, with more \
         nodes and faster ports. \"Bursts\" is Rota's own way to send and receive: its cost is an assumption.</p>\
         <div class=\"wide\"><table><thead><tr><th>Gbit/s<th>nodes<th>ring<th>Mbit/s<th>agreed, us<th>safe, us</tr></thead><tbody>",
    );
    for one in predictions {
        let bursts = if one.is_in_bursts { ", bursts" } else { "" };
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{}{bursts}<td class=\"number\">{}<td class=\"number\">{}<td class=\"number\">{}</tr>",
            one.gigabits,
            one.nodes,
            name(one.protocol),
            rounded(one.mbps),
            rounded(one.agreed),
            rounded(one.safe)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

fn several(out: &mut String, predictions: &[Several]) {
    if predictions.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Several rings, and regions</h2><p>U-Ring Paxos with votes in memory on the papers' servers. Rings: messages of \
         1350 bytes on 10 Gbit/s, all hosts on all rings. Regions: three hosts each with a ring of their own and packets of \
         32 kB on 1 Gbit/s, and a ring of all, to which nothing is sent; 80 ms there and back. Throughput is that of all rings \
         with as much as they take; delays are those of the first ring at a small load; work is the processors' \
         of all hosts for a message. The merge and the turns of idle rings cost nothing here.</p>\
         <div class=\"wide\"><table><thead><tr><th>what<th>hosts<th>Mbit/s<th>p50, us<th>work, us<th>busiest processor</tr></thead><tbody>",
    );
    for one in predictions {
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td class=\"number\">{}<td class=\"number\">{}<td class=\"number\">{}<td class=\"number\">{:.0} %</tr>",
            one.what,
            one.hosts,
            rounded(one.mbps),
            rounded(one.p50),
            rounded(one.work_us),
            one.busiest * 100.0
        );
    }
    out.push_str("</tbody></table></div>\n");
}

fn sensitive(out: &mut String, turned: &[Turned]) {
    if turned.is_empty() {
        return;
    }
    out.push_str(
        "<h2>What hangs on which number</h2><p>Each number of the calibration a fifth smaller and a fifth larger: the claims \
         above that get another verdict.</p><div class=\"wide\"><table><thead><tr><th>number<th>times<th>verdicts that \
         change</tr></thead><tbody>",
    );
    for one in turned {
        let flips = if one.flips.is_empty() {
            "none".to_owned()
        } else {
            one.flips.join("; ")
        };
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{}</tr>",
            one.name,
            one.factor,
            escaped(&flips)
        );
    }
    out.push_str("</tbody></table></div>\n");
}
