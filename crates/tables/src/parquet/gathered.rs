//! Rows of many batches, copied column by column, until there are enough of them to be written.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{Bitmap, Bytes, Error, Result};
use marquetry_parquet::batch::{
    Batch, ByteArrays, ColumnBatch, FixedBytes, INLINE_BYTES_MAX, Layout, Levels, Values,
};
use marquetry_parquet::schema::{Leaf, PhysicalType, Schema};

/// Bytes of copied strings in one buffer, at most.
const BUFFER_BYTES_MAX: usize = 1 << 30;
/// Longer strings are not copied: their buffer holds little else, and many rows may have one of a dictionary.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// A batch of which any rows can be taken: flat columns have a value, or an index of one, in each row.
pub(crate) struct Plain {
    batch: Batch,
    /// Of nested columns: where each row's entries and values begin, and where the last ones end.
    starts: Vec<Option<Vec<(u32, u32)>>>,
    /// Bytes of strings that are copied of a row, at most. Rows may share them, so that all of them take more than the batch.
    copied_bytes_max: usize,
}

/// Rows that were taken.
pub(crate) struct Gathered {
    columns: Vec<Gathering>,
    rows: usize,
    bytes: u64,
    /// Rows that were taken before these.
    finished: u64,
}

struct Gathering {
    values: Collected,
    /// Instead of values, indices of the dictionary that all rows so far have.
    indices: Option<(Vec<u32>, Arc<Values>)>,
    /// Empty as long as no row is null.
    validity: Vec<bool>,
    nulls: usize,
    /// Of a nested column: definition levels, and repetition levels.
    levels: Option<(Vec<u8>, Vec<u8>)>,
    has_repetition: bool,
}

enum Collected {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Fixed { width: usize, values: usize, bytes: Vec<u8>, is_int96: bool },
    Strings { views: Vec<u128>, strings: Strings },
}

/// Strings that are longer than their views: those that were copied last, and complete buffers before them.
#[derive(Default)]
struct Strings {
    open: Vec<u8>,
    buffers: Vec<Bytes>,
}

impl Plain {
    /// The columns of the leaves `looked_at` have no dictionaries then.
    ///
    /// # Errors
    ///
    /// `Misuse` for columns that contradict themselves or the schema.
    pub(crate) fn of(mut batch: Batch, schema: &Schema, looked_at: &[usize]) -> Result<Plain> {
        if u32::try_from(batch.rows).is_err() || batch.columns.len() != schema.leaves().len() {
            return Err(Error::misuse("a batch of too many rows, or of other columns"));
        }
        let (mut starts, mut copied_bytes_max) = (Vec::with_capacity(batch.columns.len()), 0_usize);
        for (number, (column, leaf)) in batch.columns.iter_mut().zip(schema.leaves()).enumerate() {
            if column.rows != batch.rows {
                return Err(Error::misuse("columns of different lengths"));
            }
            spread(column, leaf, looked_at.contains(&number))?;
            let found = column.levels.as_ref().map(|levels| starts_of(levels, leaf)).transpose()?;
            let fits = match &found {
                Some(found) => {
                    let values = found.last().map_or(0, |(_, values)| usize_of_u32(*values));
                    found.len() == batch.rows + 1 && values == column.values.len()
                }
                None => column.values.len() == batch.rows,
            };
            if !fits {
                return Err(Error::misuse("values, or levels, of other rows than their batch"));
            }
            copied_bytes_max = copied_bytes_max.saturating_add(copied_bytes(column, found.as_deref()));
            starts.push(found);
        }
        Ok(Plain { batch, starts, copied_bytes_max })
    }

    /// The batch, which has a value in each row of a flat column.
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// As many rows as take about these bytes, at most.
    pub(crate) fn rows_of(&self, bytes: u64) -> usize {
        usize_of(bytes / u64_of(self.copied_bytes_max.max(1))).unwrap_or(usize::MAX)
    }

    /// One of its columns.
    pub(crate) fn column(&self, leaf: usize) -> Result<&ColumnBatch> {
        self.batch.columns.get(leaf).ok_or_else(no_column)
    }
}

