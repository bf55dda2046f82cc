//! Leaves of the rows, and what their values become.

use marquetry_parquet::batch::Values;
use marquetry_parquet::schema::{Leaf, Meaning, Schema};

use super::MappingOptions;
use super::cast::{Cast, is_possible};
use super::convert::{Conversion, Slots};
use crate::cql::CqlType;

/// How the values of a leaf become those of a column, or of a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeafPlan {
    pub(super) conversion: Conversion,
    /// The other type that an existing table has there.
    pub(super) cast: Option<Cast>,
}

impl LeafPlan {
    /// A leaf without values.
    pub(super) const NOTHING: LeafPlan = LeafPlan { conversion: Conversion::AlwaysNull, cast: None };

    /// The conversion of a leaf to its own type; or, if an existing table has a type there, to that. `None` if none of its values fits that.
    pub(super) fn of(
        schema: &Schema,
        leaf: &Leaf,
        options: &MappingOptions,
        wanted: Option<&CqlType>,
    ) -> Option<LeafPlan> {
        let own = Conversion::of(schema, leaf, options);
        let Some(wanted) = wanted.filter(|wanted| **wanted != own.cql_type()) else {
            return Some(LeafPlan { conversion: own, cast: None });
        };
        // Its own type would be the number as it is.
        let conversion = match (schema.meaning_of(leaf).read_as(leaf.physical_type), wanted) {
            (Meaning::Timestamp { unit, .. }, CqlType::Timestamp | CqlType::Date) => {
                if options.timestamps_as_millis { own } else { Conversion::ExactTimestamp(unit) }
            }
            _ => own,
        };
        let found = conversion.cql_type();
        if found == *wanted {
            return Some(LeafPlan { conversion, cast: None });
        }
        let cast = Cast::to(wanted, options)?;
        let is_possible = conversion == Conversion::AlwaysNull || is_possible(&found, wanted);
        is_possible.then_some(LeafPlan { conversion, cast: Some(cast) })
    }

    /// The type of the values.
    pub(super) fn cql_type(self) -> CqlType {
        self.cast.map_or_else(|| self.conversion.cql_type(), Cast::cql_type)
    }

    /// Values with this conversion; `None` if they do not have its physical type.
    pub(super) fn bind(self, values: &Values) -> Option<Slots<'_>> {
        let mut slots = self.conversion.bind(values)?;
        slots.cast = self.cast;
        Some(slots)
    }
}
