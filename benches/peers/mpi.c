// What a user of MPI gets for the exchanges that libpld is measured on; built by install.sh for each MPI library.
//
//     mpi SERIES[,SERIES...] SECONDS
//
// Measures each series three times for about SECONDS and prints
//
//     sample SERIES VALUE BEFORE AFTER
//
// VALUE is in microseconds, or GB/s for bandwidths. BEFORE and AFTER are the one-way trips of a cache line between
// ranks 0 and 1 in microseconds, measured with plain loads and stores; they are left out unless there are two ranks.
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

enum { REPEATS = 3, TIME_LIMIT = 60, LINE = 256, MAX_ITERATIONS = 20000 };
static const size_t MAX_BYTES = (size_t)64 << 20;

static int rank, ranks;
static double seconds;
static char *source, *destination;

// ---- The raw trip of a cache line ----

static _Atomic int *ping, *pong;

static double raw_trip(void) {
  enum { TRIPS = 1000 };
  static int round_trips;
  double best = 1e9;
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

// Repeats `measure(iterations)`, which returns the seconds of one iteration, and prints bytes per time if there are any.
static void sample(const char *series, double (*measure)(long iterations, size_t bytes), size_t bytes, int bandwidth) {
  double once = slowest(measure(3, bytes));
  long iterations = (long)(seconds / once);
  iterations = iterations < 2 ? 2 : iterations > MAX_ITERATIONS ? MAX_ITERATIONS : iterations;
  MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);

  double before = ranks == 2 ? raw_trip() : 0;
  for (int i = 0; i < REPEATS; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double time = slowest(measure(iterations, bytes));
    double after = ranks == 2 ? raw_trip() : 0;
    if (rank == 0) {
      printf("sample %s %.6f", series, bandwidth ? (double)bytes / time / 1e9 : time * 1e6);
      if (ranks == 2) printf(" %.4f %.4f", before, after);
      printf("\n");
      fflush(stdout);
    }
    before = after;
  }
}

// ---- One-sided exchange ----

static MPI_Win window;       // MAX_BYTES and a flag
static char *window_memory;  // this rank's
static int arrivals;         // how often the own flag has been raised

// Put, flush, raise the peer's flag; the peer waits for its flag and answers. One way.
static double put_notify(long iterations, size_t bytes) {
  const int one = 1, peer = 1 - rank;
  int previous;
  volatile int *flag = (volatile int *)(window_memory + MAX_BYTES);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++) {
    for (int turn = 0; turn < 2; turn++) {
      if (turn == rank) {
        MPI_Put(source, (int)bytes, MPI_BYTE, peer, 0, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(peer, window);
        MPI_Fetch_and_op(&one, &previous, MPI_INT, peer, (MPI_Aint)MAX_BYTES, MPI_SUM, window);
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

static double barrier(long iterations, size_t bytes) {
  (void)bytes;
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++) MPI_Barrier(MPI_COMM_WORLD);
  return (MPI_Wtime() - begin) / (double)iterations;
}

static double allreduce(long iterations, size_t bytes) {
  double begin = MPI_Wtime();
  for (long i = 0; i < iterations; i++)
    MPI_Allreduce(source, destination, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - begin) / (double)iterations;
}

// ---- A layer of a mixture of experts ----
//
// The same as the program benches/rows/tasks/moe.pld, with the same tokens: rows of int8 go to the experts that they are
// routed to, with scale, weight and route; rows of bf16 come back and are summed. Buffers are made once, what is sent is
// packed once, and what arrives is used where it arrives.

enum { MAX_TOKENS = 128, MAX_RANKS = 2, MAX_ROWS = MAX_RANKS * MAX_TOKENS * ROUTES };

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
  double (*measure)(long iterations, size_t bytes);
  size_t bytes;          // or tokens
  int bandwidth, ranks;  // ranks it needs; 0: any number
} SERIES[] = {
    {"put_notify_8", put_notify, 8, 0, 2},
    {"shared_put_notify_8", shared_put_notify, 8, 0, 2},
    {"put_bw_64k", put, (size_t)64 << 10, 1, 2},
    {"put_bw_1m", put, (size_t)1 << 20, 1, 2},
    {"put_bw_64m", put, (size_t)64 << 20, 1, 2},
    {"allreduce_1k", allreduce, 1024, 0, 0},
    {"barrier", barrier, 0, 0, 0},
    {"moe_16", mixture, 16, 0, 2},
    {"moe_64", mixture, 64, 0, 2},
    {"moe_128", mixture, 128, 0, 2},
};

static int asked_for(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return 1;
  return 0;
}

static char *allocate(size_t bytes) {
  char *memory = aligned_alloc(4096, bytes);
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
  const char *list = argv[1];
  seconds = atof(argv[2]);

  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(rank % 2, &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);

  source = allocate(ranks == 2 ? MAX_BYTES : 4096);
  destination = allocate(4096);
  for (size_t i = 0; i < 256; i++) ((float *)source)[i] = (float)((rank + 1) * (int)(i % 7));
  MPI_Allreduce(source, destination, 256, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < 256; i++)
    if (((float *)destination)[i] != (float)(ranks * (ranks + 1) / 2 * (int)(i % 7))) MPI_Abort(MPI_COMM_WORLD, 3);

  MPI_Win lines, shared;
  if (ranks == 2) {
    char *own, *zero;
    lines = shared_window(2 * LINE, 0, &own, &zero);
    ping = (_Atomic int *)zero;
    pong = (_Atomic int *)(zero + LINE);
    shared = shared_window(2 * LINE, 1 - rank, &shared_own, &shared_peer);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ops", "same_op_no_op");
    MPI_Win_allocate((MPI_Aint)(MAX_BYTES + LINE), 1, info, MPI_COMM_WORLD, &window_memory, &window);
    MPI_Info_free(&info);
    memset(window_memory, 0, MAX_BYTES + LINE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  }

  for (size_t i = 0; i < sizeof SERIES / sizeof *SERIES; i++)
    if (asked_for(list, SERIES[i].name) && (SERIES[i].ranks == 0 || SERIES[i].ranks == ranks))
      sample(SERIES[i].name, SERIES[i].measure, SERIES[i].bytes, SERIES[i].bandwidth);

  if (ranks == 2) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Win_free(&shared);
    MPI_Win_free(&lines);
  }
  MPI_Finalize();
  return 0;
}
