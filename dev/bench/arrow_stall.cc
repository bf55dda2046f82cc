// A contestant of the stall benchmark: Arrow C++'s low-level column readers. Each of their calls (the file's opening, a column's, HasNext, ReadBatch) is timed by
// itself: a host has a chance to do something else only between two of them.
//
//     arrow_stall FILE [--memory]
//
// The protocol is that of src/stall.rs. Built by run.sh against the headers and libraries of the pyarrow wheel.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/buffer.h>
#include <arrow/config.h>
#include <arrow/io/memory.h>
#include <arrow/util/thread_pool.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/types.h>

namespace {

// As in arrow_readbatch.cc. Smaller calls are shorter, but what is long in a call here is a page.
constexpr int64_t kBatchValues = 1024;
constexpr int kReplays = 5;

int64_t Nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

int64_t ThreadTime() { return Nanoseconds(CLOCK_THREAD_CPUTIME_ID); }

// The calls of a reading that is repeated: of each its shortest time.
class Calls {
 public:
  Calls() {
    for (int i = 0; i < 2000; ++i) {
      const int64_t begin = ThreadTime();
      overhead_ = std::min(overhead_, ThreadTime() - begin);
    }
  }

  template <typename Work>
  auto Time(const char* call, Work&& work) {
    struct Timer {
      Calls* calls;
      const char* call;
      int64_t begin;
      ~Timer() { calls->Add(call, ThreadTime() - begin - calls->overhead_); }
    } timer{this, call, ThreadTime()};
    return work();
  }

  void EndReplay() {
    if (next_ != calls_.size()) throw parquet::ParquetException("a replay of other calls");
    next_ = 0;
    ++replays_;
  }

  void Print(const std::string& outcome, int64_t wall_ns) const {
    std::vector<int64_t> sorted;
    int64_t total = 0;
    size_t longest = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      sorted.push_back(calls_[i].first);
      total += calls_[i].first;
      if (calls_[i].first > calls_[longest].first) longest = i;
    }
    std::sort(sorted.begin(), sorted.end());
    const size_t rank = (sorted.size() * 999 + 999) / 1000;
    std::cout << "{\"calls\":" << calls_.size() << ",\"longest_ns\":" << sorted.back() << ",\"longest_call\":\"" << calls_[longest].second
              << "\",\"longest_at\":" << longest << ",\"p999_ns\":" << sorted[rank - 1] << ",\"total_ns\":" << total << ",\"wall_ns\":" << wall_ns
              << ",\"peak_kib\":" << PeakKib() << "," << outcome << "}" << std::endl;
  }

 private:
  void Add(const char* call, int64_t nanoseconds) {
    nanoseconds = std::max<int64_t>(nanoseconds, 0);
    if (replays_ == 0) {
      calls_.emplace_back(nanoseconds, call);
    } else if (next_ < calls_.size()) {
      calls_[next_].first = std::min(calls_[next_].first, nanoseconds);
    }
    ++next_;
  }

  static int64_t PeakKib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
    }
    return 0;
  }

  std::vector<std::pair<int64_t, const char*>> calls_;
  size_t next_ = 0;
  int replays_ = 0;
  int64_t overhead_ = INT64_MAX;
};

template <typename DType>
void ReadChunk(parquet::ColumnReader* untyped, Calls* calls) {
  using Value = typename DType::c_type;
  auto* reader = static_cast<parquet::TypedColumnReader<DType>*>(untyped);
  static const std::unique_ptr<Value[]> values(new Value[kBatchValues]);
  static std::vector<int16_t> definition(kBatchValues), repetition(kBatchValues);
  while (calls->Time("step", [&] { return reader->HasNext(); })) {
    int64_t values_read = 0;
    calls->Time("step", [&] { return reader->ReadBatch(kBatchValues, definition.data(), repetition.data(), values.get(), &values_read); });
  }
}

