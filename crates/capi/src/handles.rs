//! Handles: numbers in the shape of pointers, and the table of what they mean.
//!
//! From the highest bit: 1, which no address of a program has; how often the slot of the table was used; the slot's number; and 1, which no pointer that is
//! aligned has. A slot whose handle was freed is used again last, and never while its thread's pool has [`FREE_LEAST`] or fewer: with 64 bits, an old handle is
//! taken for a new one only after 2³¹ times as many handles, which no process lives to see.
//!
//! Free slots are in pools: each thread takes from one and gives to it, which it shares only where there are more than [`POOLS`] threads. What a pool lacks,
//! or has too many of, it exchanges with a common one, many slots at a time. So threads do not wait for each other when handles are made and freed.

use core::cell::{Cell, UnsafeCell};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

use crate::allocator::is_asking;
use crate::reserve;

/// A machine: something that reads or writes in steps. Owned by the host: `marquetry_machine_free`.
///
/// Of a machine one thread has the use at a time; between calls it may move to another.
pub struct marquetry_machine(());
/// What the footer of a file says. Owned by the host: `marquetry_metadata_free`. Thread rules as of a machine.
pub struct marquetry_metadata(());
/// An error. Owned by the host: `marquetry_error_free`. Thread rules as of a machine.
pub struct marquetry_error(());

/// What a handle of a kind leads to.
pub(crate) trait Kind: Sized + Send {
    /// The type of the handle.
    type Handle;
    /// The number of the kind; not 0.
    const NUMBER: u64;
    /// What messages call it.
    const NAME: &'static str;
}

/// A slot's phases, in the lowest byte of its state; above it are the kind, and how many-th handle it is.
const FREE: u64 = 0;
const IDLE: u64 = 1;
const BUSY: u64 = 2;
const POISONED: u64 = 3;
const KIND_SHIFT: u32 = 8;
const TURN_SHIFT: u32 = 16;
/// Bits of a handle that are its slot's number, after the lowest.
const SLOT_BITS: usize = if HANDLE_BITS == 64 { 31 } else { 20 };
/// Bits of a handle that count the uses of its slot, between those of its number and the highest.
const TURN_BITS: usize = HANDLE_BITS - SLOT_BITS - 2;
const TURN_MASK: u64 = (1 << TURN_BITS) - 1;
#[expect(clippy::manual_bits, reason = "`usize::BITS` is no usize")]
const HANDLE_BITS: usize = 8 * size_of::<usize>();
const HIGHEST: usize = 1 << (HANDLE_BITS - 1);

/// Slots do not share lines of the cache: threads use them at the same time.
#[repr(C, align(64))]
struct Slot {
    state: AtomicU64,
    /// Its number in the table, which does not change.
    number: usize,
    /// What the handle leads to: a box of the kind's type. Whoever made the slot busy has it alone.
    inner: UnsafeCell<*mut ()>,
    /// The next free slot. Behind the lock of the pool that the slot is in.
    next: UnsafeCell<*const Slot>,
}

/// Slots of the first block; each following block has twice as many.
const FIRST_SLOTS: usize = 1 << FIRST_BITS;
const FIRST_BITS: usize = 7;
/// As many as there are numbers of slots.
const BLOCKS: usize = SLOT_BITS - FIRST_BITS;
const _: () = assert!(((FIRST_SLOTS << BLOCKS) - FIRST_SLOTS) >> SLOT_BITS == 0);

/// The blocks of slots, which are never freed: so a handle can be looked at whatever it is.
static TABLE: [AtomicPtr<Slot>; BLOCKS] = [const { AtomicPtr::new(null_mut()) }; BLOCKS];
/// Blocks that there are.
static BLOCKS_MADE: AtomicUsize = AtomicUsize::new(0);

