// What the adapter does when reads and writes end late, fail, are aborted, or when what was opened is dropped: late FROM TO. By the stand-ins only,
// which make reads and writes fail, and end this program with an error if anything is left open.
#include <fstream>
#include <iostream>
#include <iterator>
#include <marquetry/seastar.hh>
#include <seastar/core/app-template.hh>
#include <seastar/core/seastar.hh>
#include <seastar/stand-in.hh>
#include <set>

namespace in_seastar = marquetry::in_seastar;
using seastar::open_flags;

static void expect(bool is_so, const char *what) {
  if (!is_so) seastar::stand_in::complain(what);
}

static seastar::future<std::unique_ptr<in_seastar::reader>> open(std::string from, in_seastar::io_options io = {}) {
  io.piece_bytes = 1000;
  co_return co_await in_seastar::reader::open(co_await seastar::open_file_dma(from, open_flags::ro), io);
}

static seastar::future<std::unique_ptr<in_seastar::writer>> create(std::string to, in_seastar::reader &like) {
  auto out = co_await seastar::open_file_dma(to, open_flags::wo | open_flags::create | open_flags::truncate);
  auto schema = like.schema();
  auto options = marquetry::options<marquetry_writer_options>();
  options.row_group_rows = 1000;
  co_return co_await in_seastar::writer::open(std::move(out), schema.get(), nullptr, options);
}

// A writer and a reader that are dropped open, without an exception and with one.
static seastar::future<> dropped(std::string from, std::string to) {
  {
    auto reader = co_await open(from);
    auto writer = co_await create(to, *reader);
    auto batch = co_await reader->next();
    co_await writer->write(std::move(*batch));
  }
  try {
    auto reader = co_await open(from);
    auto writer = co_await create(to, *reader);
    seastar::stand_in::write_fails = [] { return true; };
    while (auto batch = co_await reader->next()) co_await writer->write(std::move(*batch));
    co_await writer->close();
    expect(false, "what cannot be written was written");
  } catch (const std::system_error &it) {
    expect(it.code().value() == ENOSPC, "another error than the write's");
  }
  seastar::stand_in::write_fails = nullptr;
}

// A second close ends, also after an error; what is used after a close is an exception.
static seastar::future<> closed_twice(std::string from, std::string to) {
  auto reader = co_await open(from);
  auto writer = co_await create(to, *reader);
  auto batch = co_await reader->next();
  co_await writer->write(std::move(*batch));
  co_await writer->close();
  co_await writer->close();
  bool is_refused = false;
  auto more = co_await reader->next();
  try {
    co_await writer->write(std::move(*more));
  } catch (const in_seastar::exception &it) {
    is_refused = it.kind() == MARQUETRY_ERROR_KIND_MISUSE;
  }
  expect(is_refused, "a writer that is closed writes");
  co_await reader->close();
  co_await reader->close();
  is_refused = false;
  try {
    (void)co_await reader->next();
  } catch (const in_seastar::exception &it) {
    is_refused = it.kind() == MARQUETRY_ERROR_KIND_MISUSE;
  }
  expect(is_refused, "a reader that is closed reads");
}

// A disk that is full once: what is left out is not skipped, and the file gets no footer.
static seastar::future<> full_once(std::string from, std::string to) {
  std::unique_ptr<in_seastar::writer> writer;
  int failed = 0;
  for (int pass = 0; failed == 0 && pass < 100; pass++) {
    auto reader = co_await open(from);
    if (!writer) writer = co_await create(to, *reader);
    seastar::stand_in::write_fails = [&failed] { return failed == 0; };
    while (auto batch = co_await reader->next()) {
      try {
        co_await writer->write(std::move(*batch));
      } catch (const std::system_error &it) {
        failed += it.code().value() == ENOSPC;
      }
    }
    co_await reader->close();
  }
  seastar::stand_in::write_fails = nullptr;
  expect(failed > 0, "no write failed");
  bool is_same = false;
  try {
    co_await writer->close();
  } catch (const std::system_error &it) {
    is_same = it.code().value() == ENOSPC;
  }
  expect(is_same, "a writer is closed as if nothing had failed");
  std::ifstream written(to, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(written)), std::istreambuf_iterator<char>());
  expect(all.find("PAR1", 4) == std::string::npos, "a file with a hole has a footer");
}

struct own_reason : std::exception {};

// A read that is in flight when it is aborted fails with the abort source's exception, and so does each later one.
template <typename Expected, typename Abort>
static seastar::future<> aborted(std::string from, Abort abort_it) {
  seastar::abort_source abort;
  in_seastar::io_options io;
  io.abort = &abort;
  io.read_ahead_bytes = 0;
  auto reader = co_await open(from, io);
  auto next = reader->next();
  expect(!next.available(), "a read ends at once");
  abort_it(abort);
  for (int time = 0; time < 2; time++) {
    bool is_expected = false;
    try {
      if (time == 0) {
        (void)co_await std::move(next);
      } else {
        (void)co_await reader->next();
      }
    } catch (const Expected &) {
      is_expected = true;
    } catch (const std::exception &it) {
      std::cerr << it.what() << '\n';
    }
    expect(is_expected, "an aborted read fails with another exception, or not at all");
  }
  co_await reader->close();
}

// Reads ahead that fail harm nobody, and are read again when they are needed. If that fails, it is an error, after which reading goes on.
static seastar::future<> read_ahead_fails(std::string from) {
  auto reader = co_await open(from);
  // The second column is read ahead while the first one is needed: each of its pieces fails once.
  auto second = *reader->metadata().chunk(0, 1);
  std::set<std::uint64_t> failed;
  seastar::stand_in::read_fails = [&](std::uint64_t start, std::uint64_t) {
    return start >= second.offset && start < second.offset + second.compressed_bytes && failed.insert(start).second;
  };
  auto batch = co_await reader->next();
  long long rows = (*batch)->length;
  expect(!failed.empty(), "nothing was read ahead");
  seastar::stand_in::read_fails = [](std::uint64_t, std::uint64_t) { return true; };
  bool is_error = false;
  try {
    for (;;) {
      batch = co_await reader->next();
      rows += (*batch)->length;
    }
  } catch (const std::system_error &it) {
    is_error = it.code().value() == EIO;
  }
  expect(is_error, "a read that is needed and fails is no error");
  seastar::stand_in::read_fails = nullptr;
  for (;;) {
    batch = co_await reader->next();
    if (!batch) break;
    rows += (*batch)->length;
  }
  co_await reader->close();
  std::cout << rows << " rows\n";
}

static seastar::future<int> run(std::string from, std::string to) {
  try {
    co_await dropped(from, to);
    co_await full_once(from, to);
    co_await closed_twice(from, to);
    co_await aborted<seastar::abort_requested_exception>(from, [](auto &abort) { abort.request_abort(); });
    co_await aborted<own_reason>(from, [](auto &abort) { abort.request_abort_ex(own_reason()); });
    co_await read_ahead_fails(from);
  } catch (const std::exception &it) {
    std::cerr << it.what() << '\n';
    co_return 1;
  }
  co_return 0;
}

int main(int argc, char **argv) {
  seastar::app_template app;
  app.add_options()
      ("from", boost::program_options::value<std::string>()->required(), "the file to read")
      ("to", boost::program_options::value<std::string>()->required(), "a file to write");
  return app.run(argc, argv, [&app] {
    auto &&given = app.configuration();
    return run(given["from"].as<std::string>(), given["to"].as<std::string>());
  });
}
