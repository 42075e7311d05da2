#!/bin/sh
# What mpirun starts processes on other hosts with: `host.sh HOST COMMAND...`. Hosts are network namespaces of this
# machine; PLD_BENCH_HOSTS is a list of HOST=FILE, the file being the one of the namespace.
host=$1
shift
for entry in $PLD_BENCH_HOSTS; do
  case $entry in "$host"=*) network=${entry#*=} ;; esac
done
exec nsenter --net="$network" unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' "$host" "$@"