/// Pools of threads: more than most machines have cores.
const POOLS: usize = 64;
/// A pool with as few free slots takes more before it uses them: so a slot rests while as many others are used.
const FREE_LEAST: usize = 64;
/// Slots that a pool takes from the common one at a time.
const FREE_TAKEN: usize = 2 * FREE_LEAST;
/// A pool with more gives as many as it took to the common one: a thread may free what others make.
const FREE_MOST: usize = FREE_LEAST + 2 * FREE_TAKEN;
// The first handle makes one block, and a pool can use it.
const _: () = assert!(FIRST_SLOTS >= FREE_TAKEN && FREE_TAKEN > FREE_LEAST);

/// Pools do not share lines of the cache.
#[repr(align(64))]
struct OfThreads(Mutex<Pool>);

static OF_THREADS: [OfThreads; POOLS] = [const { OfThreads(Mutex::new(Pool::EMPTY)) }; POOLS];
/// What no thread's pool has. It is locked after a thread's, never before.
static COMMON: Mutex<Pool> = Mutex::new(Pool::EMPTY);

/// Free slots, as a queue.
struct Pool {
    first: *const Slot,
    last: *const Slot,
    count: usize,
}

// SAFETY: the pointers lead to slots, which are never freed; their `next` is used behind the lock only.
unsafe impl Send for Pool {}

/// A slot to use.
fn take() -> Result<&'static Slot> {
    loop {
        let blocks = BLOCKS_MADE.load(Ordering::Acquire);
        let mut pool = pool();
        if pool.count <= FREE_LEAST {
            pool.move_from(&mut common(), FREE_TAKEN);
        }
        if pool.count > FREE_LEAST
            && let Some(slot) = pool.take()
        {
            return Ok(slot);
        }
        drop(pool);
        grow(blocks)?;
    }
}

/// Gives a slot back, to the pool of the thread that freed it.
fn give(slot: &'static Slot) {
    let mut pool = pool();
    pool.give(slot);
    if pool.count > FREE_MOST {
        common().move_from(&mut pool, FREE_TAKEN);
    }
}

/// The pool of this thread. Each new thread has the next one.
fn pool() -> MutexGuard<'static, Pool> {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let number = match NUMBER.get() {
        usize::MAX => {
            let number = THREADS.fetch_add(1, Ordering::Relaxed) % POOLS;
            NUMBER.set(number);
            number
        }
        number => number,
    };
    OF_THREADS[number].0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn common() -> MutexGuard<'static, Pool> {
    COMMON.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a block of slots to as many as there were. No pool is locked while the allocator is asked: another thread may be faster.
fn grow(blocks: usize) -> Result<()> {
    let place = TABLE.get(blocks).ok_or_else(|| Error::too_large("more handles than there can be"))?;
    let slots = FIRST_SLOTS << blocks;
    let bytes = slots.saturating_mul(size_of::<Slot>());
    let layout = Layout::array::<Slot>(slots).map_err(|_| Error::out_of_memory(bytes))?;
    // SAFETY: the layout is not empty. Zero is a slot that is free and leads nowhere.
    let block: *mut Slot = unsafe { alloc_zeroed(layout) }.cast();
    if block.is_null() {
        return Err(Error::out_of_memory(bytes));
    }
    if let Err(error) = reserve::kept(()) {
        // SAFETY: from above, with this layout. The table is never freed: nothing of it may be lent.
        unsafe { dealloc(block.cast(), layout) };
        return Err(error);
    }
    for at in 0..slots {
        // SAFETY: within the block, which nobody else has yet.
        unsafe { (*block.add(at)).number = first_of(blocks) + at };
    }
    let mut common = common();
    if BLOCKS_MADE.load(Ordering::Relaxed) > blocks {
        drop(common);
        // SAFETY: from above, with this layout, and nobody else has it.
        unsafe { dealloc(block.cast(), layout) };
        return Ok(());
    }
    place.store(block, Ordering::Release);
    BLOCKS_MADE.store(blocks + 1, Ordering::Release);
    for at in 0..slots {
        // SAFETY: within the block, which is never freed.
        common.give(unsafe { &*block.add(at) });
    }
    Ok(())
}

/// The number of a block's first slot.
fn first_of(block: usize) -> usize {
    (FIRST_SLOTS << block) - FIRST_SLOTS
}

