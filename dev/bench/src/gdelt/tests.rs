//! Events that are made are like those that they are made after: in size when compressed, in nulls, in how many values there are, and in what goes
//! together.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use marquetry::CopyWords;
use marquetry::base::Limits;
use marquetry::tables::files::ParquetFile;

use super::{COLUMNS, Model, ROWS, Wanted, schema};

/// How far a size may be from that of the real events.
const SIZE_PART: f64 = 0.15;
/// How far a column's part of nulls may be.
const NULLS_PART: f64 = 0.12;

/// Events of the two days of the excerpt, every tenth, as it is.
fn made() -> Vec<String> {
    let wanted = Wanted { from: Some(19_820_102), to: Some(19_820_103), every: 10, ..Wanted::default() };
    lines(&wanted)
}

fn lines(wanted: &Wanted) -> Vec<String> {
    let mut text = Vec::new();
    let written = Model::read().unwrap().write(wanted, &mut text).unwrap();
    let lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(u64::try_from(lines.len()).unwrap(), written);
    lines
}

fn real() -> Option<Vec<String>> {
    let sample = marquetry_testing::corpus_file("real/gdelt-events-sample.csv")?;
    let text = std::fs::read_to_string(sample).unwrap();
    // Those of 1982 have no addresses.
    Some(text.lines().filter(|line| line.split('\t').count() == 57).map(str::to_owned).collect())
}

fn column(lines: &[String], at: usize) -> Vec<&str> {
    lines.iter().map(|line| line.split('\t').nth(at).unwrap()).collect()
}

/// Bytes of these lines, compressed by gzip.
fn gzipped(lines: &[String]) -> f64 {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    f64::from(u32::try_from(out.finish().unwrap().len()).unwrap())
}

/// Bytes of all column chunks of a file of these lines, with ZSTD, and of the file without its footer.
fn as_parquet(lines: &[String], folder: &Path, name: &str) -> [f64; 2] {
    let (from, to) = (folder.join(format!("{name}.tsv")), folder.join(format!("{name}.parquet")));
    std::fs::write(&from, lines.join("\n") + "\n").unwrap();
    let mut words = CopyWords::default();
    for (option, value) in [("header", "no"), ("schema", &*schema()), ("codec", "zstd")] {
        words.set(option, value).unwrap();
    }
    let copied = words.copy(&words.open([&from], Some(&to)).unwrap(), &to, &mut |_| {}).unwrap();
    assert_eq!(copied.rows, u64::try_from(lines.len()).unwrap());
    let file = ParquetFile::open(&to, Limits::default()).unwrap();
    let metadata = file.metadata();
    let chunks = metadata.row_groups.iter().flat_map(|group| group.columns.iter());
    let chunks: u64 = chunks.map(|chunk| chunk.compressed_bytes).sum();
    [chunks, file.bytes() - metadata.footer_bytes].map(|bytes| f64::from(u32::try_from(bytes).unwrap()))
}

#[test]
fn events_compress_as_real_ones() {
    let Some(real) = real() else { return };
    let made = made();
    let rows = |lines: &[String]| f64::from(u32::try_from(lines.len()).unwrap());
    assert!((190..=211).contains(&made.len()), "{}", made.len());
    let folder = tempfile::tempdir().unwrap();
    let plain = |lines: &[String]| f64::from(u32::try_from(lines.join("\n").len()).unwrap());
    let [real_chunks, real_file] = as_parquet(&real, folder.path(), "real");
    let [made_chunks, made_file] = as_parquet(&made, folder.path(), "made");
    let sizes = [
        ("text", plain(&made), plain(&real)),
        ("text, gzip", gzipped(&made), gzipped(&real)),
        ("Parquet, ZSTD", made_chunks, real_chunks),
        ("Parquet, ZSTD, with indexes", made_file, real_file),
    ];
    let parts = sizes.map(|(what, is, should)| {
        let (is, should) = (is / rows(&made), should / rows(&real));
        let part = is / should - 1.0;
        (
            part,
            format!("{what}: {is:.1} bytes a row, and {should:.1} of real events ({:+.0} %)", 100.0 * part),
        )
    });
    let told: Vec<&str> = parts.iter().map(|(_, told)| told.as_str()).collect();
    println!("{}", told.join("\n"));
    assert!(parts.iter().all(|(part, _)| part.abs() <= SIZE_PART), "{}", told.join("\n"));
}

