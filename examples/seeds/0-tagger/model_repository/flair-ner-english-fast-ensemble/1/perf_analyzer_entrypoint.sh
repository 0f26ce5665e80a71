#!/bin/bash
perf_analyzer -m flair-ner-english-fast-ensemble --async --percentile=95 --concurrency-range 4 --input-data "$(dirname "$0")/perf_analyzer_data.json" --shape sentence_bytes:70 -u "${1:-localhost:8001}" -i grpc --measurement-interval 30000 -v
