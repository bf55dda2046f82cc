/* The C interface under choices: files, right or changed, supplied in any ranges, with any budgets, and calls in any order.
 *
 *   door BASE... --replay INPUT...     runs kept inputs
 *   door BASE... --seed SEED RUNS      runs inputs that are made of a seed
 *
 * A BASE is a Parquet file, or the files of an SSTable with commas between them. An input is bytes, which are taken as choices: the base, its changes,
 * what is asked of it, and what the host does next; where none are left, the host does what it should. Compiled with -DLIBFUZZER it is a
 * target of libFuzzer, whose bases are in DOOR_BASES, with spaces between them.
 *
 * What must hold: nothing crashes, no error is INTERNAL, a machine that failed answers with the same error again, all bytes that were lent are released
 * once, what is not taken is still there after another step, and of a file without changes exactly those values come out that come out of it at once:
 * as events, as CQL text, and as batches, which are written to a file of their own whose events are compared. (Other tests compare those with Rust's.) */
#include <marquetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 16, TURNS_MAX = 20000 };

struct base {
  unsigned count;
  const char *names[FILES_MAX]; /* Without folders. */
  uint8_t *bytes[FILES_MAX];
  size_t lengths[FILES_MAX];
};

static struct base bases[64];
static unsigned bases_count;
static const uint8_t *choices;
static size_t choices_left;
static long lent;
static const char *planted;

#define EXPECT(holds, ...) \
  do { \
    if (!(holds)) { \
      fprintf(stderr, __VA_ARGS__); \
      fprintf(stderr, " (line %d)\n", __LINE__); \
      abort(); \
    } \
  } while (0)

static unsigned byte(void) { return choices_left == 0 ? 0 : (choices_left--, *choices++); }
static unsigned below(unsigned bound) {
  unsigned number = byte();
  if (bound > 256) number = number << 8, number |= byte();
  return bound == 0 ? 0 : number % bound;
}

static void give_back(void *context, const uint8_t *data, size_t length) {
  (void)data, (void)length;
  lent--;
  free(context);
}

/* Looks at an error, and frees it. Says whether it is the host's, about one call. */
static int is_misuse(marquetry_error *error, char *text, size_t text_bytes) {
  marquetry_error_info info = {.struct_size = sizeof info};
  marquetry_error_kind kind;
  EXPECT(error != NULL, "an error without an object");
  EXPECT(marquetry_error_get(error, &info) == MARQUETRY_STATUS_OK, "an error that says nothing");
  EXPECT(info.display.data != NULL && strlen(info.display.data) <= info.display.length, "a text without its end");
  kind = info.kind;
  EXPECT(kind != MARQUETRY_ERROR_KIND_INTERNAL, "INTERNAL: %s", info.display.data);
  if (text != NULL) snprintf(text, text_bytes, "%s", info.display.data);
  marquetry_error_free(error);
  return kind == MARQUETRY_ERROR_KIND_MISUSE;
}

/* Supplies a range of a file as a copy, so that what is read beyond it, or after its release, is found. */
static void supply(marquetry_machine *machine, const struct base *of, uint32_t object, uint64_t start, uint64_t end) {
  marquetry_error *error = NULL;
  uint8_t *copy;
  size_t length;
  if (object >= of->count || start >= end || end > of->lengths[object]) return;
  length = (size_t)(end - start);
  copy = malloc(length);
  EXPECT(copy != NULL, "no memory");
  memcpy(copy, of->bytes[object] + start, length);
  lent++;
  if (marquetry_supply(machine, object, start, copy, length, give_back, copy, &error) == MARQUETRY_STATUS_ERROR) is_misuse(error, NULL, 0);
}

