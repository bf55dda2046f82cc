// Marquetry in Seastar: a header-only adapter over marquetry.hpp. Files are read and written through seastar::file, work ends when Seastar needs
// the shard, and what fails is an exception in a future, as everywhere in Seastar.
// SPDX-License-Identifier: Apache-2.0
//
// All here belongs to the shard that made it. What was opened is closed by awaiting `close`, once or more often; if it is dropped open, also by an
// exception, it waits for its reads or writes, closes its file and frees its memory behind the scenes. It must not be dropped while a future of it is
// not resolved.
// Buffers of DMA reads go into the decoder without a copy; they are freed when the last array that
// points into them is, so arrays are best released on their shard.
#ifndef MARQUETRY_SEASTAR_HH
#define MARQUETRY_SEASTAR_HH

#include <algorithm>
#include <deque>
#include <exception>
#include <marquetry.hpp>
#include <memory>
#include <optional>
#include <seastar/core/abort_source.hh>
#include <seastar/core/coroutine.hh>
#include <seastar/core/file.hh>
#include <seastar/core/fstream.hh>
#include <seastar/core/future.hh>
#include <seastar/core/io_intent.hh>
#include <seastar/core/iostream.hh>
#include <seastar/core/preempt.hh>
#include <seastar/core/temporary_buffer.hh>
#include <seastar/coroutine/maybe_yield.hh>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace marquetry::in_seastar {

/// What a future fails with, if a machine does.
class exception : public std::exception {
 public:
  explicit exception(const error &failed)
      : kind_(failed.kind()), text_(failed.what()), column_(failed.column()), row_group_(failed.info().row_group), row_(failed.info().row) {}
  /// A misuse of the adapter itself.
  explicit exception(const char *misuse) : kind_(MARQUETRY_ERROR_KIND_MISUSE), text_(misuse), row_group_(-1), row_(-1) {}
  marquetry_error_kind kind() const noexcept { return kind_; }
  /// What is wrong, and where.
  const char *what() const noexcept override { return text_.c_str(); }
  /// The path of the column; empty if it is not known.
  const std::string &column() const noexcept { return column_; }
  /// -1 if they are not known.
  std::int64_t row_group() const noexcept { return row_group_; }
  std::int64_t row() const noexcept { return row_; }

 private:
  marquetry_error_kind kind_;
  std::string text_, column_;
  std::int64_t row_group_, row_;
};

namespace detail {
template <typename T>
T value_of(result<T> made) {
  if (!made) throw exception(made.error());
  return std::move(*made);
}

/// A budget of a default step's work, and less if Seastar needs the shard.
inline marquetry::budget budget() noexcept {
  static auto test = [] { return seastar::need_preempt(); };
  return marquetry::budget(0, test);
}

/// Frees what a machine holds in slices; what is left is cheap.
inline seastar::future<> release(machine &of) {
  while (!of.release(budget())) co_await seastar::coroutine::maybe_yield();
}

/// The end of a machine that nobody waits for.
inline seastar::future<> drop(machine of) { co_await release(of); }

/// What may be gone.
template <typename T>
T &of(std::optional<T> &it) {
  if (!it) throw exception("what was closed is used");
  return *it;
}

/// Of a destructor: what it begins is not waited for. If there is no memory even for that, `begin` has dropped all at once.
template <typename Begin>
void in_background(Begin begin) noexcept {
  try {
    (void)begin();
  } catch (...) {
  }
}
}  // namespace detail

/// How files are read.
struct io_options {
  /// Cancels what is read and what is decoded. Must outlive the reader.
  seastar::abort_source *abort = nullptr;
  /// Bytes that are read before a machine needs them, at most.
  std::uint64_t read_ahead_bytes = 4 << 20;
  /// Bytes of a read: a range is read in such pieces, side by side. Seastar does not like larger buffers.
  std::uint64_t piece_bytes = 128 << 10;
};

/// Steps machines on this shard, over a file.
class host {
 public:
  explicit host(seastar::file file, io_options options = {}) : file_(std::move(file)), options_(options) {
    if (options_.abort != nullptr) {
      subscription_ = options_.abort->subscribe([this]() noexcept { intent_.cancel(); });
    }
  }
  host(const host &) = delete;
  host &operator=(const host &) = delete;
  ~host() {
    if (!is_open_) return;
    subscription_ = std::nullopt;
    intent_.cancel();
    detail::in_background([this] { return end(std::move(file_), std::move(reads_)); });
  }

  /// A default step's work, and less if Seastar needs the shard.
  static marquetry::budget budget() noexcept { return detail::budget(); }

