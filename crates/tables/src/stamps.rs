//! When rows were written, and when they expire: the same for all of them, or by a column.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use marquetry_base::{Error, Faults, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Value};
use marquetry_parquet::schema::{Meaning, NodeKind, Schema, TimeUnit};
use marquetry_scylla::bridge::MappingOptions;

/// The write times of rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WriteTimes {
    /// The time at which the load begins, for the first row; each later row's is one microsecond larger. So of two rows with one key the
    /// later one wins, even if they overtake each other. The clock is this machine's: writes by others with a later clock win over the
    /// load, as always in these databases.
    #[default]
    Now,
    /// Microseconds since 1970, for the first row; each later row's is one larger.
    From(i64),
    /// A column's value: microseconds since 1970 as an integer, or a timestamp of any unit. A row without one is refused.
    Column(String),
}

impl FromStr for WriteTimes {
    type Err = Error;

    /// Parses `now`, microseconds since 1970, or the name of a column.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `timestamp`, if it is nothing, or a number that is no write time.
    fn from_str(text: &str) -> Result<WriteTimes> {
        let text = text.trim();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match (text, text.parse()) {
            ("", _) => {
                Err(Error::option("timestamp", "it is now, microseconds since 1970, or the name of a column"))
            }
            ("now", _) => Ok(WriteTimes::Now),
            (_, Ok(micros)) => WriteTimes::From(micros).checked(),
            _ if is_number => Err(Error::option("timestamp", NO_WRITE_TIME)),
            _ => Ok(WriteTimes::Column(text.to_owned())),
        }
    }
}

/// What is said of a number that is no write time: the smallest means none to the servers.
const NO_WRITE_TIME: &str =
    "write times are microseconds since 1970, from -9223372036854775807 to 9223372036854775807";

impl WriteTimes {
    /// Itself, if servers can store it.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `timestamp`: the smallest number, which means "none" to the servers.
    pub fn checked(self) -> Result<WriteTimes> {
        match self {
            WriteTimes::From(i64::MIN) => Err(Error::option("timestamp", NO_WRITE_TIME)),
            times => Ok(times),
        }
    }
}

/// The write time of a row, if each is `step_us` later than the one before it.
///
/// # Errors
///
/// `Conversion` if there is none so late: rows of one key that had equal times would not win by their order.
pub fn write_time_after(first_us: i64, ordinal: u64, step_us: i64) -> Result<i64> {
    let after = i64::try_from(ordinal).ok().and_then(|ordinal| ordinal.checked_mul(step_us));
    let time = after.and_then(|after| first_us.checked_add(after));
    // All that a row may be given, if it is sent again, is before the next one's.
    let time = time.filter(|time| time.checked_add(step_us.saturating_sub(1)).is_some());
    time.ok_or_else(|| {
        Error::conversion(format!(
            "the row's write time would be later than any: the first one's is {first_us}, and each is {step_us} µs later than the one \
             before it"
        ))
    })
}

impl fmt::Display for WriteTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteTimes::Now => f.write_str("now"),
            WriteTimes::From(micros) => micros.fmt(f),
            WriteTimes::Column(name) => f.write_str(name),
        }
    }
}

/// When rows expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ttl {
    /// After so many seconds; 0 is never, whatever the table's default is.
    Seconds(u32),
    /// After a column's value in seconds. A row without one has the table's default.
    Column(String),
}

/// The longest TTL that servers take, in seconds: 20 years.
pub const TTL_SECONDS_MAX: u32 = 20 * 365 * 24 * 60 * 60;

impl FromStr for Ttl {
    type Err = Error;

    /// Parses seconds, or the name of a column.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `ttl`: nothing, or more than [`TTL_SECONDS_MAX`].
    fn from_str(text: &str) -> Result<Ttl> {
        let text = text.trim();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(seconds) if seconds <= TTL_SECONDS_MAX => Ok(Ttl::Seconds(seconds)),
            _ if text.is_empty() || is_number => {
                let what = format!("it is at most {TTL_SECONDS_MAX} seconds, or the name of a column");
                Err(Error::option("ttl", what))
            }
            _ => Ok(Ttl::Column(text.to_owned())),
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ttl::Seconds(seconds) => seconds.fmt(f),
            Ttl::Column(name) => f.write_str(name),
        }
    }
}

