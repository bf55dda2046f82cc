//! Types as SSTables name them: Java classes of Cassandra, `org.apache.cassandra.db.marshal.MapType(…)`.
//!
//! Sources: `TypeParser.java`, and `valueLengthIfFixed` of each class (which is the same in all versions).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use marquetry_base::{Error, Limit, Result};

use crate::cql::{CqlType, Name};

/// A type as an SSTable's Statistics.db names it.
///
/// CQL knows a user-defined type by its name; here are its fields, too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MarshalType {
    /// A type without parameters.
    Native(CqlType),
    /// Nothing: the value column of a dense table that has none (`EmptyType`).
    Empty,
    /// `list<…>`
    List(Box<MarshalType>),
    /// `set<…>`
    Set(Box<MarshalType>),
    /// `map<…, …>`
    Map(Box<MarshalType>, Box<MarshalType>),
    /// `tuple<…>`
    Tuple(Vec<MarshalType>),
    /// A user-defined type.
    User {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// The names and types of its fields.
        fields: Vec<(String, MarshalType)>,
    },
    /// `vector<…, n>`
    Vector(Box<MarshalType>, NonZeroU32),
    /// `frozen<…>`
    Frozen(Box<MarshalType>),
    /// Sorted in descending order.
    Reversed(Box<MarshalType>),
    /// Several values in one: a partition key of several columns, or a value of a table made without CQL.
    Composite(Vec<MarshalType>),
    /// Values that each name their type, in tables made without CQL: the text of the parameters.
    DynamicComposite(String),
}

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

const NATIVE: &[(&str, CqlType)] = &[
    ("AsciiType", CqlType::Ascii),
    ("BooleanType", CqlType::Boolean),
    ("BytesType", CqlType::Blob),
    ("ByteType", CqlType::Tinyint),
    ("CounterColumnType", CqlType::Counter),
    // What `timestamp` was before Cassandra 1.2.
    ("DateType", CqlType::Timestamp),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("DurationType", CqlType::Duration),
    ("FloatType", CqlType::Float),
    ("InetAddressType", CqlType::Inet),
    ("Int32Type", CqlType::Int),
    ("IntegerType", CqlType::Varint),
    ("LexicalUUIDType", CqlType::Uuid),
    ("LongType", CqlType::Bigint),
    ("ShortType", CqlType::Smallint),
    ("SimpleDateType", CqlType::Date),
    ("TimestampType", CqlType::Timestamp),
    ("TimeType", CqlType::Time),
    ("TimeUUIDType", CqlType::Timeuuid),
    ("UTF8Type", CqlType::Text),
    ("UUIDType", CqlType::Uuid),
];

impl MarshalType {
    /// Parses the name of a type, nested at most `nesting_max` deep.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for a class of somebody's own: how long its values are is only
    /// in its code. [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for text that names no type;
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for too deep a nesting.
    pub fn parse(text: &str, nesting_max: u32) -> Result<MarshalType> {
        let mut parser = Parser { text, rest: text, depth_left: nesting_max, nesting_max };
        let parsed = parser.read_type()?;
        parser.skip_space();
        if parser.rest.is_empty() { Ok(parsed) } else { Err(parser.unexpected()) }
    }

    /// The length of every value that is not empty, if all have the same.
    ///
    /// Not every type whose values are as long as each other says so in Cassandra: `smallint`, `tinyint`, `date` and `time` do not.
    pub fn fixed_bytes(&self) -> Option<u32> {
        match self {
            MarshalType::Native(native) => native.fixed_bytes(),
            MarshalType::Empty => Some(0),
            MarshalType::Reversed(inner) => inner.fixed_bytes(),
            MarshalType::Vector(element, count) => element.fixed_bytes()?.checked_mul(count.get()),
            _ => None,
        }
    }

    /// Whether a column of this type has a cell for each element: collections and user-defined types that are not frozen.
    pub fn is_multi_cell(&self) -> bool {
        matches!(
            self,
            MarshalType::List(_) | MarshalType::Set(_) | MarshalType::Map(..) | MarshalType::User { .. }
        )
    }

    /// Whether values are sorted in descending order.
    pub fn is_reversed(&self) -> bool {
        matches!(self, MarshalType::Reversed(_))
    }

    /// Whether cells are counters: their values are lists of shards.
    pub fn is_counter(&self) -> bool {
        matches!(self, MarshalType::Native(CqlType::Counter))
    }