  /// Steps a machine to READY, APPEND or DONE. Between steps others run, if it is their turn. Fails with `exception`, with what reading failed
  /// with, or, if it is aborted, with the abort source's exception.
  seastar::future<marquetry_status> next(machine &of) {
    for (;;) {
      if (options_.abort != nullptr) options_.abort->check();
      marquetry_status status = detail::value_of(of.step(budget()));
      if (status == MARQUETRY_STATUS_NEED) {
        co_await supply(of);
      } else if (status == MARQUETRY_STATUS_YIELD) {
        co_await seastar::coroutine::maybe_yield();
      } else {
        co_return status;
      }
    }
  }

  /// Frees what a machine holds in slices; what is left is cheap.
  seastar::future<> release(machine &of) { return detail::release(of); }

  /// Waits for what is being read, and closes the file, if that was not done before.
  seastar::future<> close() {
    if (!std::exchange(is_open_, false)) co_return;
    subscription_ = std::nullopt;
    intent_.cancel();
    std::exception_ptr failed = co_await end(std::move(file_), std::move(reads_));
    if (failed) std::rethrow_exception(failed);
  }

  seastar::file &file() noexcept { return file_; }

 private:
  /// A piece that is being read.
  struct read {
    std::uint64_t start, end;
    /// Nobody needed it when it was begun.
    bool is_ahead;
    seastar::future<seastar::temporary_buffer<std::uint8_t>> bytes;
  };

  /// Waits for reads, and closes their file. The reads do not keep it open. What closing failed with, if it did.
  static seastar::future<std::exception_ptr> end(seastar::file file, std::deque<read> reads) {
    for (auto &it : reads) {
      try {
        (void)co_await std::move(it.bytes);
      } catch (...) {
        // Nobody needs these bytes any more.
      }
    }
    std::exception_ptr failed;
    try {
      co_await file.close();
    } catch (...) {
      failed = std::current_exception();
    }
    co_return failed;
  }

  /// Reads what is wanted now, and begins to read what is wanted soon.
  seastar::future<> supply(machine &of) {
    std::vector<marquetry_want> wants(of.wants().begin(), of.wants().end());
    for (const auto &want : wants) {
      if (want.kind == MARQUETRY_WANT_KIND_LENGTH) {
        std::uint64_t length = co_await file_.size();
        detail::value_of(of.supply_length(length));
      } else {
        begin(want);
      }
    }
    // In the order in which they were begun: what is wanted now was, or is older.
    for (auto at = reads_.begin(); at != reads_.end();) {
      bool is_needed = std::any_of(wants.begin(), wants.end(), [&](const marquetry_want &want) {
        return want.kind == MARQUETRY_WANT_KIND_NOW && want.start < at->end && at->start < want.end;
      });
      if (!is_needed && !at->bytes.available()) {
        ++at;
        continue;
      }
      read done = std::move(*at);
      at = reads_.erase(at);
      std::optional<seastar::temporary_buffer<std::uint8_t>> buffer;
      std::exception_ptr failed;
      try {
        buffer.emplace(co_await std::move(done.bytes));
      } catch (...) {
        failed = std::current_exception();
      }
      if (failed) {
        // A read that was cancelled failed because of that, whatever it says.
        if (options_.abort != nullptr) options_.abort->check();
        if (is_needed && !done.is_ahead) std::rethrow_exception(failed);
        // What was read ahead is read again once it is needed: the next step asks for it.
        continue;
      }
      auto *held = new seastar::temporary_buffer<std::uint8_t>(std::move(*buffer));
      auto free = [](void *held, const std::uint8_t *, std::size_t) { delete static_cast<seastar::temporary_buffer<std::uint8_t> *>(held); };
      detail::value_of(of.supply(done.start, {held->get(), held->size(), free, held}));
    }
  }

  /// Begins to read those pieces of a range that are not being read. What is wanted soon is left out beyond the bound.
  void begin(const marquetry_want &want) {
    std::uint64_t ahead = 0;
    for (const auto &it : reads_) ahead += it.end - it.start;
    for (std::uint64_t at = want.start; at < want.end;) {
      std::uint64_t end = std::min(want.end, at + std::max<std::uint64_t>(options_.piece_bytes, 1));
      bool is_read = false;
      for (const auto &it : reads_) {
        if (it.start <= at && at < it.end) {
          at = it.end;
          is_read = true;
          break;
        }
        if (at < it.start) end = std::min(end, it.start);
      }
      if (is_read) continue;
      bool is_ahead = want.kind == MARQUETRY_WANT_KIND_SOON;
      if (is_ahead && ahead + (end - at) > options_.read_ahead_bytes) return;
      reads_.push_back({at, end, is_ahead, file_.dma_read_exactly<std::uint8_t>(at, std::size_t(end - at), &intent_)});
      ahead += end - at;
      at = end;
    }
  }

