//! The extent and types of geometries, for the `GeospatialStatistics` of a column chunk.
//!
//! Source: parquet-format's `Geospatial.md`, "Statistics" and "Special geospatial values".

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;

use super::{DEPTH_MAX, Dimensions, GEOMETRY_BYTES_MIN, Open, Read, Reader, Type, Wrong};
use crate::format::{BoundingBox, GeospatialStatistics};

/// The surface that geometries are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// GEOMETRY: a plane, on which edges stay within the box of their ends.
    Plane,
    /// GEOGRAPHY: a globe, on which they do not. Coordinates are within 180 degrees to the west and east, and 90 to the
    /// north and south.
    Globe,
}

/// The extent of some geometries.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    surface: Surface,
    within: Within,
    /// ISO codes of their types, in order.
    codes: Vec<i32>,
    /// A line or an area is among them.
    has_edges: bool,
    /// One is not well-known binary, or of an unknown kind. Other implementations may understand it, so there are no
    /// statistics.
    is_unknown: bool,
}

/// The smallest and the largest of all coordinates: x, y, z and m. With no coordinates, the smallest is above the
/// largest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Within([(f64, f64); 4]);

impl Default for Within {
    fn default() -> Within {
        Within([(f64::INFINITY, f64::NEG_INFINITY); 4])
    }
}

impl Within {
    fn merge(&mut self, other: &Within) {
        for ((min, max), other) in self.0.iter_mut().zip(&other.0) {
            (*min, *max) = (min.min(other.0), max.max(other.1));
        }
    }

    fn side(&self, axis: usize) -> Option<(f64, f64)> {
        Some(self.0[axis]).filter(|(min, max)| min <= max)
    }
}

impl Extent {
    /// Of no geometries.
    pub(crate) fn new(surface: Surface) -> Extent {
        Extent { surface, within: Within::default(), codes: Vec::new(), has_edges: false, is_unknown: false }
    }

    /// Whether nothing can be found out any more, whatever follows.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// Adds a geometry, or about `bytes` bytes of it, continuing at `walk`. True at its end; the walk is then reset.
    /// Adds the number of geometries and rings that were looked at to `parts`.
    pub(crate) fn take(&mut self, wkb: &[u8], walk: &mut Walk, bytes: usize, parts: &mut usize) -> bool {
        match walk.step(wkb, bytes, self.surface, parts) {
            Ok(false) => return false,
            Ok(true) => {
                self.within.merge(&walk.within);
                self.has_edges |= walk.has_edges;
                if let Err(at) = self.codes.binary_search(&walk.code) {
                    self.codes.insert(at, walk.code);
                }
            }
            Err(_) => self.is_unknown = true,
        }
        *walk = Walk::default();
        true
    }

    /// The statistics. `None` if nothing is known.
    pub(crate) fn finish(&self) -> Option<GeospatialStatistics> {
        if self.is_unknown || self.codes.is_empty() {
            return None;
        }
        let side = |axis| self.within.side(axis);
        // An edge on a globe leaves the box of its ends towards a pole, and may go either way around.
        let is_bounded = self.surface == Surface::Plane || !self.has_edges;
        let bounding_box = side(0).zip(side(1)).filter(|_| is_bounded);
        let bounding_box = bounding_box.map(|(x, y)| BoundingBox { x, y, z: side(2), m: side(3) });
        Some(GeospatialStatistics { bounding_box, geospatial_types: self.codes.clone() })
    }
}

/// A geometry that is walked through, resumably.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    at: usize,
    is_big_endian: bool,
    /// The type of the complete geometry, once known: an ISO code, which is never 0.
    code: i32,
    open: Vec<Open>,
    /// What is being read: its dimensions, the rings that are left, and the points left in the current ring or line.
    dimensions: Dimensions,
    rings: u32,
    points: u32,
    within: Within,
    has_edges: bool,
}

impl Walk {
    /// Continues for about `bytes` bytes. True at the end.
    fn step(&mut self, wkb: &[u8], bytes: usize, surface: Surface, parts: &mut usize) -> Read<bool> {
        let mut reader = Reader { wkb, at: self.at, is_big_endian: self.is_big_endian };
        let until = self.at.saturating_add(bytes.max(1));
        while reader.at < until {
            if self.points > 0 {
                self.points(&mut reader, until, surface)?;
                continue;
            }
            *parts += 1;
            if self.rings > 0 {
                self.rings -= 1;
                self.points = reader.count(self.dimensions.count() * 8)?;
                self.has_edges |= self.points > 0;
                continue;
            }
            while self.open.last().is_some_and(|group| group.left == 0) {
                self.open.pop();
            }
            match self.open.last_mut() {
                Some(group) => group.left -= 1,
                None if self.code == 0 => {}
                None if reader.at == wkb.len() => return Ok(true),
                None => return Err(Wrong::Bytes("bytes behind the geometry")),
            }
            self.begin(&mut reader)?;
        }
        (self.at, self.is_big_endian) = (reader.at, reader.is_big_endian);
        let is_end = self.points == 0 && self.rings == 0 && self.open.iter().all(|group| group.left == 0);
        Ok(is_end && reader.at == wkb.len())
    }

