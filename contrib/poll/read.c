/* A host in plain C with poll(2): one thread runs the loop and never waits for a file; another one reads, and tells it through a pipe. A timer
 * ticks beside, as a stand-in for all else that the loop serves. Prints the rows, the ticks, and the longest time that the loop was away. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <marquetry.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct request {
  uint64_t start;
  size_t length;
  uint8_t *bytes; /* NULL: it cannot be read. */
};

static int file, asked[2], answered[2];
static uint64_t last_ns, longest_ns;
static unsigned long ticks;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The thread that may wait. */
static void *reads(void *context) {
  struct request it;
  (void)context;
  while (read(asked[0], &it, sizeof it) == (ssize_t)sizeof it) {
    size_t done = 0;
    it.bytes = malloc(it.length);
    while (it.bytes != NULL && done < it.length) {
      ssize_t more = pread(file, it.bytes + done, it.length - done, (off_t)(it.start + done));
      if (more <= 0) {
        free(it.bytes);
        it.bytes = NULL;
      } else {
        done += (size_t)more;
      }
    }
    if (write(answered[1], &it, sizeof it) != (ssize_t)sizeof it) break;
  }
  return NULL;
}

static void give_back(void *context, const uint8_t *data, size_t length) {
  (void)context, (void)length;
  free((void *)data);
}

static void stop(marquetry_error *error) {
  marquetry_error_info info = {.struct_size = sizeof info};
  if (marquetry_error_get(error, &info) == MARQUETRY_STATUS_OK) fprintf(stderr, "%s\n", info.display.data);
  exit(1);
}

/* Serves what is ready, and waits only if `wait` says that nothing else is to be done. */
static void serve(marquetry_machine *machine, int *waiting, int wait) {
  struct pollfd ready = {.fd = answered[0], .events = POLLIN};
  struct request it;
  uint64_t now = now_ns();
  if (now - last_ns > longest_ns) longest_ns = now - last_ns;
  if (poll(&ready, 1, wait ? 1 : 0) > 0 && read(answered[0], &it, sizeof it) == (ssize_t)sizeof it) {
    marquetry_error *error = NULL;
    (*waiting)--;
    if (it.bytes == NULL) marquetry_fail(machine, "the file cannot be read", NULL);
    else if (marquetry_supply(machine, 0, it.start, it.bytes, it.length, give_back, NULL, &error) != MARQUETRY_STATUS_OK) stop(error);
  }
  ticks++;
  last_ns = now_ns();
}

static marquetry_status next(marquetry_machine *machine) {
  int waiting = 0;
  for (;;) {
    marquetry_error *error = NULL;
    const marquetry_want *wants;
    size_t count;
    marquetry_status status = waiting > 0 ? MARQUETRY_STATUS_YIELD : marquetry_step(machine, NULL, &error);
    if (status == MARQUETRY_STATUS_ERROR) stop(error);
    if (status == MARQUETRY_STATUS_YIELD) {
      serve(machine, &waiting, waiting > 0);
      continue;
    }
    if (status != MARQUETRY_STATUS_NEED) return status;
    if (marquetry_wants(machine, &wants, &count, &error) != MARQUETRY_STATUS_OK) stop(error);
    for (size_t i = 0; i < count && wants[i].kind != MARQUETRY_WANT_KIND_SOON; i++) {
      struct request it = {wants[i].start, (size_t)(wants[i].end - wants[i].start), NULL};
      struct stat about;
      if (wants[i].kind == MARQUETRY_WANT_KIND_LENGTH) {
        if (fstat(file, &about) != 0 || marquetry_supply_length(machine, 0, (uint64_t)about.st_size, &error) != MARQUETRY_STATUS_OK) stop(error);
      } else if (write(asked[1], &it, sizeof it) == (ssize_t)sizeof it) {
        waiting++;
      }
    }
  }
}

int main(int argc, char **argv) {
  pthread_t thread;
  marquetry_machine *footer, *reader;
  marquetry_metadata *metadata;
  marquetry_error *error = NULL;
  unsigned long long rows = 0;
  if (argc != 2 || (file = open(argv[1], O_RDONLY)) < 0) return fprintf(stderr, "usage: read FILE\n"), 2;
  if (pipe(asked) != 0 || pipe(answered) != 0 || pthread_create(&thread, NULL, reads, NULL) != 0) return 2;
  last_ns = now_ns();
  if (marquetry_footer_new(NULL, &footer, &error) != MARQUETRY_STATUS_OK || next(footer) != MARQUETRY_STATUS_READY) stop(error);
  if (marquetry_take_metadata(footer, &metadata, &error) != MARQUETRY_STATUS_OK) stop(error);
  if (marquetry_reader_new(metadata, NULL, &reader, &error) != MARQUETRY_STATUS_OK) stop(error);
  while (next(reader) == MARQUETRY_STATUS_READY) {
    struct ArrowArray batch;
    if (marquetry_take_batch(reader, &batch, NULL, NULL, &error) != MARQUETRY_STATUS_OK) stop(error);
    rows += (unsigned long long)batch.length;
    batch.release(&batch);
  }
  printf("%llu rows\n", rows);
  fprintf(stderr, "%lu turns of the loop, which was away for %.3f ms at most\n", ticks, (double)longest_ns / 1e6);
  marquetry_machine_free(reader);
  marquetry_metadata_free(metadata);
  marquetry_machine_free(footer);
  close(asked[1]);
  pthread_join(thread, NULL);
  return 0;
}
