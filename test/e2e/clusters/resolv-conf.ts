// Loaded into Baton before its own code (--import): replaces /etc/resolv.conf with BATON_TEST_RESOLV_CONF, so that the test's
// name server answers.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const instead = process.env.BATON_TEST_RESOLV_CONF!;
const { readFileSync, statSync } = fs;
const redirect = (path: unknown): unknown => (path === '/etc/resolv.conf' ? instead : path);

Object.assign(fs, {
  readFileSync: (path: unknown, ...rest: unknown[]) => Reflect.apply(readFileSync, fs, [redirect(path), ...rest]),
  statSync: (path: unknown, ...rest: unknown[]) => Reflect.apply(statSync, fs, [redirect(path), ...rest]),
});
syncBuiltinESMExports();
