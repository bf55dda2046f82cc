// A stand-in for Seastar's header of this name: see README.md. Nothing is ever queued, so there is nothing to cancel.
#pragma once

namespace seastar {

class io_intent {
 public:
  io_intent() = default;
  io_intent(const io_intent &) = delete;
  void cancel() noexcept {}
};

}  // namespace seastar
