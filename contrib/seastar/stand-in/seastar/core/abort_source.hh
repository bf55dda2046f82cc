// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <exception>
#include <functional>
#include <list>
#include <optional>
#include <utility>

namespace seastar {

template <typename T>
using optimized_optional = std::optional<T>;

class abort_requested_exception : public std::exception {
 public:
  const char *what() const noexcept override { return "abort requested"; }
};

class abort_source {
  using called = std::list<std::function<void()>>;

 public:
  class subscription {
   public:
    subscription(called *of, called::iterator at) : of_(of), at_(at) {}
    subscription(subscription &&other) noexcept : of_(std::exchange(other.of_, nullptr)), at_(other.at_) {}
    subscription &operator=(subscription &&other) noexcept {
      std::swap(of_, other.of_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~subscription() {
      if (of_ != nullptr) of_->erase(at_);
    }

   private:
    called *of_;
    called::iterator at_;
  };

  template <typename F>
    requires std::is_nothrow_invocable_r_v<void, F>
  [[nodiscard]] optimized_optional<subscription> subscribe(F call) {
    if (is_requested_) return std::nullopt;
    return subscription(&called_, called_.insert(called_.end(), std::move(call)));
  }
  void request_abort() noexcept { request_abort_ex(abort_requested_exception()); }
  /// With an exception of the caller's.
  template <typename Exception>
  void request_abort_ex(Exception of) noexcept {
    if (std::exchange(is_requested_, true)) return;
    exception_ = std::make_exception_ptr(std::move(of));
    for (auto &it : called_) it();
  }
  bool abort_requested() const noexcept { return is_requested_; }
  void check() const {
    if (is_requested_) std::rethrow_exception(exception_);
  }

 private:
  called called_;
  std::exception_ptr exception_;
  bool is_requested_ = false;
};

}  // namespace seastar