    /// The type of the values of a column's cells, which have one for each element if it [is so](MarshalType::is_multi_cell): those of
    /// a user-defined type have its fields' types, by their path, which is `None` here.
    pub fn cell_value(&self) -> Option<&MarshalType> {
        match self {
            MarshalType::List(value) | MarshalType::Map(_, value) => Some(value),
            MarshalType::Set(_) => Some(&MarshalType::Empty),
            MarshalType::User { .. } => None,
            simple => Some(simple),
        }
    }

    /// Its name as servers write it: each class with its package.
    pub fn qualified(&self) -> impl fmt::Display + '_ {
        Qualified(self)
    }

    /// The type in CQL. `None` for what CQL cannot name: composites, nothing, and names that are none in CQL.
    pub fn cql(&self) -> Option<CqlType> {
        let boxed = |inner: &MarshalType| inner.cql().map(Box::new);
        Some(match self {
            MarshalType::Native(native) => native.clone(),
            MarshalType::List(element) => CqlType::List(boxed(element)?),
            MarshalType::Set(element) => CqlType::Set(boxed(element)?),
            MarshalType::Map(key, value) => CqlType::Map(boxed(key)?, boxed(value)?),
            MarshalType::Tuple(members) => {
                CqlType::Tuple(members.iter().map(MarshalType::cql).collect::<Option<_>>()?)
            }
            MarshalType::User { keyspace, name, .. } => CqlType::Udt {
                keyspace: Some(Name::new_keyspace(keyspace).ok()?),
                name: Name::new(name).ok()?,
            },
            MarshalType::Vector(element, count) => CqlType::Vector(boxed(element)?, *count),
            MarshalType::Frozen(inner) => inner.cql()?.frozen(),
            MarshalType::Reversed(inner) => inner.cql()?,
            MarshalType::Empty | MarshalType::Composite(_) | MarshalType::DynamicComposite(_) => return None,
        })
    }
}

/// The name of the class, without its package, as [`MarshalType::parse`] reads it.
impl fmt::Display for MarshalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self, "", f)
    }
}

/// A type that prints its classes with their package.
struct Qualified<'a>(&'a MarshalType);

impl fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, PACKAGE, f)
    }
}

/// Prints a type, with this before each class.
fn print(kind: &MarshalType, package: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let members = |f: &mut fmt::Formatter<'_>, members: &[&MarshalType]| {
        for (number, member) in members.iter().enumerate() {
            f.write_str(if number == 0 { "(" } else { "," })?;
            print(member, package, f)?;
        }
        f.write_str(")")
    };
    let all = |f: &mut fmt::Formatter<'_>, of: &[MarshalType]| members(f, &of.iter().collect::<Vec<_>>());
    f.write_str(package)?;
    match kind {
        MarshalType::Native(native) => {
            // Of two classes of a type, the newer one comes later.
            let class = NATIVE.iter().rfind(|(_, known)| known == native);
            f.write_str(class.map_or("BytesType", |(class, _)| class))
        }
        MarshalType::Empty => f.write_str("EmptyType"),
        MarshalType::List(element) => {
            f.write_str("ListType")?;
            members(f, &[element])
        }
        MarshalType::Set(element) => {
            f.write_str("SetType")?;
            members(f, &[element])
        }
        MarshalType::Map(key, value) => {
            f.write_str("MapType")?;
            members(f, &[key, value])
        }
        MarshalType::Tuple(of) => {
            f.write_str("TupleType")?;
            all(f, of)
        }
        MarshalType::User { keyspace, name, fields } => {
            write!(f, "UserType({keyspace},")?;
            hex(f, name)?;
            for (name, kind) in fields {
                f.write_str(",")?;
                hex(f, name)?;
                f.write_str(":")?;
                print(kind, package, f)?;
            }
            f.write_str(")")
        }
        MarshalType::Vector(element, count) => {
            f.write_str("VectorType(")?;
            print(element, package, f)?;
            write!(f, ",{count})")
        }
        MarshalType::Frozen(inner) => {
            f.write_str("FrozenType")?;
            members(f, &[inner])
        }
        MarshalType::Reversed(inner) => {
            f.write_str("ReversedType")?;
            members(f, &[inner])
        }
        MarshalType::Composite(of) => {
            f.write_str("CompositeType")?;
            all(f, of)
        }
        MarshalType::DynamicComposite(parameters) => write!(f, "DynamicCompositeType{parameters}"),
    }
}

fn hex(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    depth_left: u32,
    nesting_max: u32,
}

