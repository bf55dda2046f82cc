//! `marquetry show --html`: the page, and the picture that a real browser draws of it.

mod browser;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use browser::Browser;
use serde_json::Value;

use crate::common::{Folder, data, run};

/// What the page says of the file: its data.
fn data_of(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let text = page.split_once(start).expect("the data").1.split_once("</script>").expect("its end").0;
    serde_json::from_str(text).expect("JSON")
}

/// The bytes of all extents, and how many are pages.
fn drawn(data: &Value) -> (u64, usize) {
    let extents = data["extents"].as_array().unwrap();
    let bytes = extents.iter().map(|extent| extent[1].as_u64().unwrap()).sum();
    let pages = extents.iter().filter(|extent| (1..=4).contains(&extent[0].as_u64().unwrap())).count();
    (bytes, pages)
}

impl Folder {
    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// A Parquet file of a CSV file, and its page.
    fn draw(&self, csv: &str, options: &[&str]) -> (String, PathBuf) {
        fs::write(self.at("a.csv"), csv).unwrap();
        let (from, to, page) = (self.path("a.csv"), self.path("a.parquet"), self.at("a.html"));
        run([&["copy", "--quiet", &from, &to, "--header", "yes"], options].concat()).succeeded();
        assert_eq!(run(["show", &to, "--html", page.to_str().unwrap(), "--overwrite"]).succeeded(), "");
        (to, page)
    }
}

/// Names that would end a script, a string or a line, were they not escaped.
const HOSTILE: [&str; 5] = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\u{2028}line",
    "quote\"'&amp;`${1}",
    "<img src=x onerror=alert(2)>",
];

fn hostile_csv(rows: usize) -> String {
    let names: Vec<String> =
        HOSTILE.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    let mut csv = names.join(",") + ",id\n";
    for row in 0..rows {
        let price = row % 7;
        writeln!(csv, "</script>{price},{row},{price},,<b>{row}</b>,{}", row * 3).unwrap();
    }
    csv
}

/// All pages of a file, as `show --pages` lists them.
fn pages_of(file: &str) -> usize {
    let shown: Value = serde_json::from_str(&run(["show", "--json", file]).succeeded()).unwrap();
    let columns = shown["columns"].as_array().unwrap().iter();
    let pages = |column: &Value| {
        let out = run(["show", "--json", "--pages", column["path"].as_str().unwrap(), file]).succeeded();
        out.lines().count()
    };
    columns.map(pages).sum()
}

#[test]
fn every_byte_has_its_place() {
    let folder = Folder::new();
    let mut files: Vec<String> = fs::read_dir(Path::new(&data("one.parquet")).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_string())
        .filter(|path| path.ends_with(".parquet"))
        .collect();
    files.sort();
    assert!(files.len() > 10);
    let options = ["--row-group-rows", "50", "--page-rows", "20", "--bloom", "id"];
    files.push(folder.draw(&hostile_csv(200), &options).0);
    for file in files {
        let page = run(["show", "--html", "-", &file]).succeeded();
        let (bytes, pages) = drawn(&data_of(&page));
        assert_eq!(bytes, fs::metadata(&file).unwrap().len(), "{file}");
        assert_eq!(pages, pages_of(&file), "{file}");
    }
}

#[test]
fn indexes_and_filters_are_drawn() {
    let folder = Folder::new();
    let (file, page) = folder.draw(&hostile_csv(200), &["--row-group-rows", "50", "--bloom", "id"]);
    let data = data_of(&fs::read_to_string(page).unwrap());
    let shown: Value = serde_json::from_str(&run(["show", "--json", &file]).succeeded()).unwrap();
    let bytes_of = |kind: u64| -> u64 {
        let extents = data["extents"].as_array().unwrap().iter();
        extents.filter(|extent| extent[0] == kind).map(|extent| extent[1].as_u64().unwrap()).sum()
    };
    let told = |key: &str| -> u64 {
        let groups = shown["row_groups"].as_array().unwrap().iter();
        groups
            .flat_map(|group| group["columns"].as_array().unwrap())
            .filter_map(|chunk| chunk[key].as_u64())
            .sum()
    };
    for (kind, key) in [(6, "column_index_bytes"), (7, "offset_index_bytes"), (8, "bloom_filter_bytes")] {
        assert!(bytes_of(kind) > 0 && bytes_of(kind) == told(key), "{key}");
    }
    assert_eq!(bytes_of(9), shown["footer_bytes"].as_u64().unwrap());
}

