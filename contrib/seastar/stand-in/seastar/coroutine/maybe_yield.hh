// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <coroutine>
#include <seastar/core/preempt.hh>
#include <seastar/stand-in.hh>

namespace seastar::coroutine {

class [[nodiscard]] maybe_yield {
  struct awaiter : stand_in::turn {
    bool await_ready() noexcept { return !need_preempt(); }
  };

 public:
  auto operator co_await() { return awaiter(); }
};

}  // namespace seastar::coroutine
