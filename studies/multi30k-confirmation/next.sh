#!/usr/bin/env bash
# Train, decode and score the next missing seed on this CPU, one system after the other on one thread, and commit the archive.
#
#     MIRROR=/data/multi30k setsid studies/multi30k-confirmation/next.sh ../study &
#
# ../study is a worktree of the registered commit (README.md). A call that was interrupted is given again: trainings go on where
# they last saved. To have the processor for yourself for a while: kill -STOP -- -$!, and later kill -CONT -- -$!
set -euo pipefail
source "$(dirname "$0")/common.sh"
(($# == 1)) || fail "usage: next.sh TREE"
check_tree "$1"
read -r seed < <(missing_seeds) || { echo "all 40 runs are there"; exit; }
grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo || PRECISION=fp32
echo "seed $seed in ${PRECISION:-bf16}"
renice -n 19 $$ > /dev/null
export OMP_NUM_THREADS=1
mapfile -t files < <(targets "$seed")
workflow "$1" "${files[@]}" -c1
archive "$1"
