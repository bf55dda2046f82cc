//! Well-known binary, the content of GEOMETRY and GEOGRAPHY columns: printed as well-known text, and its statistics.
//!
//! Source: parquet-format's `Geospatial.md`, which takes the two forms from OGC's *Simple feature access, part 1*
//! (version 1.2.1, sections 7 and 8), with ISO's codes for Z and M. PostGIS's extension of the binary form (flags for Z
//! and M, and an SRID) is unambiguous, and is read too.
//!
//! Maintained crates were considered. `wkb` allocates memory for as many parts as a value claims, and both it and
//! `geozero` recurse as deep as it nests; this code does not recurse and allocates nothing.

mod extent;

use alloc::vec::Vec;

use marquetry_base::{Error, Result, print};

pub(crate) use extent::{Extent, Surface, Walk};

/// Maximum nesting of collections. Deeper ones are not found outside of attacks.
const DEPTH_MAX: usize = 64;

/// PostGIS's flags in a type code.
const FLAG_Z: u32 = 0x8000_0000;
const FLAG_M: u32 = 0x4000_0000;
const FLAG_SRID: u32 = 0x2000_0000;

/// Bytes of the smallest geometry other than a point: byte order, type, a count.
const GEOMETRY_BYTES_MIN: usize = 9;

/// Appends the text of a geometry: `POINT Z (1 2 3)`, `MULTIPOINT ((1 2), EMPTY)`, `LINESTRING EMPTY`.
///
/// A point whose coordinates are all NaN is `EMPTY`, as the format says. Coordinates have as few digits as read back to
/// the same bits. A geometry with an SRID begins with it, as PostGIS writes it: `SRID=4326;POINT (1 2)`.
///
/// # Errors
///
/// `Corrupt`, with the offset of the wrong byte, for bytes that are not such a geometry; nothing is appended then.
/// `LimitExceeded` for collections more than 64 deep.
pub fn write_wkt(wkb: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let mut reader = Reader { wkb, at: 0, is_big_endian: false };
    let written = reader.geometry(out);
    if written.is_err() {
        out.truncate(start);
    }
    written.map_err(|wrong| match wrong {
        Wrong::Bytes(why) => Error::corrupt(alloc::format!("{why}, at byte {} of a geometry", reader.at)),
        Wrong::Depth => {
            Error::too_large(alloc::format!("a geometry of collections more than {DEPTH_MAX} deep"))
        }
    })
}

/// The name of an ISO WKB code, as the format's statistics list it: 1001 is `POINT Z`. `None` for an unknown code.
pub fn type_name(code: i32) -> Option<(&'static str, &'static str)> {
    let code = u32::try_from(code).ok()?;
    let dimensions = Dimensions::of_thousands(code / 1000)?;
    Some((Type::of(code % 1000)?.name(), dimensions.suffix().trim_start()))
}

/// What is wrong with a geometry.
enum Wrong {
    Bytes(&'static str),
    Depth,
}

type Read<T> = core::result::Result<T, Wrong>;

struct Reader<'a> {
    wkb: &'a [u8],
    at: usize,
    is_big_endian: bool,
}

