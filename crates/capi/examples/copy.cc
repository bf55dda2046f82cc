// Copies rows of one Parquet file to another, compressed with ZSTD: copy FROM TO [PREDICATE].
#include <fstream>
#include <iostream>
#include <marquetry.hpp>
#include <vector>

namespace mq = marquetry;

// Runs a machine up to a product, bytes to append, or its end. A reactor would read without waiting, and let others run on YIELD.
mq::result<marquetry_status> next(mq::machine &machine, std::ifstream &file) {
  for (;;) {
    auto status = machine.step();
    if (!status || (*status != MARQUETRY_STATUS_YIELD && *status != MARQUETRY_STATUS_NEED)) return status;
    if (*status == MARQUETRY_STATUS_YIELD) continue;
    for (const marquetry_want &want : machine.wants()) {
      if (want.kind == MARQUETRY_WANT_KIND_LENGTH) {
        if (auto done = machine.supply_length(std::uint64_t(file.seekg(0, std::ios::end).tellg())); !done) return done.take_error();
      } else if (want.kind == MARQUETRY_WANT_KIND_NOW) {
        std::vector<char> bytes(want.end - want.start);
        if (!file.seekg(std::streamoff(want.start)).read(bytes.data(), std::streamsize(bytes.size()))) (void)machine.fail("the file cannot be read");
        else if (auto done = machine.supply_moved(want.start, std::move(bytes)); !done) return done.take_error();
      }
    }
  }
}

int failed(const mq::error &error) { return std::cerr << error.what() << '\n', 1; }

int main(int argc, char **argv) {
  if (argc < 3) return std::cerr << "usage: copy FROM TO [PREDICATE]\n", 2;
  std::ifstream from(argv[1], std::ios::binary);
  std::ofstream to(argv[2], std::ios::binary);
  auto footer = mq::footer_reader::make();
  if (!footer) return failed(footer.error());
  if (auto read = next(*footer, from); !read) return failed(read.error());
  auto metadata = footer->take();
  if (!metadata) return failed(metadata.error());
  auto rows = mq::options<marquetry_reader_options>();
  rows.predicate = argc > 3 ? argv[3] : nullptr;
  auto reader = mq::reader::make(*metadata, &rows);
  if (!reader) return failed(reader.error());
  auto schema = reader->schema();
  if (!schema) return failed(schema.error());
  auto options = mq::options<marquetry_writer_options>();
  options.compression = "zstd";
  auto writer = mq::writer::make(schema->get(), &options);
  if (!writer) return failed(writer.error());
  for (long long count = 0;;) {
    auto status = next(*writer, from);
    if (!status) return failed(status.error());
    if (*status == MARQUETRY_STATUS_DONE) return std::cout << count << " rows\n", to.flush() ? 0 : 1;
    if (*status == MARQUETRY_STATUS_APPEND) {
      auto bytes = writer->take_append();
      if (!bytes) return failed(bytes.error());
      to << bytes->text();
    } else if (auto read = next(*reader, from); !read) {
      return failed(read.error());
    } else if (*read == MARQUETRY_STATUS_DONE) {
      if (auto done = writer->finish(); !done) return failed(done.error());
    } else {
      auto batch = reader->take();
      if (!batch) return failed(batch.error());
      count += (*batch)->length;
      if (auto fed = writer->feed(*batch); !fed) return failed(fed.error());
    }
  }
}
