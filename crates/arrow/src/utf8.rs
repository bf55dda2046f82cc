//! Whether strings are UTF-8: in a fraction of the time that it takes to look at each, where they are ASCII.

use marquetry_base::Bytes;
use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_parquet::batch::{ByteArrays, INLINE_BYTES_MAX};

/// The first bit of each byte, which ASCII has not.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// The same, of the four bytes of a view that follow its length.
const HIGH_BITS_OF_FIRST: u64 = HIGH_BITS << 32;
/// Bytes between two strings that are looked at together: in a PLAIN page, the length of the second.
const BETWEEN_BYTES_MAX: u64 = 4;
/// Bytes of strings that are looked at together: if they are not ASCII, each string is looked at.
const TOGETHER_BYTES_MAX: u64 = 8 << 10;

/// What the views of strings say without their pages, if those of short ones are padded with zeros, as Arrow's are.
pub(crate) struct Strings<'v> {
    values: &'v ByteArrays,
    /// All are in their views.
    pub(crate) are_short: bool,
    /// Those in their views are ASCII.
    are_short_ones_ascii: bool,
    /// The bytes of those that are not in their views.
    long_bytes: u64,
}

impl<'v> Strings<'v> {
    pub(crate) fn of(values: &'v ByteArrays) -> Strings<'v> {
        // The bits of the short ones, all together.
        let (mut first, mut rest, mut long_bytes) = (0, 0, 0_u64);
        for view in values.views().iter() {
            let [low, high]: [u64; 2] = bytemuck::cast(*view);
            let length = low & 0xffff_ffff;
            let kept = if length <= INLINE_MAX { u64::MAX } else { 0 };
            first |= low & kept;
            rest |= high & kept;
            // At most 2^31 views of 2^32 bytes.
            long_bytes += length & !kept;
        }
        let are_short_ones_ascii = first & HIGH_BITS_OF_FIRST == 0 && rest & HIGH_BITS == 0;
        Strings { values, are_short: long_bytes == 0, are_short_ones_ascii, long_bytes }
    }

    /// Whether all of them are UTF-8. Their views are inside their pages.
    pub(crate) fn are_text(&self) -> bool {
        let values = self.values;
        let views = values.views();
        if !self.are_short_ones_ascii && !(0..views.len()).all(|at| is_long(views[at]) || is_utf8(values, at))
        {
            return false;
        }
        if self.are_short {
            return true;
        }
        match self.are_shared() {
            true => are_parts_of_text(values) || are_ranges_text(values),
            false => are_long_ones_text(values),
        }
    }

    /// Whether some share their bytes, as those of a dictionary do: it is less to look at the bytes than at each of them.
    pub(crate) fn are_shared(&self) -> bool {
        let buffers = self.values.buffers().iter();
        let held = buffers.fold(0, |sum: u64, buffer| sum.saturating_add(u64_of(buffer.len())));
        self.long_bytes > held
    }

    /// Views of which each is there once, unless it has its string itself; and for each string the place of its view among them. Of fewer than 2^32
    /// strings.
    pub(crate) fn distinct(&self) -> (Vec<u128>, Vec<u32>) {
        let mut ranges = Ranges::of(self.values.buffers());
        let (mut views, mut places) = (Vec::new(), Vec::with_capacity(self.values.len()));
        for view in self.values.views().iter() {
            let next = u32::try_from(views.len()).unwrap_or(u32::MAX);
            let place = if is_long(*view) { ranges.place(*view, next) } else { next };
            if place == next {
                views.push(*view);
            }
            places.push(place);
        }
        (views, places)
    }
}

/// Ranges of bytes that were met, by where they begin: those of a dictionary's strings do not overlap, so each has a slot of its own. Of others, one
/// that lost its slot is taken for a new one.
struct Ranges {
    /// The first slot of each buffer.
    firsts: Vec<usize>,
    /// The start and the length of the range that was met last.
    met: Vec<u64>,
    places: Vec<u32>,
}

impl Ranges {
    fn of(buffers: &[Bytes]) -> Ranges {
        let (mut firsts, mut slots) = (Vec::with_capacity(buffers.len()), 0);
        for buffer in buffers {
            firsts.push(slots);
            slots += buffer.len() / LONG_BYTES_MIN + 1;
        }
        // Memory of zeros takes none until it is used.
        Ranges { firsts, met: vec![0; slots], places: vec![0; slots] }
    }

