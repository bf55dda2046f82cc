//! Options as keyword arguments.

use std::path::PathBuf;

use marquetry::CopyWords;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyString};

use crate::error::{misuse, raised};

/// Options as words: text and paths as they are, true and false, numbers, and lists with commas between their items. `None` is an option that is not given.
pub(crate) fn words(options: &Bound<'_, PyDict>) -> PyResult<CopyWords> {
    let py = options.py();
    let mut words = CopyWords::default();
    for (name, value) in options {
        if value.is_none() {
            continue;
        }
        let name = name.extract::<String>()?;
        let text = text_of(&name, &value)?;
        // Words of Python's own, such as `from`, are written with an underscore.
        let name = name.strip_suffix('_').unwrap_or(&name);
        words.set(name, &text).map_err(|error| raised(py, &error))?;
    }
    Ok(words)
}

fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(is_so) = value.cast::<PyBool>() {
        return Ok(is_so.is_true().to_string());
    }
    let is_number = value.extract::<i64>().is_ok() || value.is_instance_of::<PyFloat>();
    if value.is_instance_of::<PyString>() || is_number {
        return Ok(value.str()?.to_string());
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        let text = path.into_os_string().into_string();
        return text.map_err(|_| misuse(value.py(), "a path that is an option is UTF-8"));
    }
    match value.extract::<Vec<String>>() {
        // One would become two. These are no names, which may be quoted.
        Ok(items) if name == "null" && items.iter().any(|item| item.contains(',')) => {
            Err(misuse(value.py(), "a text that stands for null has no comma"))
        }
        Ok(items) if items.iter().any(|item| has_bare_comma(item)) => {
            Err(misuse(value.py(), "a name with a comma is put in double quotes: '\"a, b\"'"))
        }
        Ok(items) => Ok(items.join(",")),
        Err(_) => {
            Err(misuse(value.py(), "an option is text, a path, a number, true or false, or a list of text"))
        }
    }
}

/// Whether an item has a comma that is not within double quotes.
fn has_bare_comma(item: &str) -> bool {
    item.split('"').step_by(2).any(|outside| outside.contains(','))
}
