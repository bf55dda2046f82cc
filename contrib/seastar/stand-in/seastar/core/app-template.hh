// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <boost/program_options.hpp>
#include <functional>
#include <iostream>
#include <seastar/core/future.hh>

namespace seastar {

class app_template {
 public:
  boost::program_options::easy_init add_options() { return boost::program_options::easy_init(&options_); }
  boost::program_options::variables_map &configuration() { return options_; }
  int run(int argc, char **argv, std::function<future<int>()> &&run) noexcept {
    try {
      options_.parse(argc, argv);
      return run().get();
    } catch (const std::exception &it) {
      std::cerr << it.what() << '\n';
      return 2;
    }
  }

 private:
  boost::program_options::variables_map options_;
};

}  // namespace seastar
