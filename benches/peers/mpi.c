// What a user of MPI gets for the exchanges that libpld is measured on; built by install.sh for each MPI library.
//
//     mpi SERIES[,SERIES...] SECONDS
//
// SERIES is a name, or NAME/BYTES. Measures each three times for about SECONDS and prints
//
//     sample SERIES VALUE BEFORE AFTER
//
// VALUE is in microseconds, or GB/s for bandwidths. BEFORE and AFTER are the one-way trips of a cache line between
// ranks 0 and 1 in microseconds, measured with plain loads and stores while the others sleep; they are missing if the
// ranks run on more than one host.
// Rank r runs on CPU r % 2. With more ranks than CPUs everything is up to the library.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../rows/tasks/engine.h"

enum { REPEATS = 3, TIME_LIMIT = 120, LINE = 256, MAX_ITERATIONS = 20000 };

static int rank, ranks;
static int one_host, pair;  // all ranks run on one host; two of them
static double seconds;
static char *source, *destination;  // as large as the largest series, and as that for each rank

typedef double Measure(long iterations, size_t size);  // seconds of one iteration
typedef void Call(size_t bytes);

// ---- The raw trip of a cache line ----

static _Atomic int *ping, *pong;

static double raw_trip(void) {
  enum { TRIPS = 1000, SLEEP = 3000 };
  static int round_trips;
  double best = 1e9;
  MPI_Barrier(MPI_COMM_WORLD);
  if (!one_host) return 0;
  if (rank > 1) {
    usleep(SLEEP);
    return 0;
  }
  for (int attempt = 0; attempt < 3; attempt++) {
    double begin = MPI_Wtime();
    for (int i = 0; i < TRIPS; i++) {
      round_trips++;
      if (rank == 0) {
        atomic_store_explicit(ping, round_trips, memory_order_release);
        while (atomic_load_explicit(pong, memory_order_acquire) != round_trips) {
        }
      } else {
        while (atomic_load_explicit(ping, memory_order_acquire) != round_trips) {
        }
        atomic_store_explicit(pong, round_trips, memory_order_release);
      }
    }
    double trip = (MPI_Wtime() - begin) / TRIPS / 2 * 1e6;
    best = trip < best ? trip : best;
  }
  return best;
}

// ---- Taking samples ----

static double slowest(double value) {
  double result;
  MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return result;
}

// Repeats a measurement, and prints bytes per time if `bandwidth`.
static void sample(const char *series, Measure *measure, size_t size, int bandwidth) {
  measure(1, size);
  double once = slowest(measure(3, size));
  long iterations = (long)(seconds / once);
  iterations = iterations < 2 ? 2 : iterations > MAX_ITERATIONS ? MAX_ITERATIONS : iterations;
  MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);

  double before = raw_trip();
  for (int i = 0; i < REPEATS; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double time = slowest(measure(iterations, size));
    double after = raw_trip();
    if (rank == 0) {
      printf("sample %s %.6f", series, bandwidth ? (double)size / time / 1e9 : time * 1e6);
      if (one_host) printf(" %.4f %.4f", before, after);
      printf("\n");
      fflush(stdout);
    }
    before = after;
  }
}

// ---- One-sided exchange ----

static MPI_Win window;       // as large as `source`, and a flag
static char *window_memory;  // this rank's
static size_t flag_at;
static int arrivals;         // how often the own flag has been raised

// Put, flush, raise the peer's flag; the peer waits for its flag and answers. One way.
static double put_notify(long iterations, size_t bytes) {
  const int one = 1, peer = 1 - rank;
  int previous;
  volatile int *flag = (volatile int *)(window_memory + flag_at);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++) {
    for (int turn = 0; turn < 2; turn++) {
      if (turn == rank) {
        MPI_Put(source, (int)bytes, MPI_BYTE, peer, 0, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(peer, window);
        MPI_Fetch_and_op(&one, &previous, MPI_INT, peer, (MPI_Aint)flag_at, MPI_SUM, window);
        MPI_Win_flush(peer, window);
      } else {
        arrivals++;
        while (*flag < arrivals) MPI_Win_sync(window);
        atomic_thread_fence(memory_order_acquire);
      }
    }
  }
  return (MPI_Wtime() - begin) / (double)iterations / 2;
}

