#!/usr/bin/env bash
# Make all missing runs on one GPU, side by side, on a machine that has CUDA, PyTorch, pandas, SciPy and scikit-learn, and no network.
#
#     gpu.sh pack TREE PYTHON PACK         here: PACK (60 MB) gets all that the machine lacks: the registered commit, the prepared
#                                          corpus, each run's commands, fairseq and other packages for its Python; PYTHON is an
#                                          environment here with the same Python and PyTorch as there
#     gpu.sh run PACK OUT SECONDS [JOBS]   there: JOBS runs at once (one per core); OUT/runs.tar grows by each run that is finished
#     gpu.sh unpack OUT/runs.tar           here: puts the seeds whose four runs are there into the archive, and commits it
#
# Given again with the seeds that are still missing, it makes the rest. EPOCHS=1 packs a trial: its runs end after one epoch.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
PACKAGES=(
  sacrebleu sacremoses subword-nmt bitarray hydra-core omegaconf antlr4-python3-runtime langdetect cyclopts attrs docstring-parser
  rich-rst docutils pydantic pydantic-core annotated-types typing-inspection portalocker tabulate colorama regex cffi pycparser
)

pack() {
  local tree python out=$3 seed run files=()
  tree=$(realpath -s "$1") python=$(realpath -s "$2")
  source "$HERE/common.sh"
  check_tree "$tree"
  mkdir -p "$out"
  for seed in $(missing_seeds); do mapfile -t -O ${#files[@]} files < <(targets "$seed"); done
  ((${#files[@]})) || { echo "all 40 runs are there"; return; }
  [[ -f $tree/$CORPUS/de-en/bin/dict.en.txt ]] || workflow "$tree" "${files[@]}" -c2 --until binarise

  # the commands of each run, in the order in which it needs them
  local work=$out/work
  git -c advice.detachedHead=false clone --quiet --depth 1 "file://$tree" "$work"
  workflow "$tree" "${files[@]}" -n -p | sed -n 's/^Shell command: \(trap : TERM; \)\?//p' > "$out/commands"
  mkdir "$out/jobs"
  local order=0 verb
  for seed in $(missing_seeds); do
    for run in {grammar,transformer-wide-small,transformer-mlm,transformer}/seed"$seed"; do  # the longest first
      order=$((order + 1))
      for verb in train average decode score-run parse; do
        grep -F "/de-en/$run/" "$out/commands" | grep "^synmask $verb " || [[ $verb == parse ]]
      done > "$out/jobs/$(printf '%02d' $order)-${run/\//-}"
    done
  done
  [[ ${EPOCHS:-} ]] && sed -i "s/\"max_epochs\": 10/\"max_epochs\": $EPOCHS/; s/--keep 3/--keep 1/; s/--last 3/--last 1/" "$out"/jobs/*
  mkdir -p "$work/$CORPUS/de-en" "$work/data"
  cp -r "$tree/$CORPUS"/de-en/{bin,bpe,text,tokens} "$work/$CORPUS/de-en/"
  rm "$work/$CORPUS"/de-en/{bpe,text,tokens}/train.*
  cp -r "$tree/data/multi30k" "$work/data/"

  # packages at the registered versions, and our operators, for the other Python
  local pins=() name
  for name in "${PACKAGES[@]}"; do pins+=("$(grep -oE -m1 "^$name==[^ ]+" "$tree/requirements.txt")"); done
  local packages=$(realpath "$out")/packages
  "$python" -m pip install --quiet --no-deps --target "$packages" "${pins[@]}" fairseq==0.12.2
  (cd "$work" && "$python" setup.py --quiet egg_info build_ext --inplace)
  tar -c -I "xz -T0" -f "$out/pack.tar.xz" -C "$out" --exclude=__pycache__ work packages jobs
  rm -rf "$work" "$packages" "$out/jobs" "$out/commands"
  cp "$HERE/gpu.sh" "$out/"
  du -h "$out/pack.tar.xz"
}

run() {
  local pack=$1 out=$2 seconds=$3 jobs=${4:-$(nproc)} work
  work=$(mktemp -d)
  tar -xJf "$pack/pack.tar.xz" -C "$work"
  mkdir -p "$work/bin" "$out"
  printf '#!/usr/bin/env python3\nfrom synmask.cli import main\nmain()\n' > "$work/bin/synmask"
  chmod +x "$work/bin/synmask"
  export PATH="$work/bin:$PATH" PYTHONPATH="$work/work/src:$work/packages" OMP_NUM_THREADS=1 OUT_TAR
  OUT_TAR=$(realpath "$out")/runs.tar
  # without MPS, the GPU works for one run at a time
  command -v nvidia-cuda-mps-control > /dev/null && CUDA_MPS_LOG_DIRECTORY=$work CUDA_MPS_PIPE_DIRECTORY=$work nvidia-cuda-mps-control -d &&
    export CUDA_MPS_PIPE_DIRECTORY=$work
  cd "$work/work"
  one() {
    local start=$SECONDS folder
    folder=$(grep -oE -m1 -- '--run results/[^ ]+' "$1" | cut -d' ' -f2)
    mkdir -p "$folder/logs"
    bash -e "$1" &> "$folder/gpu.log" || { echo "failed: $folder: $(tail -qn 1 "$folder"/*.log "$folder"/logs/*.log | tail -n 1)"; return; }
    flock "$OUT_TAR.lock" tar -rf "$OUT_TAR" --exclude='*.pt' --exclude=checkpoints --exclude='*.tok' --exclude=logs "$folder"
    echo "$folder in $((SECONDS - start)) s"
  }
  export -f one
  timeout --kill-after=5 "$seconds" xargs -P "$jobs" -I{} bash -c 'one {}' < <(find "$work/jobs" -type f | sort) || true
}

# Not into a worktree: a CPU that went on with a seed there would mix two machines.
unpack() {
  source "$HERE/common.sh"
  local made
  made=$(mktemp -d)
  tar -xf "$1" -C "$made"
  archive "$made"
  rm -r "$made"
}

case ${1:-} in
  pack) (($# == 4)) && pack "${@:2}" && exit ;;
  run) (($# == 4 || $# == 5)) && run "${@:2}" && exit ;;
  unpack) (($# == 2)) && unpack "${@:2}" && exit ;;
esac
sed -n '2,12s/^# \?//p' "$0" >&2
exit 2
