// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <seastar/core/file.hh>

namespace seastar {

inline future<file> open_file_dma(std::string name, open_flags flags) noexcept {
  co_await stand_in::turn();
  int number = ::open(name.c_str(), int(flags), 0644);
  if (number < 0) throw std::system_error(errno, std::generic_category());
  co_return file(number);
}

}  // namespace seastar