/// Moves the values of a flat column to their rows. Replaces indices by the dictionary's values, if they are looked at, or cannot stay.
fn spread(column: &mut ColumnBatch, leaf: &Leaf, is_looked_at: bool) -> Result<()> {
    let rows = column.rows;
    if column.validity.as_ref().is_some_and(|bits| bits.len() != rows) {
        return Err(Error::misuse("a validity of other rows than its column"));
    }
    let is_flat = column.levels.is_none();
    let is_dense = is_flat && column.layout == Layout::Dense && column.validity.is_some();
    let may_stay = match column.values {
        Values::Dictionary(..) => is_flat && !is_looked_at,
        _ => true,
    };
    if !is_dense && may_stay {
        return Ok(());
    }
    let (mut values, mut next) = (Collected::new(leaf.physical_type), 0);
    let places = (0..if is_flat { rows } else { column.values.len() }).map(|place| {
        // A null has no value.
        let is_there = !is_flat || !column.is_null(place);
        let found = is_there.then_some(if is_dense { next } else { place });
        next += usize::from(is_there);
        found
    });
    let entries = match &column.values {
        Values::Dictionary(_, entries) => &**entries,
        values => values,
    };
    let spread = match entries {
        Values::ByteArray(strings) => spread_strings(&column.values, strings, places)?,
        _ => {
            for place in places {
                values.put(&column.values, place)?;
            }
            values.take()
        }
    };
    column.values = spread;
    column.layout = if is_flat { Layout::Spaced } else { Layout::Dense };
    Ok(())
}

/// The same for strings, of which only the views are copied. `entries` are the values, or those of their dictionary.
fn spread_strings(
    values: &Values,
    entries: &ByteArrays,
    places: impl Iterator<Item = Option<usize>>,
) -> Result<Values> {
    let all = entries.views();
    let view = |place: Option<usize>| {
        let Some(place) = place else { return Ok(0) };
        let at = match values {
            Values::Dictionary(indices, _) => indices.get(place).map(|index| usize_of_u32(*index)),
            _ => Some(place),
        };
        at.and_then(|at| all.get(at)).copied().ok_or_else(missing)
    };
    let views = places.map(view).collect::<Result<Vec<u128>>>()?;
    Ok(Values::ByteArray(ByteArrays::new(views.into(), Arc::clone(entries.buffers()))))
}

/// Where the entries and the values of each row begin, and where they end.
fn starts_of(levels: &Levels, leaf: &Leaf) -> Result<Vec<(u32, u32)>> {
    let number = |at: usize| u32::try_from(at).map_err(|_| Error::too_large("a batch of 2^32 entries"));
    let mut starts = Vec::new();
    let mut values = 0;
    for (at, level) in levels.definition.iter().enumerate() {
        let begins = levels.repetition.as_ref().is_none_or(|levels| levels.get(at) == Some(&0));
        if begins {
            starts.push((number(at)?, values));
        }
        values += u32::from(u16::from(*level) == leaf.definition_max);
    }
    starts.push((number(levels.definition.len())?, values));
    Ok(starts)
}

/// The bytes that entries of a dictionary take where they are values: it may come to that.
fn bytes_of_entries(entries: &Values, indices: &[u32]) -> u64 {
    let width = match entries {
        Values::Boolean(_) => 1,
        Values::Int32(_) | Values::Float(_) => 4,
        Values::Int64(_) | Values::Double(_) => 8,
        Values::Int96(values) | Values::FixedLenByteArray(values) => values.width(),
        Values::ByteArray(strings) => {
            let far =
                |index: &u32| far_bytes(strings.views().get(usize_of_u32(*index)).copied().unwrap_or(0));
            return u64_of(indices.iter().map(far).fold(16 * indices.len(), usize::saturating_add));
        }
        Values::Dictionary(..) => 0,
    };
    u64_of(width.saturating_mul(indices.len()))
}

/// Bytes of a string that are not in its view.
fn far_bytes(view: u128) -> usize {
    let length = usize_of_u32(word(view, 0));
    if length > INLINE_BYTES_MAX { length } else { 0 }
}

