#!/bin/sh
# Builds the tests of a module with the compiler of this machine, and runs them: `test.sh FOLDER`. They are the C sources in its folder
# `tests`, one of which has a `main`. Without a folder: the tests of the SDK. CC is another compiler, such as "python-zig cc".
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -eq 0 ]; then
    set -- -I "$sdk/src" -Werror "$sdk"/tests/*.c
else
    folder=$1
    set -- -I "$folder"
    for source in "$folder"/*.c "$folder"/src/*.c "$folder"/tests/*.c; do
        if [ -f "$source" ]; then
            set -- "$@" "$source"
        fi
    done
fi

build() {
    sanitizers=$1
    shift
    # shellcheck disable=SC2086
    ${CC:-cc} -Wall -Wextra -Wno-missing-field-initializers -g $sanitizers -I "$sdk/include" "$@" "$sdk"/src/*.c -lm -o "$work/test"
}

# Not every compiler comes with every sanitizer.
build "-fsanitize=address,undefined -fno-sanitize-recover" "$@" 2>"$work/said" ||
    build "-fsanitize=undefined -fno-sanitize-recover" "$@" 2>"$work/said" ||
    build "" "$@"
"$work/test"