impl<'a> Parser<'a> {
    fn read_type(&mut self) -> Result<MarshalType> {
        let Some(depth_left) = self.depth_left.checked_sub(1) else {
            return Limit::Nesting
                .check(u64::from(self.nesting_max), u64::from(self.nesting_max) + 1)
                .map(|()| MarshalType::Empty);
        };
        self.depth_left = depth_left;
        let class = self.read_word();
        if class.is_empty() {
            return Err(self.unexpected());
        }
        let class = class.strip_prefix(PACKAGE).unwrap_or(class);
        let parsed = self.read_parameters(class)?;
        self.depth_left += 1;
        Ok(parsed)
    }

    fn read_parameters(&mut self, class: &str) -> Result<MarshalType> {
        if let Some((_, native)) = NATIVE.iter().find(|(name, _)| *name == class) {
            return Ok(MarshalType::Native(native.clone()));
        }
        Ok(match class {
            "EmptyType" => MarshalType::Empty,
            "ListType" => MarshalType::List(self.read_one()?),
            "SetType" => MarshalType::Set(self.read_one()?),
            "FrozenType" => MarshalType::Frozen(self.read_one()?),
            "ReversedType" => MarshalType::Reversed(self.read_one()?),
            "MapType" => {
                self.expect('(')?;
                let key = Box::new(self.read_type()?);
                self.expect(',')?;
                let value = Box::new(self.read_type()?);
                self.expect(')')?;
                MarshalType::Map(key, value)
            }
            "TupleType" => MarshalType::Tuple(self.read_list()?),
            "CompositeType" => MarshalType::Composite(self.read_list()?),
            "UserType" => self.read_user()?,
            "VectorType" => {
                self.expect('(')?;
                let element = Box::new(self.read_type()?);
                self.expect(',')?;
                self.skip_space();
                let count = self.read_word().parse().map_err(|_| self.unexpected())?;
                self.expect(')')?;
                MarshalType::Vector(element, count)
            }
            "DynamicCompositeType" => self.read_dynamic()?,
            other => return Err(Error::unsupported(format!("values of the class {other}"))),
        })
    }

    fn read_one(&mut self) -> Result<Box<MarshalType>> {
        self.expect('(')?;
        let inner = Box::new(self.read_type()?);
        self.expect(')')?;
        Ok(inner)
    }

    fn read_list(&mut self) -> Result<Vec<MarshalType>> {
        self.expect('(')?;
        let mut members = alloc::vec![self.read_type()?];
        while self.take(',') {
            members.push(self.read_type()?);
        }
        self.expect(')')?;
        Ok(members)
    }

    /// `(keyspace,hex of the name,hex of a field's name:type,…)`
    fn read_user(&mut self) -> Result<MarshalType> {
        self.expect('(')?;
        self.skip_space();
        let keyspace = self.read_word().to_string();
        self.expect(',')?;
        let name = self.read_hex()?;
        let mut fields = Vec::new();
        while self.take(',') {
            let field = self.read_hex()?;
            self.expect(':')?;
            fields.push((field, self.read_type()?));
        }
        self.expect(')')?;
        Ok(MarshalType::User { keyspace, name, fields })
    }

