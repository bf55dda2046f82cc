// Marquetry in Seastar: a header-only adapter over marquetry.hpp. Files are read and written through seastar::file, work ends when Seastar needs
// the shard, and what fails is an exception in a future, as everywhere in Seastar.
// SPDX-License-Identifier: Apache-2.0
//
// All here belongs to the shard that made it. Buffers of DMA reads go into the decoder without a copy; they are freed when the last array that
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

/// Steps machines on this shard, over a file. It is not moved while a future of it is not resolved.
class host {
 public:
  explicit host(seastar::file file, io_options options = {}) : file_(std::move(file)), options_(options) {
    if (options_.abort != nullptr) {
      subscription_ = options_.abort->subscribe([this]() noexcept { intent_.cancel(); });
    }
  }
  host(const host &) = delete;
  host &operator=(const host &) = delete;

  /// A default step's work, and less if Seastar needs the shard.
  static marquetry::budget budget() noexcept {
    static auto test = [] { return seastar::need_preempt(); };
    return marquetry::budget(0, test);
  }

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
  seastar::future<> release(machine &of) {
    while (!of.release(budget())) co_await seastar::coroutine::maybe_yield();
  }

  /// Waits for what is being read, and closes the file. Must be awaited before the host is destroyed.
  seastar::future<> close() {
    subscription_ = std::nullopt;
    intent_.cancel();
    while (!reads_.empty()) {
      try {
        co_await std::move(reads_.front().bytes);
      } catch (...) {
        // Nobody needs these bytes any more.
      }
      reads_.pop_front();
    }
    co_await file_.close();
  }

  seastar::file &file() noexcept { return file_; }

 private:
  /// A piece that is being read.
  struct read {
    std::uint64_t start, end;
    seastar::future<seastar::temporary_buffer<std::uint8_t>> bytes;
  };

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
      auto buffer = co_await std::move(done.bytes);
      auto *held = new seastar::temporary_buffer<std::uint8_t>(std::move(buffer));
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
      if (want.kind == MARQUETRY_WANT_KIND_SOON && ahead + (end - at) > options_.read_ahead_bytes) return;
      reads_.push_back({at, end, file_.dma_read_exactly<std::uint8_t>(at, std::size_t(end - at), &intent_)});
      ahead += end - at;
      at = end;
    }
  }

  seastar::file file_;
  io_options options_;
  seastar::io_intent intent_;
  seastar::optimized_optional<seastar::abort_source::subscription> subscription_;
  std::deque<read> reads_;
};

/// A file whose footer is read: what readers of its rows have in common.
class file_of_rows {
 public:
  file_of_rows(const file_of_rows &) = delete;
  const marquetry::metadata &metadata() const noexcept { return *metadata_; }
  /// Frees what is held, in slices, and closes the file. Must be awaited.
  seastar::future<> close() {
    if (machine_ != nullptr) co_await host_.release(*machine_);
    co_await host_.close();
  }

 protected:
  file_of_rows(seastar::file file, io_options io) : host_(std::move(file), io) {}
  virtual ~file_of_rows() = default;

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
  /// The machine of the rows, once there is one.
  machine *machine_ = nullptr;
};

/// Reads batches, as Arrow arrays.
class reader : public file_of_rows {
 public:
  /// Opens a file that was opened for DMA. What the options point to is borrowed until the future is resolved.
  static seastar::future<std::unique_ptr<reader>> open(seastar::file file, io_options io = {},
                                                       marquetry_reader_options wanted = options<marquetry_reader_options>()) {
    return opened(std::unique_ptr<reader>(new reader(std::move(file), io)), [wanted](reader &self) {
      self.reader_.emplace(detail::value_of(marquetry::reader::make(self.metadata(), &wanted)));
      self.machine_ = &*self.reader_;
    });
  }
  marquetry::schema schema() { return detail::value_of(reader_->schema()); }
  /// The next batch; nothing at the end.
  seastar::future<std::optional<array>> next() {
    if (co_await host_.next(*reader_) != MARQUETRY_STATUS_READY) co_return std::nullopt;
    co_return detail::value_of(reader_->take());
  }

 private:
  reader(seastar::file file, io_options io) : file_of_rows(std::move(file), io) {}
  std::optional<marquetry::reader> reader_;
};

