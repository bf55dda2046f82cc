//! A benchmark's result, as every one of Marquetry's benchmarks writes it: `target/bench/NAME.json` for machines, `NAME.md` for people.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::clock;
use crate::stats::{self, Interval};

/// A benchmark's whole result.
#[derive(Clone, Debug)]
pub struct Report {
    /// The files' name.
    pub name: String,
    /// The Markdown file's heading.
    pub title: String,
    /// What a reader must know to judge the numbers: a paragraph of Markdown each.
    pub notes: Vec<String>,
    /// How it was measured, for machines: versions, rounds, the processor.
    pub setting: Value,
    /// The results.
    pub rows: Vec<Row>,
}

/// Who stands among the peers to be seen and is none: it does less than they do.
pub const COPY: &str = "a copy of the bytes";

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times, sizes.
    Lower,
    /// Speeds.
    Higher,
}

/// One measured thing and its bar.
#[derive(Clone, Debug)]
pub struct Row {
    /// Rows of a group are comparable, and share a table.
    pub group: String,
    /// What was measured, within the group.
    pub case: String,
    /// The unit of `ours`, `peers` and `bar`.
    pub unit: &'static str,
    /// Which way is good.
    pub better: Better,
    /// Our value, unless we did not take part.
    pub ours: Option<f64>,
    /// The others' values.
    pub peers: Vec<(String, f64)>,
    /// What `ours` is held to; NaN if that is nothing.
    pub bar: f64,
    /// `ours` by the best peer, and that ratio's 95 % interval, where both are known.
    pub ratio: Option<(f64, Interval)>,
    /// Anything else worth keeping, for machines.
    pub more: Value,
}

impl Row {
    /// A row of what is better the lower it is: medians of the samples of each contestant, of whom we are called `ours`, and a bar that is
    /// so many times the best peer's.
    pub fn of_samples(
        group: String,
        case: String,
        (unit, bar): (&'static str, f64),
        names: &[&str],
        samples: &[Vec<f64>],
    ) -> Row {
        let medians: Vec<f64> = samples.iter().map(|samples| stats::median(samples)).collect();
        let ours = names.iter().position(|name| *name == "ours");
        let others = (0..names.len()).filter(|index| Some(*index) != ours);
        let best = others.clone().min_by(|a, b| medians[*a].total_cmp(&medians[*b]));
        let ratio = ours.zip(best).map(|(ours, best)| {
            (medians[ours] / medians[best], stats::ratio_interval(&samples[ours], &samples[best]))
        });
        Row {
            group,
            case,
            unit,
            better: Better::Lower,
            ours: ours.map(|ours| medians[ours]),
            peers: others.map(|index| (names[index].to_owned(), medians[index])).collect(),
            bar: best.map_or(f64::NAN, |best| bar * medians[best]),
            ratio,
            more: json!({}),
        }
    }

    /// Says it on standard error, while the next one is measured.
    pub fn tell(&self) {
        let ours = self.ours.map(|ours| ("ours", ours));
        let all = ours.into_iter().chain(self.peers.iter().map(|(name, value)| (name.as_str(), *value)));
        let values: Vec<String> = all.map(|(name, value)| format!("{name} {value:.2}")).collect();
        let ratio = self.ratio.map_or(String::new(), |(ratio, _)| format!("; {ratio:.2} × the best"));
        eprintln!("{}, {}: {} {}{ratio}", self.group, self.case, values.join(", "), self.unit);
    }

    /// Whether our value meets the bar; nothing if we did not take part, or there is none.
    pub fn holds(&self) -> Option<bool> {
        self.ours.filter(|_| !self.bar.is_nan()).map(|ours| match self.better {
            Better::Lower => ours <= self.bar,
            Better::Higher => ours >= self.bar,
        })
    }

    /// The best of the peers, if there are any.
    pub fn best_peer(&self) -> Option<&(String, f64)> {
        self.peers.iter().filter(|(name, _)| name != COPY).min_by(|a, b| match self.better {
            Better::Lower => a.1.total_cmp(&b.1),
            Better::Higher => b.1.total_cmp(&a.1),
        })
    }
}

impl Report {
    /// Writes `NAME.json` and `NAME.md`, and `NAME.svg` if there is a chart.
    ///
    /// # Errors
    /// Those of writing a file, with its name.
    pub fn write(&self, directory: &Path, chart: Option<&str>) -> Result<(), String> {
        self.write_with(directory, chart, "")
    }

