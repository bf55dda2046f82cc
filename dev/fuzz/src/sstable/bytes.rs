//! Bytes, and how numbers are appended to them.

/// Bytes of a component.
#[derive(Debug, Clone, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Appends bytes.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.0.extend(bytes);
        self
    }

    /// A number of one byte.
    pub fn u8(&mut self, number: u8) -> &mut Bytes {
        self.raw(&[number])
    }

    /// A number of two bytes.
    pub fn u16(&mut self, number: u16) -> &mut Bytes {
        self.raw(&number.to_be_bytes())
    }

    /// A number of four bytes.
    pub fn u32(&mut self, number: u32) -> &mut Bytes {
        self.raw(&number.to_be_bytes())
    }

    /// A number of eight bytes.
    pub fn u64(&mut self, number: u64) -> &mut Bytes {
        self.raw(&number.to_be_bytes())
    }

    /// A number of eight bytes.
    pub fn i64(&mut self, number: i64) -> &mut Bytes {
        self.raw(&number.to_be_bytes())
    }

    /// A number of eight bytes.
    pub fn f64(&mut self, number: f64) -> &mut Bytes {
        self.raw(&number.to_be_bytes())
    }

    /// Bytes after their length of two bytes.
    pub fn short(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.u16(bytes.len() as u16).raw(bytes)
    }

    /// Bytes after their length.
    pub fn long(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.vint(bytes.len() as u64).raw(bytes)
    }

    /// A number of any length.
    pub fn vint(&mut self, number: u64) -> &mut Bytes {
        let bits = 64 - (number | 1).leading_zeros();
        let length = (1..9).find(|bytes| bits <= 7 * bytes).unwrap_or(9) as usize;
        if length == 9 {
            return self.u8(0xff).u64(number);
        }
        let at = self.0.len();
        self.raw(&number.to_be_bytes()[8 - length..]);
        if length > 1 {
            self.0[at] |= !(0xff_u8 >> (length - 1));
        }
        self
    }
}