/* Answers what is wanted: whole, in two pieces, with more around it, or only in part. */
static void answer(marquetry_machine *machine, const struct base *of) {
  const marquetry_want *wants = NULL;
  marquetry_want all[64];
  size_t count = 0;
  marquetry_error *error = NULL;
  if (marquetry_wants(machine, &wants, &count, &error) == MARQUETRY_STATUS_ERROR) {
    is_misuse(error, NULL, 0);
    return;
  }
  if (count > 64) count = 64;
  if (count > 0) memcpy(all, wants, count * sizeof *wants);
  for (size_t i = 0; i < count; i++) {
    const marquetry_want *want = &all[i];
    EXPECT(want->object < of->count, "object %u is wanted of %u", want->object, of->count);
    if (want->kind == MARQUETRY_WANT_KIND_LENGTH) {
      if (marquetry_supply_length(machine, want->object, of->lengths[want->object], &error) == MARQUETRY_STATUS_ERROR) is_misuse(error, NULL, 0);
      continue;
    }
    EXPECT(want->start < want->end, "an empty range is wanted");
    if (want->end > of->lengths[want->object]) {
      marquetry_fail(machine, "beyond the end", NULL);
      return;
    }
    uint64_t middle = want->start + (want->end - want->start) / (2 + below(7));
    switch (byte() % 6) {
    case 1: /* In two pieces, the second one first. */
      supply(machine, of, want->object, middle, want->end);
      supply(machine, of, want->object, want->start, middle);
      break;
    case 2: /* The rest is asked for again. */
      supply(machine, of, want->object, want->start, middle == want->start ? want->end : middle);
      break;
    case 3: { /* More than that. */
      uint64_t before = below(200), after = below(200), length = of->lengths[want->object];
      supply(machine, of, want->object, want->start < before ? 0 : want->start - before, want->end + after > length ? length : want->end + after);
      break;
    }
    case 4: /* Twice. */
      supply(machine, of, want->object, want->start, want->end);
      supply(machine, of, want->object, want->start, want->end);
      break;
    default: supply(machine, of, want->object, want->start, want->end);
    }
  }
}

static int is_tired(void *context) {
  unsigned *left = context;
  return *left == 0 || --*left == 0;
}

static marquetry_status step(marquetry_machine *machine, marquetry_error **error) {
  static const uint64_t units[] = {0, 1, 100, 5000, UINT64_MAX};
  unsigned asked = below(9);
  marquetry_budget budget = {.struct_size = sizeof budget, .units = units[below(5)], .need_preempt = asked == 0 ? NULL : is_tired, .context = &asked};
  return marquetry_step(machine, byte() % 4 == 0 ? NULL : &budget, error);
}

/* What a machine comes to: rows, or -1 if it failed, or if the host made it fail; and a hash of events or of text. */
struct outcome {
  long long rows;
  int is_spoilt;
  uint64_t values;
};