/// Bytes of strings that are copied of a row, at most.
fn copied_bytes(column: &ColumnBatch, starts: Option<&[(u32, u32)]>) -> usize {
    let longest = |lengths: &mut dyn Iterator<Item = usize>| {
        lengths.filter(|length| *length <= COPIED_BYTES_MAX).max().unwrap_or(0)
    };
    let longest = match &column.values {
        Values::Dictionary(indices, entries) => {
            let Values::ByteArray(values) = &**entries else { return 0 };
            let used = indices.iter().filter_map(|index| values.views().get(usize_of_u32(*index)));
            longest(&mut used.map(|view| far_bytes(*view)))
        }
        Values::ByteArray(values) => longest(&mut values.views().iter().map(|view| far_bytes(*view))),
        _ => return 0,
    };
    let of_row = |pair: &[(u32, u32)]| usize_of_u32(pair[1].1 - pair[0].1);
    let values = starts.map_or(1, |starts| starts.windows(2).map(of_row).max().unwrap_or(0));
    longest.saturating_mul(values)
}

impl Gathered {
    /// Rows of these leaves.
    pub(crate) fn new(schema: &Schema) -> Gathered {
        let columns = schema.leaves().iter().map(|leaf| Gathering {
            indices: None,
            values: Collected::new(leaf.physical_type),
            validity: Vec::new(),
            nulls: 0,
            levels: None,
            has_repetition: leaf.repetition_max > 0,
        });
        Gathered { columns: columns.collect(), rows: 0, bytes: 0, finished: 0 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes that they take, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes rows of a batch. `leaves` says which of its columns each of these is.
    ///
    /// # Errors
    ///
    /// `Misuse` for columns of other types.
    pub(crate) fn take(
        &mut self,
        batch: &Plain,
        leaves: impl IntoIterator<Item = usize>,
        rows: &[u32],
    ) -> Result<()> {
        for (column, leaf) in self.columns.iter_mut().zip(leaves) {
            let starts = batch.starts.get(leaf).and_then(Option::as_ref);
            self.bytes += column.take((batch.column(leaf)?, starts), rows, self.rows)?;
        }
        self.rows += rows.len();
        Ok(())
    }

    /// Keeps no dictionary of a batch.
    pub(crate) fn look_up(&mut self) -> Result<()> {
        self.columns.iter_mut().try_for_each(Gathering::look_up)
    }

    /// The rows that were taken, numbered as all of them were. None are left.
    pub(crate) fn finish(&mut self) -> Batch {
        let rows = std::mem::take(&mut self.rows);
        let first_row = self.finished;
        self.finished += u64_of(rows);
        self.bytes = 0;
        let columns = self.columns.iter_mut().enumerate().map(|(leaf, column)| column.finish(leaf, rows));
        Batch { row_group: 0, first_row, rows, columns: columns.collect() }
    }
}

impl Gathering {
    /// Takes rows, after those `before`. Returns the bytes that they take.
    fn take(
        &mut self,
        (column, starts): (&ColumnBatch, Option<&Vec<(u32, u32)>>),
        rows: &[u32],
        before: usize,
    ) -> Result<u64> {
        if let (Some(levels), Some(starts)) = (&column.levels, starts) {
            return self.take_entries(levels, starts, &column.values, rows);
        }
        if let Some(validity) = &column.validity {
            self.validity.resize(before, true);
            self.validity.extend(rows.iter().map(|row| validity.get(usize_of_u32(*row))));
            self.nulls += self.validity.iter().skip(before).filter(|is_there| !**is_there).count();
        } else if !self.validity.is_empty() {
            self.validity.resize(before + rows.len(), true);
        }
        if let Values::Dictionary(indices, entries) = &column.values {
            return self.take_indices(column, (indices, entries), rows, before);
        }
        self.look_up()?;
        self.values.extend(&column.values, rows.iter().map(|row| usize_of_u32(*row)))
    }

    /// Takes rows of a column with a dictionary: their indices, as long as all rows have the same one.
    fn take_indices(
        &mut self,
        column: &ColumnBatch,
        (indices, entries): (&[u32], &Arc<Values>),
        rows: &[u32],
        before: usize,
    ) -> Result<u64> {
        if before == 0 {
            self.indices = Some((Vec::new(), Arc::clone(entries)));
        }
        match &mut self.indices {
            Some((taken, of)) if Arc::ptr_eq(of, entries) => {
                taken.extend(rows.iter().map(|row| indices[usize_of_u32(*row)]));
                Ok(bytes_of_entries(entries, &taken[before..]))
            }
            _ => {
                self.look_up()?;
                let mut bytes = 0;
                for row in rows {
                    let row = usize_of_u32(*row);
                    bytes += self.values.put(&column.values, (!column.is_null(row)).then_some(row))?;
                }
                Ok(bytes)
            }
        }
    }

    /// Replaces indices by their values, whose bytes were counted before.
    fn look_up(&mut self) -> Result<()> {
        let Some((indices, entries)) = self.indices.take() else { return Ok(()) };
        let rows = indices.len();
        let values = Values::Dictionary(indices.into(), entries);
        for row in 0..rows {
            let is_there = self.validity.get(row).is_none_or(|is_there| *is_there);
            self.values.put(&values, is_there.then_some(row))?;
        }
        Ok(())
    }

    fn take_entries(
        &mut self,
        levels: &Levels,
        starts: &[(u32, u32)],
        values: &Values,
        rows: &[u32],
    ) -> Result<u64> {
        let (definition, repetition) = self.levels.get_or_insert_default();
        let mut bytes = 0;
        for row in rows {
            let row = usize_of_u32(*row);
            let [Some((entry, value)), Some((entry_end, value_end))] = [starts.get(row), starts.get(row + 1)]
            else {
                return Err(Error::internal("a row of a nested column that is missing"));
            };
            let entries = usize_of_u32(*entry)..usize_of_u32(*entry_end);
            let found = usize_of_u32(*value)..usize_of_u32(*value_end);
            self.nulls += entries.len() - found.len();
            bytes += 2 * u64_of(entries.len());
            definition.extend_from_slice(&levels.definition[entries.clone()]);
            if let (Some(levels), true) = (&levels.repetition, self.has_repetition) {
                repetition.extend_from_slice(&levels[entries]);
            }
            bytes += self.values.extend(values, found)?;
        }
        Ok(bytes)
    }

    fn finish(&mut self, leaf: usize, rows: usize) -> ColumnBatch {
        let validity = std::mem::take(&mut self.validity);
        let nulls = std::mem::take(&mut self.nulls);
        let levels = self.levels.take().map(|(definition, repetition)| Levels {
            definition: definition.into(),
            repetition: self.has_repetition.then(|| repetition.into()),
        });
        ColumnBatch {
            leaf,
            rows,
            nulls,
            validity: (nulls > 0 && levels.is_none()).then(|| validity.into_iter().collect::<Bitmap>()),
            values: match self.indices.take() {
                Some((indices, entries)) => Values::Dictionary(indices.into(), entries),
                None => self.values.take(),
            },
            layout: if levels.is_some() { Layout::Dense } else { Layout::Spaced },
            levels,
            provisional: false,
        }
    }
}

impl Collected {
    fn new(physical_type: PhysicalType) -> Collected {
        let fixed = |width, is_int96| Collected::Fixed { width, values: 0, bytes: Vec::new(), is_int96 };
        match physical_type {
            PhysicalType::Boolean => Collected::Boolean(Vec::new()),
            PhysicalType::Int32 => Collected::Int32(Vec::new()),
            PhysicalType::Int64 => Collected::Int64(Vec::new()),
            PhysicalType::Float => Collected::Float(Vec::new()),
            PhysicalType::Double => Collected::Double(Vec::new()),
            PhysicalType::Int96 => fixed(12, true),
            PhysicalType::FixedLenByteArray(width) => fixed(usize_of_u32(width), false),
            PhysicalType::ByteArray => Collected::Strings { views: Vec::new(), strings: Strings::default() },
        }
    }

    /// Appends values. Returns the bytes that they take.
    fn extend(&mut self, values: &Values, places: impl ExactSizeIterator<Item = usize>) -> Result<u64> {
        let count = places.len();
        let width = match (self, values) {
            (Collected::Boolean(out), Values::Boolean(values)) => {
                out.extend(places.map(|at| values.get(at)));
                1
            }
            (Collected::Int32(out), Values::Int32(values)) => {
                out.extend(places.map(|at| values[at]));
                4
            }
            (Collected::Int64(out), Values::Int64(values)) => {
                out.extend(places.map(|at| values[at]));
                8
            }
            (Collected::Float(out), Values::Float(values)) => {
                out.extend(places.map(|at| values[at]));
                4
            }
            (Collected::Double(out), Values::Double(values)) => {
                out.extend(places.map(|at| values[at]));
                8
            }
            (
                Collected::Fixed { width, values: filled, bytes, .. },
                Values::Int96(values) | Values::FixedLenByteArray(values),
            ) if *width == values.width() => {
                places.for_each(|at| bytes.extend_from_slice(values.get(at)));
                *filled += count;
                *width
            }
            (Collected::Strings { views, strings }, Values::ByteArray(values)) => {
                let mut bytes = 0;
                views.reserve(count);
                for at in places {
                    let (view, length) = strings.take(values, at)?;
                    views.push(view);
                    bytes += length;
                }
                return Ok(u64_of((16 * count).saturating_add(bytes)));
            }
            _ => return Err(Error::misuse("values of another type than their column")),
        };
        Ok(u64_of(width.saturating_mul(count)))
    }

    /// Appends a value, which may come from a dictionary; zero or empty for a null. Returns the bytes that it takes.
    fn put(&mut self, values: &Values, at: Option<usize>) -> Result<u64> {
        let Some(at) = at else {
            match self {
                Collected::Boolean(out) => out.push(false),
                Collected::Int32(out) => out.push(0),
                Collected::Int64(out) => out.push(0),
                Collected::Float(out) => out.push(0.0),
                Collected::Double(out) => out.push(0.0),
                Collected::Fixed { width, values, bytes, .. } => {
                    bytes.resize(bytes.len() + *width, 0);
                    *values += 1;
                }
                Collected::Strings { views, .. } => views.push(0),
            }
            return Ok(u64_of(size_of::<u128>()));
        };
        let (values, at) = match values {
            Values::Dictionary(indices, entries) => {
                (&**entries, indices.get(at).map_or(usize::MAX, |index| usize_of_u32(*index)))
            }
            values => (values, at),
        };
        if at >= values.len() {
            return Err(missing());
        }
        self.extend(values, at..at + 1)
    }

    /// All of them; none are left.
    fn take(&mut self) -> Values {
        /// As much room as was needed before.
        fn taken<T>(values: &mut Vec<T>) -> Vec<T> {
            let room = Vec::with_capacity(values.len());
            std::mem::replace(values, room)
        }
        match self {
            Collected::Boolean(out) => Values::Boolean(taken(out).into_iter().collect()),
            Collected::Int32(out) => taken(out).into(),
            Collected::Int64(out) => taken(out).into(),
            Collected::Float(out) => taken(out).into(),
            Collected::Double(out) => taken(out).into(),
            Collected::Fixed { width, values, bytes, is_int96 } => {
                let fixed = FixedBytes::new(*width, std::mem::take(values), taken(bytes).into());
                if *is_int96 { Values::Int96(fixed) } else { Values::FixedLenByteArray(fixed) }
            }
            Collected::Strings { views, strings } => {
                let mut buffers = std::mem::take(&mut strings.buffers);
                buffers.push(taken(&mut strings.open).into());
                Values::ByteArray(ByteArrays::new(taken(views).into(), Arc::new(buffers)))
            }
        }
    }
}

impl Strings {
    /// Takes a string. Returns its view, and the bytes that it has outside of that.
    fn take(&mut self, values: &ByteArrays, at: usize) -> Result<(u128, usize)> {
        let view = values.views()[at];
        let value = values.get(at);
        if value.len() <= INLINE_BYTES_MAX {
            // One that points to nothing reads as empty, and must not point to anything here.
            let is_inline = usize_of_u32(word(view, 0)) <= INLINE_BYTES_MAX;
            return Ok((if is_inline { view } else { 0 }, 0));
        }
        if value.len() > COPIED_BYTES_MAX {
            self.seal();
            let moved = moved(view, self.buffers.len(), 0)?;
            let start = usize_of_u32(word(view, 3));
            let buffer = values.buffers().get(usize_of_u32(word(view, 2)));
            let buffer = buffer.ok_or_else(|| Error::internal("a string in no buffer"))?;
            self.buffers.push(buffer.slice(start..start + value.len()));
            return Ok((moved, value.len()));
        }
        if self.open.len() + value.len() > BUFFER_BYTES_MAX {
            self.seal();
        }
        let moved = moved(view, self.buffers.len(), self.open.len())?;
        self.open.extend_from_slice(value);
        Ok((moved, value.len()))
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.buffers.push(std::mem::take(&mut self.open).into());
        }
    }
}

/// A part of a view: the length, the first four bytes, the buffer, or the offset in it.
fn word(view: u128, number: u32) -> u32 {
    u32::try_from(view >> (32 * number) & u128::from(u32::MAX)).unwrap_or(0)
}

/// A view that points elsewhere: the length, and the first four bytes, stay.
fn moved(view: u128, buffer: usize, offset: usize) -> Result<u128> {
    let number =
        |number: usize| u32::try_from(number).map_err(|_| Error::internal("2^32 buffers of strings"));
    let (buffer, offset) = (number(buffer)?, number(offset)?);
    Ok(view & u128::from(u64::MAX) | u128::from(buffer) << 64 | u128::from(offset) << 96)
}

fn missing() -> Error {
    Error::misuse("a value that its column or its dictionary lacks")
}

fn no_column() -> Error {
    Error::internal("a column that is not there")
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::schema::{FieldDef, FieldType};

    #[test]
    fn long_strings_are_shared() {
        let text = FieldDef::new("text", FieldType::Leaf(PhysicalType::ByteArray, None)).required();
        let schema = Schema::of_fields(&[text]).unwrap();
        let all = ["short", "one that is copied", &"long".repeat(COPIED_BYTES_MAX), "another that is copied"];
        let values: Values = all.iter().collect();
        let Values::ByteArray(strings) = &values else { panic!() };
        let long = strings.get(2).as_ptr();
        let plain = Plain::of(Batch::of_values([values.clone()]).unwrap(), &schema, &[]).unwrap();
        let mut gathered = Gathered::new(&schema);
        for first_row in [0, 7] {
            gathered.take(&plain, [0], &[3, 2, 0]).unwrap();
            gathered.take(&plain, [0], &[2, 2, 1, 3]).unwrap();
            let bytes = 7 * 16
                + [3, 2, 0, 2, 2, 1, 3].iter().filter(|at| **at > 0).map(|at| all[*at].len()).sum::<usize>();
            assert_eq!(gathered.bytes(), u64_of(bytes));
            let batch = gathered.finish();
            assert_eq!((batch.rows, batch.first_row, gathered.bytes()), (7, first_row, 0));
            let Values::ByteArray(found) = &batch.columns[0].values else { panic!() };
            assert!(found.iter().eq([3, 2, 0, 2, 2, 1, 3].map(|at| all[at].as_bytes())));
            assert!([1, 3, 4].iter().all(|at| found.get(*at).as_ptr() == long));
            assert_ne!(found.get(0).as_ptr(), strings.get(3).as_ptr());
        }
    }

    /// Indices stay as long as all rows have one dictionary; otherwise, and beside values, they become values. Nulls stay null.
    #[test]
    fn dictionaries_of_several_batches() {
        let text = FieldDef::new("text", FieldType::Leaf(PhysicalType::ByteArray, None));
        let schema = Schema::of_fields(&[text]).unwrap();
        let of = |values: Values, nulls: &[bool]| {
            let rows = values.len();
            let validity: Bitmap = nulls.iter().map(|is_null| !is_null).collect();
            let column = ColumnBatch {
                leaf: 0,
                rows,
                nulls: nulls.iter().filter(|is_null| **is_null).count(),
                validity: Some(validity),
                values,
                layout: Layout::Spaced,
                levels: None,
                provisional: false,
            };
            let batch = Batch { row_group: 0, first_row: 0, rows, columns: vec![column] };
            Plain::of(batch, &schema, &[]).unwrap()
        };
        let [few, other] = [vec!["a", "b, which is longer than a view"], vec!["c"]]
            .map(|entries| Arc::new(entries.iter().collect::<Values>()));
        let first = of(Values::Dictionary(vec![1, 0, 0].into(), Arc::clone(&few)), &[false, true, false]);
        let second = of(Values::Dictionary(vec![0].into(), other), &[false]);
        // Of no entries: all are null.
        let none = Arc::new(Values::from_iter([""; 0]));
        let nothing = of(Values::Dictionary(vec![0, 0].into(), none), &[true, true]);
        let plain = of(["d"].iter().collect(), &[false]);
        let long = "b, which is longer than a view";
        let texts = |batches: &[(&Plain, &[u32])]| {
            let mut gathered = Gathered::new(&schema);
            for (batch, rows) in batches {
                gathered.take(batch, [0], rows).unwrap();
            }
            let column = gathered.finish().columns.remove(0);
            let is_kept = matches!(column.values, Values::Dictionary(..));
            let text = |row: usize| match &column.values {
                _ if column.is_null(row) => None,
                Values::Dictionary(indices, entries) => {
                    let Values::ByteArray(entries) = &**entries else { panic!() };
                    Some(String::from_utf8(entries.get(indices[row] as usize).to_vec()).unwrap())
                }
                Values::ByteArray(values) => Some(String::from_utf8(values.get(row).to_vec()).unwrap()),
                other => panic!("{other:?}"),
            };
            ((0..column.rows).map(text).collect::<Vec<_>>(), is_kept)
        };
        let found = |of: &[Option<&str>], is_kept| {
            (of.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>(), is_kept)
        };
        assert_eq!(texts(&[(&first, &[2, 1]), (&first, &[0])]), found(&[Some("a"), None, Some(long)], true));
        assert_eq!(
            texts(&[(&first, &[0, 1]), (&second, &[0]), (&first, &[2])]),
            found(&[Some(long), None, Some("c"), Some("a")], false)
        );
        assert_eq!(
            texts(&[(&nothing, &[0]), (&first, &[0]), (&nothing, &[1])]),
            found(&[None, Some(long), None], false)
        );
        assert_eq!(
            texts(&[(&first, &[1, 0]), (&plain, &[0]), (&second, &[0])]),
            found(&[None, Some(long), Some("d"), Some("c")], false)
        );
        assert_eq!(texts(&[(&plain, &[0]), (&first, &[0])]), found(&[Some("d"), Some(long)], false));
    }

    /// One that reads as empty stays so, whatever buffers there are.
    #[test]
    fn a_view_of_nothing() {
        let text = FieldDef::new("text", FieldType::Leaf(PhysicalType::ByteArray, None)).required();
        let schema = Schema::of_fields(&[text]).unwrap();
        let nothing = moved(20, 0, 5).unwrap();
        let strings = ByteArrays::new(vec![nothing].into(), Arc::new(vec![Bytes::from_static(b"too short")]));
        let wrong = Plain::of(Batch::of_values([Values::ByteArray(strings)]).unwrap(), &schema, &[]).unwrap();
        let right = Batch::of_values([["a string that is long enough for it"].iter().collect()]).unwrap();
        let right = Plain::of(right, &schema, &[]).unwrap();
        let mut gathered = Gathered::new(&schema);
        gathered.take(&right, [0], &[0]).unwrap();
        gathered.take(&wrong, [0], &[0]).unwrap();
        let Values::ByteArray(found) = gathered.finish().columns.remove(0).values else { panic!() };
        assert_eq!([found.get(0).len(), found.get(1).len()], [35, 0]);
    }
}