impl Pool {
    const EMPTY: Pool = Pool { first: core::ptr::null(), last: core::ptr::null(), count: 0 };

    /// Moves slots from another pool, as many as it has up to a number: those that rested longest.
    fn move_from(&mut self, other: &mut Pool, count: usize) {
        for _ in 0..count {
            let Some(slot) = other.take() else { return };
            self.give(slot);
        }
    }

    fn take(&mut self) -> Option<&'static Slot> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: a slot of the queue, which is in a block that is never freed; the lock is held.
        let slot: &'static Slot = unsafe { &*self.first };
        // SAFETY: as above.
        self.first = unsafe { *slot.next.get() };
        if self.first.is_null() {
            self.last = core::ptr::null();
        }
        self.count -= 1;
        Some(slot)
    }

    fn give(&mut self, slot: &'static Slot) {
        let address: *const Slot = slot;
        // SAFETY: `next` is used behind the lock only, which is held.
        unsafe { *slot.next.get() = core::ptr::null() };
        if self.last.is_null() {
            self.first = address;
        } else {
            // SAFETY: as above, of the last slot of the queue.
            unsafe { *(*self.last).next.get() = address };
        }
        self.last = address;
        self.count += 1;
    }
}

/// The handle of a slot that was used so many times before.
fn handle_of(slot: &Slot, turn: u64) -> usize {
    let turn = usize::try_from(turn & TURN_MASK).unwrap_or(0);
    HIGHEST | turn << (SLOT_BITS + 1) | slot.number << 1 | 1
}

/// The slot that a handle leads to, if it is in the table, and the bits that count.
fn slot_of(handle: usize) -> Option<(&'static Slot, u64)> {
    if handle & HIGHEST == 0 || handle & 1 == 0 {
        return None;
    }
    let number = handle >> 1 & ((1 << SLOT_BITS) - 1);
    let block = (number / FIRST_SLOTS + 1).ilog2();
    let block = usize::try_from(block).ok()?;
    let slots = TABLE.get(block)?.load(Ordering::Acquire);
    if slots.is_null() {
        return None;
    }
    // SAFETY: the block has the numbers from its first one on, twice as many as the block before; it is never freed, and is shared only as `&Slot`.
    let slot = unsafe { &*slots.add(number - first_of(block)) };
    Some((slot, u64_of(handle >> (SLOT_BITS + 1)) & TURN_MASK))
}

/// A box, or the error that its memory was refused.
pub(crate) fn boxed<T>(value: T) -> Result<Box<T>> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Ok(Box::new(value));
    }
    // SAFETY: the layout is not empty; the value is written before the box is made of it.
    unsafe {
        let memory: *mut T = std::alloc::alloc(layout).cast();
        if memory.is_null() {
            return Err(Error::out_of_memory(layout.size()));
        }
        memory.write(value);
        Ok(Box::from_raw(memory))
    }
}

/// A new handle.
pub(crate) fn create<K: Kind>(value: K) -> Result<*mut K::Handle> {
    let inner = Box::into_raw(boxed(value)?);
    let slot = match take() {
        Ok(slot) => slot,
        Err(error) => {
            // SAFETY: from `into_raw` above.
            drop(unsafe { Box::from_raw(inner) });
            return Err(error);
        }
    };
    // SAFETY: the slot is free and was taken out of the queue: nobody else has it.
    unsafe { *slot.inner.get() = inner.cast() };
    let turn = slot.state.load(Ordering::Relaxed) >> TURN_SHIFT;
    slot.state.store(turn << TURN_SHIFT | K::NUMBER << KIND_SHIFT | IDLE, Ordering::Release);
    let handle = without_provenance_mut(handle_of(slot, turn));
    if let Err(error) = reserve::kept(()) {
        free::<K>(handle)?;
        return Err(error);
    }
    Ok(handle)
}

/// The use of a handle, which ends when it is dropped: what it leads to is then idle, or poisoned by a panic.
struct Use {
    slot: &'static Slot,
    state: u64,
    after: u64,
}

