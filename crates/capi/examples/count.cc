// Counts the rows that a predicate wants, for a host that must not wait: count FILE PREDICATE.
#include <fstream>
#include <iostream>
#include <marquetry.hpp>
namespace mq = marquetry;

// Steps to a product or the end. A reactor awaits its reads here, and lets others run on YIELD.
mq::result<marquetry_status> next(mq::machine &machine, std::ifstream &file) {
  for (;;) {
    auto status = machine.step(mq::budget(250'000));  // A quarter of a millisecond, about.
    if (!status || (*status != MARQUETRY_STATUS_NEED && *status != MARQUETRY_STATUS_YIELD)) return status;
    for (const marquetry_want &want : machine.wants()) {
      if (want.kind == MARQUETRY_WANT_KIND_LENGTH) {
        if (auto done = machine.supply_length(std::uint64_t(file.seekg(0, std::ios::end).tellg())); !done) return done.take_error();
      } else if (want.kind == MARQUETRY_WANT_KIND_NOW) {
        std::string bytes(want.end - want.start, 0);
        bool is_read(file.seekg(std::streamoff(want.start)).read(bytes.data(), std::streamsize(bytes.size())));
        auto done = is_read ? machine.supply_moved(want.start, std::move(bytes)) : machine.fail("the file cannot be read");
        if (!done) return done.take_error();
      }
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return std::cerr << "usage: count FILE PREDICATE\n", 2;
  auto failed = [](const mq::error &error) { return std::cerr << error.what() << '\n', 1; };
  std::ifstream file(argv[1], std::ios::binary);
  auto footer = mq::footer_reader::make();
  if (auto read = next(*footer, file); !read) return failed(read.error());
  auto options = mq::options<marquetry_reader_options>();
  options.predicate = argv[2];
  auto reader = mq::reader::make(*footer->take(), &options);
  if (!reader) return failed(reader.error());
  for (long long rows = 0;; rows += (*reader->take())->length) {
    auto status = next(*reader, file);
    if (!status) return failed(status.error());
    if (*status == MARQUETRY_STATUS_DONE) return std::cout << rows << " rows\n", 0;
  }
}