static void mix(struct outcome *outcome, const void *data, size_t length) {
  for (size_t i = 0; i < length; i++) outcome->values = (outcome->values ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
}

static void mix_event(struct outcome *outcome, const marquetry_event *event) {
  uint64_t about[3] = {(uint64_t)event->kind, event->field, 0};
  switch (event->kind) {
  case MARQUETRY_EVENT_KIND_BOOLEAN:
  case MARQUETRY_EVENT_KIND_INT32:
  case MARQUETRY_EVENT_KIND_INT64: about[2] = (uint64_t)event->integer; break;
  case MARQUETRY_EVENT_KIND_FLOAT:
  case MARQUETRY_EVENT_KIND_DOUBLE: memcpy(&about[2], &event->real, sizeof event->real); break;
  case MARQUETRY_EVENT_KIND_BYTES: about[2] = event->length; break;
  default: break;
  }
  mix(outcome, about, sizeof about);
  if (event->kind == MARQUETRY_EVENT_KIND_BYTES) mix(outcome, event->data, event->length);
}

/* Where batches are written, if they are. */
static struct {
  int is_wanted, is_failed;
  marquetry_machine *writer;
  uint8_t *bytes;
  size_t length;
} sink;

static void spoil_sink(marquetry_error *error) {
  is_misuse(error, NULL, 0);
  sink.is_failed = 1;
}

/* Steps the writer until it has room, or is done; what it makes is taken, sometimes after another step. */
static void drain(void) {
  while (!sink.is_failed) {
    marquetry_error *error = NULL;
    marquetry_bytes bytes = {0};
    marquetry_status status = step(sink.writer, &error);
    if (status == MARQUETRY_STATUS_ERROR) {
      spoil_sink(error);
    } else if (status == MARQUETRY_STATUS_APPEND) {
      if (choices_left > 0 && byte() % 4 == 3) EXPECT(step(sink.writer, &error) == MARQUETRY_STATUS_APPEND, "what was to be appended is gone");
      EXPECT(marquetry_take_append(sink.writer, &bytes, &error) == MARQUETRY_STATUS_OK, "nothing to append");
      sink.bytes = realloc(sink.bytes, sink.length + bytes.length + 1);
      EXPECT(sink.bytes != NULL, "no memory");
      if (bytes.length > 0) memcpy(sink.bytes + sink.length, bytes.data, bytes.length);
      sink.length += bytes.length;
      marquetry_bytes_release(&bytes);
    } else if (status != MARQUETRY_STATUS_YIELD) {
      EXPECT(status == MARQUETRY_STATUS_READY || status == MARQUETRY_STATUS_DONE, "status %d of a writer", (int)status);
      return;
    }
  }
}

/* Writes a batch, if batches are written. */
static void write_batch(struct ArrowArray *array, const struct ArrowSchema *schema) {
  marquetry_error *error = NULL;
  marquetry_status status = MARQUETRY_STATUS_OK;
  if (sink.is_wanted && sink.writer == NULL && !sink.is_failed) {
    marquetry_writer_options options = {.struct_size = sizeof options, .row_group_rows = below(3) * 500, .compression = below(2) == 0 ? "none" : "zstd"};
    if (marquetry_writer_new(schema, &options, &sink.writer, &error) != MARQUETRY_STATUS_OK) spoil_sink(error);
  }
  while (sink.writer != NULL && !sink.is_failed && (status = marquetry_feed(sink.writer, array, &error)) == MARQUETRY_STATUS_FULL) drain();
  if (status == MARQUETRY_STATUS_ERROR) spoil_sink(error);
  if (array->release != NULL) array->release(array);
}

/* Takes the product, as often as there is one. */
static void take(marquetry_machine *machine, struct outcome *outcome, marquetry_metadata **metadata) {
  struct ArrowArray array;
  marquetry_error *error = NULL;
  marquetry_bytes bytes = {0};
  const marquetry_event *events;
  size_t count;
  marquetry_batch_info info = {.struct_size = sizeof info};
  struct ArrowSchema schema;
  if (marquetry_take_batch(machine, &array, &schema, &info, NULL) == MARQUETRY_STATUS_OK) {
    EXPECT((uint64_t)array.length == info.rows && array.n_children == schema.n_children, "a batch that is not what is said of it");
    outcome->rows += array.length;
    write_batch(&array, &schema);
    schema.release(&schema);
  } else if (marquetry_take_text(machine, &bytes, NULL) == MARQUETRY_STATUS_OK) {
    for (size_t i = 0; i < bytes.length; i++) outcome->rows += bytes.data[i] == ';';
    mix(outcome, bytes.data, bytes.length);
    marquetry_bytes_release(&bytes);
  } else if (metadata != NULL && marquetry_take_metadata(machine, metadata, NULL) == MARQUETRY_STATUS_OK) {
    outcome->rows = 0;
  } else if (marquetry_events(machine, &events, &count, &error) == MARQUETRY_STATUS_OK) {
    for (size_t i = 0; i < count; i++) {
      outcome->rows += events[i].kind == MARQUETRY_EVENT_KIND_START_RECORD;
      EXPECT(events[i].kind != MARQUETRY_EVENT_KIND_BYTES || events[i].length == 0 || events[i].data != NULL, "bytes at NULL");
      mix_event(outcome, &events[i]);
    }
  } else {
    is_misuse(error, NULL, 0);
  }
}

/* A call that nothing asks for: an error or not, it must do no harm. */
static void meddle(marquetry_machine *machine, const struct base *of, struct outcome *outcome) {
  marquetry_error *error = NULL;
  marquetry_bytes bytes = {0};
  struct ArrowSchema schema = {0};
  uint64_t fields;
  marquetry_status status = MARQUETRY_STATUS_OK;
  switch (byte() % 10) {
  case 0: supply(machine, of, below(3), below(4000), below(9000)); return;
  case 1: status = marquetry_supply_length(machine, below(3), below(60000), &error); outcome->is_spoilt = 1; break;
  case 2: status = marquetry_take_append(machine, &bytes, &error); break;
  case 3: status = marquetry_finish(machine, &error); break;
  case 4: status = marquetry_reader_schema(machine, &schema, &error); break;
  case 5: status = marquetry_sstable_schema(machine, &schema, &error); break;
  case 6: status = marquetry_records_fields(machine, &fields, &error); break;
  case 7: answer(machine, of); return;
  case 8: status = marquetry_take_text(machine, NULL, &error); break;
  default:
    if (byte() % 8 != 0) return;
    status = marquetry_fail(machine, "the disk is gone", &error);
    outcome->is_spoilt = 1;
  }
  if (status == MARQUETRY_STATUS_ERROR) is_misuse(error, NULL, 0);
  if (schema.release != NULL) schema.release(&schema);
}

/* Runs a machine to its end, in any manner, and frees it. */
static struct outcome run(marquetry_machine *machine, const struct base *of, marquetry_metadata **metadata) {
  struct outcome outcome = {0, 0, 0};
  for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
    marquetry_error *error = NULL;
    char text[200], again[200];
    if (choices_left > 0 && byte() % 16 == 15) meddle(machine, of, &outcome);
    marquetry_status status = step(machine, &error);
    if (status == MARQUETRY_STATUS_NEED) {
      answer(machine, of);
    } else if (status == MARQUETRY_STATUS_READY) {
      /* What is ready may be taken late. */
      if (choices_left > 0 && byte() % 8 == 7) EXPECT(step(machine, &error) == MARQUETRY_STATUS_READY, "what was ready is gone");
      take(machine, &outcome, metadata);
      if (metadata != NULL && *metadata != NULL) break;
    } else if (status == MARQUETRY_STATUS_ERROR) {
      int is_call = is_misuse(error, text, sizeof text);
      outcome.rows = -1;
      if (marquetry_step(machine, NULL, &error) == MARQUETRY_STATUS_ERROR) {
        is_misuse(error, again, sizeof again);
        EXPECT(strcmp(text, again) == 0, "'%s', and then '%s'", text, again);
      } else {
        EXPECT(is_call, "it goes on after '%s'", text);
      }
      break;
    } else if (status == MARQUETRY_STATUS_DONE) {
      break;
    } else {
      EXPECT(status == MARQUETRY_STATUS_YIELD, "status %d of a reader", (int)status);
    }
    if (turns + 1 == TURNS_MAX) outcome.is_spoilt = 1;
  }
  if (byte() % 2 == 1) {
    marquetry_budget budget = {.struct_size = sizeof budget, .units = 1 + below(2000)};
    for (unsigned turns = below(50); turns > 0 && marquetry_machine_release(machine, &budget, NULL) == MARQUETRY_STATUS_YIELD;) turns--;
  }
  EXPECT(marquetry_machine_free(machine) == MARQUETRY_STATUS_OK, "a machine that cannot be freed");
  return outcome;
}

