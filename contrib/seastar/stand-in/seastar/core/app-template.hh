// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <boost/program_options.hpp>
#include <functional>
#include <iostream>
#include <seastar/core/future.hh>
#include <seastar/stand-in.hh>

namespace seastar {

class app_template {
 public:
  boost::program_options::easy_init add_options() { return boost::program_options::easy_init(&options_); }
  boost::program_options::variables_map &configuration() { return options_; }
  /// Runs until the future is resolved, and then what goes on without anybody waiting for it. What is open after that is an error.
  int run(int argc, char **argv, std::function<future<int>()> &&run) noexcept {
    int answer = 2;
    try {
      options_.parse(argc, argv);
      auto done = run();
      while (!done.available()) {
        if (!stand_in::run_one()) return std::cerr << "stand-in: everybody waits\n", 3;
      }
      answer = done.get();
    } catch (const std::exception &it) {
      std::cerr << it.what() << '\n';
    }
    while (stand_in::run_one()) {
    }
    if (stand_in::open_files != 0) stand_in::complain("a file is open at the end");
    if (stand_in::open_streams != 0) stand_in::complain("a stream is open at the end");
    return stand_in::complaints == 0 ? answer : 3;
  }

 private:
  boost::program_options::variables_map options_;
};

}  // namespace seastar
