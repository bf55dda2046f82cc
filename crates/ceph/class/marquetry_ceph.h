/* What libmarquetry_ceph.a has for the shim: crates/ceph/src/ffi.rs. */
#ifndef MARQUETRY_CEPH_H
#define MARQUETRY_CEPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The methods of the class. */
enum {
  MARQUETRY_CEPH_DESCRIBE = 1,
  MARQUETRY_CEPH_QUERY = 2,
  MARQUETRY_CEPH_STATS = 3,
  /* Writes. */
  MARQUETRY_CEPH_MERGE = 4,
  MARQUETRY_CEPH_COMPRESS = 5,
  /* Does not write. */
  MARQUETRY_CEPH_SPLIT = 6,
  /* Writes the object's omap. */
  MARQUETRY_CEPH_INDEX = 7,
  MARQUETRY_CEPH_TRANSFORM = 8,
};

/* The object of a call, and where its answer goes. The functions are called during the call only, on its thread, with `context` as it is here;
 * they must not throw. They return 0, or a negative errno. */
struct marquetry_ceph_object {
  void *context;
  /* The object's length in bytes, to `length`. */
  int (*stat)(void *context, uint64_t *length);
  /* `length` bytes from `offset` on, all of them, to `into`. */
  int (*read)(void *context, uint64_t offset, uint64_t length, uint8_t *into);
  /* Adds bytes to the answer, after those before. */
  int (*append)(void *context, const uint8_t *bytes, size_t length);
  /* `length` bytes to the object, from `offset` on, over what is there; NULL in a method that only reads. */
  int (*write)(void *context, uint64_t offset, const uint8_t *bytes, size_t length);
  /* What the object has in its omap under a key: to `put`, once, with `sink`. -ENOENT if there is nothing. */
  int (*entry)(void *context, const uint8_t *key, size_t length, void (*put)(void *sink, const uint8_t *bytes, size_t length), void *sink);
  /* Sets that; NULL in a method that only reads. */
  int (*set_entry)(void *context, const uint8_t *key, size_t length, const uint8_t *bytes, size_t bytes_length);
};

/* Answers a call: 0, with an answer that says what is wrong if something is; or a negative errno, of one of the functions, or -EIO after a bug.
 * A method that writes returns a negative errno for whatever is wrong: the OSD must then undo what was written.
 * `request` may be NULL if `length` is 0. */
int marquetry_ceph_call(uint32_t method, const struct marquetry_ceph_object *object, const uint8_t *request, size_t length);

#ifdef __cplusplus
}
#endif

#endif
