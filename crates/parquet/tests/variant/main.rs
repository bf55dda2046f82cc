//! Variants by other writers: those of parquet-testing, in its folders `variant` (Spark, Iceberg) and `shredded_variant`
//! (Iceberg), against the expected values that lie beside them.

#[path = "../common/mod.rs"]
mod common;
mod json;
mod shredded;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use json::Json;
use marquetry_base::{Limits, Result};
use marquetry_parquet::variant::{Metadata, Primitive, Value, Variant};

const LIMITS: Limits = Limits::DEFAULT;

/// A folder of parquet-testing. `None`, put on record, without it.
fn corpus(folder: &str) -> Option<PathBuf> {
    marquetry_testing::corpus_file(&format!("parquet-testing/{folder}"))
}

fn to_json(metadata: &[u8], value: &[u8]) -> Result<String> {
    let variant = Variant::new(Metadata::new(metadata)?, value, &LIMITS)?;
    let mut out = Vec::new();
    variant.to_json(&LIMITS, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// The samples of `variant`: metadata and value, by name.
fn samples(folder: &Path) -> BTreeMap<String, (Vec<u8>, Vec<u8>)> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "value"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            (name, (fs::read(path.with_extension("metadata")).unwrap(), fs::read(path).unwrap()))
        })
        .collect()
}

/// Where the dictionary of the samples has another text than this library's JSON, though the same value.
const OTHERWISE: [(&str, &str, &str); 6] = [
    ("primitive_decimal16", "1.2345678912345678e+16", "12345678912345678.90"),
    ("primitive_decimal8", "12345678.9", "12345678.90"),
    ("primitive_time", "12:33:54:123456", "12:33:54.123456"),
    ("primitive_timestamp", "2025-04-16 12:34:56.78-04:00", "2025-04-16T16:34:56.780000Z"),
    ("primitive_timestampntz", "2025-04-16 12:34:56.78", "2025-04-16T12:34:56.780000"),
    ("primitive_timestamp_nanos", "2024-11-07T12:33:54.123456789+00:00", "2024-11-07T12:33:54.123456789Z"),
];

