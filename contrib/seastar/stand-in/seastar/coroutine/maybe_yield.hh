// A stand-in for Seastar's header of this name: see README.md. There is nobody to yield to.
#pragma once
#include <coroutine>

namespace seastar::coroutine {

class [[nodiscard]] maybe_yield {
 public:
  auto operator co_await() { return std::suspend_never(); }
};

}  // namespace seastar::coroutine
