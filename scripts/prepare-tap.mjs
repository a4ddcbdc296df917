// Rebuilds tap's test class according to .taprc. tap does that itself if the two differ, but that run still starts its tests with
// the loaders of the old plugins, and the TypeScript one cannot be loaded with this compiler.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { t } from 'tap';
import { parse } from 'yaml';

const unwanted = parse(readFileSync('.taprc', 'utf8'))
  .plugin.filter((name) => name.startsWith('!'))
  .map((name) => name.slice(1));
if (t.pluginSignature.split('\n').some((name) => unwanted.includes(name))) {
  const { status } = spawnSync('node_modules/.bin/tap', ['build'], { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) console.error('tap build failed: see .taprc');
  process.exitCode = status ?? 1;
}
