#!/usr/bin/env node
// Compiles Envoy's API into what Baton reads: dist/schema.json (the bundle) and src/config/generated/api.ts (the types).
//
// Usage: node scripts/build-schema.mjs. It runs before tsc, because the sources import the generated types.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiError, loadApi } from './schema/api.mjs';
import { bundleOf } from './schema/bundle.mjs';
import { loadExtensions } from './schema/extensions.mjs';
import { typesOf } from './schema/types.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { types, bundle } = read(root);
put('dist/schema.json', JSON.stringify(bundle));
put('src/config/generated/api.ts', typesOf(types));

function read(checkout) {
  try {
    const types = loadApi(checkout);
    return { types, bundle: bundleOf(types, loadExtensions(checkout, types)) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

/** Writes a file only when its content changed, so that tsc and people see no new date for nothing. */
function put(path, text) {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  let old;
  try {
    old = readFileSync(file, 'utf8');
  } catch {
    // The first build: there is no old file.
  }
  if (old !== text) writeFileSync(file, text);
}
