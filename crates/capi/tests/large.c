/* Passes texts and lists of a mebibyte to every function that takes some, with an allocator that refuses the first, the second, ... request, and all that
 * follow; and each request of more than 100 KB. Every call must answer: with what is wrong, or with OUT_OF_MEMORY. */
#define _GNU_SOURCE
#include <marquetry.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long requests, refused, refuse_at, refuse_bytes;
static long long live;

static bool refuses(size_t size) {
  requests++;
  bool no = (refuse_at > 0 && requests >= refuse_at) || (refuse_bytes > 0 && size > refuse_bytes);
  refused += no;
  return no;
}
static void *host_alloc(void *context, size_t size, size_t alignment) {
  (void)context;
  void *memory = NULL;
  if (refuses(size) || posix_memalign(&memory, alignment < 8 ? 8 : alignment, size) != 0) return NULL;
  live += (long long)size;
  return memory;
}
static void *host_zeroed(void *context, size_t size, size_t alignment) {
  void *memory = host_alloc(context, size, alignment);
  return memory == NULL ? NULL : memset(memory, 0, size);
}
static void host_free(void *context, void *memory, size_t size, size_t alignment) {
  (void)context, (void)alignment;
  live -= (long long)size;
  free(memory);
}
static void *host_realloc(void *context, void *memory, size_t old_size, size_t alignment, size_t new_size) {
  void *moved = host_alloc(context, new_size, alignment);
  if (moved == NULL) return NULL;
  memcpy(moved, memory, old_size < new_size ? old_size : new_size);
  host_free(context, memory, old_size, alignment);
  return moved;
}

enum { LARGE = 1 << 20, MANY = 1 << 14 };
static char large[LARGE + 1], predicate[LARGE + 32];
static const char *many[MANY];
static uint8_t *bytes;
static size_t length;
static marquetry_metadata *metadata;
static struct ArrowSchema schema;
static marquetry_error *error;

static int read_at(void *context, uint64_t offset, uint8_t *data, size_t size) {
  (void)context;
  memcpy(data, bytes + offset, size);
  return 0;
}

static marquetry_status step(marquetry_machine *machine) {
  for (;;) {
    const marquetry_want *wants;
    size_t count;
    marquetry_status status = marquetry_step(machine, NULL, &error);
    if (status == MARQUETRY_STATUS_YIELD) continue;
    if (status != MARQUETRY_STATUS_NEED) return status;
    if (marquetry_wants(machine, &wants, &count, &error) != MARQUETRY_STATUS_OK) return MARQUETRY_STATUS_ERROR;
    for (size_t i = 0; i < count; i++) {
      marquetry_want want = wants[i];
      status = want.kind == MARQUETRY_WANT_KIND_LENGTH
                   ? marquetry_supply_length(machine, 0, length, &error)
                   : marquetry_supply(machine, 0, want.start, bytes + want.start, (size_t)(want.end - want.start), NULL,
                                      NULL, &error);
      if (status != MARQUETRY_STATUS_OK) return status;
    }
  }
}

static marquetry_status columns_of_a_footer(marquetry_machine **made) {
  marquetry_footer_options options = {.struct_size = sizeof options, .columns = many, .columns_count = MANY};
  return marquetry_footer_new(&options, made, &error);
}
static marquetry_status columns_of_a_reader(marquetry_machine **made) {
  const char *columns[] = {large};
  marquetry_reader_options options = {.struct_size = sizeof options, .columns = columns, .columns_count = 1};
  return marquetry_reader_new(metadata, &options, made, &error);
}
static marquetry_status many_columns_of_a_reader(marquetry_machine **made) {
  marquetry_reader_options options = {.struct_size = sizeof options, .columns = many, .columns_count = MANY};
  return marquetry_reader_new(metadata, &options, made, &error);
}
static marquetry_status a_predicate(marquetry_machine **made) {
  marquetry_reader_options options = {.struct_size = sizeof options, .predicate = predicate};
  marquetry_status status = marquetry_reader_new(metadata, &options, made, &error);
  return status == MARQUETRY_STATUS_OK ? step(*made) : status;
}
static marquetry_status a_predicate_that_is_none(marquetry_machine **made) {
  marquetry_reader_options options = {.struct_size = sizeof options, .predicate = large};
  return marquetry_records_new(metadata, &options, made, &error);
}
static marquetry_status a_table(marquetry_machine **made) {
  marquetry_cql_options options = {.struct_size = sizeof options, .table = large};
  return marquetry_cql_new(metadata, NULL, &options, made, &error);
}
static marquetry_status a_key(marquetry_machine **made) {
  marquetry_cql_options options = {.struct_size = sizeof options, .table = "t", .key = large, .row_number = large};
  return marquetry_cql_new(metadata, NULL, &options, made, &error);
}
static marquetry_status a_written_column(marquetry_machine **made) {
  marquetry_column_options column = {.struct_size = sizeof column, .path = large};
  const marquetry_column_options *columns[] = {&column};
  marquetry_writer_options options = {.struct_size = sizeof options, .columns = columns, .columns_count = 1};
  return marquetry_writer_new(&schema, &options, made, &error);
}
static marquetry_status a_codec(marquetry_machine **made) {
  marquetry_writer_options options = {.struct_size = sizeof options, .compression = large};
  return marquetry_writer_new(&schema, &options, made, &error);
}
static marquetry_status a_schema(marquetry_machine **made) {
  struct ArrowSchema renamed = *schema.children[0], *children[] = {&renamed}, of_one = schema;
  renamed.name = large;
  of_one.children = children;
  of_one.n_children = 1;
  return marquetry_writer_new(&of_one, NULL, made, &error);
}
static marquetry_status a_reason(marquetry_machine **made) {
  marquetry_status status = marquetry_footer_new(NULL, made, &error);
  if (status != MARQUETRY_STATUS_OK) return status;
  status = marquetry_fail(*made, large, &error);
  return status == MARQUETRY_STATUS_OK ? marquetry_step(*made, NULL, &error) : status;
}
static marquetry_status a_path(marquetry_machine **made) {
  uint64_t column;
  (void)made;
  return marquetry_metadata_find_column(metadata, large, &column, &error);
}
static marquetry_status a_stream(marquetry_machine **made) {
  struct ArrowArrayStream stream = {0};
  const char *columns[] = {large};
  marquetry_reader_options options = {.struct_size = sizeof options, .columns = columns, .columns_count = 1};
  (void)made;
  marquetry_status status = marquetry_stream_new(read_at, NULL, length, &options, &stream, &error);
  if (stream.release != NULL) stream.release(&stream);
  return status;
}