    /// The parameters of a dynamic composite, up to the bracket that ends them; or nothing.
    fn read_dynamic(&mut self) -> Result<MarshalType> {
        let start = self.rest;
        let mut depth = 0_usize;
        for (at, letter) in start.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' if depth == 0 => {
                    self.rest = &start[at..];
                    return Ok(MarshalType::DynamicComposite(start[..at].to_string()));
                }
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    self.rest = &start[at..];
                    return Ok(MarshalType::DynamicComposite(start[..at].to_string()));
                }
                _ => {}
            }
        }
        if depth > 0 {
            self.rest = "";
            return Err(self.unexpected());
        }
        self.rest = "";
        Ok(MarshalType::DynamicComposite(start.to_string()))
    }

    fn read_hex(&mut self) -> Result<String> {
        self.skip_space();
        let before = self.rest;
        let word = self.read_word().as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let bytes: Option<Vec<u8>> = word
            .chunks(2)
            .map(|pair| match pair {
                [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                _ => None,
            })
            .collect();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
            self.rest = before;
            self.unexpected()
        })
    }

    /// Letters, digits, and what else a class's name may have.
    fn read_word(&mut self) -> &'a str {
        self.skip_space();
        let is_part = |letter: char| {
            letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+' | '&' | '$')
        };
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n']);
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Error {
        let at = self.text.len() - self.rest.len();
        let found: String = self.rest.chars().take(20).collect();
        match found.as_str() {
            "" => Error::corrupt("the name of a type ends too early"),
            _ => Error::corrupt(format!("unexpected {found:?} at character {at} of a type's name")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    fn parse(text: &str) -> MarshalType {
        MarshalType::parse(text, 64).unwrap()
    }

    fn cql(text: &str) -> String {
        parse(text).cql().unwrap().to_string()
    }

    #[test]
    fn types_are_those_of_cql() {
        let long = "org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.UTF8Type,\
                    org.apache.cassandra.db.marshal.FrozenType(org.apache.cassandra.db.marshal.SetType(Int32Type)))";
        assert_eq!(cql(long), "map<text, frozen<set<int>>>");
        assert_eq!(cql("ReversedType(LongType)"), "bigint");
        assert_eq!(cql("VectorType(FloatType , 3)"), "vector<float, 3>");
        assert_eq!(cql("TupleType(Int32Type,UTF8Type,DoubleType)"), "tuple<int, text, double>");
        let user = parse("UserType(ks,61646472,737472656574:UTF8Type,7a6970:Int32Type)");
        assert_eq!(user.cql().unwrap().to_string(), "ks.addr");
        assert!(user.is_multi_cell());
        let MarshalType::User { fields, .. } = &user else { panic!() };
        assert_eq!(fields[1], ("zip".to_string(), MarshalType::Native(CqlType::Int)));
        for (class, native) in NATIVE {
            assert_eq!(parse(class), MarshalType::Native(native.clone()));
        }
    }

    #[test]
    fn a_type_is_printed_as_it_is_read() {
        for text in [
            "MapType(UTF8Type,FrozenType(SetType(Int32Type)))",
            "ReversedType(TimestampType)",
            "VectorType(FloatType,3)",
            "CompositeType(TupleType(UUIDType,EmptyType),ListType(ByteType))",
            "UserType(ks,61646472,737472656574:UTF8Type,7a6970:Int32Type)",
            "DynamicCompositeType(b=>BytesType,a=>AsciiType)",
        ] {
            assert_eq!(parse(text).to_string(), text);
            assert_eq!(parse(&parse(text).qualified().to_string()), parse(text));
        }
    }

    #[test]
    fn servers_write_packages() {
        let of = parse("MapType(UTF8Type,FrozenType(UserType(Ks,61,62:VectorType(FloatType,3))))");
        assert_eq!(
            of.qualified().to_string().replace(PACKAGE, "."),
            ".MapType(.UTF8Type,.FrozenType(.UserType(Ks,61,62:.VectorType(.FloatType,3))))"
        );
    }

    #[test]
    fn lengths_are_those_that_cassandra_fixes() {
        for (text, length) in [
            ("Int32Type", Some(4)),
            ("ReversedType(LongType)", Some(8)),
            ("DateType", Some(8)),
            ("LexicalUUIDType", Some(16)),
            ("BooleanType", Some(1)),
            ("EmptyType", Some(0)),
            ("ShortType", None),
            ("ByteType", None),
            ("SimpleDateType", None),
            ("TimeType", None),
            ("CounterColumnType", None),
            ("VectorType(FloatType,3)", Some(12)),
            ("VectorType(UTF8Type,3)", None),
            ("VectorType(LongType,4294967295)", None),
            ("FrozenType(ListType(Int32Type))", None),
        ] {
            assert_eq!(parse(text).fixed_bytes(), length, "{text}");
        }
    }

    #[test]
    fn what_cql_cannot_name() {
        assert_eq!(parse("CompositeType(Int32Type,UTF8Type)").cql(), None);
        let dynamic = parse("ListType(DynamicCompositeType(b=>BytesType,a=>AsciiType))");
        let MarshalType::List(dynamic) = dynamic else { panic!() };
        assert_eq!(*dynamic, MarshalType::DynamicComposite("(b=>BytesType,a=>AsciiType)".to_string()));
    }

    #[test]
    fn refused() {
        let kind = |text: &str| MarshalType::parse(text, 64).unwrap_err().kind();
        for text in [
            "",
            "(",
            "ListType",
            "ListType(",
            "ListType(Int32Type",
            "Int32Type)",
            "MapType(Int32Type)",
            "VectorType(FloatType,0)",
            "VectorType(FloatType,x)",
            "UserType(ks,6,)",
            "UserType(ks,ff)",
            "DynamicCompositeType((",
        ] {
            assert_eq!(kind(text), ErrorKind::Corrupt, "{text}");
        }
        assert_eq!(kind("com.example.MyType"), ErrorKind::Unsupported);
        assert_eq!(kind(&"ListType(".repeat(100_000)), ErrorKind::LimitExceeded);
    }
}
