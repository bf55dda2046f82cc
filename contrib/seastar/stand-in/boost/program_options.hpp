// A stand-in for Boost's header of this name: see README.md. `--name value`, and nothing else.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace boost::program_options {

struct one_option {
  std::optional<std::string> value;
  bool is_required = false;
  one_option *required() { return is_required = true, this; }
  one_option *default_value(std::string it) { return value = std::move(it), this; }
  template <typename T>
  const T &as() const {
    return *value;
  }
};

template <typename T>
one_option *value() {
  return new one_option;
}

class variables_map {
 public:
  void add(const char *name, one_option *option) { options_[name].reset(option); }
  const one_option &operator[](const std::string &name) const { return *options_.at(name); }
  void parse(int argc, char **argv) {
    for (int at = 1; at < argc; at += 2) {
      std::string name = argv[at];
      auto found = name.starts_with("--") ? options_.find(name.substr(2)) : options_.end();
      if (found == options_.end() || at + 1 == argc) throw std::runtime_error("unrecognised option '" + name + "'");
      found->second->value = argv[at + 1];
    }
    for (auto &[name, option] : options_) {
      if (option->is_required && !option->value) throw std::runtime_error("the option '--" + name + "' is required but missing");
    }
  }

 private:
  std::map<std::string, std::unique_ptr<one_option>> options_;
};

class easy_init {
 public:
  explicit easy_init(variables_map *to) : to_(to) {}
  easy_init &operator()(const char *name, one_option *option, const char *) { return to_->add(name, option), *this; }

 private:
  variables_map *to_;
};

}  // namespace boost::program_options