#[test]
fn samples_have_the_values_of_their_dictionary() {
    let Some(folder) = corpus("variant") else { return };
    let dictionary = Json::read(&fs::read_to_string(folder.join("data_dictionary.json")).unwrap()).unwrap();
    let mut compared = 0;
    for (name, (metadata, value)) in samples(&folder) {
        let text = to_json(&metadata, &value).unwrap_or_else(|error| panic!("{name}: {error}"));
        let ours = Json::read(&text).unwrap_or_else(|| panic!("{name}: {text} is not JSON"));
        let Some(wanted) = dictionary.get(&name) else {
            println!("{name} is not in the dictionary: {text}");
            continue;
        };
        if let ("primitive_float", Json::Number(ours), Json::Number(wanted)) = (&*name, &ours, wanted) {
            // Several texts of as few digits are this float.
            assert_eq!(ours.parse::<f32>(), wanted.parse::<f32>());
            compared += 1;
            continue;
        }
        let wanted = match OTHERWISE.iter().find(|(sample, _, _)| *sample == name) {
            Some((_, theirs, ours)) => match wanted {
                Json::Number(number) => {
                    assert_eq!(number, theirs);
                    Json::Number(ours.to_string())
                }
                wanted => {
                    assert_eq!(wanted.text(), Some(*theirs));
                    Json::String(ours.to_string())
                }
            },
            None => wanted.clone(),
        };
        assert_eq!(ours, wanted, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 28, "all that the dictionary has");
}

/// A value in the words of Iceberg's `toString`, which the cases of `shredded_variant` are told in.
fn in_iceberg_s_words(variant: Variant<'_>) -> String {
    let value = match variant.value().unwrap() {
        Value::Object(object) => {
            let fields: Vec<String> = object
                .fields()
                .map(|field| {
                    field.map(|(name, value)| format!("{name}: {}", in_iceberg_s_words(value))).unwrap()
                })
                .collect();
            return format!("VariantObject(fields={{{}}})", fields.join(", "));
        }
        Value::Array(array) => {
            let elements: Vec<String> =
                array.elements().map(|element| in_iceberg_s_words(element.unwrap())).collect();
            return format!("VariantArray([{}])", elements.join(", "));
        }
        Value::Primitive(value) => value,
    };
    let mut json = Vec::new();
    variant.to_json(&LIMITS, &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    let text = json.trim_matches('"').to_string();
    let (name, text) = match value {
        Primitive::Null => ("NULL", text),
        Primitive::Boolean(true) => ("BOOLEAN_TRUE", text),
        Primitive::Boolean(false) => ("BOOLEAN_FALSE", text),
        Primitive::Int8(_) => ("INT8", text),
        Primitive::Int16(_) => ("INT16", text),
        Primitive::Int32(_) => ("INT32", text),
        Primitive::Int64(_) => ("INT64", text),
        Primitive::Float(_) => ("FLOAT", text),
        Primitive::Double(_) => ("DOUBLE", text),
        Primitive::Decimal4 { .. } => ("DECIMAL4", text),
        Primitive::Decimal8 { .. } => ("DECIMAL8", text),
        Primitive::Decimal16 { .. } => ("DECIMAL16", text),
        Primitive::Date(_) => ("DATE", text),
        Primitive::Time(_) => ("TIME", text),
        Primitive::Timestamp(_) => ("TIMESTAMPTZ", text.replace('Z', "+00:00")),
        Primitive::TimestampNtz(_) => ("TIMESTAMPNTZ", text),
        Primitive::TimestampNanos(_) => ("TIMESTAMPTZ_NANOS", text.replace('Z', "+00:00")),
        Primitive::TimestampNtzNanos(_) => ("TIMESTAMPNTZ_NANOS", text),
        Primitive::Binary(bytes) => ("BINARY", bytes.iter().map(|byte| format!("{byte:02X}")).collect()),
        Primitive::String(text) => ("STRING", text.to_string()),
        Primitive::Uuid(_) => ("UUID", text),
    };
    format!("Variant(type={name}, value={text})")
}

fn with_metadata(metadata: Metadata<'_>, variant: Variant<'_>) -> String {
    let names: Vec<String> =
        (0..metadata.len()).map(|id| format!("{id} => {}", metadata.name(id).unwrap())).collect();
    let value = in_iceberg_s_words(variant);
    format!("Variant(metadata=VariantMetadata(dict={{{}}}), value={value})", names.join(", "))
}

#[test]
fn cases_have_their_expected_values() {
    let Some(folder) = corpus("shredded_variant") else { return };
    let cases = Json::read(&fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
    let mut compared = 0;
    let words = |file: &Json| match file.text() {
        Some(name) => {
            let bytes = fs::read(folder.join(name)).unwrap();
            let metadata = Metadata::new(&bytes).unwrap();
            let value = &bytes[metadata.bytes().len()..];
            let variant = Variant::new(metadata, value, &LIMITS).unwrap();
            assert_eq!(variant.bytes(), value, "{name}: something follows the value");
            with_metadata(metadata, variant)
        }
        None => "null".to_string(),
    };
    for case in cases.elements() {
        let (wanted, found) = if let Some(wanted) = case.get("variant") {
            (wanted, words(case.get("variant_file").unwrap()))
        } else if let Some(wanted) = case.get("variants") {
            let files = case.get("variant_files").unwrap().elements();
            (wanted, format!("[{}]", files.iter().map(words).collect::<Vec<_>>().join(", ")))
        } else {
            continue;
        };
        assert_eq!(found, wanted.text().unwrap(), "{case:?}");
        compared += 1;
    }
    assert!(compared >= 128, "{compared} compared");
}

/// Every sample cut off anywhere is an error; with any one byte changed, an error or another value.
#[test]
fn damaged_samples_do_no_harm() {
    let (Some(variants), Some(shredded)) = (corpus("variant"), corpus("shredded_variant")) else { return };
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = samples(&variants).into_values().collect();
    for entry in fs::read_dir(shredded).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            let bytes = fs::read(path).unwrap();
            let (metadata, value) = bytes.split_at(Metadata::new(&bytes).unwrap().bytes().len());
            all.push((metadata.to_vec(), value.to_vec()));
        }
    }
    assert!(all.len() > 150, "{} samples", all.len());
    let (mut refused, mut read) = (0, 0);
    let mut check = |result: Result<String>| match result {
        Ok(text) => {
            assert!(Json::read(&text).is_some(), "{text} is not JSON");
            read += 1;
        }
        Err(_) => refused += 1,
    };
    for (metadata, value) in all {
        for cut in 0..metadata.len() {
            assert!(to_json(&metadata[..cut], &value).is_err());
        }
        for cut in 0..value.len() {
            assert!(to_json(&metadata, &value[..cut]).is_err());
        }
        for change in 1..=255 {
            for at in 0..metadata.len() {
                let mut metadata = metadata.clone();
                metadata[at] ^= change;
                check(to_json(&metadata, &value));
            }
            for at in 0..value.len() {
                let mut value = value.clone();
                value[at] ^= change;
                check(to_json(&metadata, &value));
            }
        }
    }
    println!("{refused} damaged samples refused, {read} read");
    assert!(refused > 100_000 && read > 100_000, "{refused} refused, {read} read");
}
