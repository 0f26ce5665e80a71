#!/bin/bash
# Asks a server over HTTP with curl. Usage: ask.sh [host:port]
set -euo pipefail
base="http://${1:-localhost:8000}"
curl() { command curl --silent --show-error --max-time 30 "$@"; }

curl --fail --output /dev/null "$base/v2/health/ready"
echo "ready: yes"
printf 'inputs: '
curl --fail "$base/v2/models/simple"

# Numbers as JSON.
printf '\nsum: '
curl --fail "$base/v2/models/simple/infer" --data '{
  "inputs": [
    {"name": "INPUT0", "shape": [1, 16], "datatype": "INT32", "data": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]},
    {"name": "INPUT1", "shape": [1, 16], "datatype": "INT32", "data": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}],
  "outputs": [{"name": "OUTPUT0"}]}'

# Numbers as they lie in memory, behind a JSON header whose length is told: 16 of 4 bytes each, the least significant byte first.
body=$(mktemp)
trap 'rm -f "$body"' EXIT
header='{"inputs": [
  {"name": "INPUT0", "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": 64}},
  {"name": "INPUT1", "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": 64}}],
  "outputs": [{"name": "OUTPUT1"}]}'
{
  printf '%s' "$header"
  for number in {0..15}; do printf "\\x$(printf %02x "$number")\\x00\\x00\\x00"; done
  for _ in {0..15}; do printf '\x01\x00\x00\x00'; done
} > "$body"
printf '\ndifference: '
curl --fail "$base/v2/models/simple/infer" --data-binary "@$body" --header "Inference-Header-Content-Length: ${#header}"

# A model that responds several times: an event per response.
printf '\nwords:\n'
curl --no-buffer --fail "$base/v2/models/words/generate_stream" --data '{"TEXT": "one word after another"}'

# Without --fail the text of a refusal is shown.
printf 'refused: '
curl "$base/v2/models/nothing/infer" --data '{"inputs": []}'
echo