  seastar::file file_;
  io_options options_;
  seastar::io_intent intent_;
  seastar::optimized_optional<seastar::abort_source::subscription> subscription_;
  std::deque<read> reads_;
  bool is_open_ = true;
};

/// A file whose footer is read: what readers of its rows have in common.
template <typename Machine>
class file_of_rows {
 public:
  file_of_rows(const file_of_rows &) = delete;
  const marquetry::metadata &metadata() const noexcept { return *metadata_; }
  file_of_rows &operator=(const file_of_rows &) = delete;
  virtual ~file_of_rows() {
    if (machine_) detail::in_background([this] { return detail::drop(std::move(*machine_)); });
  }
  /// Frees what is held, in slices, and closes the file. A second one does nothing.
  seastar::future<> close() {
    if (auto machine = std::exchange(machine_, std::nullopt)) co_await host_.release(*machine);
    co_await host_.close();
  }

 protected:
  file_of_rows(seastar::file file, io_options io) : host_(std::move(file), io) {}

  /// The machine of the rows, which `close` takes.
  Machine &rows() { return detail::of(machine_); }

  seastar::future<> open_footer() {
    auto footer = detail::value_of(footer_reader::make());
    co_await host_.next(footer);
    metadata_.emplace(detail::value_of(footer.take()));
    co_await host_.release(footer);
  }

  /// Makes `Self` of a file. If that fails, the file is closed.
  template <typename Self, typename Begin>
  static seastar::future<std::unique_ptr<Self>> opened(std::unique_ptr<Self> self, Begin begin) {
    std::exception_ptr failed;
    try {
      co_await self->open_footer();
      begin(*self);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) {
      co_await self->close();
      std::rethrow_exception(failed);
    }
    co_return std::move(self);
  }

  host host_;
  std::optional<marquetry::metadata> metadata_;
  /// The machine of the rows, while there is one.
  std::optional<Machine> machine_;
};

/// Reads batches, as Arrow arrays.
class reader : public file_of_rows<marquetry::reader> {
 public:
  /// Opens a file that was opened for DMA. What the options point to is borrowed until the future is resolved.
  static seastar::future<std::unique_ptr<reader>> open(seastar::file file, io_options io = {},
                                                       marquetry_reader_options wanted = options<marquetry_reader_options>()) {
    return opened(std::unique_ptr<reader>(new reader(std::move(file), io)), [wanted](reader &self) {
      self.machine_.emplace(detail::value_of(marquetry::reader::make(self.metadata(), &wanted)));
    });
  }
  marquetry::schema schema() { return detail::value_of(rows().schema()); }
  /// The next batch; nothing at the end.
  seastar::future<std::optional<array>> next() {
    marquetry_status status = co_await host_.next(rows());
    if (status != MARQUETRY_STATUS_READY) co_return std::nullopt;
    co_return detail::value_of(rows().take());
  }

 private:
  reader(seastar::file file, io_options io) : file_of_rows(std::move(file), io) {}
};

/// Reads records, as events.
class record_reader : public file_of_rows<marquetry::record_reader> {
 public:
  /// As a `reader`'s.
  static seastar::future<std::unique_ptr<record_reader>> open(seastar::file file, io_options io = {},
                                                              marquetry_reader_options wanted = options<marquetry_reader_options>()) {
    return opened(std::unique_ptr<record_reader>(new record_reader(std::move(file), io)), [wanted](record_reader &self) {
      self.machine_.emplace(detail::value_of(marquetry::record_reader::make(self.metadata(), &wanted)));
    });
  }
  /// The next events; none at the end. They are borrowed until the next call.
  seastar::future<std::span<const marquetry_event>> next() {
    marquetry_status status = co_await host_.next(rows());
    if (status != MARQUETRY_STATUS_READY) co_return std::span<const marquetry_event>();
    co_return rows().events();
  }
  /// The machine, for `marquetry_records_field`; NULL after `close`.
  marquetry_machine *get() const noexcept { return machine_ ? machine_->get() : nullptr; }

 private:
  record_reader(seastar::file file, io_options io) : file_of_rows(std::move(file), io) {}
};

/// Turns a file into CQL text.
class cql_text : public file_of_rows<marquetry::cql_text> {
 public:
  /// As a `reader`'s.
  static seastar::future<std::unique_ptr<cql_text>> open(seastar::file file, marquetry_cql_options text, io_options io = {}) {
    return opened(std::unique_ptr<cql_text>(new cql_text(std::move(file), io)), [text](cql_text &self) {
      self.machine_.emplace(detail::value_of(marquetry::cql_text::make(self.metadata(), text)));
    });
  }
  /// The next complete statements; nothing at the end.
  seastar::future<std::optional<bytes>> next() {
    marquetry_status status = co_await host_.next(rows());
    if (status != MARQUETRY_STATUS_READY) co_return std::nullopt;
    co_return detail::value_of(rows().take());
  }

