//! Arrow arrays and schemas of the host's, looked through before they are imported: Arrow's own import follows pointers and takes numbers for granted.
//!
//! What cannot be seen from here is the host's promise: that pointers which are not NULL lead to as much memory as the array says.

use core::ffi::{CStr, c_char, c_void};
use core::fmt;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_data::layout;
use arrow_schema::DataType;
use marquetry_base::{Error, Result};

/// Types within types, of which an array of the host's may consist. What can be written has fewer.
const DEPTH_MAX: usize = 128;

/// Bytes of a slot of the widest type that has a fixed width.
const WIDTH_MAX: usize = 32;

/// `struct ArrowArray` of Arrow's C Data Interface.
#[repr(C)]
struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const CArray,
    dictionary: *const CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<CArray>() == size_of::<FFI_ArrowArray>());

/// `struct ArrowSchema` of Arrow's C Data Interface.
#[repr(C)]
struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const CSchema,
    dictionary: *const CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<CSchema>() == size_of::<FFI_ArrowSchema>());

/// Where in a table an array is: names from the column on.
struct Path<'a> {
    name: &'a str,
    parent: Option<&'a Path<'a>>,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

fn wrong(path: Option<&Path<'_>>, what: String) -> Error {
    let error = Error::misuse(format!("not an array of the writer's schema: {what}"));
    match path {
        None => error,
        Some(path) => error.at(|place| place.column = Some(path.to_string())),
    }
}

/// Checks that an array has the shape of a type: the buffers and children that it must have, none of them NULL, no negative numbers, and first and last offsets
/// that lead to what is there. It does not look at values, nor at the offsets between.
///
/// # Errors
///
/// `Misuse`, with the column.
pub(crate) fn check(array: &FFI_ArrowArray, data_type: &DataType) -> Result<()> {
    let array: *const FFI_ArrowArray = array;
    // SAFETY: both are `struct ArrowArray`.
    let array = unsafe { &*array.cast::<CArray>() };
    shape(array, data_type, 0, (None, 0))
}

/// Of an array that must have at least `slots`, and is in so many others.
fn shape(
    array: &CArray,
    data_type: &DataType,
    slots: usize,
    (path, depth): (Option<&Path<'_>>, usize),
) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(wrong(path, format!("{depth} arrays within arrays")));
    }
    if array.release.is_none() {
        return Err(wrong(path, "an array that was released".to_string()));
    }
    let (length, offset) = (count(array.length), count(array.offset));
    let (Some(length), Some(offset)) = (length, offset) else {
        let (length, offset) = (array.length, array.offset);
        return Err(wrong(path, format!("a length of {length} from {offset} on")));
    };
    let bytes = match data_type {
        DataType::FixedSizeBinary(width) => count((*width).into()).unwrap_or(usize::MAX),
        _ => WIDTH_MAX,
    };
    // More bits than can be counted are nowhere.
    let end = length
        .checked_add(offset)
        .filter(|end| end.checked_mul(bytes.max(WIDTH_MAX)).is_some_and(|bytes| bytes < usize::MAX >> 4));
    let end = end.ok_or_else(|| wrong(path, format!("a length of {length} from {offset} on")))?;
    if length < slots {
        return Err(wrong(path, format!("{length} slots, of which {slots} are used")));
    }
    if array.null_count < -1 || count(array.null_count).is_some_and(|nulls| nulls > length) {
        return Err(wrong(path, format!("{} nulls of {length}", array.null_count)));
    }
    buffers_of(array, data_type, (length, offset), path)?;
    children_of(array, data_type, end, (path, depth))
}

