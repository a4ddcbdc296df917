#!/usr/bin/env node
// Compiles the description of Envoy's API to dist/schema.json (the bundle) and src/config/generated/api.ts (the types).
//
// Usage: node scripts/build-schema.mjs. Runs before tsc, because the sources import the generated types.

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

/** Writes a file only if its content has changed, so that its modification time is kept otherwise. */
function put(path, text) {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  let old;
  try {
    old = readFileSync(file, 'utf8');
  } catch {
    // The first build has no old file.
  }
  if (old !== text) writeFileSync(file, text);
}
