#!/bin/sh
# A short run: every token of every stream has to come.
exec tests/perf/parser/parser_service_bench 50 20 1
