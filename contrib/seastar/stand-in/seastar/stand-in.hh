// What Seastar has not: the reactor of the stand-ins, and what tests do to it. See README.md.
#pragma once
#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>

namespace seastar::stand_in {

/// What can run.
inline std::deque<std::coroutine_handle<>> tasks;
/// Files and streams that were opened and not closed.
inline long open_files = 0;
inline long open_streams = 0;
/// What should not have happened: a program that did any of it ends with an error.
inline long complaints = 0;
/// Asked when a read of this range is done: an answer of true makes it fail.
inline std::function<bool(std::uint64_t start, std::uint64_t end)> read_fails;
/// Asked when bytes are written: an answer of true makes that fail.
inline std::function<bool()> write_fails;

inline void complain(const char *what) {
  complaints++;
  std::cerr << "stand-in: " << what << '\n';
}

inline void later(std::coroutine_handle<> it) { tasks.push_back(it); }

/// Lets all others that can run do so.
struct turn {
  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> it) { later(it); }
  void await_resume() noexcept {}
};

/// Runs one task; false if there is none.
inline bool run_one() {
  if (tasks.empty()) return false;
  auto it = tasks.front();
  tasks.pop_front();
  it.resume();
  return true;
}

/// Turns until something completes that was begun now: others than for what was begun before, so that nothing ends in order.
inline unsigned turns() {
  static unsigned begun;
  return 1 + ++begun * 7 % 5;
}

}  // namespace seastar::stand_in
