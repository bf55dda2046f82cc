// A stand-in for Seastar's header of this name: see README.md. What was not begun on the disk is cancelled, as in Seastar.
#pragma once
#include <exception>
#include <memory>
#include <utility>

namespace seastar {

class cancelled_error : public std::exception {
 public:
  const char *what() const noexcept override { return "cancelled"; }
};

class io_intent {
 public:
  io_intent() = default;
  io_intent(const io_intent &) = delete;
  ~io_intent() { cancel(); }
  void cancel() noexcept {
    *is_cancelled_ = true;
    is_cancelled_ = std::make_shared<bool>(false);
  }
  /// What a request remembers; no intent of Seastar's has it.
  std::shared_ptr<const bool> stand_in_flag() const { return is_cancelled_; }

 private:
  std::shared_ptr<bool> is_cancelled_ = std::make_shared<bool>(false);
};

}  // namespace seastar
