// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <seastar/core/file.hh>

namespace seastar {

inline future<file> open_file_dma(std::string_view name, open_flags flags) noexcept {
  int number = ::open(std::string(name).c_str(), int(flags), 0644);
  if (number < 0) throw std::system_error(errno, std::generic_category());
  co_return file(number);
}

}  // namespace seastar
