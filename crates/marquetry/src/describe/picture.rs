//! The file drawn to scale: one page of HTML that needs nothing else.

mod cells;
mod data;
mod index;

use sha2::{Digest as _, Sha256};

use marquetry_base::print::{base64, printable};
use marquetry_base::{Error, Result};
use marquetry_tables::Cancel;
use marquetry_tables::files::{ExtentKind, FileMap, MapOptions, ParquetFile};

const PAGE: &str = include_str!("picture/page.html");
const STYLE: &str = include_str!("picture/style.css");
/// What it needs first comes first.
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("picture/model.js"),
    include_str!("picture/canvas.js"),
    include_str!("picture/views.js"),
    include_str!("picture/main.js"),
    "})();\n"
);

/// A file drawn to scale.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Picture {
    /// The page, in UTF-8.
    pub html: Vec<u8>,
    /// What is wrong with the file: the first faults. What could be read is drawn all the same.
    pub faults: Vec<Error>,
}

/// Draws a file to scale: a page of HTML with its row groups, column chunks, pages, dictionaries, indexes, Bloom filters, footer and
/// gaps. It needs no network, and its policy admits none.
///
/// The headers of its pages are read, and the page index. At most 20,000 column chunks are drawn singly: of more, the smallest columns
/// and neighbouring row groups are drawn together, without pages. At most 100,000 pages are drawn singly. The page says so.
///
/// # Errors
///
/// `Io` if the file cannot be read, or was changed; `Cancelled`.
///
/// ```no_run
/// use marquetry::base::Limits;
/// use marquetry::tables::Cancel;
/// use marquetry::tables::files::ParquetFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = ParquetFile::open("trips.parquet".as_ref(), Limits::default())?;
/// std::fs::write("trips.html", marquetry::describe::picture(&file, &Cancel::new())?.html)?;
/// # Ok(())
/// # }
/// ```
pub fn picture(file: &ParquetFile, cancel: &Cancel) -> Result<Picture> {
    let pages_max = if cells::is_whole(file.metadata()) { data::PAGES_MAX } else { 0 };
    let mut options = MapOptions::default();
    (options.pages_max, options.cancel) = (pages_max, cancel.clone());
    let mut map = FileMap::of(file, &options)?;
    let pages = map.extents.iter().filter(|extent| matches!(extent.kind, ExtentKind::Page(_))).count();
    let (index, fault) = match pages {
        0 => Default::default(),
        pages if pages > data::INDEXED_PAGES_MAX => Default::default(),
        _ => index::pages(file, cancel)?,
    };
    map.faults.extend(fault);
    let json = serde_json::to_vec(&data::Data::of(file, &map, &index));
    let json = json.map_err(|error| Error::internal(format!("JSON could not be written: {error}")))?;
    Ok(Picture { html: page(file, &json), faults: map.faults })
}

/// The page. Its policy admits this script and this style, and no request to anywhere.
fn page(file: &ParquetFile, json: &[u8]) -> Vec<u8> {
    let hash = |text: &str| {
        let mut encoded = Vec::new();
        base64(&mut encoded, &Sha256::digest(text.as_bytes()));
        format!("'sha256-{}'", String::from_utf8_lossy(&encoded))
    };
    let name = html(&printable(file.name()));
    let head = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; img-src data:; \
base-uri 'none'; form-action 'none'\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<meta name=\"generator\" content=\"marquetry {}\">\n\
<link rel=\"icon\" href=\"data:,\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
<noscript><p>{name} is drawn by a script, which this browser does not run.</p></noscript>\n{PAGE}",
        hash(SCRIPT),
        hash(STYLE),
        env!("CARGO_PKG_VERSION"),
    );
    let mut out = Vec::with_capacity(head.len() + SCRIPT.len() + json.len() * 9 / 8);
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(b"<script type=\"application/json\" id=\"data\">");
    for byte in json {
        // In JSON these are only inside strings. Nothing there may end the element or open a comment.
        match byte {
            b'<' => out.extend_from_slice(b"\\u003c"),
            b'>' => out.extend_from_slice(b"\\u003e"),
            b'&' => out.extend_from_slice(b"\\u0026"),
            _ => out.push(*byte),
        }
    }
    out.extend_from_slice(b"</script>\n<script>");
    out.extend_from_slice(SCRIPT.as_bytes());
    out.extend_from_slice(b"</script>\n</body>\n</html>\n");
    out
}

/// Text of an element.
fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
