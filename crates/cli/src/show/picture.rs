//! The file drawn to scale: one page of HTML that needs nothing else.

mod cells;
mod data;
mod index;

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use marquetry::base::{Detail, Error};
use marquetry::io::store::{Found, LocalFiles, Store};
use marquetry::tables::Cancel;
use marquetry::tables::files::{ExtentKind, FileMap, MapOptions, ParquetFile};

use crate::failure::{Failure, Outcome};
use crate::table::printable;

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

/// The picture of a file, and what is wrong with the file, if something is: it is drawn all the same.
pub(super) fn draw(file: &ParquetFile, cancel: Cancel) -> Outcome<(Vec<u8>, Option<Failure>)> {
    let pages_max = if cells::is_whole(file.metadata()) { data::PAGES_MAX } else { 0 };
    let mut options = MapOptions::default();
    (options.pages_max, options.cancel) = (pages_max, cancel.clone());
    let mut map = FileMap::of(file, &options)?;
    let pages = map.extents.iter().filter(|extent| matches!(extent.kind, ExtentKind::Page(_))).count();
    let (index, fault) = match pages {
        0 => Default::default(),
        pages if pages > data::INDEXED_PAGES_MAX => Default::default(),
        _ => index::pages(file, &cancel)?,
    };
    map.faults.extend(fault);
    let mut json = Vec::new();
    super::json::write(&data::Picture::of(file, &map, &index), &mut json)?;
    let fault = map.faults.into_iter().next();
    Ok((page(file, &json), fault.map(|error| Failure::about(file.name(), &error))))
}

/// Writes a picture to a file, which appears complete.
pub(super) fn save(picture: &[u8], path: &Path, overwrite: bool) -> Outcome {
    let save = || {
        let mut object = LocalFiles.create(path, overwrite)?;
        object.append(picture)?;
        object.commit()
    };
    save().map_err(|error: Error| Failure::about(path.display(), &error))
}

/// Fails before anything is read, if the picture cannot be put there.
pub(super) fn check(path: &Path, overwrite: bool) -> Outcome {
    match LocalFiles.look(path) {
        Ok(Found::Nothing) | Err(_) => Ok(()),
        Ok(Found::Directory { .. }) => Err(Failure::refused(format!("{}: a directory", path.display()))),
        Ok(_) if overwrite => Ok(()),
        Ok(_) => {
            let error = Error::io("already exists").with(Detail::AlreadyExists);
            Err(Failure::about(path.display(), &error))
        }
    }
}

/// The page. Its policy admits this script and this style, and no request to anywhere.
fn page(file: &ParquetFile, json: &[u8]) -> Vec<u8> {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())));
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
        // In JSON these are only inside strings. There, nothing may end the element or open a comment.
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