fn buffers_of(
    array: &CArray,
    data_type: &DataType,
    (length, offset): (usize, usize),
    path: Option<&Path<'_>>,
) -> Result<()> {
    let layout = layout(data_type);
    let has_validity = layout.can_contain_null_mask;
    // Of views there are lengths, too, and any number of buffers that they lead to.
    let expected = layout.buffers.len() + usize::from(has_validity) + usize::from(layout.variadic);
    let found = count(array.n_buffers).filter(|&found| {
        if layout.variadic { (expected..=1 << 31).contains(&found) } else { found == expected }
    });
    let Some(found) = found else {
        let found = array.n_buffers;
        return Err(wrong(path, format!("{found} buffers for {data_type}, which has {expected}")));
    };
    let buffers = pointers(array.buffers, found).ok_or_else(|| {
        wrong(path, format!("{found} buffers at NULL or at an address that is not aligned"))
    })?;
    let null = |at: usize| wrong(path, format!("buffer {at} is NULL"));
    if has_validity && array.null_count > 0 && buffers[0].is_null() {
        return Err(wrong(path, format!("{} nulls without a bitmap", array.null_count)));
    }
    let (first, end) = (usize::from(has_validity), length + offset);
    match data_type {
        DataType::Utf8 | DataType::Binary => {
            let bytes = last_offset::<i32>(buffers[1], (length, offset), 1, path)?;
            if bytes > 0 && buffers[2].is_null() { Err(null(2)) } else { Ok(()) }
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let bytes = last_offset::<i64>(buffers[1], (length, offset), 1, path)?;
            if bytes > 0 && buffers[2].is_null() { Err(null(2)) } else { Ok(()) }
        }
        DataType::List(_) | DataType::Map(..) => {
            last_offset::<i32>(buffers[1], (length, offset), 1, path).map(drop)
        }
        DataType::LargeList(_) => last_offset::<i64>(buffers[1], (length, offset), 1, path).map(drop),
        DataType::Utf8View | DataType::BinaryView => {
            if end > 0 && buffers[1].is_null() {
                return Err(null(1));
            }
            let data = &buffers[2..found - 1];
            let lengths: *const i64 = buffers[found - 1].cast();
            if data.is_empty() {
                return Ok(());
            }
            if lengths.is_null() || !lengths.is_aligned() {
                let what = format!("the lengths of {} buffers: {lengths:?}", data.len());
                return Err(wrong(path, what));
            }
            for (at, buffer) in data.iter().enumerate() {
                // SAFETY: the host promises one for each of these buffers; aligned, as was checked.
                let length = unsafe { *lengths.add(at) };
                match count(length) {
                    None => return Err(wrong(path, format!("buffer {} has {length} bytes", at + 2))),
                    Some(length) if length > 0 && buffer.is_null() => return Err(null(at + 2)),
                    Some(_) => {}
                }
            }
            Ok(())
        }
        _ => match (first..found).find(|&at| end > 0 && buffers[at].is_null()) {
            Some(at) => Err(null(at)),
            None => Ok(()),
        },
    }
}

/// Checks offsets: where the last of them leads to.
fn last_offset<T: Copy + Into<i64>>(
    offsets: *const c_void,
    (length, offset): (usize, usize),
    buffer: usize,
    path: Option<&Path<'_>>,
) -> Result<usize> {
    let offsets: *const T = offsets.cast();
    if offsets.is_null() || !offsets.is_aligned() {
        return Err(wrong(path, format!("buffer {buffer}, of offsets, is at {offsets:?}")));
    }
    if length + offset == 0 {
        // Nothing says what the only offset is.
        return Ok(0);
    }
    // SAFETY: the host promises offsets for all slots, and one more; aligned, as was checked; the array's end was, too.
    let [first, last]: [i64; 2] =
        unsafe { [*offsets.add(offset), *offsets.add(offset + length)] }.map(Into::into);
    if first < 0 || last < first {
        return Err(wrong(path, format!("offsets from {first} to {last}")));
    }
    usize::try_from(last).map_err(|_| wrong(path, format!("an offset of {last}")))
}

fn children_of(
    array: &CArray,
    data_type: &DataType,
    end: usize,
    (path, depth): (Option<&Path<'_>>, usize),
) -> Result<()> {
    let expected = match data_type {
        DataType::Struct(fields) => fields.len(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Map(..) => 1,
        DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(..)
        | DataType::RunEndEncoded(..) => {
            return Err(Error::internal("an array of a type that cannot be written"));
        }
        _ => 0,
    };
    if count(array.n_children) != Some(expected) {
        let found = array.n_children;
        return Err(wrong(path, format!("{found} children for {expected} of {data_type}")));
    }
    let children = pointers(array.children, expected).ok_or_else(|| {
        wrong(path, format!("{expected} children at NULL or at an address that is not aligned"))
    })?;
    // SAFETY: what is neither NULL nor unaligned is an array, as the host promises, which stays as it is during the call.
    let array_at = |at: *const CArray| unsafe { at.as_ref() }.filter(|_| at.is_aligned());
    match (data_type, array.dictionary.is_null()) {
        (DataType::Dictionary(_, values), false) => {
            let dictionary = array_at(array.dictionary)
                .ok_or_else(|| wrong(path, "a dictionary at an address that is not aligned".to_string()))?;
            return shape(dictionary, values, 0, (path, depth + 1));
        }
        (DataType::Dictionary(..), true) => return Err(wrong(path, "no dictionary".to_string())),
        (_, false) => return Err(wrong(path, format!("a dictionary for {data_type}"))),
        (_, true) => {}
    }
    let child = |at: usize, field: &arrow_schema::Field, slots: usize| {
        let path = Path { name: field.name(), parent: path };
        let child = array_at(children[at])
            .ok_or_else(|| wrong(Some(&path), format!("child {at} is at {:?}", children[at])))?;
        shape(child, field.data_type(), slots, (Some(&path), depth + 1))
    };
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().enumerate().try_for_each(|(at, field)| child(at, field, end))
        }
        DataType::List(field) | DataType::Map(field, _) => child(0, field, last::<i32>(array, end)),
        DataType::LargeList(field) => child(0, field, last::<i64>(array, end)),
        DataType::FixedSizeList(field, size) => {
            let slots = count((*size).into()).and_then(|size| size.checked_mul(end));
            let slots = slots.ok_or_else(|| wrong(path, format!("{end} lists of {size}")))?;
            child(0, field, slots)
        }
        _ => Ok(()),
    }
}