int64_t ReadFile(const std::string& path, const std::shared_ptr<arrow::Buffer>& bytes, Calls* calls) {
  auto properties = parquet::default_reader_properties();
  // From the disk, a page at a time, which takes the least memory; of what is in memory nothing is copied.
  if (!bytes) properties.enable_buffered_stream();
  // Footers of 100,000 columns are beyond Thrift's own limits.
  properties.set_thrift_string_size_limit(1 << 30);
  properties.set_thrift_container_size_limit(1 << 30);
  auto file = calls->Time("new", [&] {
    return bytes ? parquet::ParquetFileReader::Open(std::make_shared<arrow::io::BufferReader>(bytes), properties)
                 : parquet::ParquetFileReader::OpenFile(path, false, properties);
  });
  const auto metadata = file->metadata();
  int64_t rows = 0;
  for (int group = 0; group < metadata->num_row_groups(); ++group) {
    auto row_group = calls->Time("new", [&] { return file->RowGroup(group); });
    rows += row_group->metadata()->num_rows();
    for (int number = 0; number < metadata->num_columns(); ++number) {
      auto column = calls->Time("new", [&] { return row_group->Column(number); });
      switch (column->type()) {
        case parquet::Type::BOOLEAN: ReadChunk<parquet::BooleanType>(column.get(), calls); break;
        case parquet::Type::INT32: ReadChunk<parquet::Int32Type>(column.get(), calls); break;
        case parquet::Type::INT64: ReadChunk<parquet::Int64Type>(column.get(), calls); break;
        case parquet::Type::INT96: ReadChunk<parquet::Int96Type>(column.get(), calls); break;
        case parquet::Type::FLOAT: ReadChunk<parquet::FloatType>(column.get(), calls); break;
        case parquet::Type::DOUBLE: ReadChunk<parquet::DoubleType>(column.get(), calls); break;
        case parquet::Type::BYTE_ARRAY: ReadChunk<parquet::ByteArrayType>(column.get(), calls); break;
        case parquet::Type::FIXED_LEN_BYTE_ARRAY: ReadChunk<parquet::FLBAType>(column.get(), calls); break;
        default: throw parquet::ParquetException("a type that no case has");
      }
      calls->Time("drop", [&] { column.reset(); });
    }
  }
  calls->Time("drop", [&] { file.reset(); });
  return rows;
}

std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return escaped;
}

void Replay(const std::string& path, const std::shared_ptr<arrow::Buffer>& bytes, int replays) {
  Calls calls;
  const int64_t begin = Nanoseconds(CLOCK_MONOTONIC);
  std::string outcome;
  for (int replay = 0; replay < replays; ++replay) {
    try {
      outcome = "\"rows\":" + std::to_string(ReadFile(path, bytes, &calls));
    } catch (const std::exception& error) {
      outcome = "\"refused\":\"" + Escape(error.what()) + "\"";
    }
    calls.EndReplay();
  }
  calls.Print(outcome, Nanoseconds(CLOCK_MONOTONIC) - begin);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: arrow_stall FILE [--memory]\n";
    return 2;
  }
  try {
    const bool memory = argc > 2 && std::strcmp(argv[2], "--memory") == 0;
    std::shared_ptr<arrow::Buffer> bytes;
    if (!memory) {
      std::ifstream stream(argv[1], std::ios::binary);
      if (!stream) throw parquet::ParquetException(std::string("cannot open ") + argv[1]);
      bytes = arrow::Buffer::FromString(std::string(std::istreambuf_iterator<char>(stream), {}));
    }
    PARQUET_THROW_NOT_OK(arrow::SetCpuThreadPoolCapacity(1));
    std::cout << "ready " << arrow::GetBuildInfo().version_string << std::endl;
    if (memory) {
      Replay(argv[1], bytes, 1);
      return 0;
    }
    for (std::string line; std::getline(std::cin, line);) {
      if (line != "replay") throw parquet::ParquetException("not a request: " + line);
      Replay(argv[1], bytes, kReplays);
    }
  } catch (const std::exception& error) {
    std::cout << "error " << error.what() << std::endl;
    return 1;
  }
}
