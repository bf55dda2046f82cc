// A host over io_uring: a thread for each core, and on it a ring, coroutines, and a timer of one millisecond that measures how long anything else
// on that thread would have to wait. Reads the row groups of a Parquet file, each core its share: read FILE [CORES]
//
//   c++ -std=c++20 read.cc $(pkg-config --cflags --libs marquetry liburing) -pthread -o read
//
// Prints the rows; to standard error, how often the timers rang, and the worst delay of one. Ends with 77 where io_uring is not allowed.
#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <marquetry.hpp>
#include <thread>
#include <vector>

namespace mq = marquetry;
using clock_type = std::chrono::steady_clock;

// The least that a host's type of coroutines has. It begins when it is awaited, or started.
template <typename T>
class task {
 public:
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> waiting = std::noop_coroutine();
    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct resume_waiting {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept { return done.promise().waiting; }
        void await_resume() noexcept {}
      };
      return resume_waiting{};
    }
    void return_value(T it) { value.emplace(std::move(it)); }
    void unhandled_exception() { std::abort(); }
  };
  explicit task(std::coroutine_handle<promise_type> it) : handle_(it) {}
  task(task &&other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  ~task() {
    if (handle_) handle_.destroy();
  }
  bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) {
    handle_.promise().waiting = waiting;
    return handle_;
  }
  T await_resume() { return std::move(*handle_.promise().value); }
  std::coroutine_handle<> start() { return handle_; }
  bool is_done() const { return handle_.done(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// A core: its ring, what can run, and its timer.
class core {
 public:
  // 0, or what the system answered.
  int open() {
    int answer = io_uring_queue_init(64, &ring_, 0);
    is_open_ = answer == 0;
    return answer;
  }
  ~core() {
    if (is_open_) io_uring_queue_exit(&ring_);
  }

  // Something that the kernel completes, and who waits for it.
  struct request {
    int result = 0;
    bool is_done = false;
    std::coroutine_handle<> waiting;
  };

  // Puts a read in the ring; the next turn of the loop submits it.
  void read(int file, std::uint8_t *bytes, std::size_t length, std::uint64_t at, request *to) {
    to->is_done = false;
    auto *entry = next_entry();
    io_uring_prep_read(entry, file, bytes, unsigned(std::min<std::size_t>(length, 1u << 30)), at);
    io_uring_sqe_set_data(entry, to);
  }

  struct completion {
    request &of;
    bool await_ready() noexcept { return of.is_done; }
    void await_suspend(std::coroutine_handle<> it) { of.waiting = it; }
    int await_resume() noexcept { return of.result; }
  };
  struct turn {
    core &of;
    bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> it) { of.ready_.push_back(it); }
    void await_resume() noexcept {}
  };

  // Whether a step should end: the kernel has completed something, or the turn has lasted long enough.
  bool operator()() { return io_uring_cq_ready(&ring_) > 0 || clock_type::now() - turn_began_ > std::chrono::microseconds(500); }

  // Runs a task to its end, and the timer beside it.
  template <typename T>
  T run(task<T> work) {
    ready_.push_back(work.start());
    ring_timer();
    while (!work.is_done()) {
      io_uring_submit_and_get_events(&ring_);
      if (ready_.empty()) wait();
      take_completions();
      turn_began_ = clock_type::now();
      for (std::size_t count = ready_.size(); count > 0; count--) {
        auto it = ready_.front();
        ready_.pop_front();
        it.resume();
      }
    }
    return work.await_resume();
  }

  unsigned long ticks = 0;
  clock_type::duration worst{};

 private:
  io_uring_sqe *next_entry() {
    for (;;) {
      if (auto *entry = io_uring_get_sqe(&ring_)) return entry;
      io_uring_submit(&ring_);
    }
  }
  void wait() {
    io_uring_cqe *ignored;
    io_uring_wait_cqe(&ring_, &ignored);
  }
  void ring_timer() {
    due_ = clock_type::now() + std::chrono::milliseconds(1);
    auto *entry = next_entry();
    io_uring_prep_timeout(entry, &millisecond_, 0, 0);
    io_uring_sqe_set_data(entry, this);
  }
  void take_completions() {
    io_uring_cqe *done;
    while (io_uring_peek_cqe(&ring_, &done) == 0) {
      void *data = io_uring_cqe_get_data(done);
      int result = done->res;
      io_uring_cqe_seen(&ring_, done);
      if (data == this) {
        ticks++;
        worst = std::max(worst, clock_type::now() - due_);
        ring_timer();
        continue;
      }
      auto *of = static_cast<request *>(data);
      of->result = result;
      of->is_done = true;
      if (auto waiting = std::exchange(of->waiting, {})) ready_.push_back(waiting);
    }
  }

  io_uring ring_{};
  bool is_open_ = false;
  std::deque<std::coroutine_handle<>> ready_;
  __kernel_timespec millisecond_{0, 1000000};
  clock_type::time_point due_, turn_began_;
};

// What marquetry::next asks of a host.
class host {
 public:
  host(core &on, int file) : on_(on), file_(file) {}
  mq::budget budget() { return mq::budget(0, on_); }
  core::turn yield() { return {on_}; }

  // Reads all that is wanted now, side by side, into memory that the library borrows.
  task<mq::outcome> supply(mq::machine &machine) {
    struct reading {
      marquetry_want want;
      std::uint8_t *bytes;
      core::request request;
    };
    std::deque<reading> all;  // Its elements stay where they are.
    mq::outcome answer = std::monostate{};
    for (const marquetry_want &want : machine.wants()) {
      if (want.kind == MARQUETRY_WANT_KIND_LENGTH) {
        struct stat about;
        bool is_known = fstat(file_, &about) == 0;
        auto done = is_known ? machine.supply_length(std::uint64_t(about.st_size)) : machine.fail("the file has no length");
        if (!done && answer) answer = std::move(done);
      } else if (want.kind == MARQUETRY_WANT_KIND_NOW) {
        all.push_back({want, static_cast<std::uint8_t *>(std::malloc(want.end - want.start)), {}});
        auto &it = all.back();
        if (it.bytes == nullptr) std::abort();
        on_.read(file_, it.bytes, want.end - want.start, want.start, &it.request);
      }
    }
    // All are waited for, whatever failed: the kernel writes to their memory.
    for (auto &it : all) {
      std::uint64_t at = it.want.start;
      int more = 0;
      while ((more = co_await core::completion{it.request}) > 0 && (at += std::uint64_t(more)) < it.want.end) {
        on_.read(file_, it.bytes + (at - it.want.start), it.want.end - at, at, &it.request);
      }
      if (more <= 0) {
        std::free(it.bytes);
        (void)machine.fail("the file cannot be read");
        continue;
      }
      auto release = [](void *, const std::uint8_t *bytes, std::size_t) { std::free(const_cast<std::uint8_t *>(bytes)); };
      auto done = machine.supply(it.want.start, {it.bytes, std::size_t(it.want.end - it.want.start), release, nullptr});
      if (!done && answer) answer = std::move(done);
    }
    co_return std::move(answer);
  }

 private:
  core &on_;
  int file_;
};

// The rows of every `cores`-th row group, from the `number`-th on.
static task<mq::result<std::uint64_t>> count(core &on, int file, std::uint64_t number, std::uint64_t cores) {
  host here(on, file);
  auto footer = mq::footer_reader::make();
  if (!footer) co_return footer.take_error();
  if (auto read = co_await mq::next<task>(*footer, here); !read) co_return read.take_error();
  auto metadata = footer->take();
  if (!metadata) co_return metadata.take_error();
  auto about = metadata->file();
  if (!about) co_return about.take_error();
  std::uint64_t rows = 0;
  for (std::uint64_t group = number; group < about->row_groups; group += cores) {
    auto options = mq::options<marquetry_reader_options>();
    options.row_groups_start = group;
    options.row_groups_count = 1;
    auto reader = mq::reader::make(*metadata, &options);
    if (!reader) co_return reader.take_error();
    for (;;) {
      auto status = co_await mq::next<task>(*reader, here);
      if (!status) co_return status.take_error();
      if (*status == MARQUETRY_STATUS_DONE) break;
      auto batch = reader->take();
      if (!batch) co_return batch.take_error();
      rows += std::uint64_t((*batch)->length);
    }
    while (!reader->release(here.budget())) co_await here.yield();
  }
  co_return rows;
}

int main(int argc, char **argv) {
  int file = argc >= 2 ? open(argv[1], O_RDONLY) : -1;
  unsigned cores = argc >= 3 ? unsigned(std::atoi(argv[2])) : std::thread::hardware_concurrency();
  if (file < 0 || cores == 0) return std::fprintf(stderr, "usage: read FILE [CORES]\n"), 2;
  std::vector<core> all(cores);
  for (auto &it : all) {
    if (int answer = it.open(); answer != 0) return std::fprintf(stderr, "io_uring: %s\n", std::strerror(-answer)), 77;
  }
  std::vector<std::optional<mq::result<std::uint64_t>>> found(cores);
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < cores; number++) {
    threads.emplace_back([&, number] { found[number].emplace(all[number].run(count(all[number], file, number, cores))); });
  }
  for (auto &it : threads) it.join();
  unsigned long long rows = 0;
  for (unsigned number = 0; number < cores; number++) {
    auto &it = *found[number];
    if (!it) return std::fprintf(stderr, "%.*s\n", int(it.error().what().size()), it.error().what().data()), 1;
    rows += *it;
    double worst = std::chrono::duration<double, std::milli>(all[number].worst).count();
    std::fprintf(stderr, "core %u: the timer rang %lu times, at worst %.3f ms late\n", number, all[number].ticks, worst);
  }
  std::printf("%llu rows\n", rows);
  return close(file);
}
