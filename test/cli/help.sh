#!/usr/bin/env bash
# Every command explains itself with an example; wrong usage has its own exit codes.
. "$(dirname "$0")/lib.sh"
: "${work:?}"

expect 0 "$PMFS" --version
shown '^pmfs [0-9]+\.[0-9]+'
expect 0 "$PMFS" --help
shown Example

# The commands are those that --help lists.
commands=$("$PMFS" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p')
for wanted in mkfs import export check info dump count ls stat cat put get df grow trace mkdir rmdir mv cp rm ln tree find du chmod chown truncate touch getfacl setfacl; do
  grep -qx "$wanted" <<<"$commands" || fail "--help does not list $wanted"
done
for command in $commands; do
  expect 0 "$PMFS" "$command" --help
  shown 'Example:'
  shown "^  .*pmfs $command"
done

expect 2 "$PMFS"
expect 2 "$PMFS" no-such-command
expect 2 "$PMFS" info
expect 2 "$PMFS" info --no-such-option "$work/pool"
expect 2 "$PMFS" ls --json "$work/pool" / too many
expect 16 "$PMFS" check
expect 16 "$PMFS" check --no-such-option "$work/pool"
expect 2 "$PMFS" count --runs 0
expect 2 "$PMFS" trace
expect 2 "$PMFS" trace "$work/paths" --repeat 0
finish
