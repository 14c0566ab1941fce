#!/bin/sh
# Check for the programs that the browser tests need: Chromium, and the STIX fonts for formulas on explanation pages. In CI, as
# root on Debian, missing packages are installed. Elsewhere only a message names them.
missing=""
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing="chromium"
fc-list 2>/dev/null | grep -qi stix || missing="$missing fonts-stix"
[ -z "$missing" ] && exit 0
if [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing$( printf ' %s' $missing ) for the browser tests"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1 && exit 0
fi
case "$missing" in
    *chromium*) echo "Chromium is not installed: the browser tests are skipped (Debian: apt-get install$( printf ' %s' $missing ))" ;;
    *) echo "The STIX fonts are not installed: browser tests use another font (Debian: apt-get install fonts-stix)" ;;
esac
exit 0
