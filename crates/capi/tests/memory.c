/* Uses every machine on a file, with an allocator that counts, and then refuses: each request once, and each with all that follow.
 * Every run must end well or with OUT_OF_MEMORY, and give all memory back. */
#define _GNU_SOURCE
#include <marquetry.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);

static unsigned long library_malloc;
static int inside;

/* The C library's functions, which count what the library asks of them. */
void *malloc(size_t size) { return library_malloc += inside > 0, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return library_malloc += inside > 0, __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { return library_malloc += inside > 0, __libc_realloc(memory, size); }
void free(void *memory) { __libc_free(memory); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
  library_malloc += inside > 0;
  *memory = __libc_memalign(alignment, size);
  return *memory == NULL ? 12 : 0;
}

static unsigned long requests, refused, refuse_at;
static bool refuse_on;
static long long live;

static bool refuses(void) {
  requests++;
  bool no = refuse_at > 0 && (requests == refuse_at || (refuse_on && requests > refuse_at));
  refused += no;
  return no;
}
static void *host_alloc(void *context, size_t size, size_t alignment) {
  (void)context;
  if (refuses()) return NULL;
  live += (long long)size;
  return __libc_memalign(alignment, size);
}
static void *host_zeroed(void *context, size_t size, size_t alignment) {
  void *memory = host_alloc(context, size, alignment);
  return memory == NULL ? NULL : memset(memory, 0, size);
}
static void *host_realloc(void *context, void *memory, size_t old_size, size_t alignment, size_t new_size) {
  void *moved = host_alloc(context, new_size, alignment);
  if (moved == NULL) return NULL;
  memcpy(moved, memory, old_size < new_size ? old_size : new_size);
  live -= (long long)old_size;
  __libc_free(memory);
  return moved;
}
static void host_free(void *context, void *memory, size_t size, size_t alignment) {
  (void)context, (void)alignment;
  live -= (long long)size;
  __libc_free(memory);
}

static uint8_t *bytes;
static size_t length;
static long lent;
static marquetry_error *error;

static void give_back(void *context, const uint8_t *data, size_t size) { (void)context, (void)data, (void)size, lent--; }

/* Steps to a product, room, bytes to append, or the end. */
static marquetry_status next(marquetry_machine *machine) {
  marquetry_budget budget = {.struct_size = sizeof budget, .units = 20000};
  for (;;) {
    const marquetry_want *wants;
    size_t count;
    marquetry_status status = marquetry_step(machine, &budget, &error);
    if (status == MARQUETRY_STATUS_YIELD) continue;
    if (status != MARQUETRY_STATUS_NEED) return status;
    if (marquetry_wants(machine, &wants, &count, &error) != MARQUETRY_STATUS_OK) return MARQUETRY_STATUS_ERROR;
    for (size_t i = 0; i < count && wants[i].kind != MARQUETRY_WANT_KIND_SOON; i++) {
      marquetry_status supplied;
      if (wants[i].kind == MARQUETRY_WANT_KIND_LENGTH) {
        supplied = marquetry_supply_length(machine, 0, length, &error);
      } else {
        lent++;
        supplied = marquetry_supply(machine, 0, wants[i].start, bytes + wants[i].start,
                                    (size_t)(wants[i].end - wants[i].start), give_back, NULL, &error);
      }
      if (supplied != MARQUETRY_STATUS_OK) return supplied;
    }
  }
}

static int read_at(void *context, uint64_t offset, uint8_t *data, size_t size) {
  (void)context;
  memcpy(data, bytes + offset, size);
  return 0;
}

static unsigned long long rows, appended, events, text, streamed;

/* Everything. True if it was done to the end. */
static bool exercise(void) {
  marquetry_machine *footer = NULL, *reader = NULL, *writer = NULL, *records = NULL, *cql = NULL;
  marquetry_metadata *metadata = NULL;
  struct ArrowSchema schema = {0};
  struct ArrowArrayStream stream = {0};
  marquetry_status status;
  bool done = false;
  rows = appended = events = text = streamed = 0;
#define TRY(call) do { if ((call) != MARQUETRY_STATUS_OK) goto end; } while (0)
  TRY(marquetry_footer_new(NULL, &footer, &error));
  if (next(footer) != MARQUETRY_STATUS_READY) goto end;
  TRY(marquetry_take_metadata(footer, &metadata, &error));
  TRY(marquetry_reader_new(metadata, NULL, &reader, &error));
  TRY(marquetry_reader_schema(reader, &schema, &error));
  marquetry_writer_options options = {.struct_size = sizeof options, .compression = "zstd"};
  TRY(marquetry_writer_new(&schema, &options, &writer, &error));
  for (bool ended = false; !ended;) {
    status = next(writer);
    if (status == MARQUETRY_STATUS_APPEND) {
      marquetry_bytes append;
      TRY(marquetry_take_append(writer, &append, &error));
      appended += append.length;
      marquetry_bytes_release(&append);
    } else if (status == MARQUETRY_STATUS_READY) {
      struct ArrowArray batch = {0};
      status = next(reader);
      if (status == MARQUETRY_STATUS_DONE) {
        TRY(marquetry_finish(writer, &error));
        continue;
      }
      if (status != MARQUETRY_STATUS_READY) goto end;
      TRY(marquetry_take_batch(reader, &batch, NULL, NULL, &error));
      rows += (unsigned long long)batch.length;
      status = marquetry_feed(writer, &batch, &error);
      if (batch.release != NULL) batch.release(&batch);
      if (status != MARQUETRY_STATUS_OK) goto end;
    } else if (status == MARQUETRY_STATUS_DONE) {
      ended = true;
    } else {
      goto end;
    }
  }
  TRY(marquetry_records_new(metadata, NULL, &records, &error));
  while ((status = next(records)) == MARQUETRY_STATUS_READY) {
    const marquetry_event *some;
    size_t count;
    TRY(marquetry_events(records, &some, &count, &error));
    for (size_t i = 0; i < count; i++) events += some[i].kind == MARQUETRY_EVENT_KIND_END_RECORD;
  }
  if (status != MARQUETRY_STATUS_DONE) goto end;
  marquetry_cql_options table = {.struct_size = sizeof table, .table = "ks.t"};
  TRY(marquetry_cql_new(metadata, NULL, &table, &cql, &error));
  while ((status = next(cql)) == MARQUETRY_STATUS_READY) {
    marquetry_bytes some;
    TRY(marquetry_take_text(cql, &some, &error));
    text += some.length;
    marquetry_bytes_release(&some);
  }
  if (status != MARQUETRY_STATUS_DONE) goto end;
  TRY(marquetry_stream_new(read_at, NULL, length, NULL, &stream, &error));
  for (;;) {
    struct ArrowArray batch = {0};
    if (stream.get_next(&stream, &batch) != 0) goto end;
    if (batch.release == NULL) break;
    streamed += (unsigned long long)batch.length;
    batch.release(&batch);
  }
  done = true;
end:
  if (stream.release != NULL) stream.release(&stream);
  marquetry_machine_free(cql);
  marquetry_machine_free(records);
  marquetry_machine_free(writer);
  if (schema.release != NULL) schema.release(&schema);
  marquetry_machine_free(reader);
  marquetry_metadata_free(metadata);
  marquetry_machine_free(footer);
  return done;
}

static int wrong(const char *what) { return fprintf(stderr, "%s, refusing at %lu%s\n", what, refuse_at, refuse_on ? " and on" : ""), 1; }

int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  unsigned long step = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, runs = 0;
  if (file == NULL) return 2;
  fseek(file, 0, SEEK_END);
  length = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(length);
  if (fread(bytes, 1, length, file) != length) return 2;
  fclose(file);
  marquetry_allocator allocator = {sizeof allocator, NULL, host_alloc, host_zeroed, host_realloc, host_free};
  if (marquetry_set_allocator(&allocator, NULL) != MARQUETRY_STATUS_OK) return wrong("not set");
  inside = 1;
  if (!exercise()) return wrong("failed without a refusal");
  long long held = live;
  unsigned long all = requests;
  if (!exercise() || library_malloc > 0) return wrong("memory that is not the host's");
  if (live != held || lent != 0) return wrong("memory that does not come back");
  if (rows != events || rows != streamed || text == 0 || appended == 0) return wrong("other rows");
  printf("%llu rows, %lu requests\n", rows, requests - all);
  if (marquetry_set_allocator(&allocator, NULL) != MARQUETRY_STATUS_ERROR) return wrong("set twice");
  for (int on = 0; on < 2; on++) {
    for (refuse_at = 1, refuse_on = on; ; refuse_at += step, runs++) {
      requests = refused = 0;
      bool done = exercise();
      if (refused == 0) break;
      unsigned long at = refuse_at;
      refuse_at = 0;
      if (!done && error != NULL) {
        marquetry_error_info info = {.struct_size = sizeof info};
        if (marquetry_error_get(error, &info) != MARQUETRY_STATUS_OK) return wrong("an error that says nothing");
        refuse_at = at;
        if (info.kind != MARQUETRY_ERROR_KIND_OUT_OF_MEMORY) return wrong(info.display.data);
        marquetry_error_free(error);
      }
      refuse_at = at;
      error = NULL;
      if (lent != 0) return wrong("bytes that are not released");
      if (live > held) return wrong("memory that does not come back");
    }
  }
  printf("%lu runs\n", runs);
  return 0;
}
