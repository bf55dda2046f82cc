/* Copies an SSTable to a Parquet file, with all write times, TTLs and tombstones: sstable OUT DEFINITION FILE...
 * DEFINITION is a file with the CREATE TABLE, or -; FILEs are all files of the SSTable: nb-1-big-Data.db, nb-1-big-Statistics.db, ... */
#include <marquetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_back(void *context, const uint8_t *data, size_t length) {
  (void)context, (void)length;
  free((void *)data);
}

static void stop(marquetry_error *error) {
  marquetry_error_info info = {.struct_size = sizeof info};
  if (marquetry_error_get(error, &info) == MARQUETRY_STATUS_OK) fprintf(stderr, "%s\n", info.display.data);
  exit(1);
}

/* Steps until there is a batch (true) or nothing more (false). What is wanted says of which file. */
static int next(marquetry_machine *machine, FILE **files) {
  marquetry_error *error = NULL;
  const marquetry_want *wants;
  size_t count;
  for (;;) {
    switch (marquetry_step(machine, NULL, &error)) {
    case MARQUETRY_STATUS_READY: return 1;
    case MARQUETRY_STATUS_DONE: return 0;
    case MARQUETRY_STATUS_YIELD: continue;
    case MARQUETRY_STATUS_NEED: break;
    default: stop(error);
    }
    if (marquetry_wants(machine, &wants, &count, &error) != MARQUETRY_STATUS_OK) stop(error);
    for (size_t i = 0; i < count && wants[i].kind != MARQUETRY_WANT_KIND_SOON; i++) {
      FILE *file = files[wants[i].object];
      marquetry_status status;
      if (wants[i].kind == MARQUETRY_WANT_KIND_LENGTH) {
        fseek(file, 0, SEEK_END);
        status = marquetry_supply_length(machine, wants[i].object, (uint64_t)ftell(file), &error);
      } else {
        size_t length = (size_t)(wants[i].end - wants[i].start);
        uint8_t *bytes = malloc(length);
        if (bytes == NULL || fseek(file, (long)wants[i].start, SEEK_SET) != 0 || fread(bytes, 1, length, file) != length) {
          free(bytes);
          marquetry_fail(machine, "a file cannot be read", NULL);
          break; /* The next step answers with that error. */
        }
        status = marquetry_supply(machine, wants[i].object, wants[i].start, bytes, length, give_back, NULL, &error);
      }
      if (status != MARQUETRY_STATUS_OK) stop(error);
    }
  }
}

/* Steps a writer until it has room, or is done. What it makes goes to the file. */
static void write_out(marquetry_machine *writer, FILE *out) {
  marquetry_error *error = NULL;
  marquetry_bytes bytes;
  for (;;) {
    switch (marquetry_step(writer, NULL, &error)) {
    case MARQUETRY_STATUS_READY:
    case MARQUETRY_STATUS_DONE: return;
    case MARQUETRY_STATUS_YIELD: continue;
    case MARQUETRY_STATUS_APPEND: break;
    default: stop(error);
    }
    if (marquetry_take_append(writer, &bytes, &error) != MARQUETRY_STATUS_OK) stop(error);
    if (fwrite(bytes.data, 1, bytes.length, out) != bytes.length) exit(3);
    marquetry_bytes_release(&bytes);
  }
}

int main(int argc, char **argv) {
  static char definition[1 << 16];
  static const char *names[64];
  static FILE *files[64];
  marquetry_sstable_options options = {.struct_size = sizeof options, .files = names};
  marquetry_machine *reader, *writer;
  marquetry_error *error = NULL;
  struct ArrowSchema schema;
  struct ArrowArray batch;
  unsigned long long rows = 0;
  int has_batch;
  FILE *out, *text;
  if (argc < 4 || argc > 66) return fprintf(stderr, "usage: sstable OUT DEFINITION FILE...\n"), 2;
  if (strcmp(argv[2], "-") != 0) {
    text = fopen(argv[2], "rb");
    if (text == NULL || fread(definition, 1, sizeof definition - 1, text) == 0 || !feof(text) || fclose(text) != 0)
      return fprintf(stderr, "%s cannot be read, is empty, or is too long for a definition\n", argv[2]), 2;
    options.definition = definition;
  }
  if ((out = fopen(argv[1], "wb")) == NULL) return fprintf(stderr, "%s cannot be written\n", argv[1]), 2;
  for (int i = 3; i < argc; i++, options.files_count++) {
    const char *slash = strrchr(argv[i], '/');
    names[i - 3] = slash == NULL ? argv[i] : slash + 1;
    if ((files[i - 3] = fopen(argv[i], "rb")) == NULL) return fprintf(stderr, "%s cannot be opened\n", argv[i]), 2;
  }
  if (marquetry_sstable_new(&options, &reader, &error) != MARQUETRY_STATUS_OK) stop(error);
  has_batch = next(reader, files); /* From here on the schema is known. */
  if (marquetry_sstable_schema(reader, &schema, &error) != MARQUETRY_STATUS_OK) stop(error);
  if (marquetry_writer_new(&schema, NULL, &writer, &error) != MARQUETRY_STATUS_OK) stop(error);
  schema.release(&schema);
  for (; has_batch; has_batch = next(reader, files)) {
    if (marquetry_take_batch(reader, &batch, NULL, NULL, &error) != MARQUETRY_STATUS_OK) stop(error);
    rows += (unsigned long long)batch.length;
    write_out(writer, out);
    if (marquetry_feed(writer, &batch, &error) != MARQUETRY_STATUS_OK) stop(error);
  }
  write_out(writer, out);
  if (marquetry_finish(writer, &error) != MARQUETRY_STATUS_OK) stop(error);
  write_out(writer, out);
  printf("%llu rows\n", rows);
  marquetry_machine_free(writer);
  marquetry_machine_free(reader);
  return fclose(out);
}