/// The columns that say when rows were written and when they expire.
#[derive(Debug, Clone, Default)]
pub struct Stamps {
    time: Option<Column>,
    ttl: Option<Column>,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    leaf: usize,
    meaning: Meaning,
}

impl Stamps {
    /// Finds the columns. What is wrong with them is added to the faults.
    pub fn new(schema: &Schema, times: &WriteTimes, ttl: Option<&Ttl>, faults: &mut Faults) -> Stamps {
        let time = match times {
            WriteTimes::Column(name) => {
                faults.take(Column::find(schema, "timestamp", name)).and_then(|column| {
                    let is_time =
                        matches!(column.meaning, Meaning::Integer { .. } | Meaning::Timestamp { .. });
                    let what = "write times are integers, microseconds since 1970, or timestamps";
                    faults.take(column.expect(is_time, "timestamp", what))
                })
            }
            _ => None,
        };
        let ttl = match ttl {
            Some(Ttl::Column(name)) => faults.take(Column::find(schema, "ttl", name)).and_then(|column| {
                let is_number = matches!(column.meaning, Meaning::Integer { .. });
                faults.take(column.expect(is_number, "ttl", "TTLs are integers, in seconds"))
            }),
            _ => None,
        };
        Stamps { time, ttl }
    }

    /// The names of these columns, as the rows have them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.time.iter().chain(&self.ttl).map(|column| &*column.name)
    }

    /// The options of a mapping that leaves these columns out, unless the table has columns of their names.
    pub fn left_out_of(
        &self,
        options: &MappingOptions,
        schema: &Schema,
        existing: &[&str],
    ) -> MappingOptions {
        let left_out: BTreeSet<&str> = self.names().filter(|name| !existing.contains(name)).collect();
        let mut options = options.clone();
        if left_out.is_empty() {
            return options;
        }
        let all =
            || schema.children(0).filter_map(|node| Some(schema.nodes().get(node)?.name.clone())).collect();
        let columns: Vec<String> = options.columns.take().unwrap_or_else(all);
        options.columns = Some(columns.into_iter().filter(|name| !left_out.contains(&**name)).collect());
        options
    }

    /// Those of a batch, which has all leaves of the schema.
    pub fn of(&self, batch: &Batch) -> RowStamps {
        let of = |column: &Option<Column>| {
            let column = column.clone()?;
            batch.columns.get(column.leaf).map(|values| (column, values.clone()))
        };
        RowStamps { time: of(&self.time), ttl: of(&self.ttl) }
    }
}

impl Column {
    fn find(schema: &Schema, option: &'static str, name: &str) -> Result<Column> {
        let wrong = |what: String| Error::option(option, what);
        let found = schema.child_of_root(name).or_else(|| schema.child_of_root(&name.to_ascii_lowercase()));
        let Some(node) = found.and_then(|node| schema.nodes().get(node)) else {
            return Err(wrong(format!("the rows have no column {name:?}")));
        };
        let flat = match node.kind {
            NodeKind::Leaf { leaf } => {
                schema.leaves().get(leaf).filter(|it| it.is_flat()).map(|it| (leaf, it))
            }
            NodeKind::Group { .. } => None,
        };
        let Some((leaf, found)) = flat else { return Err(wrong(format!("the column {name:?} is nested"))) };
        let meaning = schema.meaning_of(found).read_as(found.physical_type);
        Ok(Column { name: node.name.clone(), leaf, meaning })
    }

    fn expect(self, is_so: bool, option: &'static str, what: &str) -> Result<Column> {
        if is_so {
            return Ok(self);
        }
        Err(Error::option(option, format!("{what}, which the column {:?} has not", self.name)))
    }