/// Reads records, as events.
class record_reader : public file_of_rows {
 public:
  /// As a `reader`'s.
  static seastar::future<std::unique_ptr<record_reader>> open(seastar::file file, io_options io = {},
                                                              marquetry_reader_options wanted = options<marquetry_reader_options>()) {
    return opened(std::unique_ptr<record_reader>(new record_reader(std::move(file), io)), [wanted](record_reader &self) {
      self.reader_.emplace(detail::value_of(marquetry::record_reader::make(self.metadata(), &wanted)));
      self.machine_ = &*self.reader_;
    });
  }
  /// The next events; none at the end. They are borrowed until the next call.
  seastar::future<std::span<const marquetry_event>> next() {
    if (co_await host_.next(*reader_) != MARQUETRY_STATUS_READY) co_return std::span<const marquetry_event>();
    co_return reader_->events();
  }
  /// The machine, for `marquetry_records_field`.
  marquetry_machine *get() const noexcept { return reader_->get(); }

 private:
  record_reader(seastar::file file, io_options io) : file_of_rows(std::move(file), io) {}
  std::optional<marquetry::record_reader> reader_;
};

/// Turns a file into CQL text.
class cql_text : public file_of_rows {
 public:
  /// As a `reader`'s.
  static seastar::future<std::unique_ptr<cql_text>> open(seastar::file file, marquetry_cql_options text, io_options io = {}) {
    return opened(std::unique_ptr<cql_text>(new cql_text(std::move(file), io)), [text](cql_text &self) {
      self.text_.emplace(detail::value_of(marquetry::cql_text::make(self.metadata(), text)));
      self.machine_ = &*self.text_;
    });
  }
  /// The next complete statements; nothing at the end.
  seastar::future<std::optional<bytes>> next() {
    if (co_await host_.next(*text_) != MARQUETRY_STATUS_READY) co_return std::nullopt;
    co_return detail::value_of(text_->take());
  }

 private:
  cql_text(seastar::file file, io_options io) : file_of_rows(std::move(file), io) {}
  std::optional<marquetry::cql_text> text_;
};

/// Writes a file.
class writer {
 public:
  /// Writes to a file that was opened for DMA and is empty. `schema` and what the options point to are borrowed until the future is resolved.
  static seastar::future<std::unique_ptr<writer>> open(seastar::file file, const struct ArrowSchema *schema, seastar::abort_source *abort = nullptr,
                                                       marquetry_writer_options wanted = options<marquetry_writer_options>()) {
    auto made = detail::value_of(marquetry::writer::make(schema, &wanted));
    auto out = co_await seastar::make_file_output_stream(std::move(file), buffer_bytes);
    co_return std::unique_ptr<writer>(new writer(std::move(made), std::move(out), abort));
  }

  /// Writes rows: an array of the schema, which is taken.
  seastar::future<> write(array rows) {
    while (co_await advance() != MARQUETRY_STATUS_READY) {
    }
    while (detail::value_of(writer_.feed(rows)) == MARQUETRY_STATUS_FULL) co_await advance();
  }

  /// Writes the end of the file, flushes and closes it. Without it, or if it fails, the file is no Parquet file.
  /// It must be awaited once, also after an exception: Seastar's stream ends the process if it is dropped open.
  seastar::future<> close() {
    std::exception_ptr failed;
    try {
      while (co_await advance() != MARQUETRY_STATUS_READY) {
      }
      detail::value_of(writer_.finish());
      while (co_await advance() != MARQUETRY_STATUS_DONE) {
      }
      co_await out_.flush();
    } catch (...) {
      failed = std::current_exception();
    }
    co_await out_.close();
    if (failed) std::rethrow_exception(failed);
  }

 private:
  static constexpr std::uint64_t buffer_bytes = 128 << 10;

  writer(marquetry::writer made, seastar::output_stream<char> out, seastar::abort_source *abort)
      : writer_(std::move(made)), out_(std::move(out)), abort_(abort) {}

  /// A step, and what it makes is written: READY, DONE, or, after anything else, YIELD.
  seastar::future<marquetry_status> advance() {
    if (abort_ != nullptr) abort_->check();
    marquetry_status status = detail::value_of(writer_.step(host::budget()));
    if (status == MARQUETRY_STATUS_APPEND) {
      auto made = detail::value_of(writer_.take_append());
      co_await out_.write(made.text().data(), made.text().size());
      co_return MARQUETRY_STATUS_YIELD;
    }
    if (status == MARQUETRY_STATUS_YIELD) co_await seastar::coroutine::maybe_yield();
    co_return status;
  }

  marquetry::writer writer_;
  seastar::output_stream<char> out_;
  seastar::abort_source *abort_;
};

}  // namespace marquetry::in_seastar

#endif  // MARQUETRY_SEASTAR_HH
