// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <seastar/core/file.hh>

namespace seastar {

template <typename C>
class output_stream {
 public:
  explicit output_stream(file to) : to_(to) {}
  output_stream(output_stream &&) noexcept = default;
  future<> write(const C *bytes, std::size_t length) noexcept {
    for (std::size_t done = 0; done < length;) {
      ssize_t more = ::write(to_.stand_in_number(), bytes + done, length - done);
      if (more < 0) throw std::system_error(errno, std::generic_category());
      done += std::size_t(more);
    }
    co_return;
  }
  future<> flush() noexcept { co_return; }
  future<> close() noexcept { return to_.close(); }

 private:
  file to_;
};

}  // namespace seastar
