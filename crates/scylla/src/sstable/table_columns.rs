//! The columns of a table: what the headers of all its SSTables say together.
//!
//! SSTables of one table differ: a column that was added or dropped is not in all of them, a user-defined type may have got a field. Here they
//! are one list, and a [`ColumnMap`] brings the batches of an SSTable into its order.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, RELEASE_PRICE, Release, Result, release_all};

use super::batch::{Cells, MutationBatch, Strings, Values};
use super::dropped::leave_out_before;
use super::elements::name as printed;
use super::marshal::MarshalType;
use super::statistics::{HeaderColumn, SerializationHeader, release_columns};
use crate::cql::CqlType;

/// The columns of a table.
///
/// A [batch](MutationBatch) *of the table* has its cells in `statics`, and then `regulars`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableColumns {
    /// The columns of the partition key.
    pub partition_key: Vec<KeyColumn>,
    /// The clustering columns, whose types may be [reversed](MarshalType::Reversed).
    pub clustering: Vec<KeyColumn>,
    /// The static columns in the order of headers: simple ones before those with a cell for each element, each by the bytes of their names.
    pub statics: Vec<HeaderColumn>,
    /// The other columns, in the same order.
    pub regulars: Vec<HeaderColumn>,
    /// Columns that SSTables have and the table does not.
    left_out: BTreeMap<Vec<u8>, MarshalType>,
    /// Columns that were dropped once and added again, and when they were dropped.
    dropped: BTreeMap<Vec<u8>, i64>,
}

/// A column of the primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: MarshalType,
}

/// The names of key columns, which are not in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyNames {
    /// Of the columns of the partition key, in its order.
    pub partition_key: Vec<String>,
    /// Of the clustering columns, in their order.
    pub clustering: Vec<String>,
}

