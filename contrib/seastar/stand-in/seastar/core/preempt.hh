// A stand-in for Seastar's header of this name: see README.md. The shard is needed every third time that somebody asks.
#pragma once

namespace seastar {

inline bool need_preempt() noexcept {
  static unsigned asked;
  return ++asked % 3 == 0;
}

}  // namespace seastar