/// The last offset of an array whose offsets were checked.
fn last<T: Copy + Into<i64>>(array: &CArray, end: usize) -> usize {
    if end == 0 {
        return 0;
    }
    // SAFETY: `buffers` has checked that there are two, that offsets are not NULL and aligned; the host promises one more than there are slots.
    let last = unsafe { *(*array.buffers.add(1)).cast::<T>().add(end) };
    count(last.into()).unwrap_or(usize::MAX)
}

/// A number that is not negative.
fn count(given: i64) -> Option<usize> {
    usize::try_from(given).ok()
}

/// Pointers at a place of the host's; `None` if there are some, and it is none.
fn pointers<'a, T>(start: *const *const T, count: usize) -> Option<&'a [*const T]> {
    if count == 0 {
        return Some(&[]);
    }
    // SAFETY: the host promises so many pointers, which stay as they are during the call.
    (!start.is_null() && start.is_aligned()).then(|| unsafe { core::slice::from_raw_parts(start, count) })
}

/// Checks that a schema can be looked at: texts that are UTF-8, no NULL where there must be something, and that it ends.
///
/// # Errors
///
/// `Misuse`, with the column.
pub(crate) fn check_schema(schema: &FFI_ArrowSchema) -> Result<()> {
    let schema: *const FFI_ArrowSchema = schema;
    // SAFETY: both are `struct ArrowSchema`.
    schema_at(unsafe { &*schema.cast::<CSchema>() }, (None, 0))
}

/// How many children a format has; `None` if that differs (structs, unions).
fn children_of_format(format: &str) -> Option<usize> {
    match format {
        "+l" | "+L" | "+vl" | "+vL" | "+m" => Some(1),
        "+r" => Some(2),
        _ if format.starts_with("+w:") => Some(1),
        _ if format.starts_with('+') => None,
        _ => Some(0),
    }
}

fn schema_at(schema: &CSchema, (path, depth): (Option<&Path<'_>>, usize)) -> Result<()> {
    let wrong = |what: String| {
        let error = Error::misuse(format!("not a schema: {what}"));
        match path {
            None => error,
            Some(path) => error.at(|place| place.column = Some(path.to_string())),
        }
    };
    if depth > DEPTH_MAX {
        return Err(wrong(format!("{depth} types within types")));
    }
    if schema.release.is_none() {
        return Err(wrong("a schema that was released".to_string()));
    }
    if schema.format.is_null() {
        return Err(wrong("a format that is NULL".to_string()));
    }
    for (text, what) in [(schema.format, "format"), (schema.name, "name")] {
        // SAFETY: the host promises a text that ends with NUL.
        if !text.is_null() && unsafe { CStr::from_ptr(text) }.to_str().is_err() {
            return Err(wrong(format!("a {what} that is not UTF-8")));
        }
    }
    let children = count(schema.n_children).and_then(|count| pointers(schema.children, count));
    let children =
        children.ok_or_else(|| wrong(format!("{} children, which are not there", schema.n_children)))?;
    // SAFETY: the host promises a text that ends with NUL; that it is UTF-8 was looked at.
    let format = unsafe { CStr::from_ptr(schema.format) }.to_str().unwrap_or_default();
    if let Some(expected) = children_of_format(format)
        && children.len() != expected
    {
        return Err(wrong(format!("{} children for {expected} of the format {format:?}", children.len())));
    }
    if !schema.dictionary.is_null() && !matches!(format, "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L") {
        return Err(wrong(format!("keys of a dictionary that are no integers: the format {format:?}")));
    }
    // SAFETY: what is neither NULL nor unaligned is a schema, as the host promises.
    let at = |at: *const CSchema| unsafe { at.as_ref() }.filter(|_| at.is_aligned());
    for (number, &child) in children.iter().enumerate() {
        let child = at(child).ok_or_else(|| wrong(format!("child {number} is at {child:?}")))?;
        if format == "+m" && child.n_children != 2 {
            return Err(wrong(format!("{} children for the key and the value of a map", child.n_children)));
        }
        let name = match child.name.is_null() {
            true => "",
            // SAFETY: as above.
            false => unsafe { CStr::from_ptr(child.name) }.to_str().unwrap_or_default(),
        };
        schema_at(child, (Some(&Path { name, parent: path }), depth + 1))?;
    }
    match schema.dictionary.is_null() {
        true => Ok(()),
        false => {
            let dictionary = at(schema.dictionary);
            let dictionary = dictionary.ok_or_else(|| wrong("a dictionary that is none".to_string()))?;
            schema_at(dictionary, (path, depth + 1))
        }
    }
}