/// A geometry of geometries that is being read.
#[derive(Debug)]
struct Open {
    of: Type,
    dimensions: Dimensions,
    left: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Dimensions {
    has_z: bool,
    has_m: bool,
}

/// What a geometry begins with.
struct Head {
    of: Type,
    dimensions: Dimensions,
    /// PostGIS's name of a coordinate system.
    srid: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
    PolyhedralSurface,
    Tin,
    Triangle,
}

impl Reader<'_> {
    /// Writes the complete value, which is one geometry.
    fn geometry(&mut self, out: &mut Vec<u8>) -> Read<()> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let Head { of: kind, dimensions, srid } = self.head()?;
            if let (Some(srid), true) = (srid, open.is_empty()) {
                out.extend_from_slice(b"SRID=");
                print::integer(out, srid.cast_signed());
                out.push(b';');
            }
            match open.last() {
                // Its type follows from the geometry around it, and is not written again.
                Some(group) if group.of.member().is_some() => group.check(kind, dimensions)?,
                _ => {
                    out.extend_from_slice(kind.name().as_bytes());
                    out.extend_from_slice(dimensions.suffix().as_bytes());
                    out.push(b' ');
                }
            }
            match kind {
                Type::Point => self.point(dimensions, out)?,
                Type::LineString => self.line(dimensions, out)?,
                Type::Polygon | Type::Triangle => self.rings(dimensions, out)?,
                _ => {
                    let left = self.count(GEOMETRY_BYTES_MIN)?;
                    if left > 0 {
                        if open.len() == DEPTH_MAX {
                            return Err(Wrong::Depth);
                        }
                        out.push(b'(');
                        open.push(Open { of: kind, dimensions, left });
                        continue;
                    }
                    out.extend_from_slice(b"EMPTY");
                }
            }
            loop {
                let Some(group) = open.last_mut() else {
                    let is_end = self.at == self.wkb.len();
                    return if is_end { Ok(()) } else { Err(Wrong::Bytes("bytes behind the geometry")) };
                };
                group.left -= 1;
                if group.left > 0 {
                    out.extend_from_slice(b", ");
                    break;
                }
                out.push(b')');
                open.pop();
            }
        }
    }

    /// Reads the start of a geometry: its byte order and its type.
    fn head(&mut self) -> Read<Head> {
        self.is_big_endian = match self.take::<1>()? {
            [0] => true,
            [1] => false,
            _ => return Err(Wrong::Bytes("an unknown byte order")),
        };
        let code = self.u32()?;
        let srid = if code & FLAG_SRID != 0 { Some(self.u32()?) } else { None };
        let iso = code & !(FLAG_Z | FLAG_M | FLAG_SRID);
        let (Some(of), Some(dimensions)) = (Type::of(iso % 1000), Dimensions::of_thousands(iso / 1000))
        else {
            return Err(Wrong::Bytes("an unknown type"));
        };
        let dimensions = Dimensions {
            has_z: dimensions.has_z || code & FLAG_Z != 0,
            has_m: dimensions.has_m || code & FLAG_M != 0,
        };
        Ok(Head { of, dimensions, srid })
    }

    fn point(&mut self, dimensions: Dimensions, out: &mut Vec<u8>) -> Read<()> {
        let start = out.len();
        out.push(b'(');
        if self.coordinates(dimensions, out)? {
            out.push(b')');
        } else {
            out.truncate(start);
            out.extend_from_slice(b"EMPTY");
        }
        Ok(())
    }

    fn line(&mut self, dimensions: Dimensions, out: &mut Vec<u8>) -> Read<()> {
        let points = self.count(dimensions.count() * 8)?;
        self.listed(points, out, |reader, out| reader.coordinates(dimensions, out).map(|_| ()))
    }

    fn rings(&mut self, dimensions: Dimensions, out: &mut Vec<u8>) -> Read<()> {
        let rings = self.count(4)?;
        self.listed(rings, out, |reader, out| reader.line(dimensions, out))
    }

    fn listed(
        &mut self,
        count: u32,
        out: &mut Vec<u8>,
        mut each: impl FnMut(&mut Self, &mut Vec<u8>) -> Read<()>,
    ) -> Read<()> {
        if count == 0 {
            out.extend_from_slice(b"EMPTY");
            return Ok(());
        }
        for at in 0..count {
            out.extend_from_slice(if at == 0 { b"(" } else { b", " });
            each(self, out)?;
        }
        out.push(b')');
        Ok(())
    }

    /// Writes the coordinates of a point. False if all are NaN.
    fn coordinates(&mut self, dimensions: Dimensions, out: &mut Vec<u8>) -> Read<bool> {
        let mut is_there = false;
        for at in 0..dimensions.count() {
            if at > 0 {
                out.push(b' ');
            }
            let value = f64::from_bits(self.u64()?);
            is_there |= !value.is_nan();
            number(value, out);
        }
        Ok(is_there)
    }

    /// A count of parts, each of at least `part_bytes_min` bytes: at most as many as fit into the rest.
    fn count(&mut self, part_bytes_min: usize) -> Read<u32> {
        let count = self.u32()?;
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(part_bytes_min));
        match bytes {
            Some(bytes) if bytes <= self.wkb.len() - self.at => Ok(count),
            _ => Err(Wrong::Bytes("more parts than there are bytes for")),
        }
    }

    fn u32(&mut self) -> Read<u32> {
        let bytes = self.take()?;
        Ok(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(&mut self) -> Read<u64> {
        let bytes = self.take()?;
        Ok(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        let rest = self.wkb.get(self.at..).unwrap_or_default();
        let bytes = *rest.first_chunk::<N>().ok_or(Wrong::Bytes("an early end"))?;
        self.at += N;
        Ok(bytes)
    }
}

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    fn bytes(&mut self, count: usize) -> Read<&'a [u8]> {
        let bytes = self.wkb.get(self.at..).and_then(|rest| rest.get(..count));
        self.at += bytes.map_or(0, <[u8]>::len);
        bytes.ok_or(Wrong::Bytes("an early end"))
    }
}

