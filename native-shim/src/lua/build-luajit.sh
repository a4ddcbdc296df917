#!/bin/sh
# Builds LuaJIT's library in the folder $1: the interpreter only, with the Lua 5.2 features of Envoy's build.
set -eu
rm -rf "$1"
mkdir -p "$(dirname "$1")"
cp -R luajit "$1"
exec make -C "$1/src" libluajit.a TARGET_STRIP=: CCOPT='-O2 -fomit-frame-pointer' \
  XCFLAGS='-DLUAJIT_ENABLE_LUA52COMPAT -DLUAJIT_DISABLE_JIT -DLUAJIT_DISABLE_FFI -D_GNU_SOURCE -fPIC -fvisibility=hidden'
