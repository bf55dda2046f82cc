//! Columns in the paths of files: `year=2024/month=02`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::batch::Values;
use marquetry_parquet::hive::{HiveType, Partition};
use marquetry_parquet::schema::Column;

use crate::subject::{name_of, named};

/// What directories such as `year=2024` mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Hive {
    /// Columns of type INT64, DATE or STRING, inferred from their values.
    #[default]
    Auto,
    /// Columns of type STRING.
    Text,
    /// No columns: plain directories.
    Off,
}

/// The columns in the paths of files, and each file's values of them.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    pub(super) columns: Vec<Column>,
    /// For each file the values of the columns; `None` for null.
    pub(super) values: Vec<Vec<Option<Values>>>,
}

impl Partitions {
    /// Reads paths; a file whose path lacks a column has null there, if that is allowed.
    pub(super) fn of(paths: &[PathBuf], hive: Hive, allow_missing: bool) -> Result<Partitions> {
        if hive == Hive::Off {
            return Ok(Partitions { columns: Vec::new(), values: vec![Vec::new(); paths.len()] });
        }
        let wrong = |path: &Path, why: String| {
            named(Error::conversion(why).with(Detail::AdmittedBy(&["hive"])), &name_of(path))
        };
        let mut faults = Faults::default();
        // Of each column, the first file whose path has it.
        let mut first: Vec<usize> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        // For each file, the values that its path has.
        let mut all: Vec<Vec<(usize, Option<String>)>> = Vec::with_capacity(paths.len());
        for (file, path) in paths.iter().enumerate() {
            let mut of_file: Vec<(usize, Option<String>)> = Vec::new();
            let found = faults.take(partitions_of(path).map_err(|why| wrong(path, why)));
            for partition in found.unwrap_or_default() {
                let number = *numbers.entry(partition.name.clone()).or_insert_with(|| {
                    names.push(partition.name.clone());
                    first.push(file);
                    names.len() - 1
                });
                if of_file.iter().any(|(known, _)| *known == number) {
                    faults.add(wrong(path, format!("the path has {:?} twice", partition.name)));
                    break;
                }
                of_file.push((number, partition.value));
            }
            all.push(of_file);
        }
        // Paths that cannot be read have no columns, which is no news.
        if faults.is_empty() && !allow_missing {
            for (short, of_file) in all.iter().enumerate().filter(|(_, of_file)| of_file.len() < names.len())
            {
                let has = |number: usize| of_file.iter().any(|(known, _)| *known == number);
                for missing in (0..names.len()).filter(|&number| !has(number)) {
                    let column = format!("{}=…", names[missing]);
                    let with = name_of(&paths[first[missing]]);
                    let why = format!("the path has no {column:?}, which that of {with} has");
                    let error = Error::conversion(why).with(Detail::AdmittedBy(&["union", "hive"]));
                    faults.add(named(error, &name_of(&paths[short])));
                }
            }
        }
        faults.into_result()?;
        let mut texts: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
        for (number, value) in all.iter().flatten() {
            texts[*number].extend(value.as_deref());
        }
        let of_values = |values: &Vec<&str>| match hive {
            Hive::Text => HiveType::Text,
            Hive::Auto | Hive::Off => HiveType::of(values.iter().copied()),
        };
        let types: Vec<HiveType> = texts.iter().map(of_values).collect();
        let columns = names.iter().zip(&types).map(|(name, hive_type)| hive_type.column(name)).collect();
        let values = all.iter().map(|of_file| {
            let mut values = vec![None; names.len()];
            for (number, value) in of_file {
                values[*number] = value.as_deref().and_then(|value| types[*number].value(value));
            }
            values
        });
        Ok(Partitions { columns, values: values.collect() })
    }
}

/// What the directories of a path say.
fn partitions_of(path: &Path) -> Result<Vec<Partition>, String> {
    let mut found = Vec::new();
    for component in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = component else { continue };
        if !name.as_encoded_bytes().contains(&b'=') {
            continue;
        }
        let text = name.to_str().ok_or("a directory whose name is not UTF-8")?;
        found.extend(Partition::of(text).map_err(|error| error.message().to_string())?);
    }
    Ok(found)
}