impl TableColumns {
    /// The columns that these headers have together. Key columns are called `pk0`, …, `ck0`, … if their names are not known, with an
    /// underscore after that if another column has the name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for no header, or names that are too few, too many, or those of other columns.
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) if a column has types in different headers of which none
    /// can hold the values of the other, as if it was dropped and another one got its name; or if the types of keys differ: then the SSTables
    /// are of different tables.
    pub fn new(headers: &[&SerializationHeader], names: Option<&KeyNames>) -> Result<TableColumns> {
        let Some((first, others)) = headers.split_first() else {
            return Err(Error::misuse("the columns of no SSTable"));
        };
        for header in others {
            if header.key != first.key {
                return Err(Error::unsupported(format!(
                    "SSTables of different tables: partition keys of the types {} and {}",
                    described(&first.key),
                    described(&header.key)
                )));
            }
            if header.clustering != first.clustering {
                return Err(Error::unsupported("SSTables of different tables: clustering columns differ"));
            }
        }
        let statics = union(headers.iter().map(|header| &header.statics))?;
        let regulars = union(headers.iter().map(|header| &header.regulars))?;
        let names_of_regulars: BTreeSet<&[u8]> = regulars.iter().map(|column| &*column.name).collect();
        if let Some(column) = statics.iter().find(|column| names_of_regulars.contains(&*column.name)) {
            let name = printed(&column.name);
            return Err(Error::unsupported(format!(
                "the column {name} is static in one SSTable and not in another"
            )));
        }
        let key: Vec<MarshalType> = match &first.key {
            MarshalType::Composite(members) => members.clone(),
            one => alloc::vec![one.clone()],
        };
        let mut columns = TableColumns {
            partition_key: Vec::new(),
            clustering: Vec::new(),
            statics,
            regulars,
            left_out: BTreeMap::new(),
            dropped: BTreeMap::new(),
        };
        columns.partition_key = columns.keys(key, "pk", names.map(|names| &names.partition_key))?;
        columns.clustering =
            columns.keys(first.clustering.clone(), "ck", names.map(|names| &names.clustering))?;
        Ok(columns)
    }

    /// The columns that something other than SSTables says; those with cells in any order.
    pub(crate) fn of(
        partition_key: Vec<KeyColumn>,
        clustering: Vec<KeyColumn>,
        statics: Vec<HeaderColumn>,
        regulars: Vec<HeaderColumn>,
    ) -> TableColumns {
        TableColumns {
            partition_key,
            clustering,
            statics,
            regulars,
            left_out: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }

    /// Leaves out columns that were dropped: their cells are left out of batches.
    pub fn leave_out(&mut self, is_dropped: impl Fn(&HeaderColumn) -> bool) {
        let TableColumns { statics, regulars, left_out, .. } = self;
        for columns in [statics, regulars] {
            let out = columns.extract_if(.., |column| is_dropped(column));
            left_out.extend(out.map(|column| (column.name, column.kind)));
        }
    }

    /// The names of the columns that were [left out](TableColumns::leave_out), but for the one without values that tables `WITH COMPACT STORAGE`
    /// have that are all key.
    pub fn left_out(&self) -> impl Iterator<Item = &[u8]> {
        let has_values = |(_, kind): &(&Vec<u8>, &MarshalType)| **kind != MarshalType::Empty;
        self.left_out.iter().filter(has_values).map(|(name, _)| name.as_slice())
    }

    /// Takes notice that a column was dropped once, and added again: what was written to it at or before that time is left out of batches,
    /// as servers leave it out.
    pub fn leave_out_before(&mut self, name: &str, timestamp: i64) {
        let latest = self.dropped.entry(name.as_bytes().to_vec()).or_insert(timestamp);
        *latest = timestamp.max(*latest);
    }

    /// What the header of an SSTable that has all of these columns says of them.
    pub fn header(&self) -> SerializationHeader {
        let kinds =
            |keys: &[KeyColumn]| -> Vec<MarshalType> { keys.iter().map(|key| key.kind.clone()).collect() };
        SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: match &*self.partition_key {
                [only] => only.kind.clone(),
                all => MarshalType::Composite(kinds(all)),
            },
            clustering: kinds(&self.clustering),
            statics: self.statics.clone(),
            regulars: self.regulars.clone(),
        }
    }

    /// The columns that have cells: the static ones, and then the others.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = &HeaderColumn> + Clone {
        let statics = self.statics.len();
        (0..statics + self.regulars.len()).map(move |number| match number.checked_sub(statics) {
            None => &self.statics[number],
            Some(number) => &self.regulars[number],
        })
    }

    /// How a batch of an SSTable with this header becomes one of the table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) if a column of the header is not one of the table: then the table was not
    /// made of this header.
    pub fn index_of(&self, header: &SerializationHeader) -> Result<ColumnMap> {
        let mut by_name: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (number, column) in self.cells().enumerate() {
            by_name.insert(&column.name, number);
        }
        let all: Vec<&HeaderColumn> = self.cells().collect();
        let mut columns = Vec::new();
        for column in header.statics.iter().chain(&header.regulars) {
            if self.left_out.contains_key(&column.name) {
                columns.push(Mapped { number: None, becomes_bytes: false, dropped_at: None });
                continue;
            }
            let found =
                by_name.get(column.name.as_slice()).and_then(|number| Some((*number, all.get(*number)?)));
            let Some((number, of_table)) = found else {
                let name = printed(&column.name);
                return Err(Error::misuse(format!("the table has no column {name}")));
            };
            let becomes_bytes = is_string(&of_table.kind) && !is_string(&column.kind);
            let dropped_at = self.dropped.get(&column.name).copied();
            columns.push(Mapped { number: Some(number), becomes_bytes, dropped_at });
        }
        let is_same = columns.len() == all.len()
            && columns.iter().enumerate().all(|(at, column)| {
                *column == Mapped { number: Some(at), becomes_bytes: false, dropped_at: None }
            });
        Ok(ColumnMap {
            columns,
            is_same,
            empty: all.iter().map(|column| Values::of(cell_bytes(&column.kind))).collect(),
        })
    }

    /// Gives key columns other names.
    ///
    /// # Errors
    ///
    /// As [`TableColumns::new`].
    pub(super) fn name_keys(&mut self, names: &KeyNames) -> Result<()> {
        let kinds = |keys: Vec<KeyColumn>| keys.into_iter().map(|key| key.kind).collect();
        let partition_key = kinds(core::mem::take(&mut self.partition_key));
        let clustering = kinds(core::mem::take(&mut self.clustering));
        self.partition_key = self.keys(partition_key, "pk", Some(&names.partition_key))?;
        self.clustering = self.keys(clustering, "ck", Some(&names.clustering))?;
        Ok(())
    }

    fn keys(
        &self,
        kinds: Vec<MarshalType>,
        prefix: &str,
        names: Option<&Vec<String>>,
    ) -> Result<Vec<KeyColumn>> {
        if let Some(names) = names
            && names.len() != kinds.len()
        {
            return Err(Error::misuse(format!(
                "{} names for the {} key columns of the SSTables: {}",
                names.len(),
                kinds.len(),
                names.join(", ")
            )));
        }
        // Names of columns are as many as files say: they are looked up, not searched.
        let others = self.cells().map(|column| column.name.as_slice());
        let of_keys = self.partition_key.iter().map(|column| column.name.as_bytes());
        let taken: BTreeSet<&[u8]> = others.chain(of_keys).collect();
        let mut given: BTreeSet<&str> = BTreeSet::new();
        let mut keys: Vec<KeyColumn> = Vec::new();
        for (number, kind) in kinds.into_iter().enumerate() {
            let name = match names.and_then(|names| names.get(number)) {
                Some(name) if taken.contains(name.as_bytes()) || !given.insert(name) => {
                    return Err(Error::misuse(format!("{name} is the name of two columns")));
                }
                Some(name) => name.clone(),
                None => {
                    let mut name = format!("{prefix}{number}");
                    while taken.contains(name.as_bytes()) {
                        name.push('_');
                    }
                    name
                }
            };
            keys.push(KeyColumn { name, kind });
        }
        Ok(keys)
    }
}

