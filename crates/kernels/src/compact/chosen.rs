//! Which lanes of a vector are chosen, for processors that permute a vector's parts as a table says.

/// For each set of lanes of a vector, of `PARTS_A_LANE` of its `PARTS` parts each: the parts of those in the set, in order, and then anything.
pub(super) const fn chosen<const SETS: usize, const PARTS_A_LANE: usize, const PARTS: usize>()
-> [[u8; PARTS]; SETS] {
    let mut table = [[0; PARTS]; SETS];
    let mut set = 0;
    while set < SETS {
        let (mut part, mut next) = (0, 0);
        while part < PARTS {
            if set >> (part / PARTS_A_LANE) & 1 == 1 {
                table[set][next] = part as u8;
                next += 1;
            }
            part += 1;
        }
        set += 1;
    }
    table
}

/// Of eight lanes.
pub(crate) static OF_8: [[u8; 8]; 256] = chosen::<256, 1, 8>();
/// Of four.
#[cfg(target_arch = "x86_64")]
pub(super) static OF_4: [[u8; 8]; 16] = chosen::<16, 2, 8>();
