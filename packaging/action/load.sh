#!/usr/bin/env bash
# The step of action.yml that loads the service. Its inputs are variables, so that no value is read as a command.
#   URL RATE DURATION   of `posthaste load`
#   ASSERT              bounds, one per line
#   ARGS                more arguments, separated by blanks
set -euo pipefail

arguments=("$URL" --rate "$RATE" --duration "$DURATION")
while IFS= read -r bound; do
    bound="${bound#"${bound%%[![:space:]]*}"}"
    if [ -n "$bound" ]; then
        arguments+=(--assert "$bound")
    fi
done <<< "$ASSERT"
read -r -a more <<< "$ARGS"
# The summary of a job is a file of its own for each step.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    arguments+=(--markdown "$GITHUB_STEP_SUMMARY")
fi
exec posthaste load "${arguments[@]}" "${more[@]}"
