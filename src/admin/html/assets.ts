// The parts of the pages besides their HTML, each served at its own path: files, and data that only their scripts request.

import { readFile } from 'node:fs/promises';
import { ADMIN_HTML } from '../../common/package/generated/build.js';
import { packagePath } from '../../common/package/package-root.js';
import type { AdminHandler } from '../admin-handler.js';
import { listenerRows } from './listener-rows.js';

/** Files of src/admin/web as the build writes them; scripts import each other. */
const FILES = [
  'admin.css',
  'dom.js',
  'histogram.js',
  'numbers.js',
  'poll.js',
  'query.js',
  'scripted.js',
  'series.js',
  'server.js',
  'stats-json.js',
  'table.js',
  'home/actions.js',
  'home/clusters.js',
  'home/gauges.js',
  'home/home.js',
  'home/listeners.js',
  'home/outcomes.js',
  'home/runtime-form.js',
  'home/sparkline.js',
  'stats/active.js',
  'stats/stats.js',
  'stats/stats-lines.js',
];

const TYPES: { readonly [extension: string]: string } = {
  css: 'text/css; charset=UTF-8',
  js: 'text/javascript; charset=UTF-8',
};

/** Unlisted endpoints; none in a build without pages. */
export const ASSETS: readonly AdminHandler[] = ADMIN_HTML ? [...FILES.map(asset), listenerRows] : [];

function asset(name: string): AdminHandler {
  // The files are small and constant while the server runs.
  let content: Buffer | undefined;
  return {
    path: `/web/${name}`,
    isUnlisted: true,
    mutates: false,
    help: '',
    parameters: [],
    async handle() {
      content ??= await readFile(packagePath('dist/web', name));
      return { contentType: TYPES[name.slice(name.lastIndexOf('.') + 1)]!, body: content };
    },
  };
}
