#!/bin/sh
# Builds LuaJIT's library in the folder $1: the interpreter only, with the Lua 5.2 features of Envoy's build. The profiler belongs to the
# process, and handlers of VM events run without hooks, so without a time limit.
set -eu
rm -rf "$1"
mkdir -p "$(dirname "$1")"
cp -R luajit "$1"
# The library is linked later: flags for that would apply to programs that make its sources.
unset LDFLAGS
options='-DLUAJIT_ENABLE_LUA52COMPAT -DLUAJIT_DISABLE_JIT -DLUAJIT_DISABLE_FFI -DLUAJIT_DISABLE_PROFILE -DLUAJIT_DISABLE_VMEVENT'
exec make -C "$1/src" libluajit.a TARGET_STRIP=: CCOPT='-O2 -fomit-frame-pointer' \
  XCFLAGS="$options -D_GNU_SOURCE -fPIC -fvisibility=hidden"