    /// Reads the head of a geometry.
    fn begin(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        let head = reader.head()?;
        if self.code == 0 {
            self.code = head.iso_code();
        }
        if let Some(group) = self.open.last() {
            group.check(head.of, head.dimensions)?;
        }
        self.dimensions = head.dimensions;
        match head.of {
            Type::Point => self.points = 1,
            Type::LineString => {
                self.points = reader.count(head.dimensions.count() * 8)?;
                self.has_edges |= self.points > 0;
            }
            Type::Polygon | Type::Triangle => self.rings = reader.count(4)?,
            _ => {
                let left = reader.count(GEOMETRY_BYTES_MIN)?;
                if left > 0 && self.open.len() == DEPTH_MAX {
                    return Err(Wrong::Depth);
                }
                if left > 0 {
                    self.open.push(Open { of: head.of, dimensions: head.dimensions, left });
                }
            }
        }
        Ok(())
    }

    /// Reads points of a ring or line.
    fn points(&mut self, reader: &mut Reader<'_>, until: usize, surface: Surface) -> Read<()> {
        let axes = self.dimensions.count();
        let room = until.saturating_sub(reader.at) / (8 * axes);
        let points = self.points.min(u32::try_from(room.max(1)).unwrap_or(u32::MAX));
        let (numbers, _) = reader.bytes(usize_of_u32(points) * 8 * axes)?.as_chunks::<8>();
        self.points -= points;
        let (z, m) = match self.dimensions {
            Dimensions { has_z: true, has_m } => (Some(2), has_m.then_some(3)),
            Dimensions { has_z: false, has_m } => (None, has_m.then_some(2)),
        };
        let [x_bound, y_bound] = match surface {
            Surface::Plane => [f64::INFINITY; 2],
            Surface::Globe => [180.0, 90.0],
        };
        let places = [(Some(0), x_bound), (Some(1), y_bound), (z, f64::INFINITY), (m, f64::INFINITY)];
        for (side, (place, bound)) in self.within.0.iter_mut().zip(places) {
            let Some(place) = place else { continue };
            let numbers = numbers.iter().skip(place).step_by(axes);
            *side = match reader.is_big_endian {
                true => widened(*side, numbers.map(|bytes| f64::from_be_bytes(*bytes)), bound),
                false => widened(*side, numbers.map(|bytes| f64::from_le_bytes(*bytes)), bound),
            };
        }
        Ok(())
    }
}