    /// The same, with more Markdown at the report's end.
    ///
    /// # Errors
    /// Those of [`Report::write`].
    pub fn write_with(&self, directory: &Path, chart: Option<&str>, more: &str) -> Result<(), String> {
        let put = |extension: &str, text: &str| {
            let path = directory.join(format!("{}.{extension}", self.name));
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        if let Some(chart) = chart {
            put("svg", chart)?;
        }
        put("md", &(self.markdown(chart.is_some()) + more))?;
        put("json", &format!("{:#}\n", self.json()))
    }

    /// The report for machines. Its setting says when it was made, too, and of which commit.
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(row_json).collect();
        let mut setting = self.setting.clone();
        if let Some(setting) = setting.as_object_mut() {
            setting.insert("time".to_owned(), json!(clock::now()));
            setting.insert("commit".to_owned(), json!(commit()));
        }
        json!({ "name": self.name, "date": clock::today(), "setting": setting, "rows": rows })
    }

    /// The report for people.
    pub fn markdown(&self, chart: bool) -> String {
        let mut text = format!("# {}\n\n", self.title);
        for note in &self.notes {
            let _ = writeln!(text, "{note}\n");
        }
        let _ = writeln!(text, "Measured on {}.\n", clock::today());
        text += &self.verdict();
        if chart {
            let _ = writeln!(text, "![{}]({}.svg)\n", self.title, self.name);
        }
        for (group, rows) in self.groups() {
            text += &table(group, &rows);
        }
        text
    }

    /// The groups, each once, in the order of their first rows, and their rows.
    pub fn groups(&self) -> Vec<(&str, Vec<&Row>)> {
        let mut groups: Vec<(&str, Vec<&Row>)> = Vec::new();
        for row in &self.rows {
            match groups.iter_mut().find(|(group, _)| *group == row.group) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((&row.group, vec![row])),
            }
        }
        groups
    }

    fn verdict(&self) -> String {
        let judged: Vec<(&Row, bool)> =
            self.rows.iter().filter_map(|row| Some((row, row.holds()?))).collect();
        if judged.is_empty() {
            return "Marquetry did not take part in this run.\n\n".to_owned();
        }
        let failed: Vec<&Row> = judged.iter().filter(|(_, holds)| !holds).map(|(row, _)| *row).collect();
        let mut text = format!("The bar holds in {} of {} rows.", judged.len() - failed.len(), judged.len());
        if !failed.is_empty() {
            text += " It does not hold in:\n";
            for row in failed {
                // Without peers, ours is compared with ours: the group says with what.
                let other = if row.peers.is_empty() { "what it is compared with" } else { "the best peer" };
                let ratio = row.ratio.map(|(ratio, _)| format!(": {ratio:.2} × {other}")).unwrap_or_default();
                let bar = row.ours.map(|ours| {
                    format!("{} {:.2} × the bar", if ratio.is_empty() { ":" } else { "," }, ours / row.bar)
                });
                let _ = write!(text, "\n* {}, {}{ratio}{}", row.group, row.case, bar.unwrap_or_default());
            }
        }
        text + "\n\n"
    }
}

/// The commit that the source is at, with `-dirty` behind it where files differ from that; nothing where git cannot say.
fn commit() -> Option<String> {
    // Without tags: the commit itself, whatever it is called.
    let arguments = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"];
    let mut git = Command::new("git");
    git.arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).stderr(Stdio::null());
    let said = git.output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).trim().to_owned()).filter(|commit| !commit.is_empty())
}

fn row_json(row: &Row) -> Value {
    let (copies, peers): (Vec<_>, Vec<_>) = row.peers.iter().partition(|(name, _)| name == COPY);
    let peers: serde_json::Map<String, Value> =
        peers.into_iter().map(|(name, value)| (name.clone(), json!(round(*value)))).collect();
    let mut out = json!({
        "case": format!("{}: {}", row.group, row.case),
        "unit": row.unit,
        "better": if row.better == Better::Lower { "lower" } else { "higher" },
        "ours": row.ours.map(round),
        "peers": peers,
        "bar": round(row.bar),
        "holds": row.holds(),
    });
    if let Some((_, copy)) = copies.first() {
        out["copy"] = json!(round(*copy));
    }
    if let Some((ratio, interval)) = row.ratio {
        out["ratio"] = json!(round(ratio));
        out["ratio_interval"] = json!(interval.map(round));
    }
    if let (Some(out), Some(more)) = (out.as_object_mut(), row.more.as_object()) {
        out.extend(more.clone());
    }
    out
}

