#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# lint_metrics.sh [test_stats]: what promtool says of a text with every row of
# counters.def.  Runs in the build's top folder, after test_stats is built;
# skipped, visibly, where there is no promtool.
program=${1:-tests/base/test_stats}

if ! command -v promtool >/dev/null; then
	echo "promtool is not installed"
	exit 77
fi
text=$("$program" --print) || exit 1
printf '%s\n' "$text" | promtool check metrics
