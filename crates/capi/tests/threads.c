/* Threads that read a file at the same time, each with a handle of its own for the same metadata; another one releases their arrays. Run under ThreadSanitizer,
 * which sees the host's side: what the library writes to it, and the bytes that were supplied, which are overwritten once they are released. */
#include <marquetry.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS = 4, TURNS = 5, ARRAYS = 16 };

static uint8_t *bytes;
static size_t length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct ArrowArray arrays[ARRAYS];
static int waiting, readers = READERS, lent;
static unsigned long long rows;

static void stop(marquetry_error *error) {
  marquetry_error_info info = {.struct_size = sizeof info};
  marquetry_error_get(error, &info);
  fprintf(stderr, "%s\n", info.display.data);
  exit(1);
}

/* The bytes are the host's again: it does what it likes with them. */
static void give_back(void *context, const uint8_t *data, size_t size) {
  (void)data;
  memset(context, 0xff, size);
  free(context);
  pthread_mutex_lock(&lock);
  lent--;
  pthread_mutex_unlock(&lock);
}

static void *read_all(void *given) {
  marquetry_metadata *metadata = given;
  marquetry_error *error = NULL;
  for (int turn = 0; turn < TURNS; turn++) {
    marquetry_machine *reader;
    marquetry_status status;
    if (marquetry_reader_new(metadata, NULL, &reader, &error) != MARQUETRY_STATUS_OK) stop(error);
    while ((status = marquetry_step(reader, NULL, &error)) != MARQUETRY_STATUS_DONE) {
      const marquetry_want *wants;
      size_t count;
      if (status == MARQUETRY_STATUS_ERROR) stop(error);
      if (status == MARQUETRY_STATUS_NEED) {
        if (marquetry_wants(reader, &wants, &count, &error) != MARQUETRY_STATUS_OK) stop(error);
        for (size_t i = 0; i < count; i++) {
          marquetry_want want = wants[i];
          size_t size = (size_t)(want.end - want.start);
          uint8_t *copy = malloc(size);
          if (copy == NULL) exit(2);
          memcpy(copy, bytes + want.start, size);
          pthread_mutex_lock(&lock);
          lent++;
          pthread_mutex_unlock(&lock);
          if (marquetry_supply(reader, 0, want.start, copy, size, give_back, copy, &error) != MARQUETRY_STATUS_OK) stop(error);
        }
      } else if (status == MARQUETRY_STATUS_READY) {
        struct ArrowArray array;
        if (marquetry_take_batch(reader, &array, NULL, NULL, &error) != MARQUETRY_STATUS_OK) stop(error);
        pthread_mutex_lock(&lock);
        while (waiting == ARRAYS) pthread_cond_wait(&changed, &lock);
        arrays[waiting++] = array;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
      }
    }
    marquetry_machine_free(reader);
  }
  marquetry_metadata_free(metadata);
  pthread_mutex_lock(&lock);
  readers--;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  marquetry_machine *footer;
  marquetry_metadata *metadata;
  marquetry_error *error = NULL;
  marquetry_status status;
  pthread_t threads[READERS];
  if (file == NULL) return 2;
  fseek(file, 0, SEEK_END);
  length = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(length);
  if (bytes == NULL || fread(bytes, 1, length, file) != length) return 2;
  fclose(file);
  if (marquetry_footer_new(NULL, &footer, &error) != MARQUETRY_STATUS_OK) stop(error);
  while ((status = marquetry_step(footer, NULL, &error)) != MARQUETRY_STATUS_READY) {
    const marquetry_want *wants;
    size_t count;
    if (status == MARQUETRY_STATUS_ERROR) stop(error);
    if (status != MARQUETRY_STATUS_NEED) continue;
    if (marquetry_wants(footer, &wants, &count, &error) != MARQUETRY_STATUS_OK) stop(error);
    for (size_t i = 0; i < count; i++) {
      marquetry_want want = wants[i];
      status = want.kind == MARQUETRY_WANT_KIND_LENGTH
                   ? marquetry_supply_length(footer, 0, length, &error)
                   : marquetry_supply(footer, 0, want.start, bytes + want.start, (size_t)(want.end - want.start), NULL, NULL,
                                      &error);
      if (status != MARQUETRY_STATUS_OK) stop(error);
    }
  }
  if (marquetry_take_metadata(footer, &metadata, &error) != MARQUETRY_STATUS_OK) stop(error);
  marquetry_machine_free(footer);
  for (int i = 0; i < READERS; i++) {
    marquetry_metadata *other;
    if (marquetry_metadata_share(metadata, &other, &error) != MARQUETRY_STATUS_OK) stop(error);
    if (pthread_create(&threads[i], NULL, read_all, other) != 0) return 2;
  }
  marquetry_metadata_free(metadata);
  pthread_mutex_lock(&lock);
  while (readers > 0 || waiting > 0) {
    if (waiting == 0) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    struct ArrowArray array = arrays[--waiting];
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    rows += (unsigned long long)array.length;
    array.release(&array);
    pthread_mutex_lock(&lock);
  }
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
  free(bytes);
  printf("%llu rows, %d lent\n", rows, lent);
  return 0;
}
