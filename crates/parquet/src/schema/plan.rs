//! What is made of a schema is made in steps: a schema may have a hundred thousand columns.

use marquetry_base::{Budget, Error, Price, Result};

/// Something that is made of a schema, in steps. To begin is constant time; the steps go through the fields.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_base::Budget;
/// use marquetry_parquet::record::Program;
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Plan, Schema};
///
/// # fn main() -> Result<(), marquetry_base::Error> {
/// let field = |at| FieldDef::new(format!("c{at}"), FieldType::Leaf(PhysicalType::Int32, None));
/// let schema = Arc::new(Schema::of_fields(&(0..1000).map(field).collect::<Vec<_>>())?);
///
/// // In steps, each of at most so many units:
/// let mut plan = Program::plan(Arc::clone(&schema), None);
/// let program = loop {
///     if let Some(program) = plan.step(&mut Budget::new(10_000))? {
///         break program;
///     }
/// };
/// // Or, where nothing else waits, in one call:
/// let same = Program::plan(schema, None).at_once()?;
/// assert_eq!(program.fields().len(), same.fields().len());
/// # Ok(())
/// # }
/// ```
pub trait Plan {
    /// What is made.
    type Made;

    /// Does part of the work. Returns `None` if the budget is spent: call again. After it has returned what is made, or
    /// an error, it is not called again.
    ///
    /// # Errors
    ///
    /// Those of what is made.
    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Self::Made>>;

    /// Does all of the work in one call, for hosts that may wait: some 0.1 s for a hundred thousand columns.
    ///
    /// # Errors
    ///
    /// As [`Plan::step`].
    fn at_once(mut self) -> Result<Self::Made>
    where
        Self: Sized,
    {
        match self.step(&mut Budget::unlimited())? {
            Some(made) => Ok(made),
            None => Err(Error::internal("a budget without an end is spent")),
        }
    }
}

/// The price of planning a field: of walking to it, and of what is kept of it.
pub(crate) const FIELD_PRICE: Price = Price::per_kilovalue(130 << 10);
