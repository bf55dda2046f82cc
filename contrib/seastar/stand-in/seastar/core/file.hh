// A stand-in for Seastar's header of this name: see README.md. Reads end some turns later, out of order, at any alignment.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <seastar/core/future.hh>
#include <seastar/core/io_intent.hh>
#include <seastar/core/temporary_buffer.hh>
#include <string>
#include <string_view>
#include <system_error>

namespace seastar {

enum class open_flags { rw = O_RDWR, ro = O_RDONLY, wo = O_WRONLY, create = O_CREAT, truncate = O_TRUNC };
constexpr open_flags operator|(open_flags a, open_flags b) { return open_flags(int(a) | int(b)); }

class file {
  struct opened {
    int number;
    long reads = 0;
    explicit opened(int number) : number(number) { stand_in::open_files++; }
    ~opened() {
      if (number >= 0) close();
    }
    void close() {
      if (reads != 0) stand_in::complain("a file is closed while it is read");
      stand_in::open_files--;
      ::close(std::exchange(number, -1));
    }
  };

 public:
  class eof_error : public std::exception {
   public:
    const char *what() const noexcept override { return "end of file"; }
  };

  file() = default;
  explicit file(int number) : of_(std::make_shared<opened>(number)) {}

  future<std::uint64_t> size() const noexcept {
    auto of = of_;
    co_await stand_in::turn();
    struct stat about;
    if (::fstat(of->number, &about) != 0) throw std::system_error(errno, std::generic_category());
    co_return std::uint64_t(about.st_size);
  }
  template <typename C>
  future<temporary_buffer<C>> dma_read_exactly(std::uint64_t at, std::size_t length, io_intent *intent = nullptr) noexcept {
    // As in Seastar, a read does not keep its file open.
    std::weak_ptr<opened> of = of_;
    of_->reads++;
    auto is_cancelled = intent == nullptr ? nullptr : intent->stand_in_flag();
    for (unsigned more = stand_in::turns(); more > 0; more--) co_await stand_in::turn();
    auto file = of.lock();
    if (!file) {
      stand_in::complain("a read is not done when its file goes");
      throw eof_error();
    }
    file->reads--;
    if (is_cancelled && *is_cancelled) throw cancelled_error();
    if (stand_in::read_fails && stand_in::read_fails(at, at + length)) throw std::system_error(EIO, std::generic_category());
    temporary_buffer<C> bytes(length);
    for (std::size_t done = 0; done < length;) {
      ssize_t more = ::pread(file->number, bytes.get_write() + done, length - done, off_t(at + done));
      if (more < 0) throw std::system_error(errno, std::generic_category());
      if (more == 0) throw eof_error();
      done += std::size_t(more);
    }
    co_return std::move(bytes);
  }
  future<> close() noexcept {
    if (!of_ || of_->number < 0) {
      stand_in::complain("a file is closed twice");
      co_return;
    }
    of_->close();
  }
  /// What no file of Seastar's has.
  int stand_in_number() const { return of_->number; }

 private:
  std::shared_ptr<opened> of_;
};

}  // namespace seastar