#[test]
fn columns_have_values_and_nulls_as_real_ones() {
    let Some(real) = real() else { return };
    let made = made();
    let mut faults = Vec::new();
    for (at, (name, _)) in COLUMNS.iter().enumerate() {
        let of = |lines: &[String]| {
            let values = column(lines, at);
            let rows = f64::from(u32::try_from(values.len()).unwrap());
            let nulls = values.iter().filter(|value| value.is_empty()).count();
            let distinct = values.iter().collect::<BTreeSet<_>>().len();
            let bytes: usize = values.iter().map(|value| value.len()).sum();
            let number = |it: usize| f64::from(u32::try_from(it).unwrap());
            (number(nulls) / rows, number(distinct), number(bytes) / rows)
        };
        let (made, real) = (of(&made), of(&real));
        if (made.0 - real.0).abs() > NULLS_PART {
            faults.push(format!("{name}: {:.2} are null, and {:.2} of real ones", made.0, real.0));
        }
        // Of few values it is chance which are in so few events.
        if real.1 > 20.0 && !(0.55..=1.7).contains(&(made.1 / real.1)) {
            faults.push(format!("{name}: {} values, and {} of real ones", made.1, real.1));
        }
        if real.2 > 2.0 && !(0.7..=1.4).contains(&(made.2 / real.2)) {
            faults.push(format!("{name}: {:.1} bytes, and {:.1} of real ones", made.2, real.2));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// How many of ten events have it.
fn tenths(lines: &[String], has: impl Fn(&[&str]) -> bool) -> f64 {
    let having = lines.iter().filter(|line| has(&line.split('\t').collect::<Vec<_>>())).count();
    10.0 * f64::from(u32::try_from(having).unwrap()) / f64::from(u32::try_from(lines.len()).unwrap())
}

/// Whether an event has something.
type Has = fn(&[&str]) -> bool;

#[test]
fn columns_go_together_as_in_real_events() {
    let Some(real) = real() else { return };
    let made = made();
    let all: [(&str, Has); 5] = [
        ("both actors are in one place", |it| !it[36].is_empty() && it[35..42] == it[42..49]),
        ("it happens where the first actor is", |it| it[36..42] == it[50..56]),
        ("it happens where the second actor is", |it| it[43..49] == it[50..56]),
        ("as many mentions as articles", |it| it[31] == it[33]),
        ("both actors have codes of a country", |it| !it[7].is_empty() && !it[17].is_empty()),
    ];
    for (what, has) in all {
        let (made, real) = (tenths(&made, has), tenths(&real, has));
        assert!((made - real).abs() <= 1.5, "{what}: {made:.1} of ten, and {real:.1} of real events");
    }
    // What follows from a code follows from it everywhere.
    for lines in [&made, &real] {
        let kinds: BTreeSet<Vec<&str>> =
            lines.iter().map(|line| line.split('\t').skip(26).take(5).collect()).collect();
        let codes: BTreeSet<&str> = kinds.iter().map(|kind| kind[0]).collect();
        assert_eq!(kinds.len(), codes.len());
    }
}

#[test]
fn there_are_as_many_events_as_wanted_and_always_the_same() {
    let some = Wanted { rows: 20_000, ..Wanted::default() };
    let events = lines(&some);
    assert_eq!(events.len(), 20_000);
    assert!(events.iter().all(|line| line.split('\t').count() == COLUMNS.len()));
    assert_eq!(events, lines(&some));
    assert_ne!(events, lines(&Wanted { seed: 2, ..some }));
    let ids: BTreeSet<&str> = column(&events, 0).into_iter().collect();
    assert_eq!(ids.len(), events.len());
    let days = column(&events, 1);
    assert!(days.is_sorted() && days[0] == "19790101" && *days.last().unwrap() == "19841231");
    for line in &events {
        let fields: Vec<&str> = line.split('\t').collect();
        assert!(fields[1].starts_with(fields[2]) && fields[2].starts_with(fields[3]), "{line}");
        assert!(fields[4].starts_with(fields[3]) && fields[27].starts_with(fields[28]), "{line}");
    }
    // A day alone is as it is among all.
    let day = lines(&Wanted { from: Some(19_810_704), to: Some(19_810_704), ..some });
    let among: Vec<String> = events.into_iter().filter(|line| line.contains("\t19810704\t")).collect();
    assert!(!day.is_empty());
    assert_eq!(day, among);
    assert_eq!(ROWS, 4_037_539);
}
