//! Records of any schema as single cells: what a row of the layout `blob` holds, and a nested column of the layout `wide`.
//!
//! ```text
//! cell     version (1), fields of the record
//! fields   a bit for each field that may be null, 1 where it has a value, the lowest bit of a byte first, then zeros up to the byte's end;
//!          then the values that are there, in the order of the schema
//! value    BOOLEAN                       a byte, 0 or 1
//!          INT32, INT64                  zigzag, as a varint
//!          FLOAT, DOUBLE                 4 and 8 bytes, little-endian
//!          BYTE_ARRAY                    its length as a varint, its bytes
//!          INT96, FIXED_LEN_BYTE_ARRAY   its bytes
//!          group                         fields
//!          LIST                          the number of elements as a varint; if elements may be null, a bit for each, as above; those that are there
//!          MAP                           the number of entries as a varint; if keys may be null, a bit for each; if values may be, a bit for each;
//!                                        each entry's key and value, those that are there
//! varint   unsigned LEB128, in as few bytes as can be
//! ```
//!
//! Nothing else: names, types and which fields may be null are the schema's, which the table keeps. What is no cell of that schema is an error with the
//! field and the byte. Why it is so: `docs/decisions/41-records-as-cells.md`.

mod read;
mod write;

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};
use marquetry_parquet::record::{FieldForm, Program};
use marquetry_parquet::schema::PhysicalType;

pub use read::Sinks;
pub use write::CellWriter;

/// The first byte of a cell.
pub const VERSION: u8 = 1;

/// How records of a schema are cells: what is written and read for each field.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_base::Budget;
/// use marquetry_parquet::batch::Batch;
/// use marquetry_parquet::record::Program;
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Plan, Schema};
/// use marquetry_scylla::packed::{CellWriter, Packing};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
/// let program = Program::plan(Arc::new(Schema::of_fields(&[id])?), None).at_once()?;
/// let packing = Arc::new(Packing::new(Arc::new(program))?);
/// let mut cells = CellWriter::new(Arc::clone(&packing));
/// let batch = Batch::of_values([vec![-1_i64, 300].into()])?;
/// packing.program().records(&batch)?.step(&mut cells, &mut Budget::unlimited())?;
/// assert_eq!(cells.take()?.iter().collect::<Vec<_>>(), [&[1, 1][..], &[1, 0xd8, 4]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Packing {
    program: Arc<Program>,
    /// By the program's fields.
    fields: Vec<FieldPlan>,
    roots: Vec<usize>,
    /// The record's own fields that may be null.
    root_bits: usize,
}

/// What is written for a field.
#[derive(Debug, Clone)]
struct FieldPlan {
    form: FieldForm,
    is_nullable: bool,
    /// Of a field of a struct or of the record: its bit, if it may be null.
    bit: usize,
    /// The fields in it, and how many of them may be null.
    children: Vec<usize>,
    bits: usize,
    /// The fewest bytes of a value.
    bytes_min: usize,
}

impl Packing {
    /// Plans cells for the records of a program.
    ///
    /// # Errors
    ///
    /// `Unsupported` for lists whose elements take no bytes, as values of FIXED_LEN_BYTE_ARRAY(0) do.
    pub fn new(program: Arc<Program>) -> Result<Packing> {
        let mut fields = Vec::with_capacity(program.fields().len());
        for number in 0..program.fields().len() {
            let form = program.form(number).ok_or_else(|| Error::internal("a field without a form"))?;
            let children = program.children(number).collect();
            let (form, is_nullable) = form;
            fields.push(FieldPlan { form, is_nullable, bit: 0, children, bits: 0, bytes_min: 0 });
        }
        let mut packing = Packing { roots: program.roots().collect(), program, fields, root_bits: 0 };
        packing.root_bits = packing.number_bits(&packing.roots.clone())?;
        // Fields come after what they are in.
        for number in (0..packing.fields.len()).rev() {
            packing.plan(number)?;
        }
        Ok(packing)
    }

    /// The program whose records these are.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether the record has one field, and that may be null.
    pub fn is_one_nullable(&self) -> bool {
        matches!(*self.roots, [only] if self.fields.get(only).is_some_and(|field| field.is_nullable))
    }

    fn plan(&mut self, number: usize) -> Result<()> {
        let (form, children) = match self.fields.get(number) {
            Some(field) => (field.form, field.children.clone()),
            None => return Err(missing()),
        };
        let bits = self.number_bits(&children)?;
        let needed = |packing: &Packing| {
            let needed = children.iter().filter_map(|child| packing.fields.get(*child));
            needed
                .filter(|child| !child.is_nullable)
                .map(|child| child.bytes_min)
                .fold(0, usize::saturating_add)
        };
        let bytes_min = match form {
            FieldForm::Leaf(PhysicalType::Boolean | PhysicalType::ByteArray) => 1,
            FieldForm::Leaf(PhysicalType::Int32 | PhysicalType::Int64) => 1,
            FieldForm::Leaf(other) => other.width().unwrap_or(1),
            FieldForm::Struct => bits.div_ceil(8).saturating_add(needed(self)),
            FieldForm::List | FieldForm::Map => {
                // Otherwise a few bytes could claim any number of elements.
                if bits == 0 && needed(self) == 0 {
                    let error = Error::unsupported("a list of values without bytes");
                    let path = self.program.path(number);
                    return Err(error.at(|place| place.column = path));
                }
                1
            }
        };
        if let Some(field) = self.fields.get_mut(number) {
            (field.bits, field.bytes_min) = (bits, bytes_min);
        }
        Ok(())
    }

    /// Gives those of some fields a bit that may be null; how many they are.
    fn number_bits(&mut self, fields: &[usize]) -> Result<usize> {
        let mut bits = 0;
        for number in fields {
            let field = self.fields.get_mut(*number).ok_or_else(missing)?;
            if field.is_nullable {
                field.bit = bits;
                bits += 1;
            }
        }
        Ok(bits)
    }

    fn field(&self, number: usize) -> Result<&FieldPlan> {
        self.fields.get(number).ok_or_else(missing)
    }
}

fn missing() -> Error {
    Error::internal("an event about a field that is not there")
}

#[cfg(test)]
mod tests;