static double put(long iterations, size_t bytes) {
  enum { IN_FLIGHT = 16 };
  const int batch = bytes < ((size_t)16 << 20) ? IN_FLIGHT : 1;
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  if (rank == 0) {
    for (long i = 0; i < iterations; i += batch) {
      for (int k = 0; k < batch; k++) MPI_Put(source, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
      MPI_Win_flush(1, window);
    }
  }
  double time = MPI_Wtime() - begin;
  MPI_Barrier(MPI_COMM_WORLD);
  return time / (double)((iterations + batch - 1) / batch * batch);
}

// ---- The same through a shared window, where the program loads and stores itself ----

static char *shared_own, *shared_peer;

static double shared_put_notify(long iterations, size_t bytes) {
  static int raised;
  _Atomic int *own = (_Atomic int *)(shared_own + LINE), *peer = (_Atomic int *)(shared_peer + LINE);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++) {
    for (int turn = 0; turn < 2; turn++) {
      if (turn == rank) {
        memcpy(shared_peer, source, bytes);
        atomic_fetch_add(peer, 1);
      } else {
        raised++;
        while (atomic_load_explicit(own, memory_order_acquire) < raised) {
        }
      }
    }
  }
  return (MPI_Wtime() - begin) / (double)iterations / 2;
}

// ---- Collectives ----

// `bytes` are what a rank gives, of floats where they are summed; of an all-reduce and a broadcast, what each has.

static Call *collective;

static double calls(long iterations, size_t bytes) {
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++) collective(bytes);
  return (MPI_Wtime() - begin) / (double)iterations;
}

