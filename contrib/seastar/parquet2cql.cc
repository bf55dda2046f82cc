// parquet2cql --file FILE --table TABLE --pk NAME: a Parquet file as CREATE TABLE and INSERT statements, on standard output. The flags are those of
// parquet4seastar's tool: NAME is a column that numbers the rows, and is the key. One more, --key, names columns of the file instead.
#include <boost/program_options.hpp>
#include <iostream>
#include <marquetry/seastar.hh>
#include <seastar/core/app-template.hh>
#include <seastar/core/seastar.hh>

namespace bpo = boost::program_options;

static seastar::future<int> convert(std::string file, std::string table, std::string pk, std::string key) {
  auto options = marquetry::options<marquetry_cql_options>();
  options.table = table.c_str();
  options.row_number = pk.empty() ? nullptr : pk.c_str();
  options.key = key.empty() ? nullptr : key.c_str();
  std::exception_ptr failed;
  std::unique_ptr<marquetry::in_seastar::cql_text> text;
  try {
    auto opened = co_await seastar::open_file_dma(file, seastar::open_flags::ro);
    text = co_await marquetry::in_seastar::cql_text::open(std::move(opened), options);
    while (auto statements = co_await text->next()) {
      // It waits for whoever reads, as the original does; nothing else runs here.
      std::cout << statements->text();
      if (!std::cout) throw std::runtime_error("standard output cannot be written");
    }
    std::cout.flush();
  } catch (...) {
    failed = std::current_exception();
  }
  if (text) co_await text->close();
  if (!failed) co_return 0;
  try {
    std::rethrow_exception(failed);
  } catch (const std::exception &it) {
    std::cerr << "parquet2cql: " << file << ": " << it.what() << '\n';
  }
  co_return 1;
}

int main(int argc, char **argv) {
  seastar::app_template app;
  app.add_options()
      ("file", bpo::value<std::string>()->required(), "Parquet file path")
      ("table", bpo::value<std::string>()->required(), "CQL table name")
      ("pk", bpo::value<std::string>()->default_value(""), "Primary key (row number) column name")
      ("key", bpo::value<std::string>()->default_value(""), "columns of the file that are the primary key: id, or (day), hour");
  return app.run(argc, argv, [&app] {
    auto &&given = app.configuration();
    return convert(given["file"].as<std::string>(), given["table"].as<std::string>(), given["pk"].as<std::string>(),
                   given["key"].as<std::string>());
  });
}
