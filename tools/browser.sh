#!/bin/sh
# A browser and the STIX font for the tests of the explanation page. In CI on Debian as root both are installed; elsewhere
# nothing is changed, and the skipped tests name the packages that are missing.
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
