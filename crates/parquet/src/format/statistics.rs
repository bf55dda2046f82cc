//! Sizes, levels and extents of a column chunk's values (`SizeStatistics`, `GeospatialStatistics`).

use crate::thrift::{Fields, Kind, Reader, Thrift, Wanted};
use alloc::vec::Vec;

use marquetry_base::{Budget, Release, release_all};

/// For estimating how much memory a chunk's values take, and how full its lists and structs are (`SizeStatistics`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SizeStatistics {
    /// The bytes of all BYTE_ARRAY values, without their lengths and before encoding.
    pub unencoded_byte_array_data_bytes: Option<u64>,
    /// The count of each repetition level, from 0 on. Empty if the writer did not store it, which is optional if there
    /// is only one level.
    pub repetition_level_histogram: Vec<u64>,
    /// The count of each definition level, from 0 on. Empty if the writer did not store it, which is optional if there
    /// are at most two levels.
    pub definition_level_histogram: Vec<u64>,
}

/// The extent and types of a chunk's geometries (`GeospatialStatistics`; Geospatial.md, Statistics).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GeospatialStatistics {
    /// A box around all of them.
    pub bounding_box: Option<BoundingBox>,
    /// The ISO WKB codes of all types in the chunk, such as 1 for a point and 1001 for a point with Z. Empty if
    /// unknown.
    pub geospatial_types: Vec<i32>,
}

impl Release for SizeStatistics {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let SizeStatistics { repetition_level_histogram, definition_level_histogram, .. } = self;
        release_all(&mut [repetition_level_histogram, definition_level_histogram], budget)
    }
}

impl Release for GeospatialStatistics {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.geospatial_types.release(budget)
    }
}

/// The smallest and largest coordinates (`BoundingBox`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    /// West to east. The first is larger than the second if the box crosses the antimeridian.
    pub x: (f64, f64),
    /// South to north.
    pub y: (f64, f64),
    /// Heights, if any.
    pub z: Option<(f64, f64)>,
    /// Measures, if any.
    pub m: Option<(f64, f64)>,
}

/// The known fields of `SizeStatistics`.
pub(super) const SIZE_FIELDS: Fields = &[(1, Wanted::Scalar), (2, Wanted::Scalars), (3, Wanted::Scalars)];
/// The known fields of `GeospatialStatistics`.
pub(super) const GEOSPATIAL_FIELDS: Fields = &[(1, Wanted::Struct(BOX_FIELDS)), (2, Wanted::Scalars)];
const BOX_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (2, Wanted::Scalar),
    (3, Wanted::Scalar),
    (4, Wanted::Scalar),
    (5, Wanted::Scalar),
    (6, Wanted::Scalar),
    (7, Wanted::Scalar),
    (8, Wanted::Scalar),
];

/// Reads `SizeStatistics`. Invalid counts are treated as unknown, as in `Statistics`.
pub(super) fn size_statistics(reader: &mut Reader<'_>) -> Thrift<SizeStatistics> {
    let mut sizes = SizeStatistics::default();
    reader.structure(|reader, field| {
        match field.id {
            1 => {
                let bytes = reader.expect(field, Kind::I64, Reader::i64)?;
                sizes.unencoded_byte_array_data_bytes = u64::try_from(bytes).ok();
            }
            2 => sizes.repetition_level_histogram = reader.expect(field, Kind::List, histogram)?,
            3 => sizes.definition_level_histogram = reader.expect(field, Kind::List, histogram)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(sizes)
}

/// A histogram; empty if a count is negative.
fn histogram(reader: &mut Reader<'_>) -> Thrift<Vec<u64>> {
    let length = reader.list_of(Kind::I64)?;
    // A count takes at least a byte.
    let mut counts = Vec::with_capacity(length.min(reader.left()));
    let mut is_known = true;
    for _ in 0..length {
        match u64::try_from(reader.i64()?) {
            Ok(count) => counts.push(count),
            Err(_) => is_known = false,
        }
    }
    Ok(if is_known { counts } else { Vec::new() })
}

/// Reads `GeospatialStatistics`. A box that lacks a required field is treated as absent.
pub(super) fn geospatial_statistics(reader: &mut Reader<'_>) -> Thrift<GeospatialStatistics> {
    let mut statistics = GeospatialStatistics::default();
    reader.structure(|reader, field| {
        match field.id {
            1 => statistics.bounding_box = reader.expect(field, Kind::Struct, bounding_box)?,
            2 => {
                statistics.geospatial_types =
                    reader.expect(field, Kind::List, |reader| reader.each(Kind::I32, Reader::i32))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(statistics)
}

fn bounding_box(reader: &mut Reader<'_>) -> Thrift<Option<BoundingBox>> {
    let mut sides = [None; 8];
    reader.structure(|reader, field| {
        let side = usize::try_from(field.id).ok().and_then(|id| sides.get_mut(id.checked_sub(1)?));
        let Some(side) = side else { return Ok(false) };
        *side = Some(reader.expect(field, Kind::Double, Reader::double)?);
        Ok(true)
    })?;
    let [x_min, x_max, y_min, y_max, z_min, z_max, m_min, m_max] = sides;
    let (x, y) = (x_min.zip(x_max), y_min.zip(y_max));
    Ok(x.zip(y).map(|(x, y)| BoundingBox { x, y, z: z_min.zip(z_max), m: m_min.zip(m_max) }))
}