 private:
  cql_text(seastar::file file, io_options io) : file_of_rows(std::move(file), io) {}
};

/// Writes a file.
class writer {
 public:
  /// Writes to a file that was opened for DMA and is empty. `schema` and what the options point to are borrowed until the future is resolved. If it
  /// fails, the file is closed.
  static seastar::future<std::unique_ptr<writer>> open(seastar::file file, const struct ArrowSchema *schema, seastar::abort_source *abort = nullptr,
                                                       marquetry_writer_options wanted = options<marquetry_writer_options>()) {
    auto made = marquetry::writer::make(schema, &wanted);
    if (!made) {
      co_await file.close();
      throw exception(made.error());
    }
    auto out = co_await seastar::make_file_output_stream(std::move(file), buffer_bytes);
    co_return std::unique_ptr<writer>(new writer(std::move(*made), std::move(out), abort));
  }

  writer(const writer &) = delete;
  writer &operator=(const writer &) = delete;
  /// What was not closed is no Parquet file: it has no footer. The stream and the file are closed all the same, in the background.
  ~writer() {
    if (machine_) detail::in_background([this] { return detail::drop(std::move(*machine_)); });
    if (out_) detail::in_background([this] { return end(std::move(out_)); });
  }

  /// Writes rows: an array of the schema, which is taken. Once a write has failed, each later one fails with what it failed with: what was to be
  /// written may be there in part.
  seastar::future<> write(array rows) {
    while (detail::value_of(machine().feed(rows)) == MARQUETRY_STATUS_FULL) co_await advance();
    co_await advance_all();
  }

  /// Writes the end of the file, flushes and closes it. If it fails, the file is no Parquet file, but closed; it fails if a write did, and then
  /// with the same. A second one does nothing.
  seastar::future<> close() {
    if (!out_) co_return;
    std::exception_ptr failed;
    try {
      co_await advance_all();
      detail::value_of(machine().finish());
      co_await advance_all();
      co_await out_->flush();
    } catch (...) {
      failed = std::current_exception();
    }
    auto closing = co_await end(std::move(out_));
    if (auto machine = std::exchange(machine_, std::nullopt)) co_await detail::release(*machine);
    if (!failed) failed = closing;
    if (failed) std::rethrow_exception(failed);
  }

 private:
  using stream = seastar::output_stream<char>;
  static constexpr std::uint64_t buffer_bytes = 128 << 10;

  writer(marquetry::writer made, stream out, seastar::abort_source *abort)
      : machine_(std::move(made)), out_(std::make_unique<stream>(std::move(out))), abort_(abort) {}

  marquetry::writer &machine() { return detail::of(machine_); }

  /// Closes a stream, whose address stays until that is done. What that failed with, if it did.
  static seastar::future<std::exception_ptr> end(std::unique_ptr<stream> out) {
    std::exception_ptr failed;
    try {
      co_await out->close();
    } catch (...) {
      failed = std::current_exception();
    }
    co_return failed;
  }

  /// A step, and what it makes is written: READY, DONE, or, after anything else, YIELD.
  seastar::future<marquetry_status> advance() {
    if (failed_) std::rethrow_exception(failed_);
    if (abort_ != nullptr) abort_->check();
    marquetry_status status = detail::value_of(machine().step(detail::budget()));
    if (status == MARQUETRY_STATUS_APPEND) {
      auto made = detail::value_of(machine().take_append());
      try {
        co_await out_->write(made.text().data(), made.text().size());
      } catch (...) {
        // What was taken and not written is a hole, after which there must be no footer.
        failed_ = std::current_exception();
      }
      if (failed_) std::rethrow_exception(failed_);
      co_return MARQUETRY_STATUS_YIELD;
    }
    if (status == MARQUETRY_STATUS_YIELD) co_await seastar::coroutine::maybe_yield();
    co_return status;
  }

  /// Steps until there is room for rows, or nothing more to write.
  seastar::future<> advance_all() {
    // GCC 12 makes a wrong program of `co_await` in the condition of a loop or an `if`.
    for (marquetry_status status = MARQUETRY_STATUS_YIELD; status == MARQUETRY_STATUS_YIELD;) status = co_await advance();
  }

  /// While the file is open.
  std::optional<marquetry::writer> machine_;
  std::unique_ptr<stream> out_;
  seastar::abort_source *abort_;
  /// What writing bytes failed with first.
  std::exception_ptr failed_;
};

}  // namespace marquetry::in_seastar

#endif  // MARQUETRY_SEASTAR_HH
