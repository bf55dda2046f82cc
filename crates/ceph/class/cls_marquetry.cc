// cls_marquetry: an object class for Ceph's OSDs. Everything but the calls of the OSD is in libmarquetry_ceph.a; docs/ceph.md says what the
// methods are. Only the public interface of object classes is used (rados-objclass-dev).
#include <rados/objclass.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#ifdef MARQUETRY_TIMES
#include <ctime>
#include <mutex>
#include <vector>
#endif

#include "marquetry_ceph.h"

// The benchmark has a build of another name beside this one, and one that says how long its calls took.
#ifndef MARQUETRY_CLASS
#define MARQUETRY_CLASS marquetry
#endif
#define NAME(name) CLS_NAME(name)
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

CLS_VER(1, 0)
NAME(MARQUETRY_CLASS)

namespace {

struct Call {
  cls_method_context_t context;
  ceph::bufferlist *answer;
};

// Nothing may be thrown through Rust, so all of these catch everything: a buffer list throws where it has no memory.

int stat_object(void *context, uint64_t *length) noexcept {
  try {
    time_t changed;
    return cls_cxx_stat(static_cast<Call *>(context)->context, length, &changed);
  } catch (...) {
    return -EIO;
  }
}

int read_object(void *context, uint64_t offset, uint64_t length, uint8_t *into) noexcept {
  // The OSD's interface has int.
  if (offset > INT_MAX || length > INT_MAX) return -EFBIG;
  try {
    ceph::bufferlist bytes;
    int result = cls_cxx_read(static_cast<Call *>(context)->context, static_cast<int>(offset), static_cast<int>(length), &bytes);
    if (result < 0) return result;
    if (bytes.length() != length) return -EIO;
    bytes.begin().copy(bytes.length(), reinterpret_cast<char *>(into));
    return 0;
  } catch (...) {
    return -EIO;
  }
}

int append_answer(void *context, const uint8_t *bytes, size_t length) noexcept {
  if (length > UINT_MAX) return -E2BIG;
  try {
    static_cast<Call *>(context)->answer->append(reinterpret_cast<const char *>(bytes), static_cast<unsigned>(length));
    return 0;
  } catch (...) {
    return -ENOMEM;
  }
}

int write_object(void *context, uint64_t offset, const uint8_t *bytes, size_t length) noexcept {
  if (offset > INT_MAX || length > INT_MAX) return -EFBIG;
  try {
    ceph::bufferlist written;
    written.append(reinterpret_cast<const char *>(bytes), static_cast<unsigned>(length));
    return cls_cxx_write(static_cast<Call *>(context)->context, static_cast<int>(offset), static_cast<int>(length), &written);
  } catch (...) {
    return -ENOMEM;
  }
}

int read_entry(void *context, const uint8_t *key, size_t length, void (*put)(void *sink, const uint8_t *bytes, size_t length), void *sink) noexcept {
  try {
    ceph::bufferlist found;
    const std::string name(reinterpret_cast<const char *>(key), length);
    int result = cls_cxx_map_get_val(static_cast<Call *>(context)->context, name, &found);
    if (result < 0) return result;
    if (found.length() > 0) put(sink, reinterpret_cast<const uint8_t *>(found.c_str()), found.length());
    return 0;
  } catch (...) {
    return -ENOMEM;
  }
}

int write_entry(void *context, const uint8_t *key, size_t length, const uint8_t *bytes, size_t bytes_length) noexcept {
  if (bytes_length > UINT_MAX) return -E2BIG;
  try {
    ceph::bufferlist written;
    const std::string name(reinterpret_cast<const char *>(key), length);
    written.append(reinterpret_cast<const char *>(bytes), static_cast<unsigned>(bytes_length));
    return cls_cxx_map_set_val(static_cast<Call *>(context)->context, name, &written);
  } catch (...) {
    return -ENOMEM;
  }
}

#ifdef MARQUETRY_TIMES
uint32_t microseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint32_t>(now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

std::mutex times_lock;
std::vector<uint32_t> times_taken;

// Adds how long a call took when it ends, in microseconds: as the clock on the wall says, and of this thread's work.
struct Timed {
  uint32_t wall = microseconds(CLOCK_MONOTONIC), work = microseconds(CLOCK_THREAD_CPUTIME_ID);
  ~Timed() {
    const uint32_t taken[] = {microseconds(CLOCK_MONOTONIC) - wall, microseconds(CLOCK_THREAD_CPUTIME_ID) - work};
    std::lock_guard<std::mutex> locked(times_lock);
    if (times_taken.size() < 2000000) times_taken.insert(times_taken.end(), taken, taken + 2);
  }
};

// All of them since the last time that they were asked for.
int times(cls_method_context_t, ceph::bufferlist *, ceph::bufferlist *out) {
  std::lock_guard<std::mutex> locked(times_lock);
  out->append(reinterpret_cast<const char *>(times_taken.data()), static_cast<unsigned>(times_taken.size() * sizeof(uint32_t)));
  times_taken.clear();
  return 0;
}
#endif

int answer(uint32_t method, cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) noexcept {
#ifdef MARQUETRY_TIMES
  Timed timed;
#endif
  try {
    Call call{context, out};
    const bool writes = method == MARQUETRY_CEPH_MERGE || method == MARQUETRY_CEPH_COMPRESS || method == MARQUETRY_CEPH_INDEX;
    marquetry_ceph_object object{&call,      stat_object, read_object, append_answer, writes ? write_object : nullptr,
                                 read_entry, writes ? write_entry : nullptr};
    // In one piece, which a request usually is.
    const auto *request = reinterpret_cast<const uint8_t *>(in->length() > 0 ? in->c_str() : nullptr);
    return marquetry_ceph_call(method, &object, request, in->length());
  } catch (...) {
    return -EIO;
  }
}

int describe(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_DESCRIBE, context, in, out);
}

int query(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_QUERY, context, in, out);
}

int stats(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_STATS, context, in, out);
}

int merge(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_MERGE, context, in, out);
}

// The OSD drops the answer of a call that writes. A client calls again, until a call has written nothing and has an answer.
int compress(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_COMPRESS, context, in, out);
}

int split(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_SPLIT, context, in, out);
}

int index(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_INDEX, context, in, out);
}

int transform(cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) {
  return answer(MARQUETRY_CEPH_TRANSFORM, context, in, out);
}

}  // namespace

CLS_INIT(MARQUETRY_CLASS) {
  CLS_LOG(1, "loading cls_" TEXT(MARQUETRY_CLASS));
  cls_handle_t handle;
  cls_method_handle_t method;
  if (cls_register(TEXT(MARQUETRY_CLASS), &handle) < 0) return;
  cls_register_cxx_method(handle, "describe", CLS_METHOD_RD, describe, &method);
  cls_register_cxx_method(handle, "query", CLS_METHOD_RD, query, &method);
  cls_register_cxx_method(handle, "stats", CLS_METHOD_RD, stats, &method);
  cls_register_cxx_method(handle, "merge", CLS_METHOD_RD | CLS_METHOD_WR, merge, &method);
  cls_register_cxx_method(handle, "compress", CLS_METHOD_RD | CLS_METHOD_WR, compress, &method);
  cls_register_cxx_method(handle, "split", CLS_METHOD_RD, split, &method);
  cls_register_cxx_method(handle, "index", CLS_METHOD_RD | CLS_METHOD_WR, index, &method);
  cls_register_cxx_method(handle, "transform", CLS_METHOD_RD, transform, &method);
#ifdef MARQUETRY_TIMES
  cls_register_cxx_method(handle, "times", CLS_METHOD_RD, times, &method);
#endif
}
