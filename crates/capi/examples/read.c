/* Reads all rows of a Parquet file and prints how many there are. Waiting is this program's business:
 * the library only says which bytes it needs. */
#include <marquetry.h>
#include <stdio.h>
#include <stdlib.h>

static void give_back(void *context, const uint8_t *data, size_t length) {
  (void)context, (void)length;
  free((void *)data);
}

static void stop(marquetry_error *error) {
  marquetry_error_info info = {.struct_size = sizeof info};
  if (marquetry_error_get(error, &info) == MARQUETRY_STATUS_OK) fprintf(stderr, "%s\n", info.display.data);
  exit(1);
}

/* Steps until there is a product (true) or nothing more (false). */
static int next(marquetry_machine *machine, FILE *file) {
  marquetry_error *error = NULL;
  const marquetry_want *wants;
  size_t count;
  for (;;) {
    switch (marquetry_step(machine, NULL, &error)) {
    case MARQUETRY_STATUS_READY: return 1;
    case MARQUETRY_STATUS_DONE: return 0;
    case MARQUETRY_STATUS_YIELD: continue; /* A reactor would let others run here. */
    case MARQUETRY_STATUS_NEED: break;
    default: stop(error);
    }
    if (marquetry_wants(machine, &wants, &count, &error) != MARQUETRY_STATUS_OK) stop(error);
    for (size_t i = 0; i < count && wants[i].kind != MARQUETRY_WANT_KIND_SOON; i++) {
      marquetry_status status;
      if (wants[i].kind == MARQUETRY_WANT_KIND_LENGTH) {
        fseek(file, 0, SEEK_END);
        status = marquetry_supply_length(machine, wants[i].object, (uint64_t)ftell(file), &error);
      } else {
        uint64_t start = wants[i].start;
        size_t length = (size_t)(wants[i].end - start);
        uint8_t *bytes = malloc(length);
        if (bytes == NULL || fseek(file, (long)start, SEEK_SET) != 0 || fread(bytes, 1, length, file) != length) {
          free(bytes);
          marquetry_fail(machine, "the file cannot be read", NULL);
          break; /* The next step answers with that error. */
        }
        status = marquetry_supply(machine, wants[i].object, start, bytes, length, give_back, NULL, &error);
      }
      if (status != MARQUETRY_STATUS_OK) stop(error);
    }
  }
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  marquetry_machine *footer, *reader;
  marquetry_metadata *metadata;
  marquetry_error *error = NULL;
  unsigned long long rows = 0;
  if (file == NULL) return fprintf(stderr, "usage: read FILE\n"), 2;
  if (marquetry_footer_new(NULL, &footer, &error) != MARQUETRY_STATUS_OK || !next(footer, file)) stop(error);
  if (marquetry_take_metadata(footer, &metadata, &error) != MARQUETRY_STATUS_OK) stop(error);
  if (marquetry_reader_new(metadata, NULL, &reader, &error) != MARQUETRY_STATUS_OK) stop(error);
  while (next(reader, file)) {
    struct ArrowArray batch;
    if (marquetry_take_batch(reader, &batch, NULL, NULL, &error) != MARQUETRY_STATUS_OK) stop(error);
    rows += (unsigned long long)batch.length; /* Any library that knows Arrow takes it from here. */
    batch.release(&batch);
  }
  printf("%llu rows\n", rows);
  marquetry_machine_free(reader);
  marquetry_metadata_free(metadata);
  marquetry_machine_free(footer);
  return fclose(file);
}