static struct outcome read_file(const struct base *of, unsigned what);

/* Runs a machine whose batches are written, and reads that file at once: its events, so as many rows. */
static struct outcome run_to_file(marquetry_machine *machine, const struct base *of) {
  marquetry_error *error = NULL;
  sink.is_wanted = 1;
  struct outcome outcome = run(machine, of, NULL);
  if (sink.writer != NULL) {
    int is_whole = outcome.rows >= 0 && !outcome.is_spoilt;
    if (is_whole) drain();
    if (is_whole && !sink.is_failed && marquetry_finish(sink.writer, &error) != MARQUETRY_STATUS_OK) spoil_sink(error);
    if (is_whole) drain();
    EXPECT(marquetry_machine_free(sink.writer) == MARQUETRY_STATUS_OK, "a writer that cannot be freed");
    if (is_whole && !sink.is_failed) {
      struct base made = {.count = 1, .names = {"made"}, .bytes = {sink.bytes}, .lengths = {sink.length}};
      const uint8_t *choices_then = choices;
      size_t left_then = choices_left;
      choices_left = 0;
      struct outcome again = read_file(&made, 1);
      choices = choices_then, choices_left = left_then;
      EXPECT(again.rows == outcome.rows, "%lld rows were written, and %lld are in the file", outcome.rows, again.rows);
      outcome.values = again.values;
    }
  }
  if (sink.is_failed) outcome.rows = -1;
  free(sink.bytes);
  memset(&sink, 0, sizeof sink);
  return outcome;
}

