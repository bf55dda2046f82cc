// Marquetry for C++20: header-only, over marquetry.h. Handles free themselves, results are values, nothing throws.
// SPDX-License-Identifier: Apache-2.0
#ifndef MARQUETRY_HPP
#define MARQUETRY_HPP

#include <marquetry.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace marquetry {

/// What went wrong. Owns the error object; texts are views into it.
class error {
 public:
  explicit error(marquetry_error *owned) noexcept : owned_(owned) {
    info_.struct_size = sizeof info_;
    if (marquetry_error_get(owned, &info_) != MARQUETRY_STATUS_OK) info_ = {};
  }
  marquetry_error_kind kind() const noexcept { return info_.kind; }
  /// What is wrong, and where.
  std::string_view what() const noexcept { return view(info_.display); }
  /// The path of the column; empty if it is not known.
  std::string_view column() const noexcept { return view(info_.column); }
  /// The numbers of row group, page, row and byte, -1 if they are not known.
  const marquetry_error_info &info() const noexcept { return info_; }

 private:
  struct free_error {
    void operator()(marquetry_error *it) const noexcept { marquetry_error_free(it); }
  };
  static std::string_view view(marquetry_text text) noexcept {
    return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.length);
  }
  std::unique_ptr<marquetry_error, free_error> owned_;
  marquetry_error_info info_{};
};

/// A value or an error, as std::expected is in C++23.
template <typename T>
class [[nodiscard]] result {
 public:
  result(T value) noexcept : held_(std::in_place_index<0>, std::move(value)) {}
  result(marquetry::error failed) noexcept : held_(std::in_place_index<1>, std::move(failed)) {}
  bool has_value() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Must not be asked without has_value().
  T &operator*() noexcept { return *std::get_if<0>(&held_); }
  T *operator->() noexcept { return std::get_if<0>(&held_); }
  /// Must not be asked with has_value().
  const marquetry::error &error() const noexcept { return *std::get_if<1>(&held_); }
  marquetry::error take_error() noexcept { return std::move(*std::get_if<1>(&held_)); }

 private:
  std::variant<T, marquetry::error> held_;
};

/// Nothing, or an error.
using outcome = result<std::monostate>;

/// An Arrow structure, which is released with it.
template <typename C>
class owned {
 public:
  owned() noexcept = default;
  owned(owned &&other) noexcept : c_(std::exchange(other.c_, C{})) {}
  owned &operator=(owned &&other) noexcept {
    if (this != &other) {
      reset();
      c_ = std::exchange(other.c_, C{});
    }
    return *this;
  }
  ~owned() { reset(); }
  C *get() noexcept { return &c_; }
  C *operator->() noexcept { return &c_; }
  const C *operator->() const noexcept { return &c_; }
  void reset() noexcept {
    if (c_.release != nullptr) c_.release(&c_);
    c_ = C{};
  }

 private:
  C c_{};
};
using array = owned<struct ArrowArray>;
using schema = owned<struct ArrowSchema>;
using array_stream = owned<struct ArrowArrayStream>;

/// Bytes that the library handed over, which are released with it.
class bytes {
 public:
  bytes() noexcept = default;
  bytes(bytes &&other) noexcept : c_(std::exchange(other.c_, {})) {}
  bytes &operator=(bytes &&other) noexcept {
    std::swap(c_, other.c_);
    return *this;
  }
  ~bytes() { marquetry_bytes_release(&c_); }
  std::span<const std::uint8_t> span() const noexcept { return {c_.data, c_.length}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char *>(c_.data), c_.length}; }
  marquetry_bytes *get() noexcept { return &c_; }

 private:
  marquetry_bytes c_{};
};

/// Options whose struct_size is set and whose other fields are the defaults: `auto wanted = marquetry::options<marquetry_reader_options>();`
template <typename C>
C options() noexcept {
  C made{};
  made.struct_size = sizeof made;
  return made;
}

namespace detail {
inline outcome checked(marquetry_status status, marquetry_error *failed) noexcept {
  if (status == MARQUETRY_STATUS_ERROR) return error(failed);
  return std::monostate{};
}
struct free_machine {
  void operator()(marquetry_machine *it) const noexcept { marquetry_machine_free(it); }
};
struct free_metadata {
  void operator()(marquetry_metadata *it) const noexcept { marquetry_metadata_free(it); }
};
}  // namespace detail

/// A budget of units, and a preemption test: any object whose call returns whether the host wants its thread back. It is borrowed.
class budget {
 public:
  explicit budget(std::uint64_t units = 0) noexcept : c_(options<marquetry_budget>()) { c_.units = units; }
  template <typename Test>
  budget(std::uint64_t units, Test &need_preempt) noexcept : budget(units) {
    c_.context = &need_preempt;
    c_.need_preempt = [](void *test) -> std::int32_t { return (*static_cast<Test *>(test))() ? 1 : 0; };
  }
  const marquetry_budget *get() const noexcept { return &c_; }

 private:
  marquetry_budget c_;
};

