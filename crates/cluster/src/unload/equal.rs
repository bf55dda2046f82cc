//! Partition keys that a predicate asks for: then only these partitions are read.

use marquetry_parquet::prune::{Predicate, Test};
use marquetry_parquet::schema::Schema;
use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::{KeyColumn, murmur3_token};

use super::requests::Rows;

/// The most partitions that are asked for one by one; of more, all rows are read and tested.
const PARTITIONS_MAX: usize = 64;

/// The partitions in which all rows are for which a predicate is true, in order. `None`: nobody knows.
///
/// `leaves` are those of the partition key's columns.
pub(super) fn partitions(
    predicate: &Predicate,
    schema: &Schema,
    leaves: &[usize],
    key: &[KeyColumn],
) -> Option<Vec<Rows>> {
    let tests: Vec<&Test> = match predicate {
        Predicate::And(all) => all
            .iter()
            .filter_map(|part| match part {
                Predicate::Test(test) => Some(test),
                _ => None,
            })
            .collect(),
        Predicate::Test(test) => vec![test],
        Predicate::Or(_) => return None,
    };
    let mut keys: Vec<Vec<Vec<u8>>> = vec![Vec::new()];
    for (leaf, column) in leaves.iter().zip(key) {
        let values = tests
            .iter()
            .filter(|test| test.leaf == *leaf)
            .find_map(|test| test.plain_values(schema, PARTITIONS_MAX))?;
        let values = values.iter().map(|value| of_plain(value, &column.kind)).collect::<Option<Vec<_>>>()?;
        // A value that the column cannot have is in no partition, and a server would refuse to look for it.
        let values: Vec<Vec<u8>> = values.into_iter().filter(|value| can_be(value, &column.kind)).collect();
        if keys.len().saturating_mul(values.len()) > PARTITIONS_MAX {
            return None;
        }
        let with = |before: &Vec<Vec<u8>>| {
            let with_one = |value: &Vec<u8>| [before, std::slice::from_ref(value)].concat();
            values.iter().map(with_one).collect::<Vec<_>>()
        };
        keys = keys.iter().flat_map(with).collect();
    }
    let mut rows = Vec::new();
    for key in keys {
        let stored = stored(&key)?;
        let row = Rows::Partition(key, murmur3_token(&stored));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.sort_by_key(|rows| match rows {
        Rows::Partition(key, token) => (*token, key.clone()),
        Rows::Tokens(first, _) => (*first, Vec::new()),
    });
    Some(rows)
}

/// A PLAIN value of a Parquet column as the protocol has it. `None` for types whose values are not that simple.
fn of_plain(value: &[u8], kind: &MarshalType) -> Option<Vec<u8>> {
    let MarshalType::Native(native) = kind else { return None };
    let int = || value.try_into().ok().map(i32::from_le_bytes);
    let long = || value.try_into().ok().map(i64::from_le_bytes);
    Some(match native {
        CqlType::Text | CqlType::Ascii | CqlType::Blob | CqlType::Uuid | CqlType::Timeuuid => value.to_vec(),
        CqlType::Int => int()?.to_be_bytes().to_vec(),
        // Days since 1970, counted from the middle of 32 bits.
        CqlType::Date => int()?.wrapping_sub(i32::MIN).to_be_bytes().to_vec(),
        CqlType::Smallint => i16::try_from(int()?).ok()?.to_be_bytes().to_vec(),
        CqlType::Tinyint => i8::try_from(int()?).ok()?.to_be_bytes().to_vec(),
        CqlType::Bigint | CqlType::Timestamp => match <[u8; 4]>::try_from(value) {
            // UINT(32), of rows within rows.
            Ok(number) => i64::from(u32::from_le_bytes(number)).to_be_bytes().to_vec(),
            Err(_) => long()?.to_be_bytes().to_vec(),
        },
        _ => return None,
    })
}

/// Whether a value can be one of a type, of which that is a part of what its values have.
fn can_be(value: &[u8], kind: &MarshalType) -> bool {
    match kind {
        MarshalType::Native(CqlType::Ascii) => value.is_ascii(),
        MarshalType::Native(CqlType::Timeuuid) => value.get(6).is_some_and(|version| version >> 4 == 1),
        _ => true,
    }
}

/// A key as it is stored. `None` for one that no partition can have.
fn stored(key: &[Vec<u8>]) -> Option<Vec<u8>> {
    if let [only] = key {
        return (!only.is_empty()).then(|| only.clone());
    }
    let mut stored = Vec::new();
    for value in key {
        stored.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
        stored.extend(value);
        stored.push(0);
    }
    Some(stored)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType};
    use marquetry_tables::predicate::parse;

    fn found(predicate: &str) -> Option<Vec<Vec<Vec<u8>>>> {
        let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
        let fields = [
            FieldDef::new("v", FieldType::Leaf(PhysicalType::Int32, None)),
            FieldDef::new("a", FieldType::Leaf(PhysicalType::Int64, None)),
            FieldDef::new("b", text),
        ];
        let schema = Arc::new(Schema::of_fields(&fields).unwrap());
        let column = |name: &str, kind| KeyColumn { name: name.to_owned(), kind: MarshalType::Native(kind) };
        let key = [column("a", CqlType::Bigint), column("b", CqlType::Text)];
        let rows = partitions(&parse(predicate, &schema).unwrap(), &schema, &[1, 2], &key)?;
        let key = |rows: Rows| match rows {
            Rows::Partition(key, _) => key,
            Rows::Tokens(..) => panic!("tokens"),
        };
        Some(rows.into_iter().map(key).collect())
    }

    #[test]
    fn keys_that_no_partition_has() {
        let native = MarshalType::Native;
        assert!(can_be(b"a", &native(CqlType::Ascii)) && !can_be("é".as_bytes(), &native(CqlType::Ascii)));
        assert!(can_be("é".as_bytes(), &native(CqlType::Text)));
        let uuid = |version: u8| [0, 0, 0, 0, 0, 0, version << 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(
            can_be(&uuid(1), &native(CqlType::Timeuuid)) && !can_be(&uuid(4), &native(CqlType::Timeuuid))
        );
        assert!(can_be(&uuid(4), &native(CqlType::Uuid)));
    }

    #[test]
    fn numbers_are_as_columns_hold_them() {
        let date = MarshalType::Native(CqlType::Date);
        for (days, bytes) in [(0, 0x8000_0000_u32), (-1, 0x7fff_ffff), (i32::MIN, 0), (i32::MAX, u32::MAX)] {
            assert_eq!(of_plain(&days.to_le_bytes(), &date), Some(bytes.to_be_bytes().to_vec()));
        }
        let bigint = MarshalType::Native(CqlType::Bigint);
        assert_eq!(of_plain(&[0xff; 4], &bigint), Some(0xffff_ffff_u64.to_be_bytes().to_vec()));
    }

    #[test]
    fn equality_on_the_whole_key_names_partitions() {
        let seven = 7_i64.to_be_bytes().to_vec();
        assert_eq!(found("a = 7 AND b = 'x'"), Some(vec![vec![seven.clone(), b"x".to_vec()]]));
        assert_eq!(found("v > 3 AND b = 'x' AND a = 7"), Some(vec![vec![seven, b"x".to_vec()]]));
        assert_eq!(found("a IN (1, 2) AND b IN ('x', 'y', 'x')").map(|all| all.len()), Some(4));
        for other in ["a = 7", "a = 7 OR b = 'x'", "a > 7 AND b = 'x'", "v = 1", "a = 7 AND b IS NULL"] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(found("a = 1 AND a = 2 AND b = 'x'").map(|all| all.len()), Some(1));
    }
}
