#!/usr/bin/env bash
# The step of action.yml that installs posthaste and checks the command. Its inputs are variables, so that no value is
# read as a command.
#   PACKAGE   file or URL of the wheel; empty if an earlier step has installed posthaste
#   SHA256    SHA-256 of the wheel; a URL needs it, a file may go without
# Names of a registry are refused: the project has registered none, and other programs are named posthaste too.
set -euo pipefail

fail() {
    echo "::error::$1"
    exit 2
}

if [ -n "$PACKAGE" ]; then
    folder="$RUNNER_TEMP/posthaste"
    mkdir -p "$folder"
    case "$PACKAGE" in
        http://*.whl | https://*.whl)
            [ -n "$SHA256" ] || fail "package is a URL: give the SHA-256 of the wheel with the input sha256"
            wheel="$folder/${PACKAGE##*/}"
            curl --fail --silent --show-error --location --proto '=http,https' --output "$wheel" "$PACKAGE" ||
                fail "cannot download $PACKAGE"
            ;;
        *.whl)
            wheel="$PACKAGE"
            [ -f "$wheel" ] || fail "package: there is no file $wheel"
            ;;
        *) fail "package: $PACKAGE is no wheel; give the file or URL of one (*.whl), names of a registry are refused" ;;
    esac
    if [ -n "$SHA256" ]; then
        sum="$(sha256sum < "$wheel")"
        sum="${sum%% *}"
        [ "$sum" = "${SHA256,,}" ] || fail "the SHA-256 of $PACKAGE is $sum; the input sha256 is $SHA256"
    fi
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --no-index --no-deps "$wheel"
    program="$folder/venv/bin/posthaste"
    [ -x "$program" ] || fail "$PACKAGE has no command posthaste"
else
    program="$(command -v posthaste)" ||
        fail "posthaste is not installed: give the file or URL of its wheel with the input package, or install it before"
fi
# Another program may read its input or the tokens and send them away.
version="$(env --unset=POSTHASTE_BROKER_TOKEN --unset=POSTHASTE_TOKEN "$program" --version < /dev/null 2>&1 || true)"
[[ "$version" =~ ^posthaste\ [0-9]+\.[0-9]+\.[0-9] ]] ||
    fail "$program is another program: --version prints '${version%%$'\n'*}'; uninstall it, or use the input package"
if [ -n "$PACKAGE" ]; then
    echo "$folder/venv/bin" >> "$GITHUB_PATH"
fi