/// What a footer says.
class metadata {
 public:
  explicit metadata(marquetry_metadata *owned) noexcept : owned_(owned) {}
  result<marquetry_file_info> file() const noexcept {
    auto info = options<marquetry_file_info>();
    marquetry_error *failed = nullptr;
    if (marquetry_metadata_file(get(), &info, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return info;
  }
  result<marquetry_column_info> column(std::uint64_t number) const noexcept {
    auto info = options<marquetry_column_info>();
    marquetry_error *failed = nullptr;
    if (marquetry_metadata_column(get(), number, &info, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return info;
  }
  result<marquetry_chunk_info> chunk(std::uint64_t row_group, std::uint64_t column) const noexcept {
    auto info = options<marquetry_chunk_info>();
    marquetry_error *failed = nullptr;
    if (marquetry_metadata_chunk(get(), row_group, column, &info, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return info;
  }
  result<marquetry::schema> schema() const noexcept {
    marquetry::schema made;
    marquetry_error *failed = nullptr;
    if (marquetry_metadata_schema(get(), made.get(), &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return made;
  }
  marquetry_metadata *get() const noexcept { return owned_.get(); }

 private:
  std::unique_ptr<marquetry_metadata, detail::free_metadata> owned_;
};

/// Bytes that the host lends: `release(context, data, length)` is called once.
struct lent {
  const std::uint8_t *data;
  std::size_t length;
  void (*release)(void *context, const std::uint8_t *data, std::size_t length);
  void *context;
};

/// What all machines share.
class machine {
 public:
  /// Works until there is an answer, or the budget is spent: READY, NEED, YIELD, APPEND or DONE.
  result<marquetry_status> step(const budget &spend = budget()) noexcept {
    marquetry_error *failed = nullptr;
    marquetry_status status = marquetry_step(get(), spend.get(), &failed);
    if (status == MARQUETRY_STATUS_ERROR) return error(failed);
    return status;
  }
  /// After NEED; the span is good until the next step.
  std::span<const marquetry_want> wants() const noexcept {
    const marquetry_want *wants = nullptr;
    std::size_t count = 0;
    if (marquetry_wants(get(), &wants, &count, nullptr) != MARQUETRY_STATUS_OK) return {};
    return {wants, count};
  }
  /// Of the file `object`: of a Parquet file 0, of an SSTable its number in the options.
  outcome supply(std::uint64_t offset, lent bytes, std::uint32_t object = 0) noexcept {
    marquetry_error *failed = nullptr;
    auto status = marquetry_supply(get(), object, offset, bytes.data, bytes.length, bytes.release, bytes.context, &failed);
    return detail::checked(status, failed);
  }
  /// Bytes that move: anything with data() and size(), such as a std::string or a std::vector<std::uint8_t>.
  template <typename Buffer>
  outcome supply_moved(std::uint64_t offset, Buffer buffer, std::uint32_t object = 0) {
    auto *held = new Buffer(std::move(buffer));
    auto release = [](void *held, const std::uint8_t *, std::size_t) { delete static_cast<Buffer *>(held); };
    return supply(offset, {reinterpret_cast<const std::uint8_t *>(held->data()), held->size(), release, held}, object);
  }
  outcome supply_length(std::uint64_t length, std::uint32_t object = 0) noexcept {
    marquetry_error *failed = nullptr;
    auto status = marquetry_supply_length(get(), object, length, &failed);
    return detail::checked(status, failed);
  }
  outcome fail(const char *reason) noexcept {
    marquetry_error *failed = nullptr;
    auto status = marquetry_fail(get(), reason, &failed);
    return detail::checked(status, failed);
  }
  /// Releases in slices: true when there is nothing more.
  bool release(const budget &spend = budget()) noexcept {
    return marquetry_machine_release(get(), spend.get(), nullptr) != MARQUETRY_STATUS_YIELD;
  }
  marquetry_machine *get() const noexcept { return owned_.get(); }

 protected:
  explicit machine(marquetry_machine *owned) noexcept : owned_(owned) {}
  template <typename Machine, typename Make>
  static result<Machine> made(Make make) noexcept {
    marquetry_machine *owned = nullptr;
    marquetry_error *failed = nullptr;
    if (make(&owned, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return Machine(owned);
  }
  template <typename Take>
  result<bytes> take_bytes(Take take) noexcept {
    bytes taken;
    marquetry_error *failed = nullptr;
    if (take(get(), taken.get(), &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return taken;
  }

 private:
  std::unique_ptr<marquetry_machine, detail::free_machine> owned_;
};

/// Reads a footer.
class footer_reader : public machine {
 public:
  explicit footer_reader(marquetry_machine *owned) noexcept : machine(owned) {}
  static result<footer_reader> make(const marquetry_footer_options *options = nullptr) noexcept {
    return made<footer_reader>([=](auto machine, auto failed) { return marquetry_footer_new(options, machine, failed); });
  }
  result<metadata> take() noexcept {
    marquetry_metadata *taken = nullptr;
    marquetry_error *failed = nullptr;
    if (marquetry_take_metadata(get(), &taken, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return metadata(taken);
  }
};

/// Reads batches.
class reader : public machine {
 public:
  explicit reader(marquetry_machine *owned) noexcept : machine(owned) {}
  static result<reader> make(const metadata &file, const marquetry_reader_options *options = nullptr) noexcept {
    return made<reader>([&](auto machine, auto failed) { return marquetry_reader_new(file.get(), options, machine, failed); });
  }
  result<marquetry::schema> schema() noexcept {
    marquetry::schema made;
    marquetry_error *failed = nullptr;
    if (marquetry_reader_schema(get(), made.get(), &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return made;
  }
  result<array> take() noexcept {
    array taken;
    marquetry_error *failed = nullptr;
    if (marquetry_take_batch(get(), taken.get(), nullptr, nullptr, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return taken;
  }
};

/// Reads an SSTable, as batches of the mapping `full`. Its wants are of the files that the options name, by their numbers.
class sstable_reader : public machine {
 public:
  explicit sstable_reader(marquetry_machine *owned) noexcept : machine(owned) {}
  static result<sstable_reader> make(const marquetry_sstable_options &options) noexcept {
    return made<sstable_reader>([&](auto machine, auto failed) { return marquetry_sstable_new(&options, machine, failed); });
  }
  /// Known once the first batch is READY, or at DONE.
  result<marquetry::schema> schema() noexcept {
    marquetry::schema made;
    marquetry_error *failed = nullptr;
    if (marquetry_sstable_schema(get(), made.get(), &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return made;
  }
  result<array> take() noexcept {
    array taken;
    marquetry_error *failed = nullptr;
    if (marquetry_take_batch(get(), taken.get(), nullptr, nullptr, &failed) != MARQUETRY_STATUS_OK) return error(failed);
    return taken;
  }
};

/// Reads records, as events.
class record_reader : public machine {
 public:
  explicit record_reader(marquetry_machine *owned) noexcept : machine(owned) {}
  static result<record_reader> make(const metadata &file, const marquetry_reader_options *options = nullptr) noexcept {
    return made<record_reader>(
        [&](auto machine, auto failed) { return marquetry_records_new(file.get(), options, machine, failed); });
  }
  /// After READY; the span, and what it points to, is good until the next step.
  std::span<const marquetry_event> events() noexcept {
    const marquetry_event *events = nullptr;
    std::size_t count = 0;
    if (marquetry_events(get(), &events, &count, nullptr) != MARQUETRY_STATUS_OK) return {};
    return {events, count};
  }
};

/// Writes a file.
class writer : public machine {
 public:
  explicit writer(marquetry_machine *owned) noexcept : machine(owned) {}
  static result<writer> make(const struct ArrowSchema *schema, const marquetry_writer_options *options = nullptr) noexcept {
    return made<writer>([=](auto machine, auto failed) { return marquetry_writer_new(schema, options, machine, failed); });
  }
  /// OK, or FULL: then nothing was taken.
  result<marquetry_status> feed(array &rows) noexcept {
    marquetry_error *failed = nullptr;
    marquetry_status status = marquetry_feed(get(), rows.get(), &failed);
    if (status == MARQUETRY_STATUS_ERROR) return error(failed);
    return status;
  }
  outcome finish() noexcept {
    marquetry_error *failed = nullptr;
    auto status = marquetry_finish(get(), &failed);
    return detail::checked(status, failed);
  }
  result<bytes> take_append() noexcept { return take_bytes(marquetry_take_append); }
};

/// Turns a file into CQL text.
class cql_text : public machine {
 public:
  explicit cql_text(marquetry_machine *owned) noexcept : machine(owned) {}
  static result<cql_text> make(const metadata &file, const marquetry_cql_options &options,
                               const marquetry_reader_options *rows = nullptr) noexcept {
    return made<cql_text>(
        [&](auto machine, auto failed) { return marquetry_cql_new(file.get(), rows, &options, machine, failed); });
  }
  result<bytes> take() noexcept { return take_bytes(marquetry_take_text); }
};

/// Steps a machine to its next answer in a coroutine: READY, APPEND or DONE, or the error. `Task` is the host's own type of coroutines. The host has
/// `budget()`, and two things to await: `supply(machine)` answers all that the machine wants now, and gives an outcome; `yield()` lets others run.
///
///     auto status = co_await marquetry::next<my_task>(reader, host);
template <template <typename> class Task, typename Machine, typename Host>
Task<result<marquetry_status>> next(Machine &machine, Host &host) {
  for (;;) {
    auto status = machine.step(host.budget());
    if (!status) co_return std::move(status);
    if (*status == MARQUETRY_STATUS_YIELD) {
      co_await host.yield();
    } else if (*status == MARQUETRY_STATUS_NEED) {
      auto supplied = co_await host.supply(machine);
      if (!supplied) co_return supplied.take_error();
    } else {
      co_return std::move(status);
    }
  }
}

}  // namespace marquetry

#endif  // MARQUETRY_HPP
