// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <cstddef>
#include <memory>

namespace seastar {

template <typename C>
class temporary_buffer {
 public:
  explicit temporary_buffer(std::size_t size) : bytes_(new C[size]), size_(size) {}
  temporary_buffer(temporary_buffer &&) noexcept = default;
  temporary_buffer &operator=(temporary_buffer &&) noexcept = default;
  const C *get() const noexcept { return bytes_.get(); }
  C *get_write() noexcept { return bytes_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  std::unique_ptr<C[]> bytes_;
  std::size_t size_;
};

}  // namespace seastar
