//! Where the dense values go, for processors that permute a vector's parts as a table says.

/// Of a vector's part: it becomes zero.
const NONE: u8 = 0x80;

/// For each set of lanes of a vector, of `PARTS_A_LANE` parts each: which of the `PARTS` parts of the dense values comes to which place, or a
/// number that is larger than all.
pub(super) const fn places<const SETS: usize, const PARTS_A_LANE: usize, const PARTS: usize>()
-> [[u8; PARTS]; SETS] {
    let mut table = [[NONE; PARTS]; SETS];
    let mut set = 0;
    while set < SETS {
        let (mut place, mut next) = (0, 0);
        while place < PARTS {
            if set >> (place / PARTS_A_LANE) & 1 == 1 {
                table[set][place] = next;
                next += 1;
            }
            place += 1;
        }
        set += 1;
    }
    table
}
