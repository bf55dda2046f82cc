/* An allocator whose functions call the library, which they must not: the calls are misuses, and what was going on is not disturbed. */
#define _POSIX_C_SOURCE 200809L
#include <marquetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long calls, misuses, others;
static int is_inside;
static marquetry_machine *machine;

static void call(void) {
  marquetry_machine *made = NULL;
  marquetry_error *error = NULL;
  marquetry_error_info info = {.struct_size = sizeof info};
  if (is_inside) return;
  is_inside = 1;
  calls++;
  /* A handle that is in use, a new one, and what frees one. */
  if (marquetry_step(machine, NULL, &error) == MARQUETRY_STATUS_ERROR && error != NULL) misuses++;
  if (marquetry_footer_new(NULL, &made, NULL) == MARQUETRY_STATUS_ERROR && made == NULL) misuses++;
  if (marquetry_machine_free(machine) == MARQUETRY_STATUS_ERROR || machine == NULL) misuses++;
  is_inside = 0;
  if (marquetry_error_free(error) != MARQUETRY_STATUS_OK) others++;
  (void)info;
}
static void *host_alloc(void *context, size_t size, size_t alignment) {
  void *memory = NULL;
  (void)context;
  call();
  return posix_memalign(&memory, alignment < 8 ? 8 : alignment, size) == 0 ? memory : NULL;
}
static void *host_zeroed(void *context, size_t size, size_t alignment) {
  void *memory = host_alloc(context, size, alignment);
  return memory == NULL ? NULL : memset(memory, 0, size);
}
static void host_free(void *context, void *memory, size_t size, size_t alignment) {
  (void)context, (void)size, (void)alignment;
  call();
  free(memory);
}
static void *host_realloc(void *context, void *memory, size_t old_size, size_t alignment, size_t new_size) {
  void *moved = host_alloc(context, new_size, alignment);
  if (moved == NULL) return NULL;
  memcpy(moved, memory, old_size < new_size ? old_size : new_size);
  host_free(context, memory, old_size, alignment);
  return moved;
}

int main(void) {
  marquetry_allocator allocator = {sizeof allocator, NULL, host_alloc, host_zeroed, host_realloc, host_free};
  marquetry_error *error = NULL;
  marquetry_error_info info = {.struct_size = sizeof info};
  if (marquetry_set_allocator(&allocator, NULL) != MARQUETRY_STATUS_OK) return 2;
  /* More handles than a block of the table has, so that blocks are added. */
  marquetry_machine *made[300];
  for (int i = 0; i < 300; i++) {
    if (marquetry_footer_new(NULL, &made[i], &error) != MARQUETRY_STATUS_OK) return 3;
    machine = made[i];
  }
  if (marquetry_supply(machine, 0, 0, NULL, 9, NULL, NULL, &error) != MARQUETRY_STATUS_ERROR) return 4;
  if (marquetry_error_get(error, &info) != MARQUETRY_STATUS_OK || info.kind != MARQUETRY_ERROR_KIND_MISUSE) return 5;
  if (strcmp(info.message.data, "9 bytes at NULL") != 0) return 6;
  if (marquetry_error_free(error) != MARQUETRY_STATUS_OK) return 7;
  for (int i = 0; i < 300; i++) {
    machine = i < 299 ? made[299] : NULL;
    if (marquetry_machine_free(made[i]) != MARQUETRY_STATUS_OK) return 8;
  }
  if (calls < 300 || misuses != 3 * calls || others > 0) {
    return fprintf(stderr, "%lu calls, %lu misuses, %lu others\n", calls, misuses, others), 9;
  }
  printf("%lu calls\n", calls);
  return 0;
}
