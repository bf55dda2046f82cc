// Copies a Parquet file by the adapter, and reads it as events, and again with an abort: copy FROM TO. Compiled against Seastar where it is
// installed, or else against the stand-ins.
#include <iostream>
#include <marquetry/seastar.hh>
#include <seastar/core/app-template.hh>
#include <seastar/core/seastar.hh>

namespace in_seastar = marquetry::in_seastar;

static seastar::future<> copy(std::string from, std::string to) {
  // Small pieces, so that ranges have many.
  in_seastar::io_options io;
  io.piece_bytes = 1000;
  auto reader = co_await in_seastar::reader::open(co_await seastar::open_file_dma(from, seastar::open_flags::ro), io);
  std::unique_ptr<in_seastar::writer> writer;
  std::exception_ptr failed;
  long long rows = 0;
  try {
    auto out = co_await seastar::open_file_dma(to, seastar::open_flags::wo | seastar::open_flags::create | seastar::open_flags::truncate);
    auto schema = reader->schema();
    writer = co_await in_seastar::writer::open(std::move(out), schema.get());
    while (auto batch = co_await reader->next()) {
      rows += (*batch)->length;
      co_await writer->write(std::move(*batch));
    }
    co_await writer->close();
  } catch (...) {
    failed = std::current_exception();
  }
  // A writer that failed closes its file in the background.
  co_await reader->close();
  if (failed) std::rethrow_exception(failed);
  std::cout << rows << " rows\n";
}

static seastar::future<> count_records(std::string from) {
  auto reader = co_await in_seastar::record_reader::open(co_await seastar::open_file_dma(from, seastar::open_flags::ro));
  long long records = 0;
  for (auto events = co_await reader->next(); !events.empty(); events = co_await reader->next()) {
    for (const auto &event : events) records += event.kind == MARQUETRY_EVENT_KIND_START_RECORD;
  }
  co_await reader->close();
  std::cout << records << " records\n";
}

static seastar::future<> aborted(std::string from) {
  seastar::abort_source abort;
  in_seastar::io_options io;
  io.abort = &abort;
  auto reader = co_await in_seastar::reader::open(co_await seastar::open_file_dma(from, seastar::open_flags::ro), io);
  co_await reader->next();
  abort.request_abort();
  try {
    co_await reader->next();
    std::cout << "not aborted\n";
  } catch (const seastar::abort_requested_exception &) {
    std::cout << "aborted\n";
  }
  co_await reader->close();
}

static seastar::future<int> run(std::string from, std::string to) {
  try {
    co_await copy(from, to);
    co_await count_records(from);
    co_await aborted(from);
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
      ("to", boost::program_options::value<std::string>()->required(), "the file to write");
  return app.run(argc, argv, [&app] {
    auto &&given = app.configuration();
    return run(given["from"].as<std::string>(), given["to"].as<std::string>());
  });
}
