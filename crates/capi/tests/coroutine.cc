// Many readers share one thread as coroutines, each asked to stop after every slice of its work. Prints the rows of all of them.
#include <coroutine>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>
#include <marquetry.hpp>
#include <vector>

namespace mq = marquetry;

static std::deque<std::coroutine_handle<>> ready;
static unsigned long long turns;

/// The least that a host's type of coroutines has.
template <typename T>
struct task {
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> waiting;
    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct resume_waiting {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
          auto waiting = done.promise().waiting;
          return waiting ? waiting : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return resume_waiting{};
    }
    void return_value(T it) { value.emplace(std::move(it)); }
    void unhandled_exception() { std::abort(); }
  };
  explicit task(std::coroutine_handle<promise_type> it) : handle(it) {}
  task(task &&other) noexcept : handle(std::exchange(other.handle, {})) {}
  ~task() {
    if (handle) handle.destroy();
  }
  bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) {
    handle.promise().waiting = waiting;
    return handle;
  }
  T await_resume() { return std::move(*handle.promise().value); }
  std::coroutine_handle<promise_type> handle;
};

struct turn {
  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> it) { ready.push_back(it), turns++; }
  void await_resume() noexcept {}
};

struct host {
  const std::vector<char> &file;
  bool operator()() { return true; }
  mq::budget budget() { return mq::budget(0, *this); }
  turn yield() { return {}; }
  task<mq::outcome> supply(mq::machine &machine) {
    std::vector<marquetry_want> wants(machine.wants().begin(), machine.wants().end());
    co_await turn();
    for (const auto &want : wants) {
      if (want.kind == MARQUETRY_WANT_KIND_LENGTH) {
        if (auto done = machine.supply_length(file.size()); !done) co_return std::move(done);
      } else if (want.kind == MARQUETRY_WANT_KIND_NOW) {
        std::vector<char> part(file.begin() + std::ptrdiff_t(want.start), file.begin() + std::ptrdiff_t(want.end));
        if (auto done = machine.supply_moved(want.start, std::move(part)); !done) co_return std::move(done);
      }
    }
    co_return std::monostate{};
  }
};

static task<long long> count(const std::vector<char> &file) {
  host here{file};
  auto footer = mq::footer_reader::make();
  if (auto read = co_await mq::next<task>(*footer, here); !read) co_return -1;
  auto metadata = footer->take();
  auto reader = mq::reader::make(*metadata);
  if (!reader) co_return -1;
  long long rows = 0;
  for (;;) {
    auto status = co_await mq::next<task>(*reader, here);
    if (!status) co_return -1;
    if (*status == MARQUETRY_STATUS_DONE) co_return rows;
    auto batch = reader->take();
    if (!batch) co_return -1;
    rows += (*batch)->length;
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  std::ifstream from(argv[1], std::ios::binary);
  std::vector<char> file((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
  std::vector<task<long long>> tasks;
  for (int i = 0; i < 8; i++) tasks.push_back(count(file));
  for (auto &it : tasks) ready.push_back(it.handle);
  while (!ready.empty()) {
    auto it = ready.front();
    ready.pop_front();
    it.resume();
  }
  long long rows = 0;
  for (auto &it : tasks) rows += it.await_resume();
  std::printf("%lld rows, %s\n", rows, turns > 100 ? "in many turns" : "in few turns");
}