#[test]
fn the_page_appears_complete_or_not_at_all() {
    let folder = Folder::new();
    let (one, page) = (data("one.parquet"), folder.path("a.html"));
    run(["show", &one, "--html", &page]).succeeded();
    let first = fs::read(&page).unwrap();
    assert!(first.starts_with(b"<!doctype html>") && first.ends_with(b"</html>\n"));
    run(["show", &data("types.parquet"), "--html", &page]).failed(1, &["a.html: already exists"]);
    assert_eq!(fs::read(&page).unwrap(), first);
    run(["show", &data("types.parquet"), "--html", &page, "--overwrite"]).succeeded();
    assert_ne!(fs::read(&page).unwrap(), first);
    run(["show", &one, "--html", &folder.path("no/a.html")]).failed(3, &["no/a.html: "]);
    run(["show", &one, "--html", folder.root().to_str().unwrap()]).failed(1, &["already exists"]);
    run(["show", &folder.path("missing.parquet"), "--html", &folder.path("b.html")]).failed(3, &["missing"]);
    run(["show", &one, &one, "--html", &page]).failed(2, &["--html draws one file"]);
    let names: Vec<_> = fs::read_dir(folder.root()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["a.html"], "and nothing beside it");
}

/// A page that is broken is drawn as what it is.
#[test]
fn a_broken_file_is_drawn_and_reported() {
    let folder = Folder::new();
    let (file, _) = folder.draw(&hostile_csv(200), &["--codec", "uncompressed"]);
    let shown: Value = serde_json::from_str(&run(["show", "--json", &file]).succeeded()).unwrap();
    let chunk = &shown["row_groups"][0]["columns"][5];
    let at = usize::try_from(chunk["data_page_offset"].as_u64().unwrap()).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[at..at + 8].fill(0xff);
    fs::write(&file, &bytes).unwrap();
    let page = run(["show", "--html", "-", &file]).failed(1, &["column id, row group 0"]);
    let data = data_of(&page);
    assert_eq!(drawn(&data).0, u64::try_from(bytes.len()).unwrap());
    assert!(data["notes"]["faults"][0].as_str().unwrap().contains("column id"), "{}", data["notes"]);
    let whole = |extent: &&Value| extent[0] == 5;
    assert_eq!(data["extents"].as_array().unwrap().iter().filter(whole).count(), 1, "the broken chunk");
}

fn wide_csv(columns: usize, rows: usize) -> String {
    let line = |of: &dyn Fn(usize) -> String| (0..columns).map(of).collect::<Vec<_>>().join(",") + "\n";
    let rows = (0..rows).map(|row| line(&|column| (row * column % 97).to_string()));
    line(&|column| format!("column_{column}")) + &rows.collect::<String>()
}

