//! tmp
use std::sync::Arc;
use marquetry_base::Bytes;
use marquetry_conformance::{canonical::{self, FILE}, hostile::{self, Manner}};
use marquetry_parquet::read::{BatchReader, ReadOptions};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let bytes = Bytes::from(std::fs::read(&args[1]).unwrap());
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let leaf: usize = args[2].parse().unwrap();
    let options = ReadOptions { leaves: Some(vec![leaf]), ..ReadOptions::default() };
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), Arc::new(marquetry_codecs::StandardCodecs::default()), options).unwrap();
    println!("{:?}", metadata.schema.leaves()[leaf]);
    hostile::run(&mut reader, FILE, &bytes, Manner::KIND, |batch| {
        let l = batch.columns[0].levels.as_ref().unwrap();
        let mut s = String::new();
        for (at, d) in l.definition.iter().enumerate() {
            let r = l.repetition.as_ref().map_or(0, |r| r[at]);
            if r == 0 { s.push('|'); }
            s.push_str(&format!("{r}{d} "));
        }
        println!("{} rows: {s}", batch.rows);
        Ok(())
    }).unwrap();
}
