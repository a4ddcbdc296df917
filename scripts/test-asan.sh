#!/bin/sh
# Runs the native shim's tests on a build with AddressSanitizer and UndefinedBehaviorSanitizer.
# Usage: scripts/test-asan.sh [test file without directory and suffix ...]
set -eu
cd "$(dirname "$0")/.."

copy=native-shim/build-asan
compiled=build-asan
mkdir -p "$copy"
rm -rf "$copy/src" "$copy/luajit"
cp -R native-shim/binding.gyp native-shim/luajit native-shim/src "$copy"
export PATH="$PWD/node_modules/.bin:$PATH"
# Passed by npm to install scripts: local headers, if configured.
nodedir="$(npm config get nodedir 2>/dev/null || true)"
[ "$nodedir" = undefined ] || [ -z "$nodedir" ] || export npm_config_nodedir="$nodedir"
CXXFLAGS='-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g' \
  LDFLAGS='-fsanitize=address,undefined' node-gyp rebuild --directory "$copy" >"$copy/build.log" 2>&1 ||
  { cat "$copy/build.log"; exit 1; }
tsc -p . --outDir "$compiled" || [ -f "$compiled/test/native-shim/harness/harness.js" ]

# The runtime must be preloaded, because node is not instrumented. Node and V8 do not free their memory at exit, so leak reports
# would be about them; the shim's tests check for its leaks.
export BATON_SHIM_BUILD="$copy/build/Release"
export ASAN_OPTIONS='detect_leaks=0:abort_on_error=0:exitcode=97'
export UBSAN_OPTIONS='print_stacktrace=1'
# Seconds for one test file, as in .taprc; node's default is 30.
export TAP_TIMEOUT=400
runtime="$(c++ -print-file-name=libasan.so)"
failed=0
if [ $# -eq 0 ]; then
  for file in test/native-shim/*.test.ts; do set -- "$@" "$(basename "$file" .test.ts)"; done
fi
for name; do
  echo "# $name"
  LD_PRELOAD="$runtime" node "$compiled/test/native-shim/$name.test.js" >"$copy/$name.log" 2>&1 ||
    { failed=1; echo "not ok $name"; cat "$copy/$name.log"; }
done
exit $failed
