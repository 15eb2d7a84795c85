#!/usr/bin/env bash
# Builds the client for Java with nothing but the JDK: classes, a jar, and with `test` the tests, which it runs.
#
#   build.sh jar [DIRECTORY]     DIRECTORY/rota-client.jar
#   build.sh test [DIRECTORY]    the same, and the tests
#   build.sh programs [DIRECTORY]    the same, and the examples and programs of other tests, in DIRECTORY/programs
#
# DIRECTORY is `target` beside this file, if it is not said.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
what="${1:-jar}"
out="${2:-$here/target}"

compile() { # TO CLASSPATH FROM...: warnings are errors
    local to="$1" path="$2"
    shift 2
    rm -rf "$to"
    mkdir -p "$to"
    find "$@" -name '*.java' -print0 | sort -z | xargs -0 javac --release 17 -Xlint:all -Werror -encoding UTF-8 -cp "$path" -d "$to"
}

compile "$out/classes" "$out/classes" "$here/src"
jar --create --file "$out/rota-client.jar" -C "$out/classes" .
case "$what" in
jar) echo "$out/rota-client.jar" ;;
test)
    compile "$out/tests" "$out/classes" "$here/test"
    exec java -cp "$out/classes:$out/tests" -Drota.vectors="$here/../../docs/protocols/vectors" rota.Tests
    ;;
programs) compile "$out/programs" "$out/classes" "$here/programs" "$here/examples" ;;
*)
    echo "build.sh jar | test | programs" >&2
    exit 2
    ;;
esac