/// 1,000 columns in 10 row groups are drawn singly, and a few megabytes.
#[test]
fn wide_files_are_drawn() {
    let folder = Folder::new();
    let (file, page) = folder.draw(&wide_csv(1000, 20), &["--row-group-rows", "2"]);
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.len() < 3_000_000, "{}", text.len());
    let data = data_of(&text);
    assert_eq!((&data["notes"]["groups_of_band"], &data["notes"]["columns_merged"]), (&1.into(), &0.into()));
    assert_eq!(data["cells"].as_array().unwrap().len(), 10_000);
    // Indexes without their chunks, but every page with its bounds.
    assert_eq!(
        (&data["notes"]["single_indexes_max"], &data["notes"]["indexed_pages_max"]),
        (&2000.into(), &Value::Null)
    );
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let shown = browser.run(
        "return { ...document.documentElement.dataset, rows: document.querySelectorAll('tbody tr').length }",
    );
    assert_eq!((&shown["groups"], &shown["chunks"]), (&"10".into(), &"10000".into()));
    assert_eq!(shown["bytes"], fs::metadata(&file).unwrap().len().to_string());
    assert!(shown["rows"].as_u64().unwrap() < 60, "the table is virtual: {shown}");
    let notes = browser.run("return document.getElementById('notes').textContent");
    let notes = notes.as_str().unwrap();
    assert!(
        notes.starts_with("Indexes and Bloom filters are drawn together") && notes.contains("2,000"),
        "{notes}"
    );
    // The last column by name comes into view where one scrolls to the end.
    browser.run("const s = document.getElementById('scroll'); const o = document.getElementById('order'); o.value = 'name'; o.dispatchEvent(new Event('change')); s.scrollTop = s.scrollHeight");
    browser.press("#map", "+");
    let names = browser
        .run("return [...document.querySelectorAll('tbody td.first')].map((one) => one.textContent).at(-1)");
    assert_eq!(names, "column_999");
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// More than is drawn singly is drawn together, and the page says so.
#[test]
fn very_wide_files_are_drawn_together() {
    let folder = Folder::new();
    let (file, page) = folder.draw(&wide_csv(30_000, 2), &["--row-group-rows", "1"]);
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.len() < 4_000_000, "{}", text.len());
    let data = data_of(&text);
    assert!(data["cells"].as_array().unwrap().len() <= 20_000);
    assert_eq!(drawn(&data), (fs::metadata(&file).unwrap().len(), 0));
    assert_eq!(data["notes"]["columns_merged"], 20_001);
    let columns = data["columns"].as_array().unwrap();
    let sum = |key: &str| columns.iter().map(|column| column[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("bytes"), data["file"]["compressed_bytes"].as_u64().unwrap());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let shown = browser.run("return { ...document.documentElement.dataset }");
    assert_eq!((&shown["groups"], &shown["chunks"]), (&"2".into(), &"60000".into()));
    let notes =
        browser.run("return [...document.querySelectorAll('#notes li')].map((one) => one.textContent)");
    let notes: Vec<&str> = notes.as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    assert!(
        notes[0].starts_with("The 9,999 largest columns are drawn singly; 20,001 smaller columns"),
        "{notes:?}"
    );
    assert!(notes[1].starts_with("Pages of 60,000 column chunks"), "{notes:?}");
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Of too many pages the bounds are left out, and the page says so.
#[test]
fn bounds_of_many_pages_are_left_out() {
    let folder = Folder::new();
    let (_, page) = folder.draw(&wide_csv(130, 200), &["--page-rows", "1"]);
    let data = data_of(&fs::read_to_string(&page).unwrap());
    let pages = data["file"]["pages"].as_u64().unwrap();
    assert!((25_001..=100_000).contains(&pages), "{pages} pages");
    let notes = &data["notes"];
    assert_eq!((&notes["indexed_pages_max"], &notes["single_indexes_max"]), (&25_000.into(), &Value::Null));
    let is_indexed = |extent: &&Value| extent[0] == 1 && extent.as_array().unwrap().len() > 9;
    assert_eq!(data["extents"].as_array().unwrap().iter().filter(is_indexed).count(), 0);
    let (_, page) = folder.draw(&wide_csv(13, 200), &["--page-rows", "1", "--overwrite"]);
    let data = data_of(&fs::read_to_string(&page).unwrap());
    assert_eq!(data["notes"]["indexed_pages_max"], Value::Null);
    assert!(data["extents"].as_array().unwrap().iter().filter(is_indexed).count() > 2000);
    let (_, page) = folder.draw(&wide_csv(130, 200), &["--page-rows", "1", "--overwrite"]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let said = browser.run("return document.getElementById('notes').textContent");
    let said = said.as_str().unwrap();
    assert!(
        said.starts_with("The rows and bounds of pages are left out") && said.contains("25,000"),
        "{said}"
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Row groups that are too many are drawn together, too.
#[test]
fn very_long_files_are_drawn_together() {
    let folder = Folder::new();
    let (file, page) = folder.draw(&wide_csv(400, 100), &["--row-group-rows", "1"]);
    let data = data_of(&fs::read_to_string(&page).unwrap());
    let bands = data["bands"].as_array().unwrap();
    assert_eq!((bands.len(), bands[0]["count"].as_u64()), (50, Some(2)), "{}", data["notes"]);
    assert_eq!(data["cells"].as_array().unwrap().len(), 20_000);
    assert_eq!(drawn(&data), (fs::metadata(&file).unwrap().len(), 0));
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(browser.run("return document.documentElement.dataset.groups"), "100");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_browser_draws_what_the_footer_says() {
    let folder = Folder::new();
    let options = ["--row-group-rows", "50", "--page-rows", "20", "--bloom", "id"];
    let (file, page) = folder.draw(&hostile_csv(200), &options);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let shown = browser.run("return { ...document.documentElement.dataset }");
    let expected = [
        ("groups", "4".to_string()),
        ("chunks", "24".to_string()),
        ("pages", pages_of(&file).to_string()),
        ("bytes", fs::metadata(&file).unwrap().len().to_string()),
    ];
    for (key, value) in expected {
        assert_eq!(shown[key], value, "{key} in {shown}");
    }
    // It is drawn: a canvas of one colour would be empty.
    for canvas in ["map", "tree", "grid"] {
        let colours = browser.run(&format!(
            "const c = document.getElementById('{canvas}'); const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;\
             const met = new Set(); for (let i = 0; i < all.length; i += 4) met.add(all.slice(i, i + 4).join()); return met.size"
        ));
        assert!(colours.as_u64().unwrap() > 3, "{canvas} has {colours} colours");
    }
    // Names of the file are text: no element of theirs, no script, no alert.
    let names =
        browser.run("return [...document.querySelectorAll('tbody td.first')].map((one) => one.textContent)");
    let names: BTreeSet<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let expected: BTreeSet<&str> = HOSTILE
        .iter()
        .map(|name| if name.starts_with('\u{2028}') { "\\u{2028}line" } else { *name })
        .chain(["id"])
        .collect();
    assert_eq!(names, expected);
    assert_eq!(browser.run("return document.scripts.length"), 2);
    assert_eq!(browser.run("return document.querySelectorAll('img, b').length - document.querySelectorAll('#legend b').length"), 0);
    // Nothing was fetched, and nothing could be.
    assert_eq!(browser.run("return performance.getEntriesByType('resource').length"), 0);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_row_group_with_gaps_is_one() {
    let folder = Folder::new();
    let (file, page) = folder.draw(&hostile_csv(200), &["--row-group-rows", "50"]);
    let html = fs::read_to_string(&page).unwrap();
    // As if eight bytes of padding followed each page.
    let mut padded = data_of(&html);
    let mut padding = 0;
    let mut extents = Vec::new();
    for extent in padded["extents"].as_array().unwrap() {
        extents.push(extent.clone());
        if (1..=4).contains(&extent[0].as_u64().unwrap()) {
            extents.push(serde_json::json!([11, 8, -1, 1]));
            padding += 8;
        }
    }
    padded["extents"] = extents.into();
    padded["file"]["bytes"] = (fs::metadata(file).unwrap().len() + padding).into();
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").unwrap();
    let data = padded.to_string().replace('<', "\\u003c");
    fs::write(&page, format!("{}{data}{}", &html[..start], &html[end..])).unwrap();
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    browser.point("#map", (0.02, 0.2), true);
    for number in 0..4 {
        let said = browser.run("return document.querySelector('#details').textContent");
        assert!(said.as_str().unwrap().starts_with(&format!("row group {number}")), "{said}");
        // The arrow to the right: over the gap between two row groups, which is in neither.
        browser.press("#map", "\u{e014}");
        browser.press("#map", "\u{e014}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_picture_answers() {
    const RIGHT: &str = "\u{e014}";
    const UP: &str = "\u{e013}";
    const ENTER: &str = "\u{e007}";
    const ESCAPE: &str = "\u{e00c}";
    let folder = Folder::new();
    let (_, page) = folder.draw(&hostile_csv(200), &["--row-group-rows", "50", "--page-rows", "20"]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let text = |selector: &str| {
        let text = browser.run(&format!(
            "const one = document.querySelector('{selector}'); return one.hidden ? '' : one.textContent"
        ));
        text.as_str().unwrap().to_string()
    };
    assert_eq!(text("#tip"), "");
    // Row groups are at the top of the strip, pages at the bottom.
    browser.point("#map", (0.02, 0.2), false);
    assert!(
        text("#tip").starts_with("row group 0") && text("#tip").contains("rows 50 (25.0 %)"),
        "{}",
        text("#tip")
    );
    browser.point("#map", (0.004, 0.75), false);
    assert!(text("#tip").starts_with("page 0") && text("#tip").contains("encoding"), "{}", text("#tip"));
    // The page index knows the rows and the bounds of data pages; the first page is a dictionary.
    browser.point("#map", (0.004, 0.75), true);
    browser.press("#map", RIGHT);
    for part in ["page 1data page", "rows20 from 0", "min\"</script>0\"", "max\"</script>6\""] {
        assert!(text("#details").contains(part), "no {part} in {}", text("#details"));
    }
    browser.press("#map", ESCAPE);
    assert!(text("#details").contains("Point at a part"));
    browser.point("#map", (0.02, 0.45), true);
    assert!(text("#details").starts_with(HOSTILE[0]), "{}", text("#details"));
    for part in ["column chunk of row group 0", "SNAPPY", "min", "</script>0", "ratio", "nulls"] {
        assert!(text("#details").contains(part), "no {part} in {}", text("#details"));
    }
    // Zoomed there, it is as wide as the strip, but for a margin.
    browser.press("#map", ENTER);
    assert!(!text("#range").starts_with("all "), "{}", text("#range"));
    browser.press("#map", RIGHT);
    assert!(text("#details").starts_with(HOSTILE[1]), "{}", text("#details"));
    browser.press("#map", UP);
    assert!(text("#details").starts_with("row group 0"), "{}", text("#details"));
    browser.press("#map", "0");
    assert!(text("#range").starts_with("all "), "{}", text("#range"));
    browser.press("#map", ESCAPE);
    assert!(text("#details").contains("Point at a part"));
    // The other views pin columns and chunks.
    browser.point("#tree", (0.05, 0.5), true);
    assert!(text("#details").contains("column indexes4 of 4 chunks"), "{}", text("#details"));
    browser.press("#grid", RIGHT);
    assert!(text("#details").contains("column chunk of row group 0"), "{}", text("#details"));
    browser.run(
        "const f = document.getElementById('filter'); f.value = 'ID'; f.dispatchEvent(new Event('input'))",
    );
    assert_eq!(text("#count"), "1 of 6 columns");
    browser.point("tbody tr", (0.1, 0.5), true);
    assert!(
        text("#details").starts_with("id") && text("#details").contains("max597"),
        "{}",
        text("#details")
    );
    for select in ["tree-by", "grid-by", "order"] {
        browser.run(&format!(
            "const s = document.getElementById('{select}'); for (const o of s.options) {{ s.value = o.value; s.dispatchEvent(new Event('change')) }}"
        ));
    }
    browser.press("#map", "+");
    // By day and by night, wide and narrow.
    let back = || browser.run("return getComputedStyle(document.body).backgroundColor");
    browser.scheme("light");
    let light = back();
    browser.scheme("dark");
    assert_ne!(back(), light);
    for width in [1280, 800, 480] {
        browser.width(width);
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide}: something is wider than {width}");
    }
    // What can be pointed at can be reached by keys, and has a name.
    let unnamed = browser.run(
        "return [...document.querySelectorAll('canvas[tabindex], button, select, input')].filter((one) => \
         !(one.ariaLabel || one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label'))).length",
    );
    assert_eq!(unnamed, 0);
    assert_eq!(browser.console(), Vec::<String>::new());
}