impl Open {
    /// Checks that a part has a type that the geometry around it allows.
    fn check(&self, of: Type, dimensions: Dimensions) -> Read<()> {
        match self.of.member() {
            Some(member) if (member, self.dimensions) != (of, dimensions) => {
                Err(Wrong::Bytes("a part of another type than the geometry around it"))
            }
            _ => Ok(()),
        }
    }
}

impl Head {
    /// Its type and dimensions, as ISO numbers them.
    fn iso_code(&self) -> i32 {
        let Dimensions { has_z, has_m } = self.dimensions;
        self.of.code() + 1000 * i32::from(has_z) + 2000 * i32::from(has_m)
    }
}

impl Dimensions {
    /// By the thousands of an ISO code.
    fn of_thousands(thousands: u32) -> Option<Dimensions> {
        let of = |has_z, has_m| Some(Dimensions { has_z, has_m });
        match thousands {
            0 => of(false, false),
            1 => of(true, false),
            2 => of(false, true),
            3 => of(true, true),
            _ => None,
        }
    }

    fn count(self) -> usize {
        2 + usize::from(self.has_z) + usize::from(self.has_m)
    }

    fn suffix(self) -> &'static str {
        match (self.has_z, self.has_m) {
            (false, false) => "",
            (true, false) => " Z",
            (false, true) => " M",
            (true, true) => " ZM",
        }
    }
}

impl Type {
    fn of(code: u32) -> Option<Type> {
        Some(match code {
            1 => Type::Point,
            2 => Type::LineString,
            3 => Type::Polygon,
            4 => Type::MultiPoint,
            5 => Type::MultiLineString,
            6 => Type::MultiPolygon,
            7 => Type::GeometryCollection,
            15 => Type::PolyhedralSurface,
            16 => Type::Tin,
            17 => Type::Triangle,
            _ => return None,
        })
    }

    fn code(self) -> i32 {
        match self {
            Type::Point => 1,
            Type::LineString => 2,
            Type::Polygon => 3,
            Type::MultiPoint => 4,
            Type::MultiLineString => 5,
            Type::MultiPolygon => 6,
            Type::GeometryCollection => 7,
            Type::PolyhedralSurface => 15,
            Type::Tin => 16,
            Type::Triangle => 17,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Type::Point => "POINT",
            Type::LineString => "LINESTRING",
            Type::Polygon => "POLYGON",
            Type::MultiPoint => "MULTIPOINT",
            Type::MultiLineString => "MULTILINESTRING",
            Type::MultiPolygon => "MULTIPOLYGON",
            Type::GeometryCollection => "GEOMETRYCOLLECTION",
            Type::PolyhedralSurface => "POLYHEDRALSURFACE",
            Type::Tin => "TIN",
            Type::Triangle => "TRIANGLE",
        }
    }

