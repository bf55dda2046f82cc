// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <cstdlib>
#include <seastar/core/file.hh>
#include <vector>

namespace seastar {

template <typename C>
class output_stream {
 public:
  output_stream(file to, std::size_t size) : to_(std::move(to)), size_(size), is_open_(true) { stand_in::open_streams++; }
  output_stream(output_stream &&other) noexcept
      : to_(std::move(other.to_)), buffer_(std::move(other.buffer_)), size_(other.size_), is_open_(std::exchange(other.is_open_, false)) {}
  ~output_stream() {
    if (!is_open_) return;
    // Seastar's asserts this if it holds anything.
    std::cerr << "Was this stream properly closed?\n";
    std::abort();
  }
  future<> write(const C *bytes, std::size_t length) noexcept {
    buffer_.insert(buffer_.end(), bytes, bytes + length);
    if (buffer_.size() >= size_) co_await flush();
  }
  future<> flush() noexcept {
    auto all = std::exchange(buffer_, {});
    for (unsigned more = stand_in::turns(); more > 0; more--) co_await stand_in::turn();
    if (stand_in::write_fails && stand_in::write_fails()) throw std::system_error(ENOSPC, std::generic_category());
    for (std::size_t done = 0; done < all.size();) {
      ssize_t more = ::write(to_.stand_in_number(), all.data() + done, all.size() - done);
      if (more < 0) throw std::system_error(errno, std::generic_category());
      done += std::size_t(more);
    }
  }
  future<> close() noexcept {
    if (!std::exchange(is_open_, false)) stand_in::complain("a stream is closed twice");
    stand_in::open_streams--;
    std::exception_ptr failed;
    try {
      co_await flush();
    } catch (...) {
      failed = std::current_exception();
    }
    co_await to_.close();
    if (failed) std::rethrow_exception(failed);
  }

 private:
  file to_;
  std::vector<C> buffer_;
  std::size_t size_;
  bool is_open_;
};

}  // namespace seastar
