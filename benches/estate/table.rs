//! The table: figures, their ratios to the reference points, and targets.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A row of the table.
pub(crate) struct Row {
    /// What is measured.
    pub title: String,
    /// The figure, in words.
    pub now: String,
    /// Its ratio to a reference point, in words.
    pub ratio: String,
    /// The target, in words.
    pub target: String,
    /// Whether the target is met; none where it is not judged.
    pub met: Option<bool>,
    /// All figures, by name.
    pub figures: Value,
}

/// Returns the table in Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = "| | now | ratio | target | |\n|---|---|---|---|---|\n".to_owned();
    for Row { title, now, ratio, target, met, .. } in rows {
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        writeln!(text, "| {title} | {now} | {ratio} | {target} | {verdict} |").unwrap();
    }
    text
}

/// Returns a row as JSON.
pub(crate) fn json(row: &Row) -> Value {
    json!({
        "title": row.title,
        "now": row.now,
        "ratio": row.ratio,
        "target": row.target,
        "met": row.met,
        "figures": row.figures,
    })
}

/// A time, in a unit that suits it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

/// An amount of memory.
pub(crate) fn memory(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not measured".into(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6))
}

/// A rate of requests.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second >= 1e3 { format!("{:.1} k/s", per_second / 1e3) } else { format!("{per_second:.0} /s") }
}

/// The median of some figures.
pub(crate) fn median(figures: Vec<f64>) -> f64 {
    percentile(figures, 50)
}

/// A percentile of some figures.
pub(crate) fn percentile(mut figures: Vec<f64>, percent: usize) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() * percent / 100]
}
