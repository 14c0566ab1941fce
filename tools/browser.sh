#!/bin/sh
# A browser for the tests of the page. On a machine that only runs tests (CI is set, root, Debian) it is installed; anywhere
# else nothing is changed, and the tests say loudly what they left out.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium for the browser tests"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-stix; } >/dev/null 2>&1 && exit 0
fi
echo "no chromium found: the browser tests will be skipped (on Debian: apt-get install chromium)"
exit 0
