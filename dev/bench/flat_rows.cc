// A plain loop over an object of rows, by the accessors of the FlatBuffers library: the sum of one column, and how many rows there are, where
// another column is at most so much. `flat_rows FILE SUMMED COMPARED MOST`; columns by their place. It prints the rows, the sum, and the
// milliseconds of work of the fastest of five runs.
//
// Without a locale of the library's own, which would have to be linked.
#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#include <flatbuffers/flatbuffers.h>
#include <flatbuffers/flexbuffers.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

namespace {

using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::Vector;

// Where a vtable has a field.
constexpr flatbuffers::voffset_t slot(int field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); }

double work_ms() {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 5) return 2;
  std::ifstream file(arguments[1], std::ios::binary | std::ios::ate);
  if (!file) return 2;
  std::vector<char> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return 2;
  const size_t summed = static_cast<size_t>(atoi(arguments[2])), compared = static_cast<size_t>(atoi(arguments[3]));
  const int64_t most = atoll(arguments[4]);
  double best = -1, sum = 0;
  uint64_t rows = 0;
  for (int round = 0; round < 5; round++) {
    const double begun = work_ms();
    sum = 0;
    rows = 0;
    for (size_t at = 0; at + 4 <= bytes.size();) {
      uint32_t length;
      std::memcpy(&length, &bytes[at], sizeof length);
      // Where the library wants it: pieces are of any length.
      const std::vector<char> piece(bytes.begin() + static_cast<long>(at) + 4, bytes.begin() + static_cast<long>(at) + 4 + length);
      at += 4 + length;
      const auto *meta = flatbuffers::GetRoot<Table>(piece.data());
      const auto *data = meta->GetPointer<const Vector<uint8_t> *>(slot(1));
      const auto *table = flatbuffers::GetRoot<Table>(data->data());
      const auto *records = table->GetPointer<const Vector<Offset<Table>> *>(slot(8));
      const auto *deleted = table->GetPointer<const Vector<uint8_t> *>(slot(7));
      for (flatbuffers::uoffset_t row = 0; row < records->size(); row++) {
        if (deleted->Get(row)) continue;
        const Table *record = records->Get(row);
        const auto *nulls = record->GetPointer<const Vector<uint64_t> *>(slot(1));
        const auto *values = record->GetPointer<const Vector<uint8_t> *>(slot(2));
        const auto vector = flexbuffers::GetRoot(values->data(), values->size()).AsVector();
        const auto is_null = [&](size_t column) { return nulls->Get(static_cast<unsigned>(column / 64)) >> (63 - column % 64) & 1; };
        if (is_null(compared) || vector[compared].AsInt64() > most) continue;
        rows++;
        if (!is_null(summed)) sum += vector[summed].AsDouble();
      }
    }
    const double taken = work_ms() - begun;
    if (best < 0 || taken < best) best = taken;
  }
  std::printf("%llu %.6f %.3f\n", static_cast<unsigned long long>(rows), sum, best);
}