/* What is asked of a file. */
static struct outcome read_file(const struct base *of, unsigned what) {
  marquetry_machine *machine = NULL;
  marquetry_metadata *metadata = NULL;
  marquetry_error *error = NULL;
  struct outcome outcome = {-1, 0, 0};
  marquetry_status status;
  if (of->count > 1) {
    marquetry_sstable_options options = {.struct_size = sizeof options, .files = of->names, .files_count = of->count};
    if (marquetry_sstable_new(&options, &machine, &error) != MARQUETRY_STATUS_OK) return is_misuse(error, NULL, 0), outcome;
    return what % 4 == 3 ? run_to_file(machine, of) : run(machine, of, NULL);
  }
  EXPECT(marquetry_footer_new(NULL, &machine, &error) == MARQUETRY_STATUS_OK, "no machine");
  outcome = run(machine, of, &metadata);
  if (metadata == NULL) return outcome.rows = -1, outcome;
  int is_spoilt = outcome.is_spoilt;
  marquetry_reader_options options = {.struct_size = sizeof options, .batch_rows = 1 + below(3000), .read_bytes = below(3) * 1000};
  marquetry_cql_options cql = {.struct_size = sizeof cql, .table = "ks.t", .only_rows = 1};
  switch (what % 4) {
  case 1: status = marquetry_records_new(metadata, &options, &machine, &error); break;
  case 2: status = marquetry_cql_new(metadata, NULL, &cql, &machine, &error); break;
  default: status = marquetry_reader_new(metadata, &options, &machine, &error);
  }
  EXPECT(marquetry_metadata_free(metadata) == MARQUETRY_STATUS_OK, "metadata that cannot be freed");
  if (status != MARQUETRY_STATUS_OK) return is_misuse(error, NULL, 0), outcome.rows = -1, outcome;
  outcome = what % 4 == 3 ? run_to_file(machine, of) : run(machine, of, NULL);
  outcome.is_spoilt |= is_spoilt;
  return outcome;
}

/* Changes some bytes of one of the files. */
static void change(struct base *copy) {
  unsigned at = below(copy->count);
  for (unsigned changes = 1 + below(4); changes > 0 && copy->lengths[at] > 0; changes--) {
    size_t place = below(65536);
    place = (place << 8 | byte()) % copy->lengths[at];
    /* The footer is at the end, and matters most. */
    if (byte() % 2 == 0) place = copy->lengths[at] - 1 - place % (copy->lengths[at] < 600 ? copy->lengths[at] : 600);
    switch (byte() % 4) {
    case 0: copy->bytes[at][place] = (uint8_t)byte(); break;
    case 1: copy->bytes[at][place] ^= (uint8_t)(1u << byte() % 8); break;
    case 2: copy->lengths[at] = place; break;
    default: memset(copy->bytes[at] + place, (int)byte(), copy->lengths[at] - place < 4 ? copy->lengths[at] - place : 4);
    }
  }
}