impl Release for TableColumns {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        if !release_columns(&mut self.statics, budget) || !release_columns(&mut self.regulars, budget) {
            return false;
        }
        while self.left_out.pop_last().is_some() {
            budget.charge(RELEASE_PRICE, 0, 4);
            if budget.is_spent() {
                return self.left_out.is_empty();
            }
        }
        true
    }
}

/// Where the columns of an SSTable are among the table's.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMap {
    columns: Vec<Mapped>,
    /// The SSTable's batches are of the table already.
    is_same: bool,
    /// Of each column of the table: an array for its values.
    empty: Vec<Values>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Mapped {
    /// `None`: it is left out.
    number: Option<usize>,
    /// Its values are numbers here, and strings in the table.
    becomes_bytes: bool,
    /// Cells that are not newer are left out.
    dropped_at: Option<i64>,
}

impl ColumnMap {
    /// Whether the SSTable's batches are of the table already.
    pub fn is_same(&self) -> bool {
        self.is_same
    }

    /// The number that a column of the SSTable, static or not, has in the table. `None` for one that is left out.
    pub fn number(&self, column: usize) -> Option<usize> {
        self.columns.get(column).and_then(|mapped| mapped.number)
    }

    /// Makes a batch of the SSTable one of the table. Arrays are moved; those of numbers of a column that has become `blob` or `varint` are
    /// copied.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) if the batch has other columns.
    pub fn apply(&self, mut batch: MutationBatch) -> Result<MutationBatch> {
        if batch.columns.len() != self.columns.len() {
            let message =
                format!("a batch of {} columns instead of {}", batch.columns.len(), self.columns.len());
            return Err(Error::misuse(message));
        }
        if self.is_same {
            return Ok(batch);
        }
        let new = |values: &Values| Cells { values: values.clone(), ..Cells::default() };
        let columns = self.empty.iter().map(new).collect();
        let cells = core::mem::replace(&mut batch.columns, columns);
        for (mapped, mut cells) in self.columns.iter().zip(cells) {
            if let Some(dropped_at) = mapped.dropped_at {
                leave_out_before(dropped_at, &mut cells, &batch.entries.timestamps);
            }
            if mapped.becomes_bytes {
                to_bytes(&mut cells);
            }
            if let Some(column) = mapped.number.and_then(|number| batch.columns.get_mut(number)) {
                *column = cells;
            }
        }
        Ok(batch)
    }
}

impl Release for Mapped {}

impl Release for ColumnMap {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.columns, &mut self.empty], budget)
    }
}