/// To the microsecond, in a report in milliseconds: what is beyond is noise.
fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// One group's table: a column a contestant, the best peer's value in bold.
fn table(group: &str, rows: &[&Row]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.peers) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut text = format!("## {group}\n\n| case | unit | Marquetry |");
    for name in &names {
        let _ = write!(text, " {name} |");
    }
    text += " bar | ratio to the best peer (95 %) | holds |\n|---|---|--:|";
    text += &"--:|".repeat(names.len() + 2);
    text += ":-:|\n";
    for row in rows {
        let best = row.best_peer().map(|(name, _)| name.as_str());
        let _ = write!(
            text,
            "| {} | {} | {} |",
            row.case,
            row.unit,
            row.ours.map(figure).unwrap_or("–".to_owned())
        );
        for name in &names {
            let value = row.peers.iter().find(|(peer, _)| peer == name).map(|(_, value)| figure(*value));
            let value = value.unwrap_or("–".to_owned());
            let _ =
                if best == Some(name) { write!(text, " **{value}** |") } else { write!(text, " {value} |") };
        }
        let ratio = row.ratio.map(|(ratio, [low, high])| format!("{ratio:.2} ({low:.2}–{high:.2})"));
        let holds = row.holds().map_or("–", |holds| if holds { "yes" } else { "**no**" });
        let _ = writeln!(text, " {} | {} | {holds} |", figure(row.bar), ratio.unwrap_or("–".to_owned()));
    }
    text + "\n"
}

/// A number with three significant digits or so.
fn figure(value: f64) -> String {
    if value.is_nan() {
        "–".to_owned()
    } else if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(better: Better, ours: Option<f64>, bar: f64) -> Row {
        Row {
            group: "arrays".to_owned(),
            case: "int32".to_owned(),
            unit: "ms",
            better,
            ours,
            peers: vec![("slow".to_owned(), 40.0), ("fast".to_owned(), 20.0)],
            bar,
            ratio: ours.map(|ours| (ours / 20.0, [1.0, 2.0])),
            more: json!({ "rounds": 3 }),
        }
    }

    #[test]
    fn a_bar_is_met_from_its_good_side() {
        assert_eq!(row(Better::Lower, Some(29.0), 30.0).holds(), Some(true));
        assert_eq!(row(Better::Lower, Some(31.0), 30.0).holds(), Some(false));
        assert_eq!(row(Better::Higher, Some(299.0), 300.0).holds(), Some(false));
        assert_eq!(row(Better::Higher, None, 300.0).holds(), None);
        assert_eq!(row(Better::Lower, Some(1.0), f64::NAN).holds(), None);
        assert_eq!(row(Better::Lower, None, 1.0).best_peer().map(|(name, _)| name.as_str()), Some("fast"));
        assert_eq!(row(Better::Higher, None, 1.0).best_peer().map(|(name, _)| name.as_str()), Some("slow"));
    }

    #[test]
    fn a_report_names_the_rows_that_do_not_hold() {
        let report = Report {
            name: "test".to_owned(),
            title: "A test".to_owned(),
            notes: vec![],
            setting: json!({}),
            rows: vec![row(Better::Lower, Some(20.0), 30.0), row(Better::Lower, Some(60.0), 30.0)],
        };
        let text = report.markdown(false);
        assert!(
            text.contains(
                "holds in 1 of 2 rows. It does not hold in:\n\n* arrays, int32: 3.00 × the best peer, 2.00 × the bar\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("| int32 | ms | 60.0 | 40.0 | **20.0** | 30.0 | 3.00 (1.00–2.00) | **no** |"),
            "{text}"
        );
        let json = report.json();
        assert_eq!(json["rows"][1]["holds"], json!(false));
        assert_eq!(json["rows"][1]["peers"], json!({ "slow": 40.0, "fast": 20.0 }));
        assert_eq!(json["rows"][1]["rounds"], json!(3));
    }

    #[test]
    fn a_setting_says_when_and_of_which_commit() {
        let report = Report {
            name: "test".to_owned(),
            title: "A test".to_owned(),
            notes: vec![],
            setting: json!({ "rounds": 7 }),
            rows: vec![],
        };
        let setting = report.json()["setting"].clone();
        assert_eq!(setting["rounds"], json!(7));
        let time = setting["time"].as_str().unwrap();
        assert!(time.len() == "2026-11-30T20:24:05Z".len() && time.ends_with('Z'), "{time}");
        // A copy of the source may have no git.
        if let Some(commit) = setting["commit"].as_str() {
            let digits = commit.trim_end_matches("-dirty");
            assert!(digits.len() == 40 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{commit}");
        }
    }

    #[test]
    fn rows_of_a_group_are_in_one_table_wherever_they_come() {
        let of = |group: &str| Row { group: group.to_owned(), ..row(Better::Lower, Some(20.0), 30.0) };
        let report = Report {
            name: "test".to_owned(),
            title: "A test".to_owned(),
            notes: vec![],
            setting: json!({}),
            rows: vec![of("one core"), of("two cores"), of("one core")],
        };
        let groups: Vec<(&str, usize)> =
            report.groups().into_iter().map(|(group, rows)| (group, rows.len())).collect();
        assert_eq!(groups, [("one core", 2), ("two cores", 1)]);
        assert_eq!(report.markdown(false).matches("## one core").count(), 1);
    }
}