static void run_input(const uint8_t *data, size_t size) {
  struct base copy;
  unsigned what;
  int is_changed;
  choices = data, choices_left = size;
  copy = bases[below(bases_count)];
  what = byte();
  is_changed = byte() % 3 != 0;
  for (unsigned i = 0; i < copy.count; i++) {
    uint8_t *bytes = malloc(copy.lengths[i] + 1);
    EXPECT(bytes != NULL, "no memory");
    memcpy(bytes, copy.bytes[i], copy.lengths[i]);
    copy.bytes[i] = bytes;
  }
  if (is_changed) change(&copy);
  struct outcome outcome = read_file(&copy, what);
  EXPECT(lent == 0, "%ld buffers are not released", lent);
  if (!is_changed && !outcome.is_spoilt) {
    choices_left = 0; /* At once, as it should be. */
    struct outcome expected = read_file(&copy, what);
    if (planted != NULL && strcmp(planted, "values") == 0) expected.values++;
    if (planted != NULL && strcmp(planted, "rows") == 0) expected.rows++;
    if (planted != NULL && strcmp(planted, "copies") == 0) expected.values += what % 4 == 3;
    EXPECT(outcome.rows == expected.rows, "%lld rows, not %lld", outcome.rows, expected.rows);
    EXPECT(outcome.rows < 0 || outcome.values == expected.values, "other values than at once, of what %u", what % 4);
  }
  for (unsigned i = 0; i < copy.count; i++) free(copy.bytes[i]);
}

static void load(char *paths) {
  struct base *base = &bases[bases_count++];
  for (char *path = strtok(paths, ","); path != NULL; path = strtok(NULL, ",")) {
    char *slash = strrchr(path, '/');
    FILE *file = fopen(path, "rb");
    long length;
    EXPECT(file != NULL && base->count < FILES_MAX && bases_count <= 64, "%s cannot be opened, or is one too many", path);
    fseek(file, 0, SEEK_END);
    length = ftell(file);
    rewind(file);
    base->names[base->count] = slash == NULL ? path : slash + 1;
    base->bytes[base->count] = malloc((size_t)length + 1);
    base->lengths[base->count] = fread(base->bytes[base->count], 1, (size_t)length, file);
    base->count++;
    fclose(file);
  }
}

#ifdef LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (bases_count == 0) {
    char *end, *all = getenv("DOOR_BASES");
    EXPECT(all != NULL, "DOOR_BASES is not set");
    for (all = strdup(all); all != NULL && *all != 0; all = end) {
      end = strchr(all, ' ');
      if (end != NULL) *end++ = 0;
      load(all);
    }
  }
  run_input(data, size);
  return 0;
}
#else
int main(int argc, char **argv) {
  int at = 1;
  unsigned long runs = 0;
  planted = getenv("CANARY");
  while (at < argc && argv[at][0] != '-') load(argv[at++]);
  if (bases_count == 0 || at + 1 >= argc) return fprintf(stderr, "usage: door BASE... --replay INPUT... | --seed SEED RUNS\n"), 2;
  if (strcmp(argv[at], "--replay") == 0) {
    for (at++; at < argc; at++, runs++) {
      static uint8_t input[1 << 16];
      FILE *file = fopen(argv[at], "rb");
      EXPECT(file != NULL, "%s cannot be opened", argv[at]);
      size_t size = fread(input, 1, sizeof input, file);
      fclose(file);
      run_input(input, size);
    }
  } else if (at + 2 < argc) {
    uint64_t random = strtoull(argv[at + 1], NULL, 10) << 1 | 1;
    unsigned long all = strtoul(argv[at + 2], NULL, 10);
    for (; runs < all; runs++) {
      uint8_t input[600];
      size_t size = 0, most;
      uint64_t seed = random;
      for (most = 1 + runs % sizeof input; size < most; size++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        input[size] = (uint8_t)(runs % 2 == 0 ? random >> 32 : (random >> 32) % 24);
      }
      if (getenv("DOOR_VERBOSE") != NULL) fprintf(stderr, "input %lu of seed %llu\n", runs, (unsigned long long)seed >> 1);
      if (getenv("DOOR_KEEP") != NULL) { /* The input at hand, for whoever looks at a crash. */
        FILE *file = fopen(getenv("DOOR_KEEP"), "wb");
        if (file != NULL) fwrite(input, 1, size, file), fclose(file);
      }
      run_input(input, size);
    }
  }
  printf("%lu inputs\n", runs);
  return 0;
}
#endif