    /// The place of the range that a view shows: `next`, if it is a new one.
    fn place(&mut self, view: u128, next: u32) -> u32 {
        let [length, _, buffer, start]: [u32; 4] = bytemuck::cast(view);
        let slot = self.firsts.get(usize_of_u32(buffer));
        let slot = slot.map_or(usize::MAX, |first| first + usize_of_u32(start) / LONG_BYTES_MIN);
        let (Some(met), Some(place)) = (self.met.get_mut(slot), self.places.get_mut(slot)) else {
            return next;
        };
        // Never zero, because of the length.
        let range = u64::from(start) << 32 | u64::from(length);
        if *met == range {
            return *place;
        }
        (*met, *place) = (range, next);
        next
    }
}

/// Whether values that are longer than a view are UTF-8, of which many have the same bytes.
fn are_ranges_text(values: &ByteArrays) -> bool {
    let mut ranges = Ranges::of(values.buffers());
    values.views().iter().enumerate().filter(|(_, view)| is_long(**view)).all(|(at, view)| {
        // Places are numbers of strings here: the first with these bytes says what they are.
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        ranges.place(*view, number) != number || is_utf8(values, at)
    })
}

/// Whether pages are UTF-8 as a whole, and values that are longer than a view whole characters of them.
fn are_parts_of_text(values: &ByteArrays) -> bool {
    let texts = values.buffers().iter().map(|buffer| std::str::from_utf8(buffer).ok());
    let Some(texts) = texts.collect::<Option<Vec<&str>>>() else { return false };
    texts.iter().all(|text| text.is_ascii())
        || values.views().iter().filter(|view| is_long(**view)).all(|view| {
            let [length, _, buffer, start]: [u32; 4] = bytemuck::cast(*view);
            let (buffer, start) = (usize_of_u32(buffer), usize_of_u32(start));
            texts.get(buffer).is_some_and(|text| text.get(start..start + usize_of_u32(length)).is_some())
        })
}

/// Bytes of strings that are not in their views, at least.
const LONG_BYTES_MIN: usize = INLINE_BYTES_MAX + 1;
/// [`INLINE_BYTES_MAX`], as a part of a view.
const INLINE_MAX: u64 = 12;
const _: () = assert!(INLINE_BYTES_MAX == 12);

fn is_long(view: u128) -> bool {
    let [low, _]: [u64; 2] = bytemuck::cast(view);
    low & 0xffff_ffff > INLINE_MAX
}

fn is_utf8(values: &ByteArrays, at: usize) -> bool {
    std::str::from_utf8(values.get(at)).is_ok()
}

/// Bytes of a buffer with long strings that follow one another, and the numbers of the first and of the last of them.
struct Together {
    buffer: u32,
    start: u64,
    end: u64,
    first: usize,
    last: usize,
}

impl Together {
    fn are_text(&self, values: &ByteArrays) -> bool {
        let of = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let buffer = values.buffers().get(of(self.buffer.into()));
        let bytes = buffer.and_then(|all| all.get(of(self.start)..of(self.end)));
        bytes.is_some_and(<[u8]>::is_ascii) || (self.first..=self.last).all(|at| is_utf8(values, at))
    }
}

/// Whether values that are longer than a view are UTF-8.
fn are_long_ones_text(values: &ByteArrays) -> bool {
    let mut together: Option<Together> = None;
    for (at, view) in values.views().iter().enumerate() {
        let [length, _, buffer, start]: [u32; 4] = bytemuck::cast(*view);
        if u64::from(length) <= INLINE_MAX {
            continue;
        }
        let (start, end) = (u64::from(start), u64::from(start) + u64::from(length));
        match &mut together {
            Some(now)
                if now.buffer == buffer
                    && start >= now.end
                    && start - now.end <= BETWEEN_BYTES_MAX
                    && end - now.start <= TOGETHER_BYTES_MAX =>
            {
                (now.end, now.last) = (end, at);
            }
            _ => {
                let next = Together { buffer, start, end, first: at, last: at };
                if together.replace(next).is_some_and(|before| !before.are_text(values)) {
                    return false;
                }
            }
        }
    }
    together.is_none_or(|last| last.are_text(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::batch::Values;

    fn is_text(values: &ByteArrays) -> bool {
        Strings::of(values).are_text()
    }

    fn of(values: &[&[u8]]) -> ByteArrays {
        match values.iter().collect::<Values>() {
            Values::ByteArray(values) => values,
            other => panic!("{other:?}"),
        }
    }

    /// The same as a PLAIN page has them: each after its length.
    fn of_page(values: &[&[u8]]) -> ByteArrays {
        let (mut page, mut views) = (Vec::new(), Vec::new());
        for value in values {
            let length = u32::try_from(value.len()).unwrap();
            page.extend_from_slice(&length.to_le_bytes());
            let start = u32::try_from(page.len()).unwrap();
            page.extend_from_slice(value);
            let mut view = [0; 16];
            view[..4].copy_from_slice(&length.to_le_bytes());
            if value.len() <= INLINE_BYTES_MAX {
                view[4..4 + value.len()].copy_from_slice(value);
            } else {
                view[4..8].copy_from_slice(&value[..4]);
                view[12..].copy_from_slice(&start.to_le_bytes());
            }
            views.push(u128::from_le_bytes(view));
        }
        ByteArrays::new(views.into(), std::sync::Arc::new(vec![page.into()]))
    }

    #[test]
    fn each_string_is_text_by_itself() {
        let long = "a string that is longer than a view".as_bytes();
        let letters = "żółw 🐢, and more than a view has".as_bytes();
        let very_long = "x".repeat(300);
        let texts: [&[u8]; 7] =
            [b"", b"a", b"twelve bytes", "żółw 🐢".as_bytes(), long, letters, very_long.as_bytes()];
        let bad: [&[u8]; 6] = [
            b"\xff",
            b"eleven byt\xc5",
            b"twelve byte\xc5",
            b"more than twelve \xc5",
            b"\x80 begins with the end of one",
            &[0xff; 300],
        ];
        for make in [of, of_page] {
            assert!(is_text(&make(&[])));
            assert!(is_text(&make(&texts)));
            for good in texts {
                assert!(is_text(&make(&[good; 3])), "{good:?}");
                for bad in bad {
                    for values in [[bad, good, good], [good, bad, good], [good, good, bad]] {
                        assert!(!is_text(&make(&values)), "{values:?}");
                    }
                }
            }
            // The two parts of a letter, of which all bytes together are text.
            assert!(!is_text(&make(&[b"a letter is in two par\xc5", b"\xbcs, of which neither is text"])));
            assert!(!is_text(&make(&[b"\xc5", b"\xbc"])));
            // More than is looked at together, with one that is not text at any place.
            let mut many = vec![long; 1000];
            assert!(is_text(&make(&many)));
            for at in [0, 1, 233, 234, 235, 999] {
                many[at] = bad[3];
                assert!(!is_text(&make(&many)), "{at}");
                many[at] = letters;
                assert!(is_text(&make(&many)), "{at}");
                many[at] = long;
            }
        }
    }

    /// Values of a page, some of them many times.
    fn of_dictionary(entries: &[&[u8]], keys: impl Iterator<Item = usize>) -> ByteArrays {
        let entries = of_page(entries);
        let views: Vec<u128> = keys.map(|key| entries.views()[key]).collect();
        ByteArrays::new(views.into(), std::sync::Arc::clone(entries.buffers()))
    }

    #[test]
    fn entries_of_a_dictionary_are_text_together() {
        let ascii: &[u8] = b"a string that is longer than a view";
        let letters = "żółw 🐢, and more than a view has".as_bytes();
        let bad: &[u8] = b"more than twelve \xc5";
        // The length of 256 bytes is no text, as that of a dictionary's page.
        let (long, at_128) = ("x".repeat(256), "x".repeat(0x80));
        for entries in [[ascii, ascii], [ascii, letters], [letters, b"short"], [ascii, long.as_bytes()]] {
            let values = of_dictionary(&entries, (0..1000).map(|at| at % 2));
            assert!(are_parts_of_text(&values) && is_text(&values), "{entries:?}");
        }
        // And neither is that of 128 bytes: each entry is looked at, once.
        let values = of_dictionary(&[ascii, at_128.as_bytes()], (0..1000).map(|at| at % 2));
        assert!(!are_parts_of_text(&values) && are_ranges_text(&values) && is_text(&values));
        let (views, places) = Strings::of(&values).distinct();
        assert_eq!((views.len(), &places[..4]), (2, &[0, 1, 0, 1][..]));
        assert!((0..1000).all(|at| views[usize_of_u32(places[at])] == values.views()[at]));
        for bad in [bad, letters] {
            let entries = [at_128.as_bytes(), bad, b"short"];
            let values = of_dictionary(&entries, (0..1000).map(|at| at % 3));
            assert_eq!(is_text(&values), bad == letters);
            // Those in their views are there as often as they are.
            assert_eq!(Strings::of(&values).distinct().0.len(), 2 + 333);
        }
        for entries in [[ascii, bad], [letters, bad], [b"short", bad]] {
            let values = of_dictionary(&entries, (0..1000).map(|at| at % 2));
            assert!(!are_parts_of_text(&values) && !is_text(&values), "{entries:?}");
            // What no value has is nobody's.
            assert!(is_text(&of_dictionary(&entries, (0..1000).map(|_| 0))), "{entries:?}");
        }
        // Parts of a page that is text, which are not.
        let page = of_page(&[letters]);
        for (start, is_whole) in [(4, true), (5, false), (6, true)] {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&20_u32.to_le_bytes());
            view[12..].copy_from_slice(&u32::to_le_bytes(start));
            let views = vec![u128::from_le_bytes(view); 100];
            let values = ByteArrays::new(views.into(), std::sync::Arc::clone(page.buffers()));
            assert_eq!((are_parts_of_text(&values), is_text(&values)), (is_whole, is_whole), "{start}");
        }
    }

    /// Ranges that overlap, which no decoder makes: each is met as often as another has taken its slot.
    #[test]
    fn ranges_that_overlap_are_ranges_of_their_own() {
        let page = of_page(&["a żółw, and more than a view has, and more".as_bytes()]);
        let view = |start: u32, length: u32| {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&length.to_le_bytes());
            view[12..].copy_from_slice(&start.to_le_bytes());
            u128::from_le_bytes(view)
        };
        let of = |views: Vec<u128>| ByteArrays::new(views.into(), std::sync::Arc::clone(page.buffers()));
        // All have one slot.
        let good = of([view(4, 30), view(5, 29), view(4, 30), view(4, 31)].repeat(9));
        assert!(are_ranges_text(&good));
        assert_eq!(Strings::of(&good).distinct().0.len(), 4 * 9);
        assert!(!are_ranges_text(&of([view(4, 30), view(7, 27), view(4, 30)].repeat(9))));
        // A buffer that is not there, and a place beyond one, are nobody's.
        let mut ranges = Ranges::of(page.buffers());
        assert_eq!([ranges.place(view(u32::MAX, 20), 7), ranges.place(1 << 64 | 20, 8)], [7, 8]);
    }

    #[test]
    fn short_strings_are_in_their_views() {
        assert!(Strings::of(&of(&[b"", b"twelve bytes"])).are_short);
        assert!(!Strings::of(&of(&[b"", b"thirteen byte"])).are_short);
    }
}