impl Use {
    fn begin<K: Kind>(handle: *const K::Handle, may_be_poisoned: bool) -> Result<Use> {
        if handle.is_null() {
            return Err(Error::misuse(format!("a handle of {} that is NULL", K::NAME)));
        }
        let unknown = || Error::misuse(format!("a handle of {} that this library did not make", K::NAME));
        let (slot, turn) = slot_of(handle.addr()).ok_or_else(unknown)?;
        loop {
            let state = slot.state.load(Ordering::Acquire);
            let freed = || Error::misuse(format!("a handle of {} that was freed", K::NAME));
            if state & 0xff == FREE || state >> TURN_SHIFT & TURN_MASK != turn {
                return Err(freed());
            }
            if state >> KIND_SHIFT & 0xff != K::NUMBER {
                return Err(Error::misuse(format!("a handle of another kind, not of {}", K::NAME)));
            }
            match state & 0xff {
                BUSY => {
                    let what =
                        "which is in use: by another thread, or by the call that this one is made from";
                    return Err(Error::misuse(format!("a handle of {}, {what}", K::NAME)));
                }
                POISONED if !may_be_poisoned => {
                    return Err(Error::internal(format!(
                        "a handle of {} in which a bug was found: it can only be freed",
                        K::NAME
                    )));
                }
                phase => {
                    let busy = state & !0xff | BUSY;
                    if slot.state.compare_exchange(state, busy, Ordering::Acquire, Ordering::Relaxed).is_ok()
                    {
                        return Ok(Use { slot, state: state & !0xff, after: phase });
                    }
                }
            }
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.slot.state.store(self.state | self.after, Ordering::Release);
    }
}

/// Does something with what a handle leads to. A panic poisons the handle.
pub(crate) fn with<K: Kind, R>(
    handle: *const K::Handle,
    work: impl FnOnce(&mut K) -> Result<R>,
) -> Result<R> {
    let mut r#use = Use::begin::<K>(handle, false)?;
    // SAFETY: the handle is of this kind, so the pointer is from `create`; the slot is busy, so nobody else uses it.
    let inner: &mut K = unsafe { &mut *(*r#use.slot.inner.get()).cast() };
    guarded(|| work(inner)).unwrap_or_else(|bug| {
        r#use.after = POISONED;
        Err(bug)
    })
}

/// Frees a handle, and what it leads to, unless it is poisoned: then that is left alone. NULL is none.
pub(crate) fn free<K: Kind>(handle: *mut K::Handle) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let r#use = Use::begin::<K>(handle, true)?;
    // SAFETY: the slot is busy, so nobody else uses it.
    let inner: *mut K = core::mem::replace(unsafe { &mut *r#use.slot.inner.get() }, null_mut()).cast();
    let (slot, turn) = (r#use.slot, (r#use.state >> TURN_SHIFT).wrapping_add(1));
    let is_poisoned = r#use.after == POISONED;
    core::mem::forget(r#use);
    let freed = if is_poisoned {
        Ok(())
    } else {
        // SAFETY: from `create`, and taken out of the slot: it is dropped once.
        guarded(|| drop(unsafe { Box::from_raw(inner) }))
    };
    slot.state.store(turn << TURN_SHIFT | FREE, Ordering::Release);
    give(slot);
    freed
}

/// Runs what may panic. The panic, which is a bug, becomes an error.
pub(crate) fn guarded<R>(work: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        // What drops it is code that may panic again.
        core::mem::forget(panic);
        Error::internal(format!("a bug of the library: {}", text.as_deref().unwrap_or("a panic")))
    })
}

/// A call that needs no handle, or has begun with one: the reserve for small allocations is there, and whatever the allocator refused in it
/// is an error, of any size: what a host passes in may be large, and so may texts of errors.
pub(crate) fn call<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    call_of_steps(|| reserve::section(work))
}

/// The same for calls that work in steps: there, what is large is asked for in a way that may be refused.
pub(crate) fn call_of_steps<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    let _begun = reserve::begin();
    if is_asking() {
        return Err(Error::misuse("a call of the library from a function of its allocator"));
    }
    let done = reserve::fill().and_then(|()| guarded(work)).and_then(|done| done);
    // Made before the call ends: it is small, and may be refused as well.
    match reserve::refused() {
        None => done,
        Some(bytes) => Err(Error::out_of_memory(bytes)),
    }
}

// SAFETY: `inner` is used by whoever made the slot busy, and `next` behind a pool's lock.
unsafe impl Sync for Slot {}

#[cfg(test)]
mod tests {
    use marquetry_base::ErrorKind;

    use super::*;

    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    struct Fragile;
    struct FragileHandle(());

    impl Kind for Fragile {
        type Handle = FragileHandle;
        const NUMBER: u64 = 9;
        const NAME: &'static str = "a test";
    }

    impl Drop for Fragile {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_panic_poisons_the_handle_and_what_it_held_is_left_alone() {
        let _ = FragileHandle(());
        let handle = create(Fragile).unwrap();
        let bug = with::<Fragile, ()>(handle, |_| panic!("on purpose")).unwrap_err();
        assert_eq!((bug.kind(), bug.message()), (ErrorKind::Internal, "a bug of the library: on purpose"));
        let again = with::<Fragile, ()>(handle, |_| Ok(())).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Internal);
        assert_eq!(free::<Fragile>(handle), Ok(()));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
        assert_eq!(free::<Fragile>(handle).unwrap_err().kind(), ErrorKind::Misuse);
        let whole = create(Fragile).unwrap();
        assert_eq!(free::<Fragile>(whole), Ok(()));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_slot_that_is_used_again_has_another_handle() {
        let mut before = std::collections::BTreeSet::new();
        // Many times the slots of the first block.
        for _ in 0..64 * 200 {
            let handle = create(Fragile2).unwrap();
            assert!(before.insert(handle.addr()));
            free::<Fragile2>(handle).unwrap();
        }
        assert!(before.iter().all(|&at| free::<Fragile2>(core::ptr::without_provenance_mut(at)).is_err()));
    }

    /// A slot rests while as many others are used as a pool keeps, also where another thread frees what this one makes.
    #[test]
    fn a_slot_rests_before_it_is_used_again() {
        let number = |handle: *mut FragileHandle| handle.addr() >> 1 & ((1 << SLOT_BITS) - 1);
        let mut last = std::collections::VecDeque::new();
        for turn in 0..5000 {
            let handle = create(Fragile2).unwrap();
            assert!(!last.contains(&number(handle)), "{turn}");
            last.push_back(number(handle));
            if last.len() == FREE_LEAST {
                last.pop_front();
            }
            free::<Fragile2>(handle).unwrap();
        }
    }

    /// Handles that one thread makes and another frees do not pile up in the other's pool: the table stays as small as what is in use.
    #[test]
    fn slots_return_to_those_that_need_them() {
        let (to, from) = std::sync::mpsc::sync_channel::<usize>(16);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for handle in from {
                    free::<Fragile2>(core::ptr::without_provenance_mut(handle)).unwrap();
                }
            });
            for _ in 0..20_000 {
                to.send(create(Fragile2).unwrap().addr()).unwrap();
            }
            drop(to);
        });
        // Each of two threads has at most `FREE_MOST`; other tests run beside this one.
        let slots = first_of(BLOCKS_MADE.load(Ordering::Relaxed));
        assert!(slots <= 8 * (FREE_MOST + FREE_TAKEN), "{slots} slots");
    }

    /// While another thread is in its pool, a thread makes and frees handles.
    #[test]
    fn threads_do_not_wait_for_each_others_pools() {
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let held = pool();
                locked.send(()).unwrap();
                is_done.recv().unwrap();
                drop(held);
            });
            is_locked.recv().unwrap();
            free::<Fragile2>(create(Fragile2).unwrap()).unwrap();
            done.send(()).unwrap();
        });
    }

    struct Fragile2;

    impl Kind for Fragile2 {
        type Handle = FragileHandle;
        const NUMBER: u64 = 10;
        const NAME: &'static str = "another test";
    }
}
