/* Ranks as processes: an example that starts itself once a rank, as a launcher would. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "example.h"

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

/* The world that the environment describes; this process is one rank of it. */
static inline pld_world_t *processes_join(void) {
  pld_world_options_t options;
  pld_world_t *world;
  OK(pld_world_options_init(&options, sizeof options));
  OK(pld_world_join(&options, &world));
  return world;
}

#endif
