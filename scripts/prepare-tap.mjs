// Makes tap's test class match .taprc. tap rebuilds it by itself when the two differ, but the run that does so still
// starts its tests with the loaders of the old plugins, and the TypeScript one cannot load with this compiler.

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
