#!/usr/bin/env bash
# Makes the pictures of docs/pictures from the real program: it runs
# `agentop demo` in a terminal of its own (tmux), presses keys and draws what
# the terminal shows. It needs Go, tmux and python3, no key and no network.
#
# Usage: docs/pictures.sh [FOLDER]      (docs/pictures, if it is not given)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-docs/pictures}
columns=104 rows=27
work=$(mktemp -d)
socket=agentop-pictures-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null || true; rm -rf "$work"' EXIT

go build -o "$work/agentop" ./cmd/agentop
mkdir -p "$out"
export LC_ALL=C.UTF-8
tmux -L "$socket" -u -f /dev/null new-session -d -x "$columns" -y "$rows" "'$work/agentop' demo"

# await TEXT: until the terminal shows it.
await() {
  for _ in $(seq 400); do
    shown=$(tmux -L "$socket" capture-pane -p | tr -s ' \n' ' ')
    if [[ $shown == *"$1"* ]]; then return; fi
    sleep 0.05
  done
  echo "the screen never showed: $1" >&2
  tmux -L "$socket" capture-pane -p >&2
  exit 1
}

keys() { tmux -L "$socket" send-keys "$@"; }

# picture NAME: what the terminal shows now, on a dark and a light ground.
picture() {
  tmux -L "$socket" capture-pane -e -N -p >"$work/capture"
  python3 docs/pictures/svg.py dark "$columns" <"$work/capture" >"$out/$1.svg"
  python3 docs/pictures/svg.py light "$columns" <"$work/capture" >"$out/$1-light.svg"
  echo "$out/$1.svg"
}

# The demo switches two agents after six seconds; two conversations begin later.
await "6 running"
keys End
await "alpha*"
await "streaming"
picture tui
keys Enter
await "why here"
picture detail
keys s
await "2 models"
await "running ones stay"
picture switch
keys Escape
await "why here"
keys l
await "follows the newest"
sleep 3 # some more lines
picture log
keys q
