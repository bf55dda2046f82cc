// A contestant of the reading benchmark: Arrow C++'s low-level column readers, driven by the `ReadBatch` loop of its own documentation.
// The product is dense values with levels: what the readers write into the caller's buffers, which are reused.
//
//     arrow_readbatch FILE [BATCH_VALUES]
//
// The protocol is that of src/protocol.rs. Built by run.sh against the headers and libraries of the pyarrow wheel.

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <arrow/buffer.h>
#include <arrow/config.h>
#include <arrow/io/memory.h>
#include <arrow/util/thread_pool.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/types.h>

namespace {

// The fastest of 1,024 … 131,072. Copied values like to stay in the first-level cache; with a dictionary fewer, larger calls win, by 4 %.
constexpr int64_t kBatchValues = 1024;
constexpr int64_t kBatchValuesDictionary = 8192;

struct Count {
  int64_t rows = 0;
  uint64_t sum = 0;
};

uint64_t Bits(int32_t value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }
uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }
uint64_t Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
uint64_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
uint64_t Bits(bool value) { return value ? 1 : 0; }
uint64_t Bits(const parquet::FixedLenByteArray& value) {
  // No case has values of fewer bytes.
  uint64_t bits;
  std::memcpy(&bits, value.ptr, sizeof bits);
  return bits;
}
uint64_t Bits(const parquet::ByteArray& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, value.ptr, value.len < 8 ? value.len : 8);
  return bits;
}

template <typename DType>
void ReadChunk(parquet::ColumnReader* untyped, int64_t batch_values, bool check, Count* count) {
  using Value = typename DType::c_type;
  auto* reader = static_cast<parquet::TypedColumnReader<DType>*>(untyped);
  // Not a vector, which would pack booleans.
  static const std::unique_ptr<Value[]> values(new Value[batch_values]);
  static std::vector<int16_t> levels;
  levels.resize(batch_values);
  const bool nullable = reader->descr()->max_definition_level() > 0;
  while (reader->HasNext()) {
    int64_t values_read = 0;
    const int64_t levels_read =
        reader->ReadBatch(batch_values, nullable ? levels.data() : nullptr, nullptr, values.get(), &values_read);
    count->rows += nullable ? levels_read : values_read;
    if (check) {
      for (int64_t i = 0; i < values_read; ++i) count->sum += Bits(values[i]);
    }
  }
}

Count ReadFile(const std::shared_ptr<arrow::Buffer>& bytes, int64_t batch_values, bool check) {
  Count count;
  auto file = parquet::ParquetFileReader::Open(std::make_shared<arrow::io::BufferReader>(bytes));
  const auto metadata = file->metadata();
  if (batch_values == 0) {
    const bool dictionary = metadata->num_row_groups() > 0 && metadata->RowGroup(0)->ColumnChunk(0)->has_dictionary_page();
    batch_values = dictionary ? kBatchValuesDictionary : kBatchValues;
  }
  for (int group = 0; group < metadata->num_row_groups(); ++group) {
    auto column = file->RowGroup(group)->Column(0);
    switch (column->type()) {
      case parquet::Type::INT32: ReadChunk<parquet::Int32Type>(column.get(), batch_values, check, &count); break;
      case parquet::Type::INT64: ReadChunk<parquet::Int64Type>(column.get(), batch_values, check, &count); break;
      case parquet::Type::DOUBLE: ReadChunk<parquet::DoubleType>(column.get(), batch_values, check, &count); break;
      case parquet::Type::FLOAT: ReadChunk<parquet::FloatType>(column.get(), batch_values, check, &count); break;
      case parquet::Type::BOOLEAN: ReadChunk<parquet::BooleanType>(column.get(), batch_values, check, &count); break;
      case parquet::Type::FIXED_LEN_BYTE_ARRAY: ReadChunk<parquet::FLBAType>(column.get(), batch_values, check, &count); break;
      case parquet::Type::BYTE_ARRAY: ReadChunk<parquet::ByteArrayType>(column.get(), batch_values, check, &count); break;
      default: throw parquet::ParquetException("a type that no case has");
    }
  }
  return count;
}

int64_t Nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: arrow_readbatch FILE [BATCH_VALUES]\n";
    return 2;
  }
  try {
    const int64_t batch_values = argc > 2 ? std::stoll(argv[2]) : 0;
    std::ifstream stream(argv[1], std::ios::binary);
    if (!stream) throw parquet::ParquetException(std::string("cannot open ") + argv[1]);
    auto bytes = arrow::Buffer::FromString(std::string(std::istreambuf_iterator<char>(stream), {}));
    PARQUET_THROW_NOT_OK(arrow::SetCpuThreadPoolCapacity(1));
    std::cout << "ready " << arrow::GetBuildInfo().version_string << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      const bool check = line == "check";
      const int64_t wall = Nanoseconds(CLOCK_MONOTONIC), cpu = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
      const Count count = ReadFile(bytes, batch_values, check);
      const int64_t wall_ns = Nanoseconds(CLOCK_MONOTONIC) - wall, cpu_ns = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
      std::cout << wall_ns << ' ' << cpu_ns << ' ' << count.rows << ' ' << count.sum << std::endl;
    }
  } catch (const std::exception& error) {
    std::cout << "error " << error.what() << std::endl;
    return 1;
  }
}
