# What next.sh and gpu.sh share: which runs are missing, and how finished ones reach the archive. TREE is a worktree of the
# registered commit with its own environment (README.md); its results/ holds the prepared corpus and the runs.
COMMIT=fa99c3d
SYSTEMS=(transformer transformer-mlm transformer-wide-small grammar)
STUDY=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CORPUS=results/multi30k-confirmation

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

check_tree() {
  [[ $(git -C "$1" rev-parse --short=7 HEAD 2> /dev/null) == "$COMMIT" ]] || fail "$1: not a worktree at $COMMIT (git worktree add $1 $COMMIT)"
  [[ -z $(git -C "$1" status --porcelain --untracked-files=no) ]] || fail "$1: files differ from $COMMIT"
  [[ -x $1/.venv/bin/snakemake ]] || fail "$1: no environment (run 'make .venv/.ready' there)"
}

# Seeds of which the archive lacks a run.
missing_seeds() {
  local seed system packed
  packed=$(tar -tJf "$STUDY/runs.tar.xz")
  for seed in {11..20}; do
    for system in "${SYSTEMS[@]}"; do
      grep -q "/$system/seed$seed/scores.json$" <<< "$packed" || { echo "$seed"; break; }
    done
  done
}

# The files that a seed has when it is finished.
targets() {
  local system
  for system in "${SYSTEMS[@]}"; do echo "$CORPUS/de-en/$system/seed$1/scores.json"; done
  echo "$CORPUS/de-en/grammar/seed$1/trees.jsonl"
}

# workflow TREE WORD…: Snakemake at the registered commit. MIRROR names a folder with the corpus' files; PRECISION replaces bf16.
workflow() {
  local overrides=()
  [[ ${MIRROR:-} ]] && overrides+=("mirrors={multi30k: $MIRROR}")
  [[ ${PRECISION:-} ]] && overrides+=("corpora={multi30k-confirmation: {training: {precision: $PRECISION}}}")
  (cd "$1" && PATH="$PWD/.venv/bin:$PATH" snakemake "${@:2}" --configfile studies/multi30k-confirmation/config.yaml ${overrides:+--config "${overrides[@]}"})
}

# archive FOLDER: put the seeds whose four runs are in FOLDER/results into the archive, and commit it.
archive() {
  local made=$1 seed system packing target
  packing=$(mktemp -d)
  mkdir "$packing/results"
  tar -xJf "$STUDY/runs.tar.xz" -C "$packing/results"
  for seed in $(missing_seeds); do
    for target in $(targets "$seed"); do [[ -f $made/$target ]] || continue 2; done
    for system in "${SYSTEMS[@]}"; do
      mkdir -p "$packing/$CORPUS/de-en/$system"
      cp -r "$made/$CORPUS/de-en/$system/seed$seed" "$packing/$CORPUS/de-en/$system/"
    done
    echo "seed $seed: four runs"
  done
  "$STUDY/../../.venv/bin/python" "$STUDY/../pack-runs.py" "$packing/$CORPUS" "$STUDY/runs.tar.xz" || fail "the archive is as it was"
  rm -r "$packing"
  git -C "$STUDY" commit --quiet --message "Keep more runs of the registered study" -- runs.tar.xz || echo "no new run"
}
