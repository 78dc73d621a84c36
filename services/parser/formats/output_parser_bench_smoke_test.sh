#!/bin/sh
# Runs each benchmark briefly.
exec services/parser/formats/output_parser_bench --benchmark_min_time=0.01
