//! Flags of what a partition consists of (`UnfilteredSerializer.java`), and of cells (`Cell.java`).

pub(super) const END_OF_PARTITION: u8 = 0x01;
pub(super) const IS_MARKER: u8 = 0x02;
pub(super) const HAS_TIMESTAMP: u8 = 0x04;
pub(super) const HAS_TTL: u8 = 0x08;
pub(super) const HAS_DELETION: u8 = 0x10;
pub(super) const HAS_ALL_COLUMNS: u8 = 0x20;
pub(super) const HAS_COMPLEX_DELETION: u8 = 0x40;
pub(super) const HAS_EXTENDED_FLAGS: u8 = 0x80;
pub(super) const IS_STATIC: u8 = 0x01;
pub(super) const IS_SHADOWABLE: u8 = 0x02;
/// ScyllaDB's: a deletion of its own, which is shadowable.
pub(super) const HAS_SHADOWABLE: u8 = 0x80;

pub(super) const IS_DELETED: u8 = 0x01;
pub(super) const IS_EXPIRING: u8 = 0x02;
pub(super) const IS_EMPTY: u8 = 0x04;
pub(super) const HAS_ROW_TIMESTAMP: u8 = 0x08;
pub(super) const HAS_ROW_TTL: u8 = 0x10;
pub(super) const EXPIRES_AS_ROW: u8 = IS_EXPIRING | HAS_ROW_TTL;