    /// An integer of it; `None` for a null.
    fn integer(&self, values: &ColumnBatch, row: usize) -> Result<Option<i64>> {
        if values.is_null(row) {
            return Ok(None);
        }
        let is_unsigned = matches!(self.meaning, Meaning::Integer { is_signed: false, .. });
        match Value::of_values(&values.values, row) {
            Some(Value::Int32(value)) if is_unsigned => Ok(Some(value.cast_unsigned().into())),
            Some(Value::Int64(value)) if is_unsigned && value < 0 => {
                Err(self.refuse(format!("{} is too large", value.cast_unsigned())))
            }
            Some(Value::Int32(value)) => Ok(Some(value.into())),
            Some(Value::Int64(value)) => Ok(Some(value)),
            _ => Err(Error::misuse("the types of the batch differ from the schema's")),
        }
    }

    #[cold]
    fn refuse(&self, what: String) -> Error {
        Error::conversion(what).at(|place| place.column = Some(self.name.clone()))
    }
}

/// The stamps of a batch's rows.
#[derive(Debug, Default)]
pub struct RowStamps {
    time: Option<(Column, ColumnBatch)>,
    ttl: Option<(Column, ColumnBatch)>,
}

impl RowStamps {
    /// When a row was written, in microseconds; `None` if no column says so.
    ///
    /// # Errors
    ///
    /// `Conversion`, with the column: a null, or a time that is no whole number of microseconds, or out of range.
    pub fn write_time_us(&self, row: usize) -> Result<Option<i64>> {
        let Some((column, values)) = &self.time else { return Ok(None) };
        let Some(value) = column.integer(values, row)? else {
            return Err(column.refuse("the row's write time is null".to_owned()));
        };
        let micros = match column.meaning {
            Meaning::Timestamp { unit: TimeUnit::Millis, .. } => value.checked_mul(1000),
            Meaning::Timestamp { unit: TimeUnit::Nanos, .. } => (value % 1000 == 0).then_some(value / 1000),
            _ => Some(value),
        };
        // The smallest means none to the servers.
        let micros = micros.filter(|micros| *micros > i64::MIN);
        let refuse = || column.refuse(format!("{value} is no write time in microseconds"));
        micros.map(Some).ok_or_else(refuse)
    }

    /// After how many seconds a row expires. `None` if no column says so, and for a null.
    ///
    /// # Errors
    ///
    /// `Conversion`, with the column, for one that no server takes.
    pub fn ttl(&self, row: usize) -> Result<Option<i32>> {
        let Some((column, values)) = &self.ttl else { return Ok(None) };
        let Some(value) = column.integer(values, row)? else { return Ok(None) };
        let is_taken = u32::try_from(value).is_ok_and(|seconds| seconds <= TTL_SECONDS_MAX);
        let seconds = i32::try_from(value).ok().filter(|_| is_taken);
        let refuse =
            || column.refuse(format!("{value} is no TTL: it is from 0 to {TTL_SECONDS_MAX} seconds"));
        seconds.map(Some).ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::{Detail, ErrorKind};
    use marquetry_parquet::batch::{Layout, Values};
    use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType};

