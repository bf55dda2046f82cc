// A stand-in for Seastar's header of this name: see README.md. Futures are resolved when they are returned.
#pragma once
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace seastar {

template <typename T = void>
class [[nodiscard]] future {
  using held = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  struct state {
    std::optional<held> value;
    std::exception_ptr failed;
  };
  struct promise_base {
    std::shared_ptr<state> made = std::make_shared<state>();
    future get_return_object() { return future(made); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() { made->failed = std::current_exception(); }
  };
  struct promise_of_value : promise_base {
    template <typename U>
    void return_value(U &&it) {
      this->made->value.emplace(std::forward<U>(it));
    }
  };
  struct promise_of_nothing : promise_base {
    void return_void() { this->made->value.emplace(); }
  };

 public:
  struct promise_type : std::conditional_t<std::is_void_v<T>, promise_of_nothing, promise_of_value> {};

  explicit future(std::shared_ptr<state> made) : state_(std::move(made)) {}
  future(future &&) noexcept = default;
  future &operator=(future &&) noexcept = default;
  bool available() const noexcept { return state_->value.has_value() || state_->failed; }
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) noexcept {}
  T await_resume() { return get(); }
  T get() {
    if (state_->failed) std::rethrow_exception(state_->failed);
    if constexpr (!std::is_void_v<T>) return std::move(*state_->value);
  }

 private:
  std::shared_ptr<state> state_;
};

}  // namespace seastar