/// The length of the values of a column's cells, if that is fixed: what the reader of Data.db makes arrays for.
fn cell_bytes(kind: &MarshalType) -> Option<u32> {
    kind.fixed_bytes()
}

fn is_string(kind: &MarshalType) -> bool {
    matches!(Values::of(cell_bytes(kind)), Values::Strings(_))
}

/// Makes strings of numbers. Cells that are [empty](Cells::empties) become empty strings.
fn to_bytes(cells: &mut Cells) {
    let mut strings = Strings::default();
    let mut empties = core::mem::take(&mut cells.empties).into_iter().peekable();
    for number in 0..cells.values.len() {
        let is_empty =
            empties.next_if(|empty| u32::try_from(number).is_ok_and(|number| *empty == number)).is_some();
        if !is_empty {
            cells.values.append_bytes(number, &mut strings.bytes);
        }
        strings.close();
    }
    cells.values = Values::Strings(strings);
}

/// The columns of all lists, each once, in the order of headers.
fn union<'a>(lists: impl Iterator<Item = &'a Vec<HeaderColumn>>) -> Result<Vec<HeaderColumn>> {
    let mut by_name: BTreeMap<&[u8], MarshalType> = BTreeMap::new();
    for column in lists.flatten() {
        let kind = match by_name.get(column.name.as_slice()) {
            None => column.kind.clone(),
            Some(before) => wider(before, &column.kind).ok_or_else(|| {
                let (one, other) = (described(before), described(&column.kind));
                let name = printed(&column.name);
                Error::unsupported(format!(
                    "the column {name} is of the types {one} and {other} in different SSTables"
                ))
            })?,
        };
        by_name.insert(&column.name, kind);
    }
    let mut columns: Vec<HeaderColumn> =
        by_name.into_iter().map(|(name, kind)| HeaderColumn { name: name.to_vec(), kind }).collect();
    columns.sort_by_key(|column| column.kind.is_multi_cell());
    Ok(columns)
}

/// The type whose values all values of both are, byte by byte.
///
/// Cassandra allows a column's type to become such another one (`isValueCompatibleWith` of each class), or did so once.
fn wider(one: &MarshalType, other: &MarshalType) -> Option<MarshalType> {
    use MarshalType::{Frozen, List, Map, Native, Reversed, Set, Tuple, User, Vector};
    if one == other {
        return Some(one.clone());
    }
    let both = |one: &MarshalType, other: &MarshalType| wider(one, other).map(alloc::boxed::Box::new);
    Some(match (one, other) {
        (Native(CqlType::Blob), other) if is_bytes(other) => Native(CqlType::Blob),
        (one, Native(CqlType::Blob)) if is_bytes(one) => Native(CqlType::Blob),
        (Native(one), Native(other)) => Native(wider_native(one, other)?),
        (Frozen(one), Frozen(other)) => Frozen(both(one, other)?),
        (Reversed(one), Reversed(other)) => Reversed(both(one, other)?),
        (List(one), List(other)) => List(both(one, other)?),
        (Set(one), Set(other)) => Set(both(one, other)?),
        (Map(one, value), Map(other, other_value)) => Map(both(one, other)?, both(value, other_value)?),
        (Vector(one, count), Vector(other, other_count)) if count == other_count => {
            // An element of another length makes another vector.
            let element = both(one, other)?;
            if element.fixed_bytes() != one.fixed_bytes() || element.fixed_bytes() != other.fixed_bytes() {
                return None;
            }
            Vector(element, *count)
        }
        (Tuple(one), Tuple(other)) => Tuple(longer(one, other, wider)?),
        (
            User { keyspace, name, fields },
            User { keyspace: other_keyspace, name: other_name, fields: others },
        ) if keyspace == other_keyspace && name == other_name => {
            // Fields are added at the end. Renamed ones have the name that came later.
            let fields =
                longer(fields, others, |(_, one), (name, other)| Some((name.clone(), wider(one, other)?)))?;
            User { keyspace: keyspace.clone(), name: name.clone(), fields }
        }
        _ => return None,
    })
}

/// A value of a simple column, whatever it means.
fn is_bytes(kind: &MarshalType) -> bool {
    !kind.is_multi_cell() && !kind.is_counter()
}