    /// The type of this geometry's parts. `None` if each part has its own type, or there are no parts.
    fn member(self) -> Option<Type> {
        match self {
            Type::MultiPoint => Some(Type::Point),
            Type::MultiLineString => Some(Type::LineString),
            Type::MultiPolygon | Type::PolyhedralSurface => Some(Type::Polygon),
            Type::Tin => Some(Type::Triangle),
            _ => None,
        }
    }
}

fn number(value: f64, out: &mut Vec<u8>) {
    let start = out.len();
    print::double(out, value);
    if out[start..].ends_with(b".0") {
        out.truncate(out.len() - 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use marquetry_base::ErrorKind;

    fn wkt(wkb: &[u8]) -> Result<String> {
        let mut out = b"before ".to_vec();
        let written = write_wkt(wkb, &mut out);
        let text = String::from_utf8(out.split_off(7)).unwrap();
        assert_eq!(out, b"before ");
        assert!(written.is_ok() || text.is_empty());
        written.map(|()| text)
    }

    /// A geometry's bytes: its byte order, type, counts (and an SRID), and coordinates.
    pub(super) fn le(code: u32, counts: &[u32], coordinates: &[f64]) -> Vec<u8> {
        let mut bytes = [1].to_vec();
        bytes.extend(code.to_le_bytes());
        counts.iter().for_each(|count| bytes.extend(count.to_le_bytes()));
        coordinates.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        bytes
    }

    pub(super) fn be(code: u32, counts: &[u32], coordinates: &[f64]) -> Vec<u8> {
        let mut bytes = [0].to_vec();
        bytes.extend(code.to_be_bytes());
        counts.iter().for_each(|count| bytes.extend(count.to_be_bytes()));
        coordinates.iter().for_each(|value| bytes.extend(value.to_be_bytes()));
        bytes
    }

    #[test]
    fn both_byte_orders_and_all_dimensions() {
        for (code, text, count) in [
            (1, "POINT (1 2)", 2),
            (1001, "POINT Z (1 2 3)", 3),
            (2001, "POINT M (1 2 3)", 3),
            (3001, "POINT ZM (1 2 3 4)", 4),
        ] {
            let values = [1.0, 2.0, 3.0, 4.0];
            assert_eq!(wkt(&le(code, &[], &values[..count])).unwrap(), text);
            assert_eq!(wkt(&be(code, &[], &values[..count])).unwrap(), text);
        }
        let parts = [be(4, &[2], &[]), le(1, &[], &[0.5, -1e300]), be(1, &[], &[f64::NAN; 2])].concat();
        assert_eq!(wkt(&parts).unwrap(), "MULTIPOINT ((0.5 -1e+300), EMPTY)");
        assert_eq!(wkt(&le(1, &[], &[1.0, f64::NAN])).unwrap(), "POINT (1 NaN)");
        assert_eq!(wkt(&le(1, &[], &[-0.0, f64::NEG_INFINITY])).unwrap(), "POINT (-0 -Infinity)");
    }

    #[test]
    fn postgis_extensions() {
        assert_eq!(wkt(&le(0xc000_0001, &[], &[1.0, 2.0, 3.0, 4.0])).unwrap(), "POINT ZM (1 2 3 4)");
        assert_eq!(wkt(&le(0xa000_0001, &[4326], &[1.0, 2.0, 3.0])).unwrap(), "SRID=4326;POINT Z (1 2 3)");
        let parts = [le(0x2000_0004, &[7, 1], &[]), le(0x2000_0001, &[7], &[1.0, 2.0])].concat();
        assert_eq!(wkt(&parts).unwrap(), "SRID=7;MULTIPOINT ((1 2))");
    }

    #[test]
    fn surfaces() {
        let triangle = le(17, &[1, 4], &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(wkt(&triangle).unwrap(), "TRIANGLE ((0 0, 0 1, 1 0, 0 0))");
        assert_eq!(wkt(&[le(16, &[1], &[]), triangle].concat()).unwrap(), "TIN (((0 0, 0 1, 1 0, 0 0)))");
        let polygon = le(3, &[2, 0, 1], &[0.0, 0.0]);
        assert_eq!(
            wkt(&[le(15, &[2], &[]), polygon, le(3, &[0], &[])].concat()).unwrap(),
            "POLYHEDRALSURFACE ((EMPTY, (0 0)), EMPTY)"
        );
    }

    #[test]
    fn what_is_no_geometry() {
        let message = |bytes: &[u8]| String::from(wkt(bytes).unwrap_err().message());
        assert_eq!(message(&[]), "an early end, at byte 0 of a geometry");
        assert_eq!(message(&[2, 0, 0, 0, 1]), "an unknown byte order, at byte 1 of a geometry");
        assert_eq!(message(&le(8, &[0], &[])), "an unknown type, at byte 5 of a geometry");
        assert_eq!(message(&le(4001, &[], &[1.0; 2])), "an unknown type, at byte 5 of a geometry");
        let more = "more parts than there are bytes for, at byte 9 of a geometry";
        assert_eq!(message(&le(2, &[u32::MAX], &[])), more);
        assert_eq!(message(&le(7, &[u32::MAX], &[])), more);
        assert_eq!(message(&le(3, &[2, 0], &[])), more);
        let other = [le(4, &[1], &[]), le(1001, &[], &[1.0; 3])].concat();
        assert!(message(&other).starts_with("a part of another type"));
        assert!(message(&[le(2, &[0], &[]), [0].to_vec()].concat()).starts_with("bytes behind"));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| [le(7, &[1], &[]).repeat(depth), le(2, &[0], &[])].concat();
        assert!(wkt(&nested(DEPTH_MAX)).unwrap().contains("(LINESTRING EMPTY)"));
        assert_eq!(wkt(&nested(DEPTH_MAX + 1)).unwrap_err().kind(), ErrorKind::LimitExceeded);
        assert_eq!(wkt(&nested(1_000_000)).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }

    #[test]
    fn every_cut_and_every_change_of_a_byte() {
        let collection = [
            le(7, &[3], &[]),
            be(3, &[1, 4], &[30.0, 10.0, 40.0, 40.0, 20.0, 40.0, 30.0, 10.0]),
            le(1004, &[2], &[]),
            le(1001, &[], &[1.0, 2.0, 3.0]),
            be(1001, &[], &[1.0, 2.0, 3.0]),
            le(6, &[0], &[]),
        ]
        .concat();
        assert_eq!(
            wkt(&collection).unwrap(),
            "GEOMETRYCOLLECTION (POLYGON ((30 10, 40 40, 20 40, 30 10)), MULTIPOINT Z ((1 2 3), (1 2 3)), MULTIPOLYGON EMPTY)"
        );
        for cut in 0..collection.len() {
            assert_eq!(wkt(&collection[..cut]).unwrap_err().kind(), ErrorKind::Corrupt, "cut at {cut}");
        }
        let mut refused = 0;
        for at in 0..collection.len() {
            for byte in 0..=u8::MAX {
                let mut changed = collection.clone();
                changed[at] = byte;
                match wkt(&changed) {
                    Ok(text) => assert!(text.len() < 10 * changed.len()),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 10_000, "{refused}");
    }

    #[test]
    fn names_of_codes() {
        assert_eq!(type_name(1), Some(("POINT", "")));
        assert_eq!(type_name(3007), Some(("GEOMETRYCOLLECTION", "ZM")));
        assert_eq!((type_name(0), type_name(4001), type_name(-1)), (None, None, None));
    }
}
