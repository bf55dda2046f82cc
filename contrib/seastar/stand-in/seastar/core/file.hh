// A stand-in for Seastar's header of this name: see README.md. Reads wait, at any alignment.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <seastar/core/future.hh>
#include <seastar/core/io_intent.hh>
#include <seastar/core/temporary_buffer.hh>
#include <string_view>
#include <string>
#include <system_error>

namespace seastar {

enum class open_flags { rw = O_RDWR, ro = O_RDONLY, wo = O_WRONLY, create = O_CREAT, truncate = O_TRUNC };
constexpr open_flags operator|(open_flags a, open_flags b) { return open_flags(int(a) | int(b)); }

class file {
 public:
  class eof_error : public std::exception {
   public:
    const char *what() const noexcept override { return "end of file"; }
  };

  file() = default;
  explicit file(int number) : number_(number) {}

  future<std::uint64_t> size() const noexcept {
    struct stat about;
    if (::fstat(number_, &about) != 0) throw std::system_error(errno, std::generic_category());
    co_return std::uint64_t(about.st_size);
  }
  template <typename C>
  future<temporary_buffer<C>> dma_read_exactly(std::uint64_t at, std::size_t length, io_intent * = nullptr) noexcept {
    temporary_buffer<C> bytes(length);
    for (std::size_t done = 0; done < length;) {
      ssize_t more = ::pread(number_, bytes.get_write() + done, length - done, off_t(at + done));
      if (more < 0) throw std::system_error(errno, std::generic_category());
      if (more == 0) throw eof_error();
      done += std::size_t(more);
    }
    co_return std::move(bytes);
  }
  future<> close() noexcept {
    ::close(std::exchange(number_, -1));
    co_return;
  }
  /// What no file of Seastar's has.
  int stand_in_number() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace seastar
