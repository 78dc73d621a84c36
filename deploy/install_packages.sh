#!/usr/bin/env bash
# Installs the packages of deploy/packages.txt that are missing. Does nothing, and needs neither
# root nor a network, when all are there.
#
# usage: deploy/install_packages.sh [--with-node]
#   --with-node   also make sure that `node` and `npm` run (for the tests that use real clients)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() { printf 'install: %s\n' "$*" >&2; exit 1; }

command -v dpkg-query >/dev/null ||
  fail "this script knows Debian 12; on another system install the counterparts of deploy/packages.txt by hand"

mapfile -t wanted < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/packages.txt")
if [[ ${1:-} == --with-node ]]; then
  # A node from elsewhere is as good as Debian's, and its packages may not mix.
  command -v node >/dev/null || wanted+=(nodejs)
  command -v npm >/dev/null || wanted+=(npm)
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "install: all ${#wanted[@]} packages are there"
  exit 0
fi

echo "install: ${#missing[@]} of ${#wanted[@]} packages are missing: ${missing[*]}"
sudo=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null ||
    fail "installing needs root: run this script as root once, or install the packages named above"
  sudo=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
echo "install: reading the package lists"
# apt-get update exits 0 even when it could reach nothing; the install below then says so.
"${sudo[@]}" apt-get update -qq >"$log" 2>&1 || true
echo "install: installing (about 1 to 3 minutes)"
if ! "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
  tail -n 15 "$log" >&2
  fail "apt-get could not install the packages named above; is there a network, and does the package mirror answer?"
fi
echo "install: done"
