#!/bin/sh
# Looks for what the tests start beside themselves: redis-server, memcached, and the C compiler of the race detector.
# Where something is missing, CI (CI=true, root, apt-get) installs it; anybody else is told the command. The tests skip
# aloud what needs a missing server, and fail there in CI.
set -eu

missing=""
command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
command -v memcached >/dev/null 2>&1 || missing="$missing memcached"
command -v "${CC:-cc}" >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
[ -n "$missing" ] || exit 0

sudo=""
[ "$(id -u)" -eq 0 ] || sudo="sudo "
hint="${sudo}apt-get update && ${sudo}env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends$missing"

if [ "${CI:-}" != true ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  {
    echo "missing:$missing"
    echo "  Debian, Ubuntu:  $hint"
    echo "  macOS:           brew install redis memcached"
    echo "Going on. What needs a missing server is skipped; without a C compiler there is no race detector."
  } >&2
  exit 0
fi

# The packages would start services on the standard ports. The tests start servers of their own on free ports and need
# none of them, and where there is no init system a failed start would fail the installation: forbid it meanwhile.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

echo "installing:$missing"
apt-get update -q -o Acquire::Retries=3
# Whether a program is there counts, not what the scripts of its package say at the end.
# shellcheck disable=SC2086 # a list of packages
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
  -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 $missing || echo "apt-get install ended with an error" >&2

for program in redis-server memcached; do
  command -v "$program" >/dev/null 2>&1 || { echo "$program is still missing after: $hint" >&2; exit 1; }
done