/// The smallest and the largest of these and more numbers, ignoring NaNs and numbers further from 0 than `bound`.
#[inline(always)]
fn widened((mut min, mut max): (f64, f64), more: impl Iterator<Item = f64>, bound: f64) -> (f64, f64) {
    for number in more {
        let is_within = number.abs() <= bound;
        min = if is_within && number < min { number } else { min };
        max = if is_within && number > max { number } else { max };
    }
    (min, max)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{be, le};
    use super::*;

    fn statistics(surface: Surface, all: &[Vec<u8>]) -> Option<GeospatialStatistics> {
        let of_slices = |bytes: usize| {
            let (mut extent, mut walk) = (Extent::new(surface), Walk::default());
            for wkb in all {
                let (mut steps, mut parts) = (0, 0);
                while !extent.take(wkb, &mut walk, bytes, &mut parts) {
                    steps += 1;
                    assert!(steps <= wkb.len(), "it does not get on");
                }
            }
            extent.finish()
        };
        let whole = of_slices(usize::MAX);
        for bytes in [1, 2, 30, 1000] {
            assert_eq!(of_slices(bytes), whole, "{bytes} bytes at a time");
        }
        whole
    }

    fn plane(all: &[Vec<u8>]) -> (Option<BoundingBox>, Vec<i32>) {
        let statistics = statistics(Surface::Plane, all).unwrap();
        (statistics.bounding_box, statistics.geospatial_types)
    }

    fn flat(x: (f64, f64), y: (f64, f64)) -> Option<BoundingBox> {
        Some(BoundingBox { x, y, z: None, m: None })
    }

    const NAN: f64 = f64::NAN;

    #[test]
    fn all_types_and_dimensions() {
        let collection = [
            le(7, &[4], &[]),
            be(3, &[2, 4], &[30.0, 10.0, 40.0, 40.0, 20.0, 40.0, 30.0, 10.0]),
            0u32.to_be_bytes().to_vec(),
            le(4, &[2], &[]),
            le(1, &[], &[-1.0, -2.0]),
            be(1, &[], &[1.0, 99.5]),
            le(6, &[0], &[]),
            le(7, &[1], &[]),
            le(2, &[2], &[0.0, 0.0, 0.0, -7.0]),
        ]
        .concat();
        assert_eq!(plane(&[collection]), (flat((-1.0, 40.0), (-7.0, 99.5)), [7].to_vec()));
        let points = [
            le(1, &[], &[1.0, 2.0]),
            le(1001, &[], &[1.0, 2.0, 3.0]),
            be(2001, &[], &[0.0, 2.0, -4.0]),
            le(3001, &[], &[5.0, 6.0, 7.0, 8.0]),
            le(1, &[], &[1.0, 2.0]),
        ];
        let all = BoundingBox { x: (0.0, 5.0), y: (2.0, 6.0), z: Some((3.0, 7.0)), m: Some((-4.0, 8.0)) };
        assert_eq!(plane(&points), (Some(all), [1, 1001, 2001, 3001].to_vec()));
        let triangle = le(17, &[1, 4], &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        let tin = [le(16, &[1], &[]), triangle.clone()].concat();
        assert_eq!(plane(&[tin, triangle]), (flat((0.0, 1.0), (0.0, 1.0)), [16, 17].to_vec()));
        // PostGIS's flags mean the same, and the SRID is not a coordinate.
        let extended = le(0xa000_0001, &[4326], &[1.0, 2.0, 3.0]);
        assert_eq!(plane(&[extended]).1, [1001]);
    }

    #[test]
    fn what_is_not_there_bounds_nothing() {
        // An empty point, line and polygon.
        let empty = [le(1, &[], &[NAN; 2]), le(2, &[0], &[]), le(3, &[0], &[]), le(1003, &[1, 0], &[])];
        assert_eq!(plane(&empty), (None, [1, 2, 3, 1003].to_vec()));
        let in_part = le(3002, &[3], &[9.0, 1.0, NAN, 5.0, NAN, 2.0, 3.0, NAN, 7.0, NAN, NAN, 6.0]);
        let expected = BoundingBox { x: (7.0, 9.0), y: (1.0, 2.0), z: Some((3.0, 3.0)), m: Some((5.0, 6.0)) };
        assert_eq!(plane(&[in_part]).0, Some(expected));
        // Without a y there is no bounding box.
        assert_eq!(plane(&[le(1, &[], &[1.0, NAN])]).0, None);
        let infinite = plane(&[le(1, &[], &[f64::INFINITY, f64::NEG_INFINITY])]).0.unwrap();
        assert_eq!((infinite.x.1, infinite.y.0), (f64::INFINITY, f64::NEG_INFINITY));
        assert_eq!(statistics(Surface::Plane, &[]), None);
    }

    #[test]
    fn what_is_no_geometry_lets_nothing_be_told() {
        let point = || le(1, &[], &[1.0, 2.0]);
        let curve = le(8, &[1], &[1.0, 2.0]);
        let deep = [le(7, &[1], &[]).repeat(DEPTH_MAX + 1), point()].concat();
        let longer = [point(), [0].to_vec()].concat();
        let other = [le(4, &[1], &[]), le(1001, &[], &[1.0; 3])].concat();
        for wrong in [Vec::new(), curve, deep, longer, other, point()[..20].to_vec(), le(2, &[9], &[])] {
            assert_eq!(statistics(Surface::Plane, &[point(), wrong, point()]), None);
        }
        let nested = [le(7, &[1], &[]).repeat(DEPTH_MAX), point()].concat();
        assert!(statistics(Surface::Plane, &[nested]).is_some());
    }

    #[test]
    fn a_globe_has_boxes_of_points_alone() {
        let points = [le(1, &[], &[170.0, 80.0]), le(1, &[], &[-170.0, 181.0]), le(1, &[], &[999.0, -3.0])];
        let found = statistics(Surface::Globe, &points).unwrap();
        assert_eq!(found.bounding_box, flat((-170.0, 170.0), (-3.0, 80.0)));
        let line = le(2, &[2], &[170.0, 80.0, -170.0, 80.0]);
        let found = statistics(Surface::Globe, &[points[0].clone(), line, le(2, &[0], &[])]).unwrap();
        assert_eq!((found.bounding_box, found.geospatial_types), (None, [1, 2].to_vec()));
        let empty = statistics(Surface::Globe, &[points[0].clone(), le(2, &[0], &[])]).unwrap();
        assert_eq!(empty.bounding_box, flat((170.0, 170.0), (80.0, 80.0)));
    }
}