fn wider_native(one: &CqlType, other: &CqlType) -> Option<CqlType> {
    use CqlType::{Ascii, Bigint, Int, Smallint, Text, Timestamp, Timeuuid, Tinyint, Uuid, Varint};
    Some(match (one, other) {
        (Ascii, Text) | (Text, Ascii) => Text,
        (Timeuuid, Uuid) | (Uuid, Timeuuid) => Uuid,
        (Timestamp, Bigint) | (Bigint, Timestamp) => Bigint,
        (Varint, Tinyint | Smallint | Int | Bigint) | (Tinyint | Smallint | Int | Bigint, Varint) => Varint,
        _ => return None,
    })
}

/// Members of both, and the rest of the longer.
fn longer<T: Clone>(one: &[T], other: &[T], both: impl Fn(&T, &T) -> Option<T>) -> Option<Vec<T>> {
    let mut all: Vec<T> =
        one.iter().zip(other).map(|(one, other)| both(one, other)).collect::<Option<_>>()?;
    let rest = if one.len() > other.len() { one } else { other };
    all.extend(rest.get(all.len()..).unwrap_or_default().iter().cloned());
    Some(all)
}

fn described(kind: &MarshalType) -> String {
    kind.cql().map_or_else(|| format!("{kind:?}"), |kind| kind.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    fn kind(text: &str) -> MarshalType {
        MarshalType::parse(text, 64).unwrap()
    }

    fn header(key: &str, clustering: &[&str], columns: &[(&str, &str)]) -> SerializationHeader {
        SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: kind(key),
            clustering: clustering.iter().map(|text| kind(text)).collect(),
            statics: Vec::new(),
            regulars: columns
                .iter()
                .map(|(name, text)| HeaderColumn { name: name.as_bytes().to_vec(), kind: kind(text) })
                .collect(),
        }
    }

    fn regulars(table: &TableColumns) -> Vec<(&str, MarshalType)> {
        let name = |column: &HeaderColumn| column.kind.clone();
        table.regulars.iter().map(|it| (core::str::from_utf8(&it.name).unwrap(), name(it))).collect()
    }

    #[test]
    fn columns_are_those_of_all_headers() {
        let one =
            header("Int32Type", &["ReversedType(Int32Type)"], &[("b", "AsciiType"), ("d", "Int32Type")]);
        let other = header(
            "Int32Type",
            &["ReversedType(Int32Type)"],
            &[("a", "LongType"), ("b", "UTF8Type"), ("d", "IntegerType"), ("c", "SetType(Int32Type)")],
        );
        let table = TableColumns::new(&[&one, &other], None).unwrap();
        let expected = [
            ("a", kind("LongType")),
            ("b", kind("UTF8Type")),
            ("d", kind("IntegerType")),
            ("c", kind("SetType(Int32Type)")),
        ];
        assert_eq!(regulars(&table), expected);
        assert_eq!(
            table.clustering[0],
            KeyColumn { name: "ck0".to_string(), kind: kind("ReversedType(Int32Type)") }
        );
        assert!(table.index_of(&other).unwrap().is_same());

        let map = table.index_of(&one).unwrap();
        let mut batch = MutationBatch::default();
        let mut text = Strings::default();
        text.push(b"x");
        batch.columns = alloc::vec![
            Cells { entries: alloc::vec![0], values: Values::Strings(text.clone()), ..Cells::default() },
            Cells {
                entries: alloc::vec![0, 1],
                values: Values::Four(alloc::vec![7, 0]),
                empties: alloc::vec![1],
                ..Cells::default()
            },
        ];
        let of_table = map.apply(batch).unwrap();
        assert_eq!(of_table.columns.len(), 4);
        assert_eq!(of_table.columns[0].values, Values::Eight(Vec::new()));
        assert_eq!(of_table.columns[1].values, Values::Strings(text));
        let numbers = Strings { ends: alloc::vec![4, 4], bytes: alloc::vec![0, 0, 0, 7] };
        assert_eq!(of_table.columns[2].values, Values::Strings(numbers));
        assert!(of_table.columns[2].empties.is_empty() && of_table.columns[3].is_empty());
        assert_eq!(map.apply(MutationBatch::default()).unwrap_err().kind(), ErrorKind::Misuse);
    }

    #[test]
    fn dropped_columns_are_left_out() {
        let of = header("Int32Type", &[], &[("a", "Int32Type"), ("b", "UTF8Type"), ("c", "Int32Type")]);
        let mut table = TableColumns::new(&[&of], None).unwrap();
        table.leave_out(|column| column.name == b"b");
        assert_eq!(regulars(&table), [("a", kind("Int32Type")), ("c", kind("Int32Type"))]);
        assert_eq!(table.left_out().collect::<Vec<_>>(), [b"b"]);
        let map = table.index_of(&of).unwrap();
        assert_eq!([0, 1, 2].map(|column| map.number(column)), [Some(0), None, Some(1)]);
        let four = |value| Cells { values: Values::Four(alloc::vec![value]), ..Cells::default() };
        let text = Cells { values: Values::Strings(Strings::default()), ..Cells::default() };
        let batch =
            MutationBatch { columns: alloc::vec![four(1), text, four(2)], ..MutationBatch::default() };
        assert_eq!(map.apply(batch).unwrap().columns, [four(1), four(2)]);
    }

    #[test]
    fn a_type_that_got_a_field_is_the_longer_one() {
        let short = header("Int32Type", &[], &[("u", "FrozenType(UserType(k,61,62:AsciiType))")]);
        let long = header("Int32Type", &[], &[("u", "FrozenType(UserType(k,61,63:UTF8Type,64:Int32Type))")]);
        for headers in [[&short, &long], [&long, &short]] {
            let table = TableColumns::new(&headers, None).unwrap();
            let MarshalType::Frozen(inner) = &table.regulars[0].kind else { panic!() };
            let MarshalType::User { fields, .. } = &**inner else { panic!() };
            assert_eq!(
                fields.iter().map(|(_, kind)| kind.clone()).collect::<Vec<_>>(),
                [kind("UTF8Type"), kind("Int32Type")]
            );
        }
    }

    #[test]
    fn names_of_keys_are_given_or_made() {
        let of = header("CompositeType(Int32Type,UTF8Type)", &["LongType"], &[("pk1", "Int32Type")]);
        let names = |table: &TableColumns| {
            let keys = table.partition_key.iter().chain(&table.clustering);
            keys.map(|key| key.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&TableColumns::new(&[&of], None).unwrap()), ["pk0", "pk1_", "ck0"]);
        let given = |partition: &[&str], clustering: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
            KeyNames { partition_key: owned(partition), clustering: owned(clustering) }
        };
        let table = TableColumns::new(&[&of], Some(&given(&["a", "b"], &["c"]))).unwrap();
        assert_eq!(names(&table), ["a", "b", "c"]);
        assert_eq!(table.header(), of);
        for (partition, clustering) in [
            (&["a"][..], &["c"][..]),
            (&["a", "b"], &[]),
            (&["a", "pk1"], &["c"]),
            (&["a", "a"], &["c"]),
            (&["a", "b"], &["b"]),
        ] {
            let error = TableColumns::new(&[&of], Some(&given(partition, clustering))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{partition:?} {clustering:?}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let base = header("Int32Type", &[], &[("a", "Int32Type")]);
        for other in [
            header("LongType", &[], &[]),
            header("Int32Type", &["LongType"], &[]),
            header("Int32Type", &[], &[("a", "UTF8Type")]),
            header("Int32Type", &[], &[("a", "ListType(Int32Type)")]),
        ] {
            let error = TableColumns::new(&[&base, &other], None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
        let mut fixed = base.clone();
        fixed.statics = core::mem::take(&mut fixed.regulars);
        let error = TableColumns::new(&[&base, &fixed], None).unwrap_err();
        assert!(error.message().contains("the column a is static"), "{error}");
        assert_eq!(TableColumns::new(&[], None).unwrap_err().kind(), ErrorKind::Misuse);
        let table = TableColumns::new(&[&base], None).unwrap();
        assert_eq!(
            table.index_of(&header("Int32Type", &[], &[("z", "Int32Type")])).unwrap_err().kind(),
            ErrorKind::Misuse
        );
    }
}
