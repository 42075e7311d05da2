// Collectives in plain shared memory, with nothing around them: what a library can be compared with.
//
// Every rank has an input and an output that all can reach. Between a barrier before and one after, each takes what it
// needs from the inputs, or fills its part of all outputs.
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 8, LINE = 128, BLOCK = 4096, SMALL = 4096, ALIGNED = 16 };

// As `ideal.rs` has it.
typedef struct {
  unsigned rank, ranks;
  unsigned crowded;  // more ranks than CPUs: who waits gives the CPU away
  unsigned round;    // of the barrier
  size_t stride;     // from the memory of one rank to that of the next
  size_t input, output;
  char *memory;
} Team;

typedef struct {
  _Alignas(LINE) atomic_uint round;
} Flag;

static Flag *flag(const Team *team, unsigned rank, unsigned step) {
  return (Flag *)(team->memory + rank * team->stride) + step;
}

static float *input(const Team *team, unsigned rank) {
  return (float *)(team->memory + rank * team->stride + team->input);
}

static float *output(const Team *team, unsigned rank) {
  return (float *)(team->memory + rank * team->stride + team->output);
}

// In step s a rank hears from the one 2^s before it, and so of all after log2(ranks) steps.
static void barrier(Team *team) {
  team->round++;
  for (unsigned distance = 1, step = 0; distance < team->ranks; distance *= 2, step++) {
    atomic_store_explicit(&flag(team, (team->rank + distance) % team->ranks, step)->round, team->round,
                          memory_order_release);
    atomic_uint *mine = &flag(team, team->rank, step)->round;
    while ((int)(atomic_load_explicit(mine, memory_order_acquire) - team->round) < 0)
      if (team->crowded) sched_yield();
  }
}

// Sums of the elements from `begin` to `end` of all inputs, counted from `offset`.
static void sum(const Team *team, float *restrict to, size_t offset, size_t begin, size_t end) {
  const float *a = input(team, 0) + offset, *b = input(team, 1) + offset;
  for (size_t i = begin; i < end; i++) to[i] = a[i] + b[i];
  for (unsigned rank = 2; rank < team->ranks; rank++) {
    const float *more = input(team, rank) + offset;
    for (size_t i = begin; i < end; i++) to[i] += more[i];
  }
}

static void ideal_barrier(Team *team, size_t bytes) {
  (void)bytes;
  barrier(team);
}

// Of a few elements everyone sums all; of many each sums a part and hands it out.
static void ideal_allreduce(Team *team, size_t bytes) {
  size_t count = bytes / sizeof(float), part = (count / team->ranks + ALIGNED - 1) / ALIGNED * ALIGNED;
  size_t begin = part * team->rank, end = team->rank == team->ranks - 1 ? count : begin + part;
  float *mine = output(team, team->rank);
  barrier(team);
  if (bytes <= SMALL) {
    sum(team, mine, 0, 0, count);
  } else {
    for (size_t at = begin; at < end; at += BLOCK) {
      size_t length = end - at < BLOCK ? end - at : BLOCK;
      sum(team, mine, 0, at, at + length);
      for (unsigned rank = 0; rank < team->ranks; rank++)
        if (rank != team->rank) memcpy(output(team, rank) + at, mine + at, length * sizeof(float));
    }
  }
  barrier(team);
}

static void ideal_reduce_scatter(Team *team, size_t bytes) {
  size_t part = bytes / sizeof(float) / team->ranks;
  barrier(team);
  sum(team, output(team, team->rank), part * team->rank, 0, part);
  barrier(team);
}

static void ideal_broadcast(Team *team, size_t bytes) {
  barrier(team);
  if (team->rank != 0) memcpy(output(team, team->rank), input(team, 0), bytes);
  barrier(team);
}

static void ideal_allgather(Team *team, size_t bytes) {
  barrier(team);
  for (unsigned i = 0; i < team->ranks; i++) {
    unsigned from = (team->rank + i) % team->ranks;
    memcpy((char *)output(team, team->rank) + from * bytes, input(team, from), bytes);
  }
  barrier(team);
}

static void ideal_all_to_all(Team *team, size_t bytes) {
  size_t part = bytes / team->ranks;
  barrier(team);
  for (unsigned i = 0; i < team->ranks; i++) {
    unsigned to = (team->rank + i) % team->ranks;
    memcpy((char *)output(team, to) + team->rank * part, (char *)input(team, team->rank) + to * part, part);
  }
  barrier(team);
}

// In the order of `ideal.rs`.
static void (*const COLLECTIVES[])(Team *, size_t) = {
    ideal_barrier, ideal_allreduce, ideal_reduce_scatter, ideal_broadcast, ideal_allgather, ideal_all_to_all,
};

void pld_bench_ideal(Team *team, unsigned collective, size_t bytes, unsigned times) {
  for (unsigned i = 0; i < times; i++) COLLECTIVES[collective](team, bytes);
}
