//! ZSTD: Zstandard frames (RFC 8878), one or more per page, including skippable ones.
//!
//! Most frames are decoded by the C library, which gets one block at a time, the least that it decodes in one call. A
//! block whose matches are from far back takes it too long: each may miss all of the processor's caches. So a frame that
//! can refer back [`OWN_REACH_MIN`] bytes or more is decoded here (`frame`), by a decoder that can stop anywhere. It
//! takes and refuses what the library does, but for literals whose streams are not used up, which the library takes on
//! some processors: they are refused, as the RFC demands.
//!
//! If the host holds the complete page, both decode straight into it. Otherwise each keeps a window of its own and
//! copies from that, which costs up to a tenth for text, and twice the time for incompressible data. A frame's header
//! says how far back it refers, which may be any number: it is taken to say no more than the page has, and the host is
//! asked for that memory first.

mod bits;
mod block;
mod frame;
mod fse;
mod header;
mod huffman;
mod library;
mod literals;
mod sequences;
#[cfg(test)]
mod tests;
mod window;
mod work;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Codec, Decompressor, Error, Progress, Result, Status};

use self::frame::Frame;
use self::header::Header;
use self::library::{Input, Library};
use self::window::Window;
use self::work::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, Done, ELEMENTS_MIN, PRICE, Stop, Work};
use crate::page::{Page, Ratio};

/// The decompressor of Zstandard frames.
pub(crate) struct Zstd {
    page: Page,
    /// The host holds the complete page, of this many bytes.
    whole: Option<usize>,
    window_bytes_max: u64,
    own_reach_min: u64,
    expect: Expect,
    /// The header of the next frame, as far as it has arrived.
    header: Header,
    library: Library,
    /// Allocated for the first frame that it decodes.
    frame: Option<Box<Frame>>,
    /// A frame just ended, so the page may end.
    may_end: bool,
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    /// The header of a frame.
    Header,
    /// What the library makes of it.
    LibraryHeader,
    Library,
    /// A frame that is decoded here, with a window of so many bytes if the host does not hold the page.
    FrameStart {
        window: Option<usize>,
    },
    Frame,
}

/// Frames that can refer so far back are decoded here. Matches from less far back take the library little longer than
/// others, because a core's own cache holds what they refer to, or nearly.
const OWN_REACH_MIN: u64 = (2 << 20) + 1;

/// The smallest block: its header and, in a run-length block, a byte that repeats.
const BLOCK_COMPRESSED_BYTES_MIN: usize = BLOCK_HEADER_BYTES + 1;

/// The largest ratio: a block repeats one byte.
const RATIO_MAX: Ratio = Ratio { output: BLOCK_BYTES_MAX, input: BLOCK_COMPRESSED_BYTES_MIN };

impl Zstd {
    /// A reader that refuses windows of more than `window_bytes_max`.
    pub(crate) fn new(window_bytes_max: u64) -> Result<Zstd> {
        Zstd::with_reach(window_bytes_max, OWN_REACH_MIN)
    }

    /// A reader of pages that refer to a dictionary. Only the library decodes those, so they must be small.
    pub(crate) fn with_dictionary(window_bytes_max: u64, dictionary: &[u8]) -> Result<Zstd> {
        let mut zstd = Zstd::with_reach(window_bytes_max, u64::MAX)?;
        zstd.library.load_dictionary(dictionary)?;
        Ok(zstd)
    }

    /// A reader that leaves to the library what refers less far back than `own_reach_min`.
    fn with_reach(window_bytes_max: u64, own_reach_min: u64) -> Result<Zstd> {
        Ok(Zstd {
            page: Page::none(Codec::Zstd),
            whole: None,
            window_bytes_max,
            own_reach_min,
            expect: Expect::Header,
            header: Header::default(),
            library: Library::new()?,
            frame: None,
            may_end: false,
        })
    }
}

/// The frames of a page, and what decodes them.
struct Frames<'zstd> {
    whole: Option<usize>,
    expect: &'zstd mut Expect,
    header: &'zstd mut Header,
    library: &'zstd mut Library,
    frame: &'zstd mut Option<Box<Frame>>,
}

