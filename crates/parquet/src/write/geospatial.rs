//! The extent of a chunk's geometries, computed as they arrive.

use marquetry_base::{Budget, Price, Result};

use super::encoder::Slice;
use crate::encoding::view::view_bytes;
use crate::format::GeospatialStatistics;
use crate::geometry::{Extent, Surface, Walk};
use crate::schema::{LogicalType, Meaning, PhysicalType};

/// What walking through geometries costs: by their bytes and by their parts, of which a collection of empty geometries
/// has most.
const GEOMETRY_PRICE: Price = Price { kib: 200, kilovalue: 20 << 10 };

/// Bytes of geometries that are walked through between two checks of the budget.
const AT_ONCE_BYTES: usize = 16 << 10;

/// Collects the geospatial statistics of a chunk.
#[derive(Debug)]
pub(super) struct GeospatialBuilder {
    extent: Extent,
    surface: Surface,
    /// The geometry that is being walked through.
    walk: Walk,
    /// Values of this part that are done.
    taken: usize,
}

impl GeospatialBuilder {
    /// For a leaf of geometries. `None` for other leaves.
    pub(super) fn new(
        physical_type: PhysicalType,
        logical_type: Option<&LogicalType>,
    ) -> Option<GeospatialBuilder> {
        let surface = match Meaning::of(physical_type, logical_type) {
            Meaning::Geometry => Surface::Plane,
            Meaning::Geography => Surface::Globe,
            _ => return None,
        };
        Some(GeospatialBuilder { extent: Extent::new(surface), surface, walk: Walk::default(), taken: 0 })
    }

    /// Adds the values of a part. False if the budget is spent first: then pass the same values again. Once a part is
    /// added, passing it again has no effect until the [part ends](GeospatialBuilder::end_part).
    pub(super) fn take(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<bool> {
        let Slice::ByteArray(views, buffers) = values else { return Ok(true) };
        let (mut bytes, mut parts) = (0, 0);
        while let Some(view) = views.get(self.taken)
            && !self.extent.is_unknown()
        {
            let raw = view.to_le_bytes();
            let wkb = view_bytes(&raw, buffers)?;
            let is_whole = self.extent.take(wkb, &mut self.walk, AT_ONCE_BYTES, &mut parts);
            bytes += wkb.len().min(AT_ONCE_BYTES);
            self.taken += usize::from(is_whole);
            if bytes >= AT_ONCE_BYTES {
                budget.charge(GEOMETRY_PRICE, bytes, parts);
                (bytes, parts) = (0, 0);
                if budget.is_spent() && self.taken < views.len() {
                    return Ok(false);
                }
            }
        }
        if bytes > 0 {
            budget.charge(GEOMETRY_PRICE, bytes, parts);
        }
        Ok(true)
    }

    /// The next values are a new part.
    pub(super) fn end_part(&mut self) {
        self.taken = 0;
    }

    /// Returns the statistics of the chunk. The next values belong to the next chunk.
    pub(super) fn finish(&mut self) -> Option<GeospatialStatistics> {
        core::mem::replace(&mut self.extent, Extent::new(self.surface)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use marquetry_base::Bytes;

    /// A line of this many points.
    fn line(points: u32) -> Vec<u8> {
        let mut wkb = [1].to_vec();
        wkb.extend(2u32.to_le_bytes());
        wkb.extend(points.to_le_bytes());
        (0..points).for_each(|at| {
            wkb.extend(f64::from(at).to_le_bytes());
            wkb.extend((-f64::from(at)).to_le_bytes());
        });
        wkb
    }

    #[test]
    fn long_ones_are_walked_through_in_steps() {
        let all = [line(3), line(1), line(100_000), line(7)];
        let arrays =
            crate::batch::ByteArrays::from_lengths(Bytes::from(all.concat()), all.iter().map(Vec::len))
                .unwrap();
        let of = LogicalType::Geometry { crs: None };
        let mut builder = GeospatialBuilder::new(PhysicalType::ByteArray, Some(&of)).unwrap();
        let mut steps = 0;
        for part in [0..2, 2..3, 3..4] {
            let values = Slice::ByteArray(&arrays.views()[part], arrays.buffers());
            loop {
                let mut budget = Budget::new(1);
                let is_taken = builder.take(values, &mut budget).unwrap();
                assert!(budget.spent() < 20_000, "{} units at once", budget.spent());
                steps += 1;
                if is_taken {
                    break;
                }
            }
            assert!(builder.take(values, &mut Budget::new(1)).unwrap());
            builder.end_part();
        }
        assert!((95..110).contains(&steps), "{steps} steps");
        let found = builder.finish().unwrap();
        let found_box = found.bounding_box.unwrap();
        assert_eq!((found_box.x, found_box.y), ((0.0, 99_999.0), (-99_999.0, 0.0)));
        assert_eq!((found.geospatial_types, builder.finish()), ([2].to_vec(), None));
    }

    #[test]
    fn of_geometries_alone() {
        let of = |physical, logical: Option<LogicalType>| {
            GeospatialBuilder::new(physical, logical.as_ref()).is_some()
        };
        let geography = LogicalType::Geography { crs: None, algorithm: None };
        assert!(of(PhysicalType::ByteArray, Some(geography)));
        assert!(!of(PhysicalType::ByteArray, Some(LogicalType::String)));
        assert!(!of(PhysicalType::ByteArray, None));
    }
}