    #[test]
    fn options_are_read() {
        let times = |text: &str| text.parse::<WriteTimes>().unwrap();
        assert_eq!(times("now"), WriteTimes::Now);
        assert_eq!(times("1735689600000000"), WriteTimes::From(1_735_689_600_000_000));
        assert_eq!(times("updated_at"), WriteTimes::Column("updated_at".to_owned()));
        assert_eq!(times("9223372036854775807"), WriteTimes::From(i64::MAX));
        for wrong in ["", "-9223372036854775808", "9223372036854775808", "-99999999999999999999"] {
            assert_eq!(
                wrong.parse::<WriteTimes>().unwrap_err().detail(),
                Some(Detail::Option("timestamp")),
                "{wrong}"
            );
        }
        assert!(WriteTimes::From(i64::MIN).checked().is_err());
        let ttl = |text: &str| text.parse::<Ttl>().ok();
        assert_eq!(ttl("3600"), Some(Ttl::Seconds(3600)));
        assert_eq!(ttl("expires"), Some(Ttl::Column("expires".to_owned())));
        for wrong in ["", "630720001", "99999999999999"] {
            assert_eq!(ttl(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn later_rows_are_later() {
        assert_eq!(write_time_after(5, 3, 1), Ok(8));
        assert_eq!(write_time_after(i64::MAX - 1, 1, 1), Ok(i64::MAX));
        assert_eq!(write_time_after(i64::MAX - 1, 2, 1).unwrap_err().kind(), ErrorKind::Conversion);
        assert_eq!(write_time_after(0, 2, 10), Ok(20));
        // A row that is sent again has room for its times.
        assert!(write_time_after(i64::MAX - 5, 0, 10).is_err());
        assert!(write_time_after(0, u64::MAX, 1).is_err());
    }

    fn column(leaf: usize, values: Values, nulls: &[usize]) -> ColumnBatch {
        let rows = values.len();
        let validity = Some((0..rows).map(|row| !nulls.contains(&row)).collect());
        let nulls = nulls.len();
        ColumnBatch {
            leaf,
            rows,
            nulls,
            validity,
            values,
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        }
    }

    #[test]
    fn columns_say_when() {
        let timestamp = |unit| Some(LogicalType::Timestamp { is_adjusted_to_utc: true, unit });
        let field = |name: &str, logical| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, logical));
        let schema = Schema::of_fields(&[
            field("micros", None),
            field("millis", timestamp(TimeUnit::Millis)),
            field("nanos", timestamp(TimeUnit::Nanos)),
            FieldDef::new("ttl", FieldType::Leaf(PhysicalType::Int32, None)),
            FieldDef::new("text", FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String))),
        ])
        .unwrap();
        let numbers = || vec![1_000_i64, 1_500, i64::MAX];
        let mut columns: Vec<ColumnBatch> = (0..3).map(|leaf| column(leaf, numbers().into(), &[])).collect();
        columns[0] = column(0, numbers().into(), &[1]);
        columns.push(column(3, vec![0_i32, 60, -1].into(), &[0]));
        let batch = Batch { row_group: 0, first_row: 0, rows: 3, columns };
        let times = |name: &str| {
            let mut faults = Faults::default();
            let stamps =
                Stamps::new(&schema, &name.parse().unwrap(), Some(&"TTL".parse().unwrap()), &mut faults);
            faults.into_result().unwrap();
            assert_eq!(stamps.names().collect::<Vec<_>>(), [name, "ttl"]);
            stamps.of(&batch)
        };
        let micros = times("micros");
        assert_eq!((micros.write_time_us(0), micros.write_time_us(2)), (Ok(Some(1000)), Ok(Some(i64::MAX))));
        assert_eq!(
            micros.write_time_us(1).unwrap_err().to_string(),
            "the row's write time is null (column micros)"
        );
        let millis = times("millis");
        assert_eq!(millis.write_time_us(1), Ok(Some(1_500_000)));
        assert!(millis.write_time_us(2).is_err());
        let nanos = times("nanos");
        assert_eq!(nanos.write_time_us(0), Ok(Some(1)));
        assert!(nanos.write_time_us(1).is_err());
        assert_eq!((nanos.ttl(0), nanos.ttl(1)), (Ok(None), Ok(Some(60))));
        assert!(nanos.ttl(2).unwrap_err().to_string().contains("-1 is no TTL"));

        let mut faults = Faults::default();
        Stamps::new(&schema, &"text".parse().unwrap(), Some(&"nowhere".parse().unwrap()), &mut faults);
        let said = faults.into_result().unwrap_err().to_string();
        assert!(
            said.contains("write times are integers") && said.contains("no column \"nowhere\""),
            "{said}"
        );
    }
}
