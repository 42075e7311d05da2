/* Ranks that are threads of this process, or processes: then the example starts itself once a rank, as a launcher
 * would. */
#ifndef RANKS_H
#define RANKS_H

#include "example.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* This process was started as a rank, by the example itself or by mpirun, torchrun, ... with PLD_RANK. */
static inline int processes_is_rank(void) { return getenv("PLD_RANK") != NULL; }

/* Starts the program `nranks` times with PLD_RANK and PLD_WORLD_SIZE set; 0 if all ended well. */
static inline int processes_start(char **argv, uint32_t nranks) {
  uint32_t r;
  int failed = 0, state;
  for (r = 0; r < nranks; r++) {
    pid_t child = fork();
    if (child < 0) {
      perror("fork");
      exit(1);
    }
    if (child == 0) {
      char rank[16], size[16];
      sprintf(rank, "%u", r);
      sprintf(size, "%u", nranks);
      setenv("PLD_RANK", rank, 1);
      setenv("PLD_WORLD_SIZE", size, 1);
      execv("/proc/self/exe", argv);
      perror("exec");
      _exit(127);
    }
  }
  while (wait(&state) > 0) failed |= !WIFEXITED(state) || WEXITSTATUS(state) != 0;
  return failed;
}

/* The ranks that this process drives: all, or one. */
typedef struct {
  pld_world_t *world;
  uint32_t nranks, first, driven;
  int processes;
  uint32_t launches;
} ranks_t;

/* An argument with one part of `rows` x `columns` for each rank of this process, behind each other. */
static inline pld_arg_t ranks_arg(const ranks_t *ranks, void *parts, pld_dtype_t dtype, int64_t rows, int64_t columns) {
  if (ranks->processes) return pld_arg_tensor(parts, dtype, PLD_DIMS(rows, columns));
  return pld_arg_tensor(parts, dtype, PLD_DIMS(ranks->nranks, rows, columns));
}

static inline void *zeroed(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory != NULL) return memory;
  fprintf(stderr, "no memory\n");
  exit(1);
}

/* Memory for a part of so many elements for each rank of this process. */
static inline void *ranks_parts(const ranks_t *ranks, size_t elements, size_t size) {
  return zeroed(ranks->driven * elements, size);
}

/* The main function of an example that launches `launches` times by default: reads the options, builds, and runs on the
 * ranks of this process. */
static inline int ranks_main(int argc, char **argv, const char *name, uint32_t launches,
                                pld_program_t *(*build)(void),
                                void (*run)(const pld_program_t *p, const ranks_t *ranks)) {
  uint32_t nranks = 2, cores = 1;
  int processes = 0, print = 0, i;
  ranks_t ranks;
  pld_program_t *p;
  pld_world_options_t options;
  for (i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--processes") == 0) {
      processes = 1;
    } else if (strcmp(argv[i], "--print") == 0) {
      print = 1;
    } else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      nranks = (uint32_t)atoi(argv[++i]);
    } else if (strcmp(argv[i], "--cores") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      cores = (uint32_t)atoi(argv[++i]);
    } else if (strcmp(argv[i], "--launches") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      launches = (uint32_t)atoi(argv[++i]);
    } else {
      fprintf(stderr, "usage: %s [--ranks N] [--cores N] [--processes] [--launches N] [--print]\n", name);
      return 2;
    }
  }

  p = build();
  OK(pld_program_finish(p, example_diagnostic, NULL));
  if (!processes_is_rank()) {
    if (print) OK(pld_program_print(p, example_write, stdout));
    fflush(stdout);
    if (processes) {
      pld_program_destroy(p);
      return processes_start(argv, nranks);
    }
  }
  OK(pld_world_options_init(&options, sizeof options));
  options.cores_per_rank = cores;
  ranks.processes = processes_is_rank();
  ranks.launches = launches;
  if (ranks.processes) {
    OK(pld_world_join(&options, &ranks.world));
    ranks.first = (uint32_t)pld_world_rank(ranks.world);
    ranks.nranks = pld_world_nranks(ranks.world);
    ranks.driven = 1;
  } else {
    options.nranks = nranks;
    OK(pld_world_create(&options, &ranks.world));
    ranks.first = 0;
    ranks.nranks = ranks.driven = nranks;
  }
  run(p, &ranks);
  pld_world_destroy(ranks.world);
  pld_program_destroy(p);
  if (ranks.processes && ranks.first != 0 && example_wrong == 0) return 0;
  return example_result(name);
}

#endif