impl Frames<'_> {
    /// Units of what comes next, at the most; of what can be interrupted, units of the smallest slice.
    fn next_units(&self, page: &Page) -> u64 {
        match self.expect {
            Expect::Header | Expect::FrameStart { .. } | Expect::Frame => PRICE.of(0, ELEMENTS_MIN),
            Expect::LibraryHeader | Expect::Library => Library::next_units(page),
        }
    }

    /// Chooses what decodes the frame whose header is complete. Returns the bytes that this allocates beyond what it has.
    fn choose(&mut self, page: &Page, window_bytes_max: u64, own_reach_min: u64) -> Result<usize> {
        let Frames { whole, expect, header, library, frame } = self;
        **expect = Expect::LibraryHeader;
        let Some(window) = header.limit_window(page, window_bytes_max)? else { return Ok(0) };
        // In the page, the library does not look at the window: a match may refer to the frame's first byte.
        let owed = u64_of(page.owed());
        let reach = if whole.is_some() { owed } else { owed.min(window) };
        if reach < own_reach_min || !header.is_usual() {
            return match whole {
                Some(_) => Ok(0),
                None => library.lacks(window, header.sizes().and_then(|sizes| sizes.1)),
            };
        }
        let window = whole.is_none().then(|| Window::bytes_for(window));
        let bytes = usize_of(Frame::bytes_for(window)).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
        **expect = Expect::FrameStart { window: window.and_then(usize_of) };
        Ok(bytes.saturating_sub(frame.as_ref().map_or(0, |frame| frame.held())))
    }

    /// Decodes a part of a frame. `at` is where the next byte goes in `output`.
    fn decode(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        at: usize,
        page: &Page,
        budget: &mut Budget<'_>,
    ) -> Result<Done> {
        if let Some(length) = self.whole
            && (output.len() < length || length.checked_sub(at) != Some(page.owed()))
        {
            return Err(Error::misuse("the output is not the whole page, as was promised"));
        }
        match *self.expect {
            Expect::FrameStart { window } => {
                let frame = self.frame.get_or_insert_default();
                budget.charge(PRICE, 0, FRAME_ELEMENTS);
                if frame.begin(self.header, window, at, budget)? {
                    *self.expect = Expect::Frame;
                }
                Ok(Done { consumed: 0, produced: 0, stop: Stop::Tired })
            }
            Expect::Frame => {
                let frame = self.frame.get_or_insert_default();
                let mut work = Work::within(budget);
                let done = match self.whole {
                    Some(length) => frame.step(input, &mut output[..length], at, page, &mut work),
                    None => frame.step_in_window(input, &mut output[at..], page, &mut work),
                };
                budget.charge(PRICE, 0, work.elements);
                let (consumed, produced, stop) = done?;
                Ok(Done { consumed, produced, stop })
            }
            _ => {
                let is_header = matches!(self.expect, Expect::LibraryHeader);
                let from = if is_header { Input::Header(self.header.bytes()) } else { Input::More(input) };
                if self.library.lacks_input(&from) {
                    return Ok(Done { consumed: 0, produced: 0, stop: Stop::Input });
                }
                let mut too_much = [0];
                let (to, at) = match self.whole {
                    Some(length) => (&mut output[..length], at),
                    None => {
                        let room = &mut output[at..];
                        let length = room.len().min(page.owed()).min(BLOCK_BYTES_MAX);
                        match length {
                            0 if page.owed() > 0 => {
                                return Ok(Done { consumed: 0, produced: 0, stop: Stop::Room });
                            }
                            // If no output is expected, any output is too much.
                            0 => (&mut too_much[..], 0),
                            _ => (&mut room[..length], 0),
                        }
                    }
                };
                let done = self.library.call(&from, to, at, self.whole.is_some(), page, budget)?;
                *self.expect = Expect::Library;
                Ok(done)
            }
        }
    }
}

/// The cost of a frame that begins, in elements.
const FRAME_ELEMENTS: usize = 500;

impl Decompressor for Zstd {
    fn start(&mut self, compressed: usize, uncompressed: usize, whole: bool) -> Result<()> {
        self.page.start(compressed, uncompressed, RATIO_MAX)?;
        if self.own_reach_min == u64::MAX && u64_of(uncompressed) >= OWN_REACH_MIN {
            let error = Codec::Zstd.unsupported("a page of more than 2 MiB with a dictionary");
            self.page.fail(&error);
            return Err(error);
        }
        self.whole = whole.then_some(uncompressed);
        (self.expect, self.header) = (Expect::Header, Header::default());
        // Page V2: zero bytes may be compressed to zero bytes.
        self.may_end = compressed == 0;
        self.library.start(whole).inspect_err(|error| self.page.fail(error))
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let Zstd { page, whole, window_bytes_max, own_reach_min, expect, header, library, frame, may_end } =
            self;
        let mut frames = Frames { whole: *whole, expect, header, library, frame };
        page.step(input.len(), last, |page| {
            if history > output.len() {
                return Err(Error::misuse("what a decompressor produced before is more than its output"));
            }
            let (mut consumed, mut produced) = (0, 0);
            let status = loop {
                if page.unread() == 0 && *may_end {
                    if page.owed() > 0 {
                        return Err(page.too_short());
                    }
                    break Status::End;
                }
                let next = frames.next_units(page);
                if budget.spent() > 0 && (budget.left() < next || budget.is_spent()) {
                    break Status::Yield;
                }
                let input = &input[consumed..];
                if let Expect::Header = frames.expect {
                    let taken = frames.header.take(input);
                    consumed += taken;
                    *may_end = false;
                    page.advance(taken, 0);
                    if !frames.header.is_complete() {
                        if page.unread() == 0 {
                            return Err(page.truncated());
                        }
                        break Status::NeedInput;
                    }
                    match frames.choose(page, *window_bytes_max, *own_reach_min)? {
                        0 => continue,
                        lacks => break Status::NeedMemory(lacks),
                    }
                }
                let done = frames.decode(input, output, history + produced, page, budget)?;
                (consumed, produced) = (consumed + done.consumed, produced + done.produced);
                page.advance(done.consumed, done.produced);
                match done.stop {
                    Stop::End => {
                        (*frames.expect, *frames.header, *may_end) =
                            (Expect::Header, Header::default(), true);
                    }
                    Stop::Room => break Status::NeedRoom,
                    Stop::Input if page.unread() == 0 => return Err(page.truncated()),
                    Stop::Input => break Status::NeedInput,
                    Stop::Tired | Stop::Block => {}
                }
            };
            Ok(Progress { consumed, produced, status })
        })
    }

    /// 0: it has a window of its own.
    fn history_bytes(&self) -> usize {
        0
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.library.held() + self.frame.as_ref().map_or(0, |frame| frame.held())
    }
}
