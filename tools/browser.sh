#!/bin/sh
# A browser for the tests of the pages: there already, or installed where that takes no question (root on Debian or Ubuntu).
set -eu
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-stix && exit 0
fi
echo "No chromium was found and none can be installed here: the pages will not be tried in a browser." >&2
