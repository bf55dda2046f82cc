// A stand-in for Seastar's header of this name: see README.md. Coroutines run on the reactor of stand-in.hh, one after the other.
#pragma once
#include <coroutine>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <seastar/stand-in.hh>
#include <utility>
#include <variant>

namespace seastar {

template <typename T = void>
class [[nodiscard]] future {
  using held = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  struct state {
    std::optional<held> value;
    std::exception_ptr failed;
    std::coroutine_handle<> waiting;
    ~state() {
      if (failed) stand_in::complain("Exceptional future ignored");
    }
    void resolved() {
      if (waiting) stand_in::later(std::exchange(waiting, {}));
    }
  };
  struct promise_base {
    std::shared_ptr<state> made = std::make_shared<state>();
    future get_return_object() { return future(made); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() {
      made->failed = std::current_exception();
      made->resolved();
    }
  };
  struct promise_of_value : promise_base {
    template <typename U>
    void return_value(U &&it) {
      this->made->value.emplace(std::forward<U>(it));
      this->made->resolved();
    }
  };
  struct promise_of_nothing : promise_base {
    void return_void() {
      this->made->value.emplace();
      this->made->resolved();
    }
  };

 public:
  struct promise_type : std::conditional_t<std::is_void_v<T>, promise_of_nothing, promise_of_value> {};

  explicit future(std::shared_ptr<state> made) : state_(std::move(made)) {}
  future(future &&) noexcept = default;
  future &operator=(future &&) noexcept = default;
  bool available() const noexcept { return state_->value.has_value() || state_->failed; }
  bool await_ready() const noexcept { return available(); }
  void await_suspend(std::coroutine_handle<> it) noexcept { state_->waiting = it; }
  T await_resume() { return get(); }
  /// Of one that is available.
  T get() {
    auto taken = std::move(state_);
    if (taken->failed) std::rethrow_exception(std::exchange(taken->failed, nullptr));
    if constexpr (!std::is_void_v<T>) return std::move(*taken->value);
  }

 private:
  std::shared_ptr<state> state_;
};

}  // namespace seastar
