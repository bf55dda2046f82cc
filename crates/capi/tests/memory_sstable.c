/* Reads an SSTable with an allocator that counts, and then refuses: a request, and in other runs that one and all that follow. Every run must end well or
 * with OUT_OF_MEMORY, and give all memory back: memory_sstable FILE... */
#include <marquetry.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long requests, refuse_at;
static bool refuse_on;
static long long live;

static bool refuses(void) {
  requests++;
  return refuse_at > 0 && (requests == refuse_at || (refuse_on && requests > refuse_at));
}
static void *host_alloc(void *context, size_t size, size_t alignment) {
  void *memory = NULL;
  (void)context;
  if (refuses()) return NULL;
  live += (long long)size;
  size_t rounded = (size + alignment - 1) / alignment * alignment;
  memory = aligned_alloc(alignment < sizeof(void *) ? sizeof(void *) : alignment, alignment < sizeof(void *) ? (size + 7) / 8 * 8 : rounded);
  if (memory == NULL) abort();
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

static const char *names[32];
static uint8_t *bytes[32];
static size_t lengths[32], count;
static long lent;
static marquetry_error *error;

static void give_back(void *context, const uint8_t *data, size_t size) { (void)context, (void)data, (void)size, lent--; }

/* The rows; -1 with an error. */
static long long read_all(void) {
  marquetry_sstable_options options = {.struct_size = sizeof options, .files = names, .files_count = count};
  marquetry_machine *reader = NULL;
  long long rows = 0;
  error = NULL;
  if (marquetry_sstable_new(&options, &reader, &error) != MARQUETRY_STATUS_OK) return -1;
  for (;;) {
    marquetry_status status = marquetry_step(reader, NULL, &error);
    const marquetry_want *wants = NULL;
    size_t wanted = 0;
    if (status == MARQUETRY_STATUS_READY) {
      struct ArrowArray batch = {0};
      struct ArrowSchema schema = {0};
      status = marquetry_take_batch(reader, &batch, &schema, NULL, &error);
      if (status == MARQUETRY_STATUS_OK) rows += batch.length;
      if (batch.release != NULL) batch.release(&batch);
      if (schema.release != NULL) schema.release(&schema);
    } else if (status == MARQUETRY_STATUS_NEED) {
      status = marquetry_wants(reader, &wants, &wanted, &error);
      for (size_t i = 0; i < wanted && status == MARQUETRY_STATUS_OK; i++) {
        uint32_t at = wants[i].object;
        if (wants[i].kind == MARQUETRY_WANT_KIND_LENGTH) {
          status = marquetry_supply_length(reader, at, lengths[at], &error);
        } else {
          lent++;
          status = marquetry_supply(reader, at, wants[i].start, bytes[at] + wants[i].start, (size_t)(wants[i].end - wants[i].start), give_back,
                                    NULL, &error);
        }
      }
    } else if (status == MARQUETRY_STATUS_DONE) {
      break;
    }
    if (status == MARQUETRY_STATUS_ERROR) rows = -1;
    if (rows < 0) break;
  }
  marquetry_machine_free(reader);
  return rows;
}

int main(int argc, char **argv) {
  marquetry_allocator allocator = {.struct_size = sizeof allocator, .alloc = host_alloc, .alloc_zeroed = host_zeroed, .realloc = host_realloc, .free = host_free};
  unsigned long all, runs = 0, refused = 0, stride;
  long long expected, held;
  for (int at = 1; at < argc && count < 32; at++, count++) {
    FILE *file = fopen(argv[at], "rb");
    char *slash = strrchr(argv[at], '/');
    if (file == NULL) return 2;
    fseek(file, 0, SEEK_END);
    names[count] = slash == NULL ? argv[at] : slash + 1;
    lengths[count] = (size_t)ftell(file);
    bytes[count] = malloc(lengths[count] + 1);
    rewind(file);
    if (bytes[count] == NULL || fread(bytes[count], 1, lengths[count], file) != lengths[count]) return 2;
    fclose(file);
  }
  if (marquetry_set_allocator(&allocator, &error) != MARQUETRY_STATUS_OK) return 3;
  expected = read_all(); /* The table of handles and the reserve stay. */
  held = live, requests = 0;
  if (read_all() != expected || expected < 0 || live != held) return 4;
  all = requests, stride = all / 150 + 1;
  for (unsigned long at = 1; at <= all; at += stride) {
    for (int on = 0; on < 2; on++, runs++) {
      requests = 0, refuse_at = at, refuse_on = on;
      long long rows = read_all();
      refuse_at = 0;
      if (rows < 0) {
        marquetry_error_info info = {.struct_size = sizeof info};
        if (error != NULL && (marquetry_error_get(error, &info) != MARQUETRY_STATUS_OK || info.kind != MARQUETRY_ERROR_KIND_OUT_OF_MEMORY)) return 5;
        marquetry_error_free(error);
        refused++;
      } else if (rows != expected) {
        return 6;
      }
      if (live != held || lent != 0) return fprintf(stderr, "%lld bytes and %ld buffers are kept\n", live - held, lent), 7;
    }
  }
  printf("%lld rows, %lu refused of %lu\n", expected, refused, runs);
  for (size_t at = 0; at < count; at++) free(bytes[at]);
  return 0;
}
