/* Adds up a column of bigints, for a host that may wait: sum FILE COLUMN. */
#include <inttypes.h>
#include <marquetry.h>
#include <stdio.h>
#include <string.h>

static int32_t read_at(void *file, uint64_t offset, uint8_t *data, size_t length) {
  return fseek(file, (long)offset, SEEK_SET) != 0 || fread(data, 1, length, file) != length;
}

int main(int argc, char **argv) {
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return fprintf(stderr, "usage: sum FILE COLUMN\n"), 2;
  const char *const columns[] = {argv[2]};
  marquetry_reader_options options = {.struct_size = sizeof options, .columns = columns, .columns_count = 1};
  struct ArrowArrayStream stream = {0};
  struct ArrowSchema schema = {0};
  marquetry_error *error = NULL;
  if (marquetry_stream_new(read_at, file, (uint64_t)ftell(file), &options, &stream, &error) != MARQUETRY_STATUS_OK) {
    marquetry_error_info info = {.struct_size = sizeof info};
    marquetry_error_get(error, &info);
    return fprintf(stderr, "%s: %s\n", argv[1], info.display.data), marquetry_error_free(error), 1;
  }
  int failed = stream.get_schema(&stream, &schema);
  int is_bigint = !failed && strcmp(schema.children[0]->format, "l") == 0;
  if (!failed) schema.release(&schema);
  if (!failed && !is_bigint) return fprintf(stderr, "%s: no column of bigints\n", argv[2]), stream.release(&stream), 1;
  uint64_t sum = 0; /* Modulo 2^64. */
  for (struct ArrowArray batch; !failed && !(failed = stream.get_next(&stream, &batch)) && batch.release != NULL; batch.release(&batch)) {
    const struct ArrowArray *column = batch.children[0];
    const uint8_t *valid = column->buffers[0];
    const int64_t *values = column->buffers[1];
    for (int64_t row = column->offset; row < column->offset + column->length; row++) {
      if (valid == NULL || valid[row / 8] >> row % 8 & 1) sum += (uint64_t)values[row];
    }
  }
  if (failed) fprintf(stderr, "%s: %s\n", argv[1], stream.get_last_error(&stream));
  else printf("%" PRId64 "\n", (int64_t)sum);
  return stream.release(&stream), fclose(file), failed != 0;
}