static marquetry_status (*const calls[])(marquetry_machine **) = {
    columns_of_a_footer, columns_of_a_reader, many_columns_of_a_reader, a_predicate, a_predicate_that_is_none, a_table, a_key,
    a_written_column,    a_codec,             a_schema,                 a_reason,    a_path,                   a_stream};

static int wrong(const char *what, size_t call) {
  return fprintf(stderr, "%s: call %zu, refusing at %lu, and more than %lu bytes\n", what, call, refuse_at, refuse_bytes), 1;
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) return 2;
  fseek(file, 0, SEEK_END);
  length = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(length);
  if (bytes == NULL || fread(bytes, 1, length, file) != length) return 2;
  fclose(file);
  memset(large, 'x', LARGE);
  for (size_t i = 0; i < MANY; i++) many[i] = "id";
  strcpy(predicate, "name = '");
  memset(predicate + 8, 'x', LARGE);
  strcpy(predicate + 8 + LARGE, "'");

  marquetry_allocator allocator = {sizeof allocator, NULL, host_alloc, host_zeroed, host_realloc, host_free};
  marquetry_machine *footer = NULL;
  if (marquetry_set_allocator(&allocator, NULL) != MARQUETRY_STATUS_OK) return 3;
  if (marquetry_footer_new(NULL, &footer, &error) != MARQUETRY_STATUS_OK || step(footer) != MARQUETRY_STATUS_READY) return 3;
  if (marquetry_take_metadata(footer, &metadata, &error) != MARQUETRY_STATUS_OK) return 3;
  if (marquetry_metadata_schema(metadata, &schema, &error) != MARQUETRY_STATUS_OK) return 3;
  marquetry_machine_free(footer);

  unsigned long runs = 0, out_of_memory = 0, next_at = 0;
  long long held = 0;
  for (size_t call = 0; call < sizeof calls / sizeof *calls; call++) {
    /* First without a refusal, then all that is large, then from the first request on, from the second, ... */
    for (unsigned long run = 0;; run++) {
      marquetry_machine *made = NULL;
      refuse_bytes = run == 1 ? 100000 : 0;
      /* Some calls have very many requests: after the first ones, not each is tried. */
      next_at = run < 40 ? run - 1 : next_at + next_at / 3;
      refuse_at = run > 1 ? next_at : 0;
      requests = refused = 0;
      marquetry_status status = calls[call](&made);
      bool was_refused = refused > 0;
      unsigned long at = refuse_at;
      refuse_at = refuse_bytes = 0;
      if (status == MARQUETRY_STATUS_ERROR) {
        marquetry_error_info info = {.struct_size = sizeof info};
        if (error == NULL || marquetry_error_get(error, &info) != MARQUETRY_STATUS_OK) return wrong("an error that says nothing", call);
        if ((info.kind == MARQUETRY_ERROR_KIND_OUT_OF_MEMORY) != was_refused) return refuse_at = at, wrong(info.display.data, call);
        out_of_memory += was_refused;
      } else if (was_refused) {
        return refuse_at = at, wrong("no error", call);
      }
      marquetry_error_free(error);
      error = NULL;
      marquetry_machine_free(made);
      /* The table of handles, and the reserve, stay. */
      if (run == 0) held = live;
      if (live != held) return refuse_at = at, wrong("memory that does not come back", call);
      runs++;
      if (run > 1 && !was_refused) break;
    }
  }
  if (schema.release != NULL) schema.release(&schema);
  marquetry_metadata_free(metadata);
  printf("%lu runs, %lu out of memory\n", runs, out_of_memory);
  return 0;
}