static void barrier(size_t bytes) {
  (void)bytes;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(size_t bytes) {
  MPI_Allreduce(source, destination, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void allreduce_in_place(size_t bytes) {
  MPI_Allreduce(MPI_IN_PLACE, destination, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(size_t bytes) {
  int part = (int)(bytes / sizeof(float)) / ranks;
  MPI_Reduce_scatter_block(source, destination, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(size_t bytes) { MPI_Bcast(destination, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }

static void allgather(size_t bytes) {
  MPI_Allgather(source, (int)bytes, MPI_BYTE, destination, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void all_to_all(size_t bytes) {
  int part = (int)bytes / ranks;
  MPI_Alltoall(source, part, MPI_BYTE, destination, part, MPI_BYTE, MPI_COMM_WORLD);
}

// Half of what a rank gives goes to all alike, and the other half to rank 0 besides.
static struct {
  int *sent, *sent_at, *received, *received_at;
} skewed;

static void skew(size_t bytes) {
  int part = (int)bytes / 2 / ranks, sent = 0, received = 0;
  for (int peer = 0; peer < ranks; peer++) {
    skewed.sent[peer] = peer == 0 ? (int)bytes / 2 + part : part;
    skewed.received[peer] = rank == 0 ? (int)bytes / 2 + part : part;
    skewed.sent_at[peer] = sent;
    skewed.received_at[peer] = received;
    sent += skewed.sent[peer];
    received += skewed.received[peer];
  }
}

static void all_to_all_v(size_t bytes) {
  (void)bytes;
  MPI_Alltoallv(source, skewed.sent, skewed.sent_at, MPI_BYTE, destination, skewed.received, skewed.received_at, MPI_BYTE,
                MPI_COMM_WORLD);
}

// ---- A layer of a mixture of experts ----
//
// The same as the program benches/rows/tasks/moe.pld, with the same tokens: rows of int8 go to the experts that they are
// routed to, with scale, weight and route; rows of bf16 come back and are summed. Buffers are made once, what is sent is
// packed once, and what arrives is used where it arrives.

enum { MAX_TOKENS = 128, MAX_RANKS = 4, MAX_ROWS = MAX_RANKS * MAX_TOKENS * ROUTES };

typedef struct {
  float scale, weight;
  int route;
} Aux;

static struct {
  int tokens;
  Row *x;                 // [tokens]
  float *scale;           // [tokens]
  int *expert;            // [tokens][ROUTES]
  float *weight;          // [tokens][ROUTES]
  int *place;             // [tokens][ROUTES]: row of the route in what is sent
  Row *sent, *received;   // by peer and expert; by source and expert
  Aux *sent_aux, *received_aux;
  Made *made, *back;      // rows like `received`; rows like `sent`
  Sum *y;                 // [tokens]
} moe;

static int moe_expert(int of_rank, int token, int route) {
  unsigned mixed = (unsigned)(of_rank * moe.tokens + token + 1) * 2654435761u;
  unsigned step = mixed >> 8 | 1, first = mixed >> 16;
  return (int)((step * (unsigned)route + first) % (unsigned)(ranks * EXPERTS));
}

static int moe_element(int token, int at) { return (rank * 37 + token * 11 + at * 3) % 251 - 125; }

static float moe_scale(int token) { return 1.0f / (float)(1 << ((token + rank) % 4)); }

static float moe_weight(int token, int route) { return (float)(1 + (token + 3 * route + rank) % 8) / 32.0f; }

// Byte counts and displacements of MPI_Alltoallv, for rows of so many bytes.
typedef struct {
  int counts[MAX_RANKS], places[MAX_RANKS];
} Parts;

static void parts(Parts *result, const int *rows, int bytes) {
  int place = 0;
  for (int peer = 0; peer < ranks; peer++) {
    result->counts[peer] = rows[peer] * bytes;
    result->places[peer] = place;
    place += result->counts[peer];
  }
}

static void exchange(const void *from, const Parts *sent, void *to, const Parts *received) {
  MPI_Alltoallv(from, sent->counts, sent->places, MPI_BYTE, to, received->counts, received->places, MPI_BYTE,
                MPI_COMM_WORLD);
}

static void moe_layer(void) {
  int counts[MAX_RANKS][EXPERTS], arriving[MAX_RANKS][EXPERTS], next[MAX_RANKS * EXPERTS];
  int rows[MAX_RANKS], arriving_rows[MAX_RANKS];
  memset(counts, 0, sizeof counts);
  for (int route = 0; route < moe.tokens * ROUTES; route++) (&counts[0][0])[moe.expert[route]]++;
  MPI_Alltoall(counts, EXPERTS, MPI_INT, arriving, EXPERTS, MPI_INT, MPI_COMM_WORLD);
  for (int peer = 0, row = 0; peer < ranks; peer++) {
    rows[peer] = arriving_rows[peer] = 0;
    for (int e = 0; e < EXPERTS; e++) {
      next[peer * EXPERTS + e] = row;
      row += counts[peer][e];
      rows[peer] += counts[peer][e];
      arriving_rows[peer] += arriving[peer][e];
    }
  }
  for (int t = 0; t < moe.tokens; t++) {
    for (int k = 0; k < ROUTES; k++) {
      int route = t * ROUTES + k, row = next[moe.expert[route]]++;
      moe.place[route] = row;
      memcpy(moe.sent[row], moe.x[t], sizeof(Row));
      moe.sent_aux[row] = (Aux){moe.scale[t], moe.weight[route], route};
    }
  }
  Parts sent, received;
  parts(&sent, rows, sizeof(Row));
  parts(&received, arriving_rows, sizeof(Row));
  exchange(moe.sent, &sent, moe.received, &received);
  parts(&sent, rows, sizeof(Aux));
  parts(&received, arriving_rows, sizeof(Aux));
  exchange(moe.sent_aux, &sent, moe.received_aux, &received);

  for (int source = 0, row = 0; source < ranks; source++)
    for (int e = 0; e < EXPERTS; e++)
      for (int i = 0; i < arriving[source][e]; i++, row++)
        expert_row(e, &moe.received[row], moe.received_aux[row].scale, &moe.made[row]);

  parts(&sent, arriving_rows, sizeof(Made));
  parts(&received, rows, sizeof(Made));
  exchange(moe.made, &sent, moe.back, &received);
  for (int t = 0; t < moe.tokens; t++) {
    const Made *routed[ROUTES];
    for (int k = 0; k < ROUTES; k++) routed[k] = &moe.back[moe.place[t * ROUTES + k]];
    sum_rows(routed, &moe.weight[t * ROUTES], &moe.y[t]);
  }
}

static void moe_check(void) {
  for (int t = 0; t < moe.tokens; t++)
    for (int at = 0; at < ELEMENTS; at++) {
      float sum = 0;
      for (int k = 0; k < ROUTES; k++)
        sum += moe_weight(t, k) * (float)moe_element(t, at) * moe_scale(t) * (float)(1 + moe_expert(rank, t, k) % 2);
      if (moe.y[t][at] != sum) MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

static char *allocate(size_t bytes);

static void moe_prepare(int tokens) {
  if (ranks > MAX_RANKS) MPI_Abort(MPI_COMM_WORLD, 5);
  if (moe.x == NULL) {
    size_t routes = (size_t)MAX_TOKENS * ROUTES;
    moe.x = (Row *)allocate(MAX_TOKENS * sizeof(Row));
    moe.scale = (float *)allocate(4096);
    moe.expert = (int *)allocate(routes * sizeof(int));
    moe.weight = (float *)allocate(routes * sizeof(float));
    moe.place = (int *)allocate(routes * sizeof(int));
    moe.sent = (Row *)allocate(routes * sizeof(Row));
    moe.received = (Row *)allocate(MAX_ROWS * sizeof(Row));
    moe.sent_aux = (Aux *)allocate(routes * sizeof(Aux));
    moe.received_aux = (Aux *)allocate(MAX_ROWS * sizeof(Aux));
    moe.made = (Made *)allocate(MAX_ROWS * sizeof(Made));
    moe.back = (Made *)allocate(routes * sizeof(Made));
    moe.y = (Sum *)allocate(MAX_TOKENS * sizeof(Sum));
  }
  moe.tokens = tokens;
  for (int t = 0; t < tokens; t++) {
    for (int at = 0; at < ELEMENTS; at++) moe.x[t][at] = (signed char)moe_element(t, at);
    moe.scale[t] = moe_scale(t);
    for (int k = 0; k < ROUTES; k++) {
      moe.expert[t * ROUTES + k] = moe_expert(rank, t, k);
      moe.weight[t * ROUTES + k] = moe_weight(t, k);
    }
  }
}

static double mixture(long iterations, size_t tokens) {
  if (moe.tokens != (int)tokens) moe_prepare((int)tokens);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++) moe_layer();
  double time = (MPI_Wtime() - begin) / (double)iterations;
  moe_check();
  return time;
}

// ---- The series ----

static const struct {
  const char *name;
  Measure *measure;
  Call *call;           // what `calls` repeats
  int bandwidth, pair;  // the latter: needs two ranks, of one host
} SERIES[] = {
    {"put_notify", put_notify, NULL, 0, 1},
    {"shared_put_notify", shared_put_notify, NULL, 0, 1},
    {"put_bw", put, NULL, 1, 1},
    {"moe", mixture, NULL, 0, 0},
    {"barrier", calls, barrier, 0, 0},
    {"allreduce", calls, allreduce, 0, 0},
    {"allreduce_in_place", calls, allreduce_in_place, 0, 0},
    {"reduce_scatter", calls, reduce_scatter, 0, 0},
    {"broadcast", calls, broadcast, 0, 0},
    {"allgather", calls, allgather, 0, 0},
    {"all_to_all", calls, all_to_all, 0, 0},
    {"all_to_all_v", calls, all_to_all_v, 0, 0},
};

// The bytes (or tokens) that a series is asked for.
static size_t size_of(const char *series) {
  const char *slash = strchr(series, '/');
  return slash == NULL ? 0 : strtoull(slash + 1, NULL, 10);
}

static void measure_series(const char *series) {
  size_t length = strcspn(series, "/"), size = size_of(series);
  for (size_t i = 0; i < sizeof SERIES / sizeof *SERIES; i++) {
    if (strlen(SERIES[i].name) != length || strncmp(SERIES[i].name, series, length) != 0) continue;
    if (SERIES[i].pair && !pair) return;
    collective = SERIES[i].call;
    if (collective == all_to_all_v) skew(size);
    sample(series, SERIES[i].measure, size, SERIES[i].bandwidth);
  }
}

static char *allocate(size_t bytes) {
  enum { PAGE = 4096 };
  char *memory = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(memory, 0, bytes);
  return memory;
}

// A window of `bytes` a rank that all ranks can load from and store to; `peer` is the memory of `peer_rank`.
static MPI_Win shared_window(MPI_Aint bytes, int peer_rank, char **own, char **peer) {
  MPI_Win result;
  MPI_Aint size;
  int unit;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, own, &result);
  MPI_Win_shared_query(result, peer_rank, &size, &unit, peer);
  memset(*own, 0, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  return result;
}

int main(int argc, char **argv) {
  alarm(TIME_LIMIT);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  seconds = atof(argv[2]);
  enum { MAX_SERIES = 128, CHECKED = 256 };
  const char *series[MAX_SERIES];
  size_t count = 0, largest = CHECKED * sizeof(float);
  for (char *name = strtok(argv[1], ","); name != NULL && count < MAX_SERIES; name = strtok(NULL, ",")) {
    series[count++] = name;
    largest = size_of(name) > largest ? size_of(name) : largest;
  }

  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(rank % 2, &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);

  source = allocate(largest);
  destination = allocate(largest * (size_t)ranks);
  int **numbers[] = {&skewed.sent, &skewed.sent_at, &skewed.received, &skewed.received_at};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    *numbers[i] = (int *)allocate((size_t)ranks * sizeof(int));
  for (size_t i = 0; i < CHECKED; i++) ((float *)source)[i] = (float)((rank + 1) * (int)(i % 7));
  MPI_Allreduce(source, destination, CHECKED, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < CHECKED; i++)
    if (((float *)destination)[i] != (float)(ranks * (ranks + 1) / 2 * (int)(i % 7))) MPI_Abort(MPI_COMM_WORLD, 3);

  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &one_host);
  one_host = one_host == ranks;
  pair = one_host && ranks == 2;

  char *own, *zero;
  MPI_Win lines = MPI_WIN_NULL, shared = MPI_WIN_NULL;
  if (one_host) {
    lines = shared_window(2 * LINE, 0, &own, &zero);
    ping = (_Atomic int *)zero;
    pong = (_Atomic int *)(zero + LINE);
  }
  if (pair) {
    shared = shared_window(2 * LINE, 1 - rank, &shared_own, &shared_peer);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ops", "same_op_no_op");
    flag_at = (largest + LINE - 1) / LINE * LINE;
    MPI_Win_allocate((MPI_Aint)(flag_at + LINE), 1, info, MPI_COMM_WORLD, &window_memory, &window);
    MPI_Info_free(&info);
    memset(window_memory, 0, flag_at + LINE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  }

  for (size_t i = 0; i < count; i++) measure_series(series[i]);

  if (pair) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Win_free(&shared);
  }
  if (one_host) MPI_Win_free(&lines);
  MPI_Finalize();
  return 0;
}
