// cls_marquetry: an object class for Ceph's OSDs. Everything but the calls of the OSD is in libmarquetry_ceph.a; docs/ceph.md says what the
// methods are. Only the public interface of object classes is used (rados-objclass-dev).
#include <rados/objclass.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "marquetry_ceph.h"

CLS_VER(1, 0)
CLS_NAME(marquetry)

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

int answer(uint32_t method, cls_method_context_t context, ceph::bufferlist *in, ceph::bufferlist *out) noexcept {
  try {
    Call call{context, out};
    const bool writes = method == MARQUETRY_CEPH_MERGE;
    marquetry_ceph_object object{&call, stat_object, read_object, append_answer, writes ? write_object : nullptr};
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

}  // namespace

CLS_INIT(marquetry) {
  CLS_LOG(1, "loading cls_marquetry");
  cls_handle_t handle;
  cls_method_handle_t method;
  if (cls_register("marquetry", &handle) < 0) return;
  cls_register_cxx_method(handle, "describe", CLS_METHOD_RD, describe, &method);
  cls_register_cxx_method(handle, "query", CLS_METHOD_RD, query, &method);
  cls_register_cxx_method(handle, "stats", CLS_METHOD_RD, stats, &method);
  cls_register_cxx_method(handle, "merge", CLS_METHOD_RD | CLS_METHOD_WR, merge, &method);
}
